//! Heads as they are written: start lines, field lines, and the values that every head needs. Checks nothing, and knows no sockets.
//!
//! The caller passes only what a parser or a configuration check has accepted: a line break in a name or a value would begin another line.

use std::ops::Range;

use crate::body::BodyLength;

/// Writes the request line of an HTTP/1.1 request (RFC 9112 section 3), for example `GET /a?b=c HTTP/1.1`.
#[inline]
pub fn write_request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8]) {
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// Writes the status line of an HTTP/1.1 response (RFC 9112 section 4), for example `HTTP/1.1 404 Not Found`. The reason may be empty.
#[inline]
pub fn write_status_line(out: &mut Vec<u8>, status: u16, reason: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

/// Writes one field line (RFC 9112 section 5), for example `Host: example.org`.
#[inline]
pub fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes one field line whose value is a decimal number (RFC 9112 section 5), for example `Age: 7`.
#[inline]
pub fn write_number_field(out: &mut Vec<u8>, name: &[u8], number: u64) {
    write_field(out, name, itoa::Buffer::new().format(number).as_bytes());
}

/// Writes the field line that says where the body ends (RFC 9112 section 6): `Content-Length` in bytes, or `Transfer-Encoding: chunked`.
/// A body that ends with the connection has no such line.
#[inline]
pub fn write_body_length(out: &mut Vec<u8>, length: BodyLength) {
    match length {
        BodyLength::Known(bytes) => write_number_field(out, b"Content-Length", bytes),
        BodyLength::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        BodyLength::UntilClose => {}
    }
}

/// Writes the empty line that ends a head (RFC 9112 section 2.1).
#[inline]
pub fn write_head_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// The registered reason phrase of a status code (RFC 9110 section 15), for example `Not Found` for 404. A code that is not registered
/// has none: the phrase is empty.
pub fn reason_phrase(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default()
}

/// The value of `Content-Range` in a 206 (RFC 9110 section 14.4), for example `bytes 0-99/1000` for the range `0..100` of a body of 1000
/// bytes. The range is not empty.
pub fn content_range(part: &Range<u64>, length: u64) -> String {
    format!("bytes {}-{}/{length}", part.start, part.end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, RequestHead, ResponseHead, request_body, response_body};

    #[test]
    fn a_written_request_head_reads_as_what_was_written() {
        let mut out = Vec::new();
        write_request_line(&mut out, b"POST", b"/a?b");
        write_field(&mut out, b"Host", b"a");
        write_body_length(&mut out, BodyLength::Known(12));
        write_head_end(&mut out);
        assert_eq!(out, b"POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n");
        let mut head = RequestHead::default();
        head.parse(&out, &Limits::default()).unwrap();
        assert_eq!((head.method(), head.target()), (&b"POST"[..], &b"/a?b"[..]));
        assert_eq!(request_body(&head), Ok(BodyLength::Known(12)));
    }

    #[test]
    fn a_written_response_head_reads_as_what_was_written() {
        for (length, line) in [
            (BodyLength::Known(u64::MAX / 100), "Content-Length: 184467440737095516\r\n"),
            (BodyLength::Chunked, "Transfer-Encoding: chunked\r\n"),
            (BodyLength::UntilClose, ""),
        ] {
            let mut out = Vec::new();
            write_status_line(&mut out, 404, b"Not Found");
            write_number_field(&mut out, b"Age", 0);
            write_body_length(&mut out, length);
            write_head_end(&mut out);
            assert_eq!(out, format!("HTTP/1.1 404 Not Found\r\nAge: 0\r\n{line}\r\n").as_bytes());
            let mut head = ResponseHead::default();
            head.parse(&out, &Limits::default()).unwrap();
            assert_eq!((head.status, head.reason()), (404, &b"Not Found"[..]));
            assert_eq!(response_body(&head, false), Ok(length));
        }
    }

    #[test]
    fn an_empty_reason_keeps_its_space() {
        let mut out = Vec::new();
        write_status_line(&mut out, 299, reason_phrase(299).as_bytes());
        assert_eq!(out, b"HTTP/1.1 299 \r\n");
    }

    #[test]
    fn only_registered_codes_have_a_reason_phrase() {
        let cases = [
            (200, "OK"),
            (304, "Not Modified"),
            (503, "Service Unavailable"),
            (99, ""),
            (299, ""),
            (1000, ""),
        ];
        for (status, expected) in cases {
            assert_eq!(reason_phrase(status), expected, "{status}");
        }
    }

    #[test]
    fn a_content_range_names_its_last_byte() {
        assert_eq!(content_range(&(0..100), 1000), "bytes 0-99/1000");
        assert_eq!(content_range(&(5..6), 6), "bytes 5-5/6");
    }
}
