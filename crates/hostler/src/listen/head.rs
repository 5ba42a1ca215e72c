//! Writes the heads of answers for clients: a member's without the fields for Hostler, or Hostler's own. Knows no bodies.

use std::cell::RefCell;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use hostler_cache::CacheStatus;
use hostler_wire::{
    BodyLength, Field, Fields, Name, ResponseHead, Version, tokens, write_body_length, write_field,
    write_head_end, write_number_field, write_status_line,
};

use hostler_engine::exchange::{Edits, Exchange};
use hostler_engine::proxy::is_for_our_cache;

/// The field in which caches say what they did (RFC 9211).
pub(super) const CACHE_STATUS: &str = "Cache-Status";

/// How an answer's body is framed for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is no body. The head describes a body that is not sent (HEAD, 304), or none (204).
    NoBody,
    /// A body of this length.
    Length(u64),
    /// The chunked coding.
    Chunked,
    /// The body ends with the connection (HTTP/1.0).
    UntilClose,
}

/// Whether the connection is kept after an answer, and the version in which that is said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keeping {
    pub keep: bool,
    pub version: Version,
}

/// Writes a final head.
pub(super) fn write_answer(
    out: &mut Vec<u8>,
    head: &ResponseHead,
    exchange: &Exchange,
    framing: Framing,
    keeping: Keeping,
) {
    write_status_line(out, head.status, head.reason());
    let (status, edits, age) = (head.status, &exchange.to_client, new_age(exchange));
    let is_kept = |field: &Field, name: &[u8]| {
        is_kept(field, name, framing, status) && !(age.is_some() && field.known == Name::Age)
    };
    if edits.is_empty() {
        head.fields.copy_lines(out, is_kept);
    } else {
        head.fields.copy_lines(out, |field, name| is_kept(field, name) && edits.keeps(name));
        for (name, value) in edits.lines(&head.fields) {
            write_field(out, name.as_bytes(), value);
        }
        if let Some(names) = more_vary(head, exchange) {
            write_field(out, b"Vary", names);
        }
    }
    if !has_date(head, exchange) {
        // RFC 9110 section 6.6.1: a recipient with a clock adds a missing date.
        with_date(exchange, |date| write_field(out, b"Date", date.as_bytes()));
    }
    if let Some(age) = age {
        write_number_field(out, b"Age", age);
    }
    match cache_status(exchange) {
        None => {}
        // The same as below, but faster, because hits are frequent.
        Some(CacheStatus::Hit { ttl }) => {
            out.extend_from_slice(b"Cache-Status: Hostler; hit; ttl=");
            out.extend_from_slice(itoa::Buffer::new().format(ttl).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Some(cache) => {
            // Writing to memory does not fail.
            let _ = write!(out, "{CACHE_STATUS}: Hostler; {cache}\r\n");
        }
    }
    write_framing(out, framing);
    write_keeping(out, keeping);
    if status == 426 && head.fields.first(Name::Upgrade).is_some() {
        // A 426 must name the protocols that the server requires (RFC 9110 section 15.5.22).
        write_upgrade(out, head);
    }
    write_head_end(out);
}

/// Whether the head has a `Date` already: that of the app, unless the route removes it, or one of the route.
fn has_date(head: &ResponseHead, exchange: &Exchange) -> bool {
    let (edits, theirs) = (&exchange.to_client, head.fields.first(Name::Date).is_some());
    theirs && (edits.is_empty() || edits.keeps(b"date"))
        || edits.lines(&head.fields).any(|(name, _)| name.eq_ignore_ascii_case("date"))
}

/// The age of an answer from the cache, which replaces the `Age` of its head, unless the route changes that field.
pub(super) fn new_age(exchange: &Exchange) -> Option<u64> {
    exchange.log_facts.age.filter(|_| exchange.to_client.keeps(b"age"))
}

/// What our cache did, as the last member of `Cache-Status` (RFC 9211), unless the route removes that field. This is so for a refusal, too: the
/// line is not one of the refusal's own fields, which no route removes.
pub(super) fn cache_status(exchange: &Exchange) -> Option<CacheStatus> {
    exchange.log_facts.cache.filter(|_| !exchange.to_client.replaces(CACHE_STATUS.as_bytes()))
}

/// What `Vary` must name besides, if the route changes that field and its answers have encoded forms. The name of ours is no answer of the app:
/// it neither takes the place of the route's default nor goes with the app's. Without it a cache in front would give an encoded answer to any
/// client.
pub(super) fn more_vary<'a>(head: &'a ResponseHead, exchange: &'a Exchange) -> Option<&'a [u8]> {
    const OURS: &str = "Accept-Encoding";
    let edits = &exchange.to_client;
    let is_ours = |name: &[u8]| name.eq_ignore_ascii_case(OURS.as_bytes());
    let mut names = head.fields.all(Name::Vary).flat_map(tokens).peekable();
    let may_be_ours = exchange.compress.is_some() || edits.has_forms;
    if !may_be_ours || edits.is_empty() || names.peek().is_none() {
        return None;
    }
    if edits.keeps(b"vary") {
        return edits.default_of("vary").filter(|_| names.all(is_ours));
    }
    let set = edits.lines(&head.fields).filter(|(name, _)| name.eq_ignore_ascii_case("vary"));
    let mut set = set.flat_map(|(_, names)| tokens(names)).peekable();
    let is_lost =
        set.peek().is_some() && !set.any(|name| is_ours(name) || name == b"*") && names.any(is_ours);
    is_lost.then_some(OURS.as_bytes())
}

/// Whether a field of a head is sent to the client. An interim head and a 101 count as heads of a chunked body: they say no length.
pub(super) fn is_kept(field: &Field, name: &[u8], framing: Framing, status: u16) -> bool {
    match field.known {
        // It says the length for a GET (RFC 9110 section 8.6). A 204 must not have it.
        Name::ContentLength => framing == Framing::NoBody && status != 204 && !field.listed,
        Name::Other => !field.listed && !is_for_our_cache(name),
        known => !field.listed && !known.is_hop_by_hop(),
    }
}

/// The trailers of an answer for its client, without fields that the route removes or sets.
pub(super) fn trailers(trailers: Option<&Fields>, exchange: &Exchange) -> Option<Fields> {
    trailers?.trailing(|name| exchange.to_client.is_empty() || exchange.to_client.keeps(name))
}

/// Writes an interim head.
pub(super) fn write_interim(out: &mut Vec<u8>, head: &ResponseHead) {
    write_status_line(out, head.status, head.reason());
    // As if it had a body: then `Content-Length` is left out.
    head.fields.copy_lines(out, |field, name| is_kept(field, name, Framing::Chunked, head.status));
    write_head_end(out);
}

/// Writes the head of a 101.
pub(super) fn write_switch(out: &mut Vec<u8>, head: &ResponseHead, edits: &Edits) {
    write_status_line(out, head.status, head.reason());
    head.fields.copy_lines(out, |field, name| {
        is_kept(field, name, Framing::Chunked, head.status) && edits.keeps(name)
    });
    for (name, value) in edits.lines(&head.fields) {
        write_field(out, name.as_bytes(), value);
    }
    write_upgrade(out, head);
    write_head_end(out);
}

/// `Upgrade` is for the next hop only, so `Connection` must name it.
fn write_upgrade(out: &mut Vec<u8>, head: &ResponseHead) {
    for protocols in head.fields.all(Name::Upgrade) {
        write_field(out, b"Upgrade", protocols);
    }
    write_field(out, b"Connection", b"Upgrade");
}

fn write_framing(out: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::Length(length) => write_body_length(out, BodyLength::Known(length)),
        Framing::Chunked => write_body_length(out, BodyLength::Chunked),
        Framing::NoBody | Framing::UntilClose => {}
    }
}

fn write_keeping(out: &mut Vec<u8>, keeping: Keeping) {
    match (keeping.keep, keeping.version) {
        (false, _) => write_field(out, b"Connection", b"close"),
        (true, Version::Http10) => write_field(out, b"Connection", b"keep-alive"),
        (true, Version::Http11) => {}
    }
}

thread_local! {
    /// The text of the current date: it changes once a second, and answers are more frequent.
    static DATE: RefCell<Date> = const { RefCell::new(Date { millis: 0, second: 0, text: String::new() }) };
}

struct Date {
    millis: u64,
    second: u64,
    text: String,
}

/// Passes the text of the current date to `take`. The clock is read only once per tick of the sweep, because reading it is expensive.
pub(super) fn with_date(exchange: &Exchange, take: impl FnOnce(&str)) {
    let millis = exchange.deadline.sweep().millis();
    DATE.with_borrow_mut(|date| {
        if date.millis != millis || date.text.is_empty() {
            let now = SystemTime::now();
            let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            if date.second != second || date.text.is_empty() {
                date.text = httpdate::fmt_http_date(now);
            }
            (date.millis, date.second) = (millis, second);
        }
        take(&date.text);
    });
}

#[cfg(test)]
mod tests {
    use hostler_engine::exchange::{Edit, Sweep};
    use hostler_wire::Limits;

    use super::*;

    fn written(age: Option<u64>, cache: Option<CacheStatus>, own: Vec<Edit>) -> String {
        let anywhere = "127.0.0.1:80".parse().unwrap();
        let mut exchange = Exchange::new(anywhere, anywhere, Sweep::new().deadline());
        (exchange.log_facts.age, exchange.log_facts.cache, exchange.to_client.own) = (age, cache, own);
        let mut head = ResponseHead::default();
        let stored = b"HTTP/1.1 200 OK\r\nDate: x\r\nAge: 1\r\nCache-Status: Origin; hit\r\n\r\n";
        head.parse(stored, &Limits::default()).unwrap();
        let mut out = Vec::new();
        let keeping = Keeping { keep: true, version: Version::Http11 };
        write_answer(&mut out, &head, &exchange, Framing::Length(0), keeping);
        let text = String::from_utf8(out).unwrap();
        let text = text.strip_prefix("HTTP/1.1 200 OK\r\nDate: x\r\n").unwrap();
        text.strip_suffix("Content-Length: 0\r\n\r\n").unwrap().to_owned()
    }

    #[test]
    fn our_cache_status_follows_the_others_and_our_age_replaces_theirs() {
        let theirs = "Age: 1\r\nCache-Status: Origin; hit\r\n";
        assert_eq!(written(None, None, vec![]), theirs);
        assert_eq!(
            written(Some(7), Some(CacheStatus::Hit { ttl: -3 }), vec![]),
            "Cache-Status: Origin; hit\r\nAge: 7\r\nCache-Status: Hostler; hit; ttl=-3\r\n"
        );
    }

    #[test]
    fn an_interim_head_has_nothing_for_this_hop_or_for_our_cache() {
        let mut head = ResponseHead::default();
        let sent = b"HTTP/1.1 103 Early Hints\r\nConnection: X-Hop\r\nX-Hop: 1\r\nLink: </a>\r\nContent-Length: 0\r\n\
            Hostler-Cache-Control: no-store\r\n\r\n";
        head.parse(sent, &Limits::default()).unwrap();
        let mut out = Vec::new();
        write_interim(&mut out, &head);
        assert_eq!(String::from_utf8(out).unwrap(), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    }

    #[test]
    fn a_route_that_changes_the_date_leaves_one() {
        let set = || vec![Edit::Set("date".into(), b"y".to_vec())];
        let removed = || vec![Edit::Remove("date".into())];
        let dates = |theirs: &[u8], own| {
            let anywhere = "127.0.0.1:80".parse().unwrap();
            let mut exchange = Exchange::new(anywhere, anywhere, Sweep::new().deadline());
            exchange.to_client.own = own;
            let mut head = ResponseHead::default();
            let text = [&b"HTTP/1.1 200 OK\r\n"[..], theirs, b"\r\n"].concat();
            head.parse(&text, &Limits::default()).unwrap();
            let mut out = Vec::new();
            let keeping = Keeping { keep: true, version: Version::Http11 };
            write_answer(&mut out, &head, &exchange, Framing::Length(0), keeping);
            let lines = String::from_utf8(out).unwrap().to_lowercase();
            lines
                .lines()
                .filter_map(|line| line.strip_prefix("date: "))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for theirs in [b"Date: x\r\n".as_slice(), b""] {
            assert_eq!(dates(theirs, set()), ["y"]);
            let ours = dates(theirs, removed());
            assert!(ours.len() == 1 && ours[0].ends_with("gmt"), "{ours:?}");
        }
    }

    #[test]
    fn a_route_that_hides_caches_hides_ours_too() {
        let hidden = ["age", "cache-status"].map(|name| Edit::Remove(name.into()));
        assert_eq!(written(Some(7), Some(CacheStatus::Hit { ttl: 3 }), hidden.into()), "");
    }
}
