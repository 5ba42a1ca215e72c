//! Checks a request's head before it goes on: by RFC 9112 section 3.2, and the characters of its target by RFC 3986. Knows no sockets.

use std::net::Ipv6Addr;

use hostler_engine::gateway::Refusal;
use hostler_wire::{
    BodyLength, Name, RequestHead, Version, byte_set, parse_digits, request_body, split_host,
    starts_in_any_case,
};

/// The reason for a `Host` without a value. RFC 9110 section 7.2 allows it only for a target without an authority.
pub(super) const EMPTY_HOST: &str = "it is empty";
/// The characters of a path: `pchar` and the slash (RFC 3986 section 3.3), and those that RFC 3986 does not allow there but that browsers do
/// not encode (the URL standard's path percent-encode set). All apps read these in the same way. `^` is among them for older browsers.
const IN_PATH: [bool; 256] = byte_set(b"-._~!$&'()*+,;=:@/[]^|");
/// The characters of a query: those of a path, `?`, and the characters that browsers do not encode there although RFC 3986 does not allow
/// them (the URL standard's query percent-encode set). All apps read them in the same way.
const IN_QUERY: [bool; 256] = byte_set(b"-._~!$&'()*+,;=:@/[]?%\\^`{|}");
/// The characters that are allowed in both and need no further check.
const IN_BOTH: [bool; 256] = byte_set(b"-._~!$&'()*+,;=:@/[]^|?");

/// Checks a head and converts its target to origin-form. Returns the framing of its body.
pub(super) fn check(head: &mut RequestHead) -> Result<BodyLength, Refusal> {
    let length = request_body(head)?;
    if head.method() == b"CONNECT" {
        return Err(Refusal::Connect);
    }
    check_host(head)?;
    normalise_target(head)?;
    check_characters(head.target()).map_err(Refusal::Target)?;
    check_expectation(head)?;
    Ok(length)
}

fn check_host(head: &RequestHead) -> Result<(), Refusal> {
    let mut hosts = head.fields.all(Name::Host);
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => Err(Refusal::Host("there is more than one")),
        (None, _) if head.version == Version::Http11 => Err(Refusal::Host("it is missing")),
        (None, _) => Ok(()),
        (Some(host), None) if is_authority(host) => Ok(()),
        (Some(b""), None) => Err(Refusal::Host(EMPTY_HOST)),
        (Some(_), None) => Err(Refusal::Host("it is malformed")),
    }
}

fn normalise_target(head: &mut RequestHead) -> Result<(), Refusal> {
    let target = head.target();
    if memchr::memchr(b'#', target).is_some() {
        return Err(Refusal::Target("it has a fragment (#), which a client must not send"));
    }
    if target.first() == Some(&b'/') || (target == b"*" && head.method() == b"OPTIONS") {
        return Ok(());
    }
    let scheme_length = match target {
        _ if starts_in_any_case(target, b"http://") => 7,
        _ if starts_in_any_case(target, b"https://") => 8,
        _ => return Err(Refusal::Target("neither a path nor an http URL")),
    };
    let default_port: &[u8] = if scheme_length == 7 { b":80" } else { b":443" };
    let rest = &target[scheme_length..];
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let authority = rest[..end].to_vec();
    if !is_authority(&authority) {
        return Err(Refusal::Target("its authority is malformed"));
    }
    match head.fields.first(Name::Host) {
        Some(host) if same_host(host, &authority, default_port) => {}
        // RFC 9112 section 3.2.2: the host of the target counts, and `Host` is ignored. Routes and members must see one host only.
        Some(_) => {
            head.fields.remove(|name| name.eq_ignore_ascii_case(b"Host"));
            head.fields.add(b"Host", &authority);
        }
        None => head.fields.add(b"Host", &authority),
    }
    to_origin_form(head, scheme_length + end);
    Ok(())
}

/// Replaces an absolute-form target by the part after its authority.
fn to_origin_form(head: &mut RequestHead, path_start: usize) {
    let target = head.target();
    match target.get(path_start) {
        Some(b'/') => head.narrow_target(path_start..target.len()),
        Some(_) => {
            let with_slash = [b"/", &target[path_start..]].concat();
            head.replace_target(&with_slash);
        }
        None if head.method() == b"OPTIONS" => head.replace_target(b"*"),
        None => head.replace_target(b"/"),
    }
}

/// Checks which characters a target in origin-form, or `*`, contains (RFC 3986), and how its path begins. The error is the reason.
fn check_characters(target: &[u8]) -> Result<(), &'static str> {
    if target.starts_with(b"//") {
        return Err("a path that begins with two slashes can be read as a host name");
    }
    if target.iter().all(|byte| IN_BOTH[usize::from(*byte)]) {
        return Ok(());
    }
    let path_end = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = target.split_at(path_end);
    if !query.iter().all(|byte| IN_QUERY[usize::from(*byte)]) {
        return Err("there is a character in the query that must be percent-encoded");
    }
    let mut rest = path;
    while let Some(at) = rest.iter().position(|byte| !IN_PATH[usize::from(*byte)]) {
        match rest[at..] {
            [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest = &rest[at + 3..];
            }
            [b'%', ..] => return Err("there is a percent sign in the path that encodes nothing"),
            _ => return Err("there is a character in the path that must be percent-encoded"),
        }
    }
    Ok(())
}

fn check_expectation(head: &RequestHead) -> Result<(), Refusal> {
    let known = |value: &[u8]| value.eq_ignore_ascii_case(b"100-continue");
    match head.version == Version::Http10 || head.fields.all(Name::Expect).all(known) {
        true => Ok(()),
        false => Err(Refusal::Expectation),
    }
}

/// Whether both name the same host and port. The default port, with its colon, may be left out (RFC 3986 section 6.2.3).
pub(super) fn same_host(host: &[u8], authority: &[u8], default_port: &[u8]) -> bool {
    let bare = |name: &[u8]| name.strip_suffix(default_port).unwrap_or(name).to_ascii_lowercase();
    bare(host) == bare(authority)
}

/// Whether a text is `host [ ":" port ]` (RFC 3986 section 3.2), not empty and without userinfo. It must contain no comma: the grammar
/// allows one, but in `Host` it means that two values were joined. It must contain nothing percent-encoded: an app that decodes it would
/// read another host than the routes, and no client sends it.
fn is_authority(text: &[u8]) -> bool {
    let (host, port) = split_host(text);
    is_host(host) && is_port(port)
}

/// The unreserved characters and the sub-delimiters except the comma (RFC 3986 section 3.2.2).
const IN_HOST: [bool; 256] = byte_set(b"-._~!$&'()*+;=");

fn is_host(host: &[u8]) -> bool {
    if let Some(inner) = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) {
        return std::str::from_utf8(inner).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    }
    (1..=255).contains(&host.len()) && host.iter().all(|byte| IN_HOST[usize::from(*byte)])
}

fn is_port(port: &[u8]) -> bool {
    match port.split_first() {
        None => true,
        Some((b':', digits)) => {
            // A colon without a port is allowed.
            digits.is_empty() || digits.len() <= 5 && parse_digits(digits).is_some_and(|port| port <= 65_535)
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use hostler_wire::Limits;

    use super::*;

    /// The checked target and Host, or the reason of the refusal.
    fn checked(text: &str) -> Result<(String, String), &'static str> {
        let mut head = RequestHead::default();
        head.parse(text.as_bytes(), &Limits::default()).unwrap();
        let outcome = check(&mut head).map_err(|refusal| refusal.facts().reason);
        let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        outcome.map(|_| (show(head.target()), show(head.fields.first(Name::Host).unwrap_or_default())))
    }

    #[test]
    fn targets() {
        let cases: &[(&str, Result<&str, &str>)] = &[
            ("GET / HTTP/1.1\r\nHost: a", Ok("/")),
            ("OPTIONS * HTTP/1.1\r\nHost: a", Ok("*")),
            ("GET * HTTP/1.1\r\nHost: a", Err("bad_target")),
            ("GET http://a/x?y HTTP/1.1\r\nHost: a", Ok("/x?y")),
            ("GET HTTP://A:80/x HTTP/1.1\r\nHost: a", Ok("/x")),
            ("GET http://a?y HTTP/1.1\r\nHost: a", Ok("/?y")),
            ("GET http://a HTTP/1.1\r\nHost: a", Ok("/")),
            ("OPTIONS http://a HTTP/1.1\r\nHost: a", Ok("*")),
            ("GET https://a:443/ HTTP/1.1\r\nHost: a", Ok("/")),
            ("GET http://b/ HTTP/1.1\r\nHost: a,b", Err("bad_host")),
            ("GET http://b/ HTTP/1.1\r\nHost: a\r\nHost: b", Err("bad_host")),
            ("GET http://b/ HTTP/1.1", Err("bad_host")),
            ("GET http://u@a/ HTTP/1.1\r\nHost: a", Err("bad_target")),
            ("GET http:///x HTTP/1.1\r\nHost: a", Err("bad_target")),
            ("GET ftp://a/ HTTP/1.1\r\nHost: a", Err("bad_target")),
            ("GET a/b HTTP/1.1\r\nHost: a", Err("bad_target")),
            ("GET /a#b HTTP/1.1\r\nHost: a", Err("bad_target")),
            ("GET http://a//b HTTP/1.1\r\nHost: a", Err("bad_target")),
            ("GET http://a/x\\y HTTP/1.1\r\nHost: a", Err("bad_target")),
            ("GET http://%61/ HTTP/1.1\r\nHost: a", Err("bad_target")),
            ("CONNECT a:443 HTTP/1.1\r\nHost: a:443", Err("connect")),
        ];
        for (text, expected) in cases {
            let seen = checked(&format!("{text}\r\n\r\n"));
            assert_eq!(seen.as_ref().map(|(target, _)| target.as_str()).map_err(|e| *e), *expected, "{text}");
        }
        assert_eq!(checked("GET http://a:81/x HTTP/1.0\r\n\r\n"), Ok(("/x".into(), "a:81".into())));
        for (line, host) in
            [("GET http://b/x", "b"), ("GET http://a:81/x", "a:81"), ("GET https://a:80/x", "a:80")]
        {
            let seen = checked(&format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(seen, Ok(("/x".into(), host.into())), "{line}");
        }
    }

    #[test]
    fn hosts() {
        for good in ["a", "A.b-c_d.", "a:80", "a:", "127.0.0.1:8080", "[::1]", "[2001:db8::1]:443", "xn--a"] {
            assert!(checked(&format!("GET / HTTP/1.1\r\nHost: {good}\r\n\r\n")).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a b",
            "a,b",
            "a/b",
            "u@a",
            "a:b",
            "a:70000",
            "a:123456",
            "[::1",
            "[x]",
            "[::1]x",
            "%4",
            "%41b",
            "ex%61mple.com",
            "a?",
            "a\\b",
            "a|b",
            "a^b",
            "é",
        ] {
            let seen = checked(&format!("GET / HTTP/1.1\r\nHost: {bad}\r\n\r\n"));
            assert_eq!(seen.err(), Some("bad_host"), "{bad:?}");
        }
        assert_eq!(checked("GET / HTTP/1.1\r\n\r\n").err(), Some("bad_host"));
        assert_eq!(checked("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n").err(), Some("bad_host"));
        assert!(checked("GET / HTTP/1.0\r\n\r\n").is_ok());
    }

    #[test]
    fn expectations() {
        assert!(checked("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n").is_ok());
        assert_eq!(checked("PUT / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n").err(), Some("expectation"));
        assert!(checked("PUT / HTTP/1.0\r\nExpect: tea\r\n\r\n").is_ok());
    }

    #[test]
    fn a_path_holds_what_a_uri_may_hold() {
        for good in ["/", "*", "/a/b-._~!$&'()*+,;=:@[x]^|", "/%20%C3%a9%5C%7c", "/a//b", "/a/?//b?c", "/?"] {
            assert_eq!(check_characters(good.as_bytes()), Ok(()), "{good}");
        }
        for byte in (0..=255_u8).filter(|byte| !byte.is_ascii_alphanumeric()) {
            let fine = b"-._~!$&'()*+,;=:@/[]^|?".contains(&byte);
            assert_eq!(check_characters(&[b"/x", &[byte][..], b"y"].concat()).is_ok(), fine, "{byte:#04x}");
        }
        for bad in ["/%", "/%4", "/%zz", "/a%/b", "/%%20", "//", "//a", "//a/b?c", "/\\a", "/x\\..\\admin"] {
            assert!(check_characters(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_query_may_also_hold_the_characters_that_browsers_do_not_encode() {
        let from_a_browser = "/?a=\\^`{|}[]'~!@$&*()_-+=:;,./?100%%zz";
        assert_eq!(check_characters(from_a_browser.as_bytes()), Ok(()));
        for byte in (0..=255_u8).filter(|byte| !byte.is_ascii_alphanumeric()) {
            let fine = byte.is_ascii_graphic() && !b"\"#<>".contains(&byte);
            assert_eq!(check_characters(&[b"/?x", &[byte][..], b"y"].concat()).is_ok(), fine, "{byte:#04x}");
        }
    }
}
