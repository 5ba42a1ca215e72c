//! A request as the member will see it, because `Vary` is about these fields. Knows no answers.

use hostler_cache::{FORWARDED_URL, Head, ToldFields, is_host_of_key};
use hostler_wire::{Field, Fields, Name, name_ends_with, starts_in_any_case};

use crate::cache::HeadLines;
use crate::exchange::{Exchange, Scheme};
use crate::proxy;

/// Fields that are not passed on to the member if the cache needs the whole answer.
pub(super) const CONDITIONS: [&str; 6] =
    ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"];

/// The header fields that the client has sent.
pub(super) fn sent(exchange: &Exchange) -> HeadLines<'_> {
    HeadLines(&exchange.head.fields)
}

/// The fields that the member sees: the client's, without the removed ones, plus those of the route and of Hostler (such as
/// `X-Forwarded-For`). A list may be split over several lines.
#[derive(Clone, Copy)]
pub(super) struct MemberRequestView<'e>(pub &'e Exchange);

impl Head for MemberRequestView<'_> {
    fn lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]>
    where
        Self: 'a,
    {
        let Self(exchange) = self;
        let fields: &Fields = &exchange.head.fields;
        let is_it = move |other: &[u8]| other.eq_ignore_ascii_case(name.as_bytes());
        let passes = move |(field, other, _): &(&Field, &[u8], &[u8])| {
            is_it(other) && proxy::goes_on(exchange, field, other)
        };
        let client = fields.iter().filter(passes).map(|(_, _, value)| value);
        let goes_on = move |field: &Field, other: &[u8]| proxy::goes_on(exchange, field, other);
        let edited = exchange.to_member.lines_beside(fields, goes_on);
        let edited = edited.filter(move |(other, _)| is_it(other.as_bytes()));
        // Mostly this is empty, and an empty `Vec` allocates nothing.
        let mut own: Vec<&[u8]> = edited.map(|(_, value)| value).collect();
        let is_passed = || fields.iter().any(|line| passes(&line));
        own.extend(proxy::writes(exchange, name.as_bytes(), is_passed));
        if name == FORWARDED_URL {
            own.extend(passed(exchange, Name::Forwarded).flat_map(of_url));
        }
        client.chain(own)
    }
}

/// The fields in which some clients name the method that is meant, for proxies that let only GET and POST through.
const METHODS: [&[u8]; 3] = [b"x-http-method", b"x-http-method-override", b"x-method-override"];

/// Whether the member may read another method than that of the request line. Then its response is not the page: to HEAD it is empty, and to others
/// often an error.
pub(super) fn names_a_method(exchange: &Exchange) -> bool {
    // Many programs read an underscore as a hyphen.
    let same = |(a, b): (&u8, &u8)| a.eq_ignore_ascii_case(b) || (*a, *b) == (b'_', b'-');
    let is = |name: &[u8], of: &[u8]| name.len() == of.len() && name.iter().zip(of).all(same);
    let mut fields = exchange.head.fields.iter().filter(|(field, ..)| field.known == Name::Other);
    fields.any(|(field, name, _)| {
        METHODS.iter().any(|of| is(name, of)) && proxy::goes_on(exchange, field, name)
    })
}

/// Whether the member sees the host exactly as the cache key has it. Then the answer is valid for all requests with that key.
pub(super) fn is_as_stored(exchange: &Exchange) -> bool {
    is_host_of_key(is_secure(exchange), exchange.host())
}

/// Whether the member is told that the request came over TLS.
pub(super) fn is_secure(exchange: &Exchange) -> bool {
    let ours = exchange.forwarded_proto.unwrap_or(exchange.scheme) == Scheme::Https;
    if !exchange.client.peer_trusted || exchange.forwarded_proto.is_some() {
        return ours;
    }
    // If the client's proxy says nothing, our own scheme counts.
    passed(exchange, Name::XForwardedProto).next().map_or(ours, |said| said.eq_ignore_ascii_case(b"https"))
}

/// The fields in which a trusted proxy tells the member of another URL than that of the key. Such a proxy may pass on what its client has
/// written there, so a response to it must not go to other visitors of the URL.
pub(super) fn told(exchange: &Exchange) -> ToldFields {
    let mut told = ToldFields::default();
    if !exchange.client.peer_trusted {
        return told;
    }
    let usual_port: &[u8] = if is_secure(exchange) { b"443" } else { b"80" };
    for (field, name, said) in exchange.head.fields.iter() {
        let is_other = match field.known {
            Name::XForwardedHost => said != exchange.host(),
            Name::XForwardedPort => said != usual_port,
            // The two schemes have responses of their own in any case.
            Name::XForwardedProto => {
                ![&b"http"[..], b"https"].iter().any(|one| said.eq_ignore_ascii_case(one))
            }
            Name::Forwarded => of_url(said).any(|pair| !pair.is_empty()),
            Name::XForwardedPrefix => true,
            Name::Other => ToldFields::has_name(name) && said != usual(exchange, name),
            _ => false,
        };
        if is_other && proxy::goes_on(exchange, field, name) {
            told.note(if field.known == Name::Forwarded { FORWARDED_URL.as_bytes() } else { name });
        }
    }
    told
}

/// What such a field says without harm: what the key has. Empty if there is no such value.
fn usual<'e>(exchange: &'e Exchange, name: &[u8]) -> &'e [u8] {
    match name_ends_with(name, b"-url") {
        true => exchange.head.target(),
        false if name_ends_with(name, b"-host") => exchange.host(),
        false => b"",
    }
}

/// These fields with the values that the member sees.
pub(super) fn told_values(exchange: &Exchange, told: ToldFields) -> Vec<u8> {
    let mut values = Vec::new();
    for name in told.names() {
        values.extend_from_slice(b"\0");
        values.extend_from_slice(name.as_bytes());
        for line in MemberRequestView(exchange).lines(name) {
            values.extend_from_slice(b"\n");
            values.extend_from_slice(line);
        }
    }
    values
}

/// Fields in which many APIs take the key of a client.
const KEYS: [&[u8]; 5] = [b"api-key", b"apikey", b"x-access-token", b"x-api-key", b"x-auth-token"];

/// Appends the client's key, and what the member is told of its certificate, by Hostler or by a trusted proxy. A response may depend on both as on a
/// cookie.
pub(super) fn add_credentials(exchange: &Exchange, values: &mut Vec<u8>) {
    let is_one =
        |name: &[u8]| proxy::tells_certificate(name) || KEYS.iter().any(|key| name.eq_ignore_ascii_case(key));
    let fields = &exchange.head.fields;
    let passed = fields.iter().filter(|(field, name, _)| proxy::goes_on(exchange, field, name));
    let passed = passed.map(|(_, name, said)| (name, said));
    let goes_on = |field: &Field, name: &[u8]| proxy::goes_on(exchange, field, name);
    let edited = exchange.to_member.lines_beside(fields, goes_on).map(|(name, said)| (name.as_bytes(), said));
    for (name, said) in passed.chain(edited).filter(|(name, _)| is_one(name)) {
        for part in [&b"\0"[..], name, b"\n", said] {
            values.extend_from_slice(part);
        }
    }
}

/// What a value of `Forwarded` says besides the addresses, which differ for each client. An empty part ends each element.
fn of_url(said: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_address = |pair: &[u8]| [&b"for="[..], b"by="].iter().any(|name| starts_in_any_case(pair, name));
    said.split(|&byte| byte == b',').flat_map(move |element| {
        let pairs = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let pairs = pairs.filter(move |pair| !pair.is_empty() && !is_address(pair));
        pairs.chain([&b""[..]])
    })
}

/// The values of this field of the client that the member gets, too.
fn passed(exchange: &Exchange, known: Name) -> impl Iterator<Item = &[u8]> {
    let lines = exchange.head.fields.iter();
    let passed =
        lines.filter(move |(field, name, _)| field.known == known && proxy::goes_on(exchange, field, name));
    passed.map(|(.., said)| said)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hostler_wire::{Limits, RequestHead};

    use super::*;
    use crate::exchange::{Edit, Protocol};
    use crate::gateway::tests::exchange;

    /// Compares a list field by its members: how it is split into lines does not matter.
    fn list<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
        let lines = lines.map(|line| String::from_utf8_lossy(line).into_owned());
        lines
            .flat_map(|line| line.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>())
            .collect()
    }

    const HEAD: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6,7.7.7.7\r\nX-Forwarded-For: 8.8.8.8\r\n\
        X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nX-Forwarded-Port: 1\r\nForwarded: for=1\r\nVia: 1.0 x, 1.1 y\r\n\
        X-Real-IP: 9.9.9.9\r\nX_Real_IP: 9.9.9.9\r\nX-Request-Id: abc\r\nX-Geo-City: x\r\nAccept: x\r\nConnection: X-Hop\r\n\
        X-Hop: 1\r\nX-Own: 1\r\nMax-Forwards: 3\r\n\r\n";

    #[tokio::test]
    async fn variants_are_chosen_by_the_fields_that_a_member_sees() {
        let empty = HEAD.replace("Proto: https", "Proto:").replace("Host: b", "Host: ");
        let alone = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned();
        let edits = [
            Edit::Set("X-Own".into(), b"2".to_vec()),
            Edit::Remove("X-Forwarded-Host".into()),
            Edit::Add("Via".into(), b"1.1 z".to_vec()),
            Edit::Default("X-New".into(), b"3".to_vec()),
            Edit::Default("X-Forwarded-Port".into(), b"8443".to_vec()),
        ];
        for (head, trusted, edited) in [HEAD.to_owned(), empty, alone].into_iter().flat_map(|head| {
            [(false, false), (false, true), (true, false), (true, true)].map(|(a, b)| (head.clone(), a, b))
        }) {
            let mut exchange = exchange();
            exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
            exchange.client.peer_trusted = trusted;
            exchange.protocol = if edited { Protocol::Http2 } else { Protocol::Http1 };
            exchange.to_member.own = if edited { edits.to_vec() } else { Vec::new() };
            let mut text = Vec::new();
            proxy::write_head(&mut text, &exchange, None);
            let mut seen = RequestHead::default();
            seen.parse(&text, &Limits::default()).unwrap();
            let sent = exchange.head.fields.iter().chain(seen.fields.iter()).map(|(_, name, _)| name);
            let names: BTreeMap<_, _> = sent.map(|name| (name.to_ascii_lowercase(), ())).collect();
            for name in names.keys().map(|name| str::from_utf8(name).unwrap()) {
                let found = list(MemberRequestView(&exchange).lines(name));
                assert_eq!(found, list(seen.fields.values(name)), "{name}: {trusted} {edited} {head}");
            }
        }
    }
}
