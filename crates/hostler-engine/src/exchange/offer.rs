//! Which protocols a client offers to switch to (RFC 9110 section 7.8), as far as Hostler tunnels them. Knows none of the protocols.

use hostler_wire::{Name, RequestHead, Version, tokens};

/// Protocols that must not be tunnelled, because Hostler would have to understand them. An `h2c` tunnel would carry requests past routes
/// and limits.
const NOT_CARRIED: [&str; 5] = ["h2c", "h2", "h3", "http", "tls"];

/// The protocols that may be offered to a member, as a list. None for an ordinary request.
pub(super) fn of(head: &RequestHead) -> Option<Box<[u8]>> {
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

fn is_token(text: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use hostler_wire::Limits;

    use super::*;

    #[track_caller]
    fn offered(version: &str, fields: &str) -> Option<String> {
        let mut head = RequestHead::default();
        head.parse(format!("GET / HTTP/{version}\r\n{fields}\r\n").as_bytes(), &Limits::default()).unwrap();
        of(&head).map(|offer| String::from_utf8(offer.into()).unwrap())
    }

    #[test]
    fn only_what_is_carried_is_offered_and_only_when_it_is_meant() {
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
}
