//! Parses one entry of a forwarding header: an address, and in `Forwarded` the protocol. Accepts only forms that every
//! parser reads in the same way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::AddressHeader;

/// The address in an entry, with or without port, quotes and brackets. `None` for `unknown`, names and malformed entries.
pub(crate) fn parse(entry: &[u8], header: AddressHeader) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    let node = match header {
        AddressHeader::Forwarded => value(text, "for")?,
        _ => text,
    };
    address(unquoted(node)?)
}

/// Whether the request came over TLS, as the proxy says that has written this entry. `None`: it does not say so, as all
/// headers except `Forwarded`.
pub(crate) fn is_https(entry: &[u8], header: AddressHeader) -> Option<bool> {
    let element = std::str::from_utf8(entry).ok().filter(|_| header == AddressHeader::Forwarded)?;
    let scheme = unquoted(value(element, "proto")?)?;
    let is_one_of = |schemes: [&str; 2]| schemes.iter().any(|other| scheme.eq_ignore_ascii_case(other));
    // Some proxies name the scheme of a WebSocket.
    let is_https = is_one_of(["https", "wss"]);
    (is_https || is_one_of(["http", "ws"])).then_some(is_https)
}

/// The value of a parameter of one element (RFC 7239 section 4). `None` if it is there twice, because parsers differ on
/// which one counts.
fn value<'a>(element: &'a str, parameter: &str) -> Option<&'a str> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(name, _)| name.trim_ascii().eq_ignore_ascii_case(parameter));
    let (_, value) = values.next()?;
    values.next().is_none().then_some(value.trim_ascii())
}

fn unquoted(text: &str) -> Option<&str> {
    match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"'),
        None => Some(text),
    }
}

/// Does not use the parser of `SocketAddr`: it accepts the zone in `[fe80::1%1]:80` and rejects an obfuscated port.
fn address(node: &str) -> Option<IpAddr> {
    let (ip, rest) = match node.strip_prefix('[') {
        Some(inside) => {
            let (ip, rest) = inside.split_once(']')?;
            (IpAddr::V6(ip.parse::<Ipv6Addr>().ok()?), rest)
        }
        // An IPv6 address without brackets contains colons, and has no port.
        None => match node.parse::<IpAddr>() {
            Ok(ip) => (ip, ""),
            Err(_) => {
                let (ip, rest) = node.split_at(node.find(':')?);
                (IpAddr::V4(ip.parse::<Ipv4Addr>().ok()?), rest)
            }
        },
    };
    (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)).then(|| ip.to_canonical())
}

/// A number, or an obfuscated port (RFC 7239 section 6.3).
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(hidden) => {
            !hidden.is_empty() && hidden.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        }
        None => text.parse::<u16>().is_ok() && !text.starts_with('+'),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_entry_is_an_address_or_nothing() {
        let cases: &[(&str, Option<&str>)] = &[
            ("1.2.3.4", Some("1.2.3.4")),
            ("1.2.3.4:5678", Some("1.2.3.4")),
            ("1.2.3.4:_hidden-1", Some("1.2.3.4")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("2001:db8::443", Some("2001:db8::443")),
            ("[2001:db8::1]", Some("2001:db8::1")),
            ("[2001:db8::1]:443", Some("2001:db8::1")),
            ("\"[2001:db8::1]\"", Some("2001:db8::1")),
            ("\"[2001:db8::1]:443\"", Some("2001:db8::1")),
            ("\"1.2.3.4\"", Some("1.2.3.4")),
            ("::ffff:1.2.3.4", Some("1.2.3.4")),
            ("[::ffff:102:304]:80", Some("1.2.3.4")),
            ("fe80::1%eth0", None),
            ("[fe80::1%1]:80", None),
            ("010.0.0.1", None),
            ("0x7f.1", None),
            ("127.1", None),
            ("2130706433", None),
            ("1.2.3.4:", None),
            ("1.2.3.4:65536", None),
            ("1.2.3.4:+80", None),
            ("1.2.3.4:_", None),
            ("1.2.3.4 ", None),
            ("1.2.3.4.5", None),
            ("[1.2.3.4]", None),
            ("[2001:db8::1]x", None),
            ("[2001:db8::1", None),
            ("\"1.2.3.4", None),
            ("1.2.3.4\"", None),
            ("unknown", None),
            ("_hidden", None),
            ("localhost", None),
            ("", None),
            ("\"", None),
            ("[", None),
            ("١.2.3.4", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|ip| ip.parse().unwrap());
            assert_eq!(parse(text.as_bytes(), AddressHeader::XForwardedFor), expected, "{text}");
        }
        assert_eq!(parse(b"1.2.3.4\xff", AddressHeader::XForwardedFor), None);
    }

    #[test]
    fn an_element_of_forwarded_is_read_as_rfc_7239_writes_it() {
        let cases: &[(&str, Option<&str>)] = &[
            ("for=192.0.2.43", Some("192.0.2.43")),
            ("For=\"[2001:db8::17]:4711\";proto=https", Some("2001:db8::17")),
            ("proto=https; by=203.0.113.1 ;FOR=192.0.2.43 ", Some("192.0.2.43")),
            ("for=\"192.0.2.43:_p\"", Some("192.0.2.43")),
            ("for=unknown", None),
            ("for=_hidden", None),
            ("for=", None),
            ("for", None),
            ("by=192.0.2.43", None),
            ("192.0.2.43", None),
            ("for=192.0.2.43;for=192.0.2.44", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|ip| ip.parse().unwrap());
            assert_eq!(parse(text.as_bytes(), AddressHeader::Forwarded), expected, "{text}");
        }
    }

    #[test]
    fn only_forwarded_says_whether_a_request_came_over_tls() {
        for (text, expected) in [
            ("for=192.0.2.43;proto=https", Some(true)),
            ("Proto = \"HTTPS\" ;by=203.0.113.1", Some(true)),
            ("for=unknown;proto=http", Some(false)),
            ("for=192.0.2.43;proto=wss", Some(true)),
            ("for=192.0.2.43;proto=ws", Some(false)),
            ("for=192.0.2.43", None),
            ("for=192.0.2.43;proto=ftp", None),
            ("proto=https;proto=http", None),
            ("proto=\"https", None),
        ] {
            assert_eq!(is_https(text.as_bytes(), AddressHeader::Forwarded), expected, "{text}");
            assert_eq!(is_https(text.as_bytes(), AddressHeader::XForwardedFor), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_address_is_read_in_every_notation(ip in any::<IpAddr>(), port in any::<u16>()) {
            let expected = Some(ip.to_canonical());
            let with_port = std::net::SocketAddr::new(ip, port);
            for text in [format!("{ip}"), format!("\"{ip}\""), format!("{with_port}"), format!("\"{with_port}\"")] {
                prop_assert_eq!(parse(text.as_bytes(), AddressHeader::XForwardedFor), expected);
                let element = format!("proto=http;for={text}");
                prop_assert_eq!(parse(element.as_bytes(), AddressHeader::Forwarded), expected);
            }
        }

        #[test]
        fn no_input_causes_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            parse(&bytes, AddressHeader::XForwardedFor);
            parse(&bytes, AddressHeader::Forwarded);
        }
    }
}
