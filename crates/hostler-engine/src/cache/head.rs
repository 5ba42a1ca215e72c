//! Makes the heads that are stored, and the heads that are sent for stored answers. Decides nothing and knows no bodies.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use hostler_cache::{Kept, Moment, varies_more};
use hostler_wire::{
    Field, Limits, Name, ResponseHead, content_range, name_ends_with, starts_in_any_case, write_field,
    write_head_end, write_status_line,
};

use super::HeadLines;

/// The head as it is stored: without fields for Hostler itself, fields that frame the message, and fields that must not be `kept`.
pub fn stored(head: &ResponseHead, kept: &Kept, received: Moment) -> ResponseHead {
    let mut text = start(head);
    head.fields.copy_lines(&mut text, |field, name| is_of_answer(field) && kept.keeps(name));
    if head.fields.first(Name::Date).is_none() {
        write_field(&mut text, b"Date", date(received).as_bytes());
    }
    parsed(head, text)
}

/// The stored head, updated from the 304 that has validated it (RFC 9111 section 3.2). Its `Vary` names what either of them names.
pub fn freshened(stored: &ResponseHead, not_modified: &ResponseHead) -> ResponseHead {
    let confirmation = HeadLines(&not_modified.fields);
    let mut text = start(stored);
    stored.fields.copy_lines(&mut text, |_, name| Kept::outlives(name, &confirmation));
    let varies_more = varies_more(&confirmation, &HeadLines(&stored.fields));
    let is_new = |field: &Field| field.known != Name::Vary || varies_more;
    not_modified
        .fields
        .copy_lines(&mut text, |field, name| !field.listed && Kept::replaces(name) && is_new(field));
    parsed(stored, text)
}

/// The head of a 304 for a client whose copy is still valid.
pub fn not_modified(stored: &ResponseHead) -> ResponseHead {
    let mut head = ResponseHead::with_status(304);
    // A cookie is in this head if the client may have it.
    let said = [
        "cache-control",
        "content-location",
        "date",
        "etag",
        "expires",
        "last-modified",
        "set-cookie",
        "vary",
    ];
    for (field, name, value) in stored.fields.iter() {
        // Fields for other caches on the way, such as `CDN-Cache-Control` (RFC 9213), and for the browser.
        let is_other = field.known == Name::Other;
        let is_needed = is_other && (name_ends_with(name, b"cache-control") || is_for_origins(name));
        if is_needed || said.iter().any(|said| name.eq_ignore_ascii_case(said.as_bytes())) {
            head.fields.add(name, value);
        }
    }
    head
}

/// Fields that say to which origins a browser shows the response. It checks those of the 304: its copy may have been for a page of another origin
/// (`Vary: Origin`), and a script that sends `If-None-Match` itself gets the 304 as it is.
fn is_for_origins(name: &[u8]) -> bool {
    starts_in_any_case(name, b"access-control-") || name.eq_ignore_ascii_case(b"timing-allow-origin")
}

/// The head of a part of a body of this length.
pub fn part(stored: &ResponseHead, part: &Range<u64>, length: u64) -> ResponseHead {
    let mut head = ResponseHead::with_status(206);
    for (field, name, value) in stored.fields.iter() {
        if !is_of_all_content(field) {
            head.fields.add(name, value);
        }
    }
    head.fields.add(b"Content-Range", content_range(part, length).as_bytes());
    head
}

/// A field that is about all bytes of a response, so a part of them cannot have it (RFC 9530 section 2). `Repr-Digest` is about the representation.
pub(super) fn is_of_all_content(field: &Field) -> bool {
    matches!(field.known, Name::ContentDigest | Name::ContentMd5 | Name::ContentRange)
}

/// The approximate size in memory.
pub fn size(head: &ResponseHead) -> usize {
    size_of::<ResponseHead>() + head.fields.bytes().len() + head.fields.len() * size_of::<Field>()
}

/// The head as bytes, for memcached.
pub(super) fn pack(head: &ResponseHead, into: &mut Vec<u8>) {
    let mut text = start(head);
    head.fields.copy_lines(&mut text, |_, _| true);
    write_head_end(&mut text);
    into.append(&mut text);
}

/// The head of these bytes. It was within the limits before.
pub(super) fn unpack(packed: &[u8]) -> Option<ResponseHead> {
    let mut head = ResponseHead::default();
    // The parser makes room for as many fields as the limit allows if there are many.
    let lines = memchr::memchr_iter(b'\n', packed).count();
    let limits = Limits { max_size: usize::MAX, max_fields: lines };
    head.parse(packed, &limits).ok()?;
    head.fields.shrink_to_fit();
    Some(head)
}

/// A moment in the date format of HTTP.
pub fn date(moment: Moment) -> String {
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_millis(moment.0))
}

/// A field of the answer itself, not of the connection.
fn is_of_answer(field: &Field) -> bool {
    let is_of_message = matches!(field.known, Name::ContentLength | Name::Trailer);
    !field.listed && !field.known.is_hop_by_hop() && !is_of_message
}

fn start(head: &ResponseHead) -> Vec<u8> {
    let mut text = Vec::with_capacity(head.fields.bytes().len());
    write_status_line(&mut text, head.status, head.reason());
    text
}

/// Parsed again, so that all lines are in one buffer and are written at once.
fn parsed(like: &ResponseHead, mut text: Vec<u8>) -> ResponseHead {
    write_head_end(&mut text);
    // The lines were parsed before, so an error is not expected. The old head is correct too.
    unpack(&text).unwrap_or_else(|| like.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> ResponseHead {
        let mut head = ResponseHead::default();
        let limits = Limits { max_fields: 1000, ..Limits::default() };
        head.parse(text.replace('\n', "\r\n").as_bytes(), &limits).unwrap();
        head
    }

    /// A head with this many fields, whose names begin with `name`.
    fn long(status: u16, name: char, fields: usize) -> ResponseHead {
        let lines: String = (0..fields).map(|number| format!("{name}{number}: 1\n")).collect();
        head(&format!("HTTP/1.1 {status} Fine\n{lines}\n"))
    }

    fn lines(head: &ResponseHead) -> String {
        let mut lines = Vec::new();
        head.fields.copy_lines(&mut lines, |_, _| true);
        String::from_utf8(lines).unwrap().replace("\r\n", "\n")
    }

    #[test]
    fn a_stored_head_has_no_fields_of_the_connection() {
        let came = head(
            "HTTP/1.1 203 Fine\nA:  1\nConnection: keep-alive, X-Hop\nX-Hop: 1\nAge: 7\nContent-Length: 3\nKeep-Alive: 1\nEtag: \"x\"\n\n",
        );
        let stored = stored(&came, &Kept::default(), Moment(0));
        assert_eq!((stored.status, stored.reason()), (203, &b"Fine"[..]));
        assert_eq!(lines(&stored), "A:  1\nAge: 7\nEtag: \"x\"\nDate: Thu, 01 Jan 1970 00:00:00 GMT\n");
    }

    #[test]
    fn a_head_with_very_many_fields_is_stored() {
        let stored = stored(&long(200, 'a', 999), &Kept::default(), Moment(0));
        assert_eq!(stored.fields.len(), 1000, "with a date");
        let mut packed = Vec::new();
        pack(&stored, &mut packed);
        assert_eq!(lines(&unpack(&packed).unwrap()), lines(&stored));

        // Each is within the default limit.
        let fresh = freshened(&long(200, 'a', 90), &long(304, 'b', 90));
        assert_eq!(fresh.fields.len(), 180);
    }

    #[test]
    fn fields_of_a_304_replace_the_stored_ones() {
        let stored = head("HTTP/1.1 200 OK\nA: 1\nDate: then\nCache-Control: max-age=1\nB: 1\nA: 2\n\n");
        let confirmation =
            head("HTTP/1.1 304 Not Modified\nDate: now\nConnection: close\nContent-Length: 9\na: 3\n\n");
        let fresh = freshened(&stored, &confirmation);
        assert_eq!((fresh.status, fresh.reason()), (200, &b"OK"[..]));
        assert_eq!(lines(&fresh), "Cache-Control: max-age=1\nB: 1\nDate: now\na: 3\n");
    }

    #[test]
    fn a_304_takes_no_field_out_of_the_stored_vary() {
        let stored = head("HTTP/1.1 200 OK\nVary: Origin, Accept-Encoding\n\n");
        let freshened = |stored: &ResponseHead, vary: &str| {
            freshened(stored, &head(&format!("HTTP/1.1 304 Not Modified\n{vary}\n")))
        };
        for vary in ["", "Vary: origin\n", "Vary: Accept-Encoding\nVary: Origin\n"] {
            assert_eq!(lines(&freshened(&stored, vary)), "Vary: Origin, Accept-Encoding\n");
        }
        let more = freshened(&stored, "Vary: Origin, Cookie\n");
        assert_eq!(lines(&more), "Vary: Origin, Accept-Encoding\nVary: Origin, Cookie\n");
        assert_eq!(lines(&freshened(&more, "Vary: Origin, Cookie\n")), lines(&more), "it does not grow");
    }

    #[test]
    fn a_304_has_only_the_fields_that_it_needs() {
        let stored = head(
            "HTTP/1.1 200 OK\nContent-Type: text/html\nETag: \"x\"\nVary: Accept\nCDN-Cache-Control: max-age=1\nX-Mine: 1\n\
             Access-Control-Allow-Origin: http://a\naccess-control-expose-headers: x-mine\nTiming-Allow-Origin: *\n\n",
        );
        let short = not_modified(&stored);
        assert_eq!(short.status, 304);
        let expected = "ETag: \"x\"\nVary: Accept\nCDN-Cache-Control: max-age=1\n\
            Access-Control-Allow-Origin: http://a\naccess-control-expose-headers: x-mine\nTiming-Allow-Origin: *\n";
        assert_eq!(lines(&short), expected);
    }

    #[test]
    fn a_partial_answer_names_its_range_and_no_digest_of_the_whole() {
        let whole = "HTTP/1.1 200 OK\nA: b\nContent-Digest: x\nRepr-Digest: y\nContent-MD5: z\n\n";
        let part = part(&head(whole), &(2..5), 9);
        let expected = "A: b\nRepr-Digest: y\nContent-Range: bytes 2-4/9\n";
        assert_eq!((part.status, &*lines(&part)), (206, expected));
    }
}
