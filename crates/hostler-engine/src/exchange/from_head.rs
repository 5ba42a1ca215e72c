//! What a request's head tells Hostler: the client's address, the request's id, and the protocols to which the client would switch. Knows no
//! routes.

use std::cell::RefCell;
use std::fmt;

use hostler_address::{AddressHeader, AddressSource, ClientAddress, Peer, Trust};
use hostler_wire::{Fields, Name, RequestHead, Version, is_token, tokens};

/// The longest request id of a client that is kept.
const LONGEST_ID: usize = 128;
/// Protocols that must not be tunnelled, because Hostler would have to understand them. An `h2c` tunnel would carry requests past routes
/// and limits.
const NOT_CARRIED: [&str; 5] = ["h2c", "h2", "h3", "http", "tls"];

/// The client by its connection and the head of its request.
pub(super) fn client(trust: &Trust, peer: Peer, fields: &Fields) -> ClientAddress {
    trust.client(peer, fields.all(name(trust.header)))
}

/// Writes the client's address into `X-Forwarded-For`, if a trusted proxy names it in another field: the client may have written what came
/// there, and apps read the address there.
pub(super) fn name_client(trust: &Trust, client: &ClientAddress, fields: &mut Fields) {
    if !client.peer_trusted || trust.header == AddressHeader::XForwardedFor {
        return;
    }
    let name = AddressHeader::XForwardedFor.name();
    fields.remove(|field| field.eq_ignore_ascii_case(name.as_bytes()));
    if let AddressSource::Header(_) = client.source {
        fields.add(name.as_bytes(), client.ip.to_string().as_bytes());
    }
}

/// The field name as the parser classifies it.
fn name(header: AddressHeader) -> Name {
    match header {
        AddressHeader::XForwardedFor => Name::XForwardedFor,
        AddressHeader::Forwarded => Name::Forwarded,
        AddressHeader::XRealIp => Name::XRealIp,
        AddressHeader::CfConnectingIp => Name::CfConnectingIp,
        AddressHeader::TrueClientIp => Name::TrueClientIp,
    }
}

/// The value of `X-Request-Id`: the client's if it is safe to log, else a new one.
#[derive(Clone, Default)]
pub struct RequestId(Text);

#[derive(Clone, Default)]
enum Text {
    #[default]
    None,
    Made([u8; 24]),
    Given(Box<str>),
}

struct IdSource {
    prefix: u32,
    counter: u64,
}

thread_local! {
    /// A random start per thread and a counter: unique without a system call for each id, and hard to guess.
    static SOURCE: RefCell<IdSource> = RefCell::new(IdSource { prefix: fastrand::u32(..), counter: fastrand::u64(..) });
}

impl RequestId {
    /// The state before the first request.
    pub fn none() -> Self {
        Self::default()
    }

    /// The client's id, or a new one.
    pub fn of(fields: &Fields) -> Self {
        match fields.first(Name::XRequestId).and_then(|value| std::str::from_utf8(value).ok()) {
            Some(given) if is_fit(given) => Self(Text::Given(given.into())),
            _ => Self::made(),
        }
    }

    /// A new id.
    pub fn made() -> Self {
        let (prefix, counter) = SOURCE.with_borrow_mut(|source| {
            // An odd step visits every number once before one repeats.
            source.counter = source.counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            (source.prefix, source.counter)
        });
        let mut text = [0; 24];
        let numbers = [prefix, (counter >> 32) as u32, counter as u32];
        for (digits, number) in text.chunks_exact_mut(8).zip(numbers) {
            digits.copy_from_slice(&hexadecimal(number));
        }
        Self(Text::Made(text))
    }

    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::None => b"",
            Text::Made(text) => text,
            Text::Given(text) => text.as_bytes(),
        }
    }

    /// Empty before the first request.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::None => "",
            Text::Made(text) => std::str::from_utf8(text).unwrap_or_default(),
            Text::Given(text) => text,
        }
    }
}

/// The eight digits of a number, made at the same time: each is one byte of a word.
fn hexadecimal(number: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let halves = u64::from(number);
    let quarters = (halves | (halves << 16)) & 0x0000_ffff_0000_ffff;
    let bytes = (quarters | (quarters << 8)) & 0x00ff_00ff_00ff_00ff;
    let digits = (bytes | (bytes << 4)) & (0x0f * ONES);
    // 1 where the digit is a letter.
    let letters = ((digits + 6 * ONES) >> 4) & ONES;
    (digits + u64::from(b'0') * ONES + u64::from(b'a' - b'0' - 10) * letters).to_be_bytes()
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn is_fit(given: &str) -> bool {
    (1..=LONGEST_ID).contains(&given.len())
        && given
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'/' | b'+' | b'='))
}

/// Whether a request with these fields is a call of gRPC, with any coding of its messages. gRPC-Web is not: its clients read errors in another
/// form.
pub fn is_grpc(fields: &Fields) -> bool {
    const MEDIA_TYPE: &[u8] = b"application/grpc";
    let media_type = fields.first(Name::ContentType).unwrap_or_default();
    let Some((start, rest)) = media_type.split_at_checked(MEDIA_TYPE.len()) else { return false };
    start.eq_ignore_ascii_case(MEDIA_TYPE) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}

/// The protocols that may be offered to a member, as a list. None for an ordinary request.
pub(super) fn offer(head: &RequestHead) -> Option<Box<[u8]>> {
    // In HTTP/1.0, or without the connection option, `Upgrade` must be ignored (RFC 9110 section 7.8).
    if !head.fields.says_upgrade() || head.version == Version::Http10 {
        return None;
    }
    let named = head.fields.all(Name::Upgrade).flat_map(tokens);
    let offered: Vec<&[u8]> = named.filter(|protocol| is_carried(protocol)).collect();
    (!offered.is_empty()).then(|| offered.join(&b", "[..]).into())
}

/// `protocol-name ["/" protocol-version]`, both tokens.
fn is_carried(protocol: &[u8]) -> bool {
    let mut parts = protocol.splitn(2, |byte| *byte == b'/');
    let name = parts.next().unwrap_or_default();
    is_token(name)
        && parts.next().is_none_or(is_token)
        && !NOT_CARRIED.iter().any(|other| other.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use hostler_address::AddressSource;
    use hostler_wire::Limits;

    use super::*;

    #[test]
    fn the_lines_of_the_one_header_are_read_and_no_others() {
        let all = [
            (AddressHeader::XForwardedFor, "6.6.6.6, 1.1.1.1"),
            (AddressHeader::Forwarded, "for=\"[2606:4700::1]:4711\""),
            (AddressHeader::XRealIp, "2.2.2.2"),
            (AddressHeader::CfConnectingIp, "3.3.3.3"),
            (AddressHeader::TrueClientIp, "4.4.4.4"),
        ];
        let lines: String =
            all.iter().map(|(header, value)| format!("{}: {value}\r\n", header.name())).collect();
        let mut head = RequestHead::default();
        head.parse(format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").as_bytes(), &Limits::default())
            .unwrap();
        for ((header, _), expected) in
            all.iter().zip(["1.1.1.1", "2606:4700::1", "2.2.2.2", "3.3.3.3", "4.4.4.4"])
        {
            let trust =
                Trust { networks: vec!["::1/128".parse().unwrap()], header: *header, ..Trust::default() };
            let found = client(&trust, Peer::Socket("::1".parse().unwrap()), &head.fields);
            assert_eq!(
                (found.ip.to_string().as_str(), found.source),
                (expected, AddressSource::Header(*header))
            );
        }
    }

    fn id_of(line: &str) -> String {
        let mut head = RequestHead::default();
        head.parse(format!("GET / HTTP/1.1\r\nHost: a\r\n{line}\r\n").as_bytes(), &Limits::default())
            .unwrap();
        RequestId::of(&head.fields).to_string()
    }

    #[test]
    fn request_ids_are_unique_and_a_valid_one_is_kept() {
        let made: HashSet<_> = (0..10_000).map(|_| id_of("")).collect();
        assert_eq!(made.len(), 10_000);
        assert!(made.iter().all(|id| id.len() == 24));
        assert_eq!(id_of("X-Request-Id: 7f-A_1.b\r\n"), "7f-A_1.b");
    }

    #[test]
    fn digits_are_those_of_the_formatter() {
        for number in [0, 9, 10, 15, 16, 0x0123_4567, 0x89ab_cdef, 0xfedc_ba98, 0xa0a0_9f9f, u32::MAX] {
            assert_eq!(hexadecimal(number), format!("{number:08x}").as_bytes());
        }
    }

    #[test]
    fn a_request_id_that_could_forge_a_log_line_is_replaced() {
        for bad in ["a b", "a\"b", "", &"x".repeat(129), "é"] {
            assert_eq!(id_of(&format!("X-Request-Id: {bad}\r\n")).len(), 24, "{bad:?}");
        }
    }

    #[track_caller]
    fn offered(version: &str, fields: &str) -> Option<String> {
        let mut head = RequestHead::default();
        head.parse(format!("GET / HTTP/{version}\r\n{fields}\r\n").as_bytes(), &Limits::default()).unwrap();
        offer(&head).map(|offer| String::from_utf8(offer.into()).unwrap())
    }

    #[test]
    fn only_supported_upgrades_are_offered_and_only_on_request() {
        let cases = [
            ("Connection: Upgrade\r\nUpgrade: websocket\r\n", Some("websocket")),
            ("Connection: keep-alive, UPGRADE\r\nUpgrade: foo/2, WebSocket\r\n", Some("foo/2, WebSocket")),
            ("Upgrade: a\r\nConnection: upgrade\r\nUpgrade: b\r\n", Some("a, b")),
            ("Upgrade: websocket\r\n", None),
            ("Connection: close\r\nUpgrade: websocket\r\n", None),
            ("Connection: upgrade\r\n", None),
            ("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n", None),
            (
                "Connection: upgrade\r\nUpgrade: H2C, websocket, TLS/1.3, HTTP/2.0, h2c/1\r\n",
                Some("websocket"),
            ),
            ("Connection: upgrade\r\nUpgrade: a b, \"c\", d/, /e, f/g/h, ,\r\n", None),
        ];
        for (fields, expected) in cases {
            assert_eq!(offered("1.1", fields).as_deref(), expected, "{fields:?}");
            assert_eq!(offered("1.0", fields), None, "{fields:?}");
        }
    }

    fn is_call_with(media_type: &str) -> bool {
        let mut fields = Fields::default();
        fields.add(b"Content-Type", media_type.as_bytes());
        is_grpc(&fields)
    }

    #[test]
    fn a_call_of_grpc_is_recognised_by_its_media_type() {
        for good in
            ["application/grpc", "Application/gRPC+proto", "application/grpc;v=1", "application/grpc ;v=1"]
        {
            assert!(is_call_with(good), "{good}");
        }
        for bad in ["", "application/grp", "application/grpc-web+proto", "application/grpcs", "text/html"] {
            assert!(!is_call_with(bad), "{bad}");
        }
        assert!(!is_grpc(&Fields::default()));
    }
}
