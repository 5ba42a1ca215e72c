//! What a request says about its client: cookies, parameters of the query, and the session of Engine.IO. Knows no members.

use hostler_wire::{Fields, Name};
use memchr::memmem;

/// The request belongs to Engine.IO, the protocol below Socket.IO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EngineIo<'a> {
    /// It begins a session.
    Begins,
    /// It belongs to this session.
    Session(&'a [u8]),
}

/// Whether a request with this target belongs to Engine.IO. One look at the target suffices for nearly all others.
pub(super) fn engine_io(target: &[u8]) -> Option<EngineIo<'_>> {
    let query = query(target)?;
    memmem::find(query, b"EIO=")?;
    parameter(query, b"EIO")?;
    match parameter(query, b"sid") {
        Some(session) => Some(EngineIo::Session(session)),
        None => parameter(query, b"transport").map(|_| EngineIo::Begins),
    }
}

/// The id of the session in the first bytes of the answer that begins it: `0{"sid":"..."`. Version 3 puts the length before it. With JSONP all
/// of it is a string of JavaScript: `___eio[0]("97:0{\"sid\":\"...`.
pub(super) fn session_id(body: &[u8]) -> Option<&[u8]> {
    const FORMS: [(&[u8], &[u8]); 2] = [(b"0{\"sid\":\"", b"\""), (b"0{\\\"sid\\\":\\\"", b"\\\"")];
    const MOST_BEFORE: usize = 32;
    let id = FORMS.iter().find_map(|(before, after)| {
        let at = memmem::find(&body[..body.len().min(MOST_BEFORE + before.len())], before)?;
        let rest = &body[at + before.len()..];
        Some(&rest[..memmem::find(rest, after)?])
    })?;
    (!id.contains(&b'\\')).then_some(id)
}

/// The query of a target.
pub(super) fn query(target: &[u8]) -> Option<&[u8]> {
    memchr::memchr(b'?', target).map(|at| &target[at + 1..])
}

/// The value of the first parameter with this name, as it is written. None if it is empty.
pub(super) fn parameter<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let parts = query.split(|&byte| byte == b'&');
    let mut values = parts.filter_map(|part| part.strip_prefix(name)?.strip_prefix(b"="));
    values.next().filter(|value| !value.is_empty())
}

/// The values of all cookies with this name. Browsers send the one with the longest path first. Spaces around a name or a value do not count:
/// apps leave them out.
pub(in crate::gateway) fn cookies<'a>(fields: &'a Fields, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let pairs = fields.all(Name::Cookie).flat_map(|line| line.split(|&byte| byte == b';'));
    pairs.filter_map(move |pair| {
        let end = memchr::memchr(b'=', pair)?;
        (pair[..end].trim_ascii() == name.as_bytes()).then(|| pair[end + 1..].trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use hostler_wire::{Limits, RequestHead};

    use super::*;

    #[test]
    fn requests_of_engine_io_are_recognised_by_their_query() {
        use EngineIo::{Begins, Session};
        for (target, expected) in [
            ("/socket.io/?EIO=4&transport=polling&t=abc", Some(Begins)),
            ("/any/path?t=1&transport=websocket&EIO=4", Some(Begins)),
            ("/socket.io/?EIO=4&transport=polling&sid=x_Y-1", Some(Session(b"x_Y-1"))),
            ("/socket.io/?EIO=4&transport=polling&sid=", Some(Begins)),
            ("/socket.io/?EIO=4", None),
            ("/socket.io/?XEIO=4&transport=polling", None),
            ("/EIO=4?transport=polling&sid=a", None),
            ("/plain", None),
            ("/?sid=a", None),
        ] {
            assert_eq!(engine_io(target.as_bytes()), expected, "{target}");
        }
    }

    #[test]
    fn the_session_is_read_from_the_answer() {
        for (body, expected) in [
            (
                "0{\"sid\":\"lv_VI97HAXpY6yYWAAAC\",\"upgrades\":[\"websocket\"]}",
                Some("lv_VI97HAXpY6yYWAAAC"),
            ),
            ("97:0{\"sid\":\"abc\",\"upgrades\":[]}2:40", Some("abc")),
            (r#"___eio[0]("97:0{\"sid\":\"abc\",\"upgrades\":[]}2:40");"#, Some("abc")),
            (r#"___eio[12345]("0{\"sid\":\"abc\",\"upgrades\":[]}");"#, Some("abc")),
            (r#"___eio[0]("0{\"sid\":\"a\\\"bc\"}");"#, None),
            (r#"___eio[0]("0{\"sid\":\"abc"#, None),
            ("0{\"sid\":\"abc", None),
            ("0{\"sid\":\"a\\\"bc\"", None),
            ("{\"code\":0,\"message\":\"Transport unknown\"}", None),
            ("", None),
        ] {
            assert_eq!(session_id(body.as_bytes()), expected.map(str::as_bytes), "{body}");
        }
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut head = RequestHead::default();
        let text = "GET / HTTP/1.1\r\nHost: a\r\nCookie: xa=0; a=1;b=2\r\ncookie: a=3; a_b=4; b = 5\r\n\r\n";
        head.parse(text.as_bytes(), &Limits::default()).unwrap();
        let found = |name| cookies(&head.fields, name).map(String::from_utf8_lossy).collect::<Vec<_>>();
        assert_eq!(found("a"), ["1", "3"]);
        assert_eq!(found("b"), ["2", "5"]);
        assert!(found("c").is_empty());
    }
}
