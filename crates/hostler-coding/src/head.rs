//! Changes to the head of a response whose body is encoded, or could have been. Knows no bodies.

use std::borrow::Cow;

use hostler_wire::{Fields, Name, ResponseHead, tokens};

use super::Coding;

const KEY: &[u8] = b"Accept-Encoding";
/// The room for what a changed head has more: `Content-Encoding`, `Vary`, and the prefix of a weak validator.
const MORE_LINES: usize = 2;
const MORE_BYTES: usize = 64;
/// The fields with a digest of the bytes of a body.
pub(super) const DIGESTS: [Name; 4] = [Name::ContentDigest, Name::ReprDigest, Name::Digest, Name::ContentMd5];

/// The head of an encoded response.
pub fn encoded(head: &ResponseHead, coding: Coding) -> ResponseHead {
    let mut new = copy(head, |name| match name {
        Name::Vary => None,
        // Both are about the bytes before encoding: the length, and ranges of them.
        Name::ContentLength | Name::AcceptRanges => None,
        Name::Etag => Some(weakened),
        _ => Some(as_it_is),
    });
    new.fields.add(b"Content-Encoding", coding.name().as_bytes());
    new.fields.add(b"Vary", &varied(&head.fields));
    new
}

/// The trailers of an encoded response: without those that are about the bytes before encoding. `None` if none is left.
pub fn trailers(trailers: &Fields) -> Option<Fields> {
    trailers.trailing(|name| {
        let known = Name::of(name);
        known != Name::Etag && !DIGESTS.contains(&known)
    })
}

/// The head of a response that other clients would get encoded.
pub fn varying(head: &ResponseHead) -> ResponseHead {
    let mut new = copy(head, |name| (name != Name::Vary).then_some(as_it_is));
    new.fields.add(b"Vary", &varied(&head.fields));
    new
}

/// The head of a 304 for a client that has an encoded response. `None` for any other client. The client's cache compares
/// the validator with the one it has, which is a weak one (RFC 9111 section 4.3.4).
pub fn revalidated(request: &Fields, head: &ResponseHead) -> Option<ResponseHead> {
    let validator = head.fields.first(Name::Etag).filter(|_| head.status == 304)?;
    let given = weakened(validator);
    // A tag may contain commas, and its quotes show where it begins and ends.
    let is_known = |line| memchr::memmem::find(line, &given).is_some();
    let is_ours = *given != *validator && request.all(Name::IfNoneMatch).any(is_known);
    is_ours.then(|| {
        let mut new = copy(head, |name| match name {
            Name::Vary => None,
            Name::Etag => Some(weakened),
            _ => Some(as_it_is),
        });
        new.fields.add(b"Vary", &varied(&head.fields));
        new
    })
}

/// Changes the value of a field.
type ValueChange = fn(&[u8]) -> Cow<'_, [u8]>;

/// A copy of the head in which `change` sets or removes each field's value. Fields for this hop only are left out.
fn copy(head: &ResponseHead, change: impl Fn(Name) -> Option<ValueChange>) -> ResponseHead {
    let mut new = ResponseHead::new(head.status, &String::from_utf8_lossy(head.reason()));
    new.version = head.version;
    new.fields.reserve(head.fields.len() + MORE_LINES, head.fields.bytes().len() + MORE_BYTES);
    for (field, name, value) in head.fields.iter() {
        // `Connection` names the field `Upgrade` of a 426, but the client needs it.
        if field.listed && field.known != Name::Upgrade {
            continue;
        }
        if let Some(change) = change(field.known) {
            new.fields.add(name, &change(value));
        }
    }
    new
}

fn as_it_is(value: &[u8]) -> Cow<'_, [u8]> {
    value.into()
}

/// A strong validator promises equal bytes. An encoded body is only equivalent, so its validator becomes weak (RFC 9110
/// section 8.8.1).
fn weakened(validator: &[u8]) -> Cow<'_, [u8]> {
    match validator.starts_with(b"\"") {
        true => [&b"W/"[..], validator].concat().into(),
        false => validator.into(),
    }
}

/// The value of `Vary` with `Accept-Encoding` in it.
fn varied(fields: &Fields) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = fields.all(Name::Vary).filter(|line| !line.is_empty()).collect();
    let mut names = lines.iter().copied().flat_map(tokens);
    if !names.any(|name| name == b"*" || name.eq_ignore_ascii_case(KEY)) {
        lines.push(KEY);
    }
    lines.join(&b", "[..])
}

#[cfg(test)]
mod tests {
    use hostler_wire::Limits;

    use super::*;

    fn parsed(text: &str) -> ResponseHead {
        let mut head = ResponseHead::default();
        head.parse(format!("{text}\r\n").as_bytes(), &Limits::default()).unwrap();
        head
    }

    fn lines(head: &ResponseHead) -> String {
        let mut lines = Vec::new();
        head.fields.copy_lines(&mut lines, |_, _| true);
        format!(
            "{} {}\n{}",
            head.status,
            String::from_utf8_lossy(head.reason()),
            String::from_utf8_lossy(&lines).replace('\r', "")
        )
    }

    #[test]
    fn an_encoded_answer_names_its_coding_and_has_only_a_weak_validator() {
        let head = parsed(
            "HTTP/1.1 200 Fine\r\nConnection: X-Secret\r\nX-Secret: 1\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\
             ETag: \"a\"\r\nAccept-Ranges: bytes\r\nVary: Origin\r\nX-One: 1\r\nX-One: 2\r\n",
        );
        assert_eq!(
            lines(&encoded(&head, Coding::Brotli)),
            "200 Fine\nConnection: X-Secret\nContent-Type: text/html\nETag: W/\"a\"\nX-One: 1\nX-One: 2\n\
             Content-Encoding: br\nVary: Origin, Accept-Encoding\n"
        );
        assert_eq!(
            lines(&varying(&head)),
            "200 Fine\nConnection: X-Secret\nContent-Type: text/html\nContent-Length: 5\nETag: \"a\"\n\
             Accept-Ranges: bytes\nX-One: 1\nX-One: 2\nVary: Origin, Accept-Encoding\n"
        );
    }

    #[test]
    fn trailers_about_the_bytes_before_encoding_are_left_out() {
        let mut fields = Fields::default();
        for name in ["Content-Digest", "content-md5", "Repr-Digest", "Digest", "ETag", "X-Sum"] {
            fields.add(name.as_bytes(), b"1");
        }
        let left = trailers(&fields).unwrap();
        assert_eq!(left.iter().map(|(_, name, _)| name).collect::<Vec<_>>(), [b"X-Sum"]);
    }

    #[test]
    fn vary_has_each_name_once() {
        let cases = [
            ("", "Accept-Encoding"),
            ("Vary: *\r\n", "*"),
            ("Vary: accept-encoding\r\n", "accept-encoding"),
            ("Vary: Cookie, ACCEPT-ENCODING\r\n", "Cookie, ACCEPT-ENCODING"),
            ("Vary: Cookie\r\nVary:\r\nVary: Origin\r\n", "Cookie, Origin, Accept-Encoding"),
        ];
        for (vary, expected) in cases {
            let head = varying(&parsed(&format!("HTTP/1.1 200 OK\r\n{vary}")));
            let all: Vec<_> = head.fields.all(Name::Vary).collect();
            assert_eq!(all, [expected.as_bytes()]);
        }
    }

    #[test]
    fn a_304_has_the_validator_that_its_client_was_given() {
        let asked = |known: &str| parsed(&format!("HTTP/1.1 200 OK\r\nIf-None-Match: {known}\r\n")).fields;
        let strong = parsed("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n");
        let ours = revalidated(&asked("\"b\", W/\"a\""), &strong).unwrap();
        assert_eq!(lines(&ours), "304 Not Modified\nETag: W/\"a\"\nVary: Accept-Encoding\n");
        let with_comma = parsed("HTTP/1.1 304 Not Modified\r\nETag: \"1,2\"\r\n");
        let ours = revalidated(&asked("\"b\",W/\"1,2\""), &with_comma).unwrap();
        assert_eq!(ours.fields.first(Name::Etag), Some(&b"W/\"1,2\""[..]));
        assert!(revalidated(&asked("W/\"1,2,3\""), &with_comma).is_none());
        assert!(revalidated(&asked("\"a\""), &strong).is_none());
        assert!(revalidated(&asked("*"), &strong).is_none());
        let weak = parsed("HTTP/1.1 304 Not Modified\r\nETag: W/\"a\"\r\n");
        assert!(revalidated(&asked("W/\"a\""), &weak).is_none());
        assert!(revalidated(&asked("W/\"a\""), &parsed("HTTP/1.1 200 OK\r\nETag: \"a\"\r\n")).is_none());
    }
}
