//! The heads of requests and responses, parsed strictly and stored in the bytes they came in. Knows nothing of bodies.

mod fault;
#[cfg(test)]
mod tests;
mod usual;

use std::mem::MaybeUninit;

use crate::field::{Fields, Span};
use crate::scan::Limits;
use crate::write::reason_phrase;

pub use fault::HeadError;
use fault::explain;
pub(crate) use fault::printable;

/// Up to this many field lines, the parser's table is on the stack. Heads with more lines are rare and allocate.
const TABLE: usize = 128;

/// A method or a target that ends behind this many bytes does not stay when the fields are forgotten.
const KEPT_LINE: usize = 2 * 1024;

/// A longer text is not shown as a version.
const LONGEST_VERSION: usize = 16;

/// HTTP/1.0 or HTTP/1.1. Other versions are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// HTTP/1.0: no chunked coding, and keep-alive only on request.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

/// The start line and fields of a request. Can be reused: `parse` overwrites it.
#[derive(Debug, Default, Clone)]
pub struct RequestHead {
    pub(crate) method: Span,
    pub(crate) target: Span,
    /// The version as sent, if the head does not parse because of it.
    other_version: Span,
    /// The protocol version of the request line.
    pub version: Version,
    /// The field lines.
    pub fields: Fields,
}

impl RequestHead {
    /// Parses a whole head, as found by [`HeadScan`](crate::HeadScan). Errors: the head is malformed or exceeds the
    /// limits.
    pub fn parse(&mut self, head: &[u8], limits: &Limits) -> Result<(), HeadError> {
        self.clear();
        self.fields.bytes.extend_from_slice(head);
        let (mut table, mut large) = ([const { MaybeUninit::uninit() }; TABLE], Vec::new());
        let mut parsed = httparse::Request::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let mut outcome =
            parser.parse_request_with_uninit_headers(&mut parsed, head, room(&mut table, limits));
        if is_cut_short(&outcome, limits) {
            parsed = httparse::Request::new(&mut []);
            outcome =
                parser.parse_request_with_uninit_headers(&mut parsed, head, all_room(&mut large, limits));
        }
        match outcome {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(HeadError::RequestLine),
            Err(error) => {
                self.keep_line(head, &parsed);
                return Err(explain(error, head, limits, HeadError::RequestLine));
            }
        }
        let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
            return Err(HeadError::RequestLine);
        };
        self.method = Span::of(head, method.as_bytes());
        self.target = Span::of(head, target.as_bytes());
        self.version = if version == 0 { Version::Http10 } else { Version::Http11 };
        take_fields(&mut self.fields, head, parsed.headers);
        Ok(())
    }

    /// Parses a whole head at the beginning of `bytes` without a search for its end. Returns its length. `None` if
    /// [`HeadScan`](crate::HeadScan) and [`parse`](Self::parse) must decide about it; then the head is clear.
    pub fn parse_at_once(&mut self, bytes: &[u8], limits: &Limits) -> Option<usize> {
        self.clear();
        let line = usual::request_line(bytes)?;
        let end = self.fields.take_usual(bytes, line.end, limits)?;
        self.method = line.method;
        self.target = line.target;
        self.version = if line.minor == 0 { Version::Http10 } else { Version::Http11 };
        Some(end)
    }

    /// Keeps the request line of a head that does not parse, for the log.
    #[cold]
    fn keep_line(&mut self, head: &[u8], parsed: &httparse::Request<'_, '_>) {
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else { return };
        self.method = Span::of(head, method.as_bytes());
        self.target = Span::of(head, target.as_bytes());
        match parsed.version {
            Some(version) => self.version = if version == 0 { Version::Http10 } else { Version::Http11 },
            None => {
                let rest = &head[self.target.end()..];
                let line = memchr::memchr2(b'\r', b'\n', rest).map_or(rest, |end| &rest[..end]);
                self.other_version = Span::of(head, line.trim_ascii_start());
            }
        }
    }

    /// The version as in the request line, for the log.
    pub fn version_text(&self) -> &str {
        match (self.other_version.get(&self.fields.bytes), self.version) {
            (b"", Version::Http10) => "HTTP/1.0",
            (b"", Version::Http11) => "HTTP/1.1",
            // Anything else may be a part of the target, with secrets in it.
            (other, _) => match std::str::from_utf8(other) {
                Ok(text) if text.len() <= LONGEST_VERSION && text.starts_with("HTTP/") => text,
                _ => "(malformed)",
            },
        }
    }

    /// Removes what was parsed. Of a head that fails to parse, only its request line is kept, if there is one.
    pub fn clear(&mut self) {
        self.method = Span::default();
        self.target = Span::default();
        self.other_version = Span::default();
        self.version = Version::default();
        self.fields.clear();
    }

    /// Removes what was parsed, and frees the memory of a large head.
    pub fn clear_for_long(&mut self) {
        self.clear();
        self.fields.free_room();
    }

    /// Removes the fields of a request that is refused, and frees their memory. The request line stays for the log, and because a response to
    /// HEAD has no body; a method or a target of several kilobytes does not stay.
    pub fn forget_fields(&mut self) {
        for part in [&mut self.method, &mut self.target] {
            if part.end() > KEPT_LINE {
                *part = Span::default();
            }
        }
        self.other_version = Span::default();
        self.fields.keep_bytes(self.method.end().max(self.target.end()));
        self.fields.free_room();
    }

    /// The method, as sent (methods are case-sensitive).
    pub fn method(&self) -> &[u8] {
        self.method.get(&self.fields.bytes)
    }

    /// The request target, as sent.
    pub fn target(&self) -> &[u8] {
        self.target.get(&self.fields.bytes)
    }

    /// Cuts the target to a part of itself. So absolute-form becomes origin-form without a copy.
    ///
    /// # Panics
    /// If the range is not in the target.
    pub fn narrow_target(&mut self, range: std::ops::Range<usize>) {
        assert!(range.end <= self.target().len(), "invariant: a part of the target");
        let bytes = &self.fields.bytes;
        let part = &self.target.get(bytes)[range];
        self.target = Span::of(bytes, part);
    }

    /// Replaces the target, for example after a rewrite, or by `/` for a bare authority.
    pub fn replace_target(&mut self, target: &[u8]) {
        let start = self.fields.bytes.len();
        self.fields.bytes.extend_from_slice(target);
        self.target = Span::of(target, target).shifted(start);
    }
}

/// The start line and fields of a response. Can be reused: `parse` overwrites it.
#[derive(Debug, Default, Clone)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    reason: Span,
    /// The protocol version of the status line.
    pub version: Version,
    /// The field lines.
    pub fields: Fields,
}

impl ResponseHead {
    /// A head with the registered reason phrase of this status and without fields.
    pub fn with_status(status: u16) -> Self {
        Self::new(status, reason_phrase(status))
    }

    /// A head without fields.
    pub fn new(status: u16, reason: &str) -> Self {
        let mut head = Self { status, ..Self::default() };
        head.fields.bytes.extend_from_slice(reason.as_bytes());
        head.reason = Span::of(reason.as_bytes(), reason.as_bytes());
        head
    }

    /// Parses a whole head, as found by [`HeadScan`](crate::HeadScan). Errors: the head is malformed or exceeds the
    /// limits.
    pub fn parse(&mut self, head: &[u8], limits: &Limits) -> Result<(), HeadError> {
        self.fields.clear();
        self.fields.bytes.extend_from_slice(head);
        let (mut table, mut large) = ([const { MaybeUninit::uninit() }; TABLE], Vec::new());
        let mut parsed = httparse::Response::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let mut outcome =
            parser.parse_response_with_uninit_headers(&mut parsed, head, room(&mut table, limits));
        if is_cut_short(&outcome, limits) {
            parsed = httparse::Response::new(&mut []);
            outcome =
                parser.parse_response_with_uninit_headers(&mut parsed, head, all_room(&mut large, limits));
        }
        match outcome {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(HeadError::StatusLine),
            Err(error) => return Err(explain(error, head, limits, HeadError::StatusLine)),
        }
        // RFC 9110 section 15 ends at 599. Some apps still send 600 to 999 (LinkedIn: 999), and such a status goes to the client as it is.
        let (Some(status @ 100..=999), Some(version)) = (parsed.code, parsed.version) else {
            return Err(HeadError::StatusLine);
        };
        self.status = status;
        self.reason = Span::of(head, parsed.reason.unwrap_or_default().as_bytes());
        self.version = if version == 0 { Version::Http10 } else { Version::Http11 };
        take_fields(&mut self.fields, head, parsed.headers);
        Ok(())
    }

    /// Removes the fields, and frees the memory of a large head.
    pub fn clear_for_long(&mut self) {
        self.reason = Span::default();
        self.fields.clear();
        self.fields.free_room();
    }

    /// As [`RequestHead::parse_at_once`].
    pub fn parse_at_once(&mut self, bytes: &[u8], limits: &Limits) -> Option<usize> {
        self.clear();
        let line = usual::status_line(bytes)?;
        let end = self.fields.take_usual(bytes, line.end, limits)?;
        self.status = line.status;
        self.reason = line.reason;
        self.version = if line.minor == 0 { Version::Http10 } else { Version::Http11 };
        Some(end)
    }

    /// Removes what was parsed, except the status.
    pub(crate) fn clear(&mut self) {
        self.reason = Span::default();
        self.fields.clear();
    }

    /// The reason phrase as sent. Often empty.
    pub fn reason(&self) -> &[u8] {
        self.reason.get(&self.fields.bytes)
    }

    /// Whether it is an interim response (1xx), after which another one follows.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }
}

type Header<'a> = MaybeUninit<httparse::Header<'a>>;

/// A part of the table, as large as the limits allow.
fn room<'t, 'h>(table: &'t mut [Header<'h>; TABLE], limits: &Limits) -> &'t mut [Header<'h>] {
    &mut table[..limits.max_fields.min(TABLE)]
}

/// The parser's table is full, but the limits allow more.
fn is_cut_short<T>(outcome: &httparse::Result<T>, limits: &Limits) -> bool {
    limits.max_fields > TABLE && matches!(outcome, Err(httparse::Error::TooManyHeaders))
}

/// A table for all field lines that the limits allow.
#[cold]
fn all_room<'t, 'h>(large: &'t mut Vec<Header<'h>>, limits: &Limits) -> &'t mut [Header<'h>] {
    large.resize_with(limits.max_fields, MaybeUninit::uninit);
    large
}

/// Takes the fields that the general parser has found.
fn take_fields(fields: &mut Fields, head: &[u8], parsed: &[httparse::Header<'_>]) {
    for header in parsed {
        let value = Span::of(head, header.value.trim_ascii_end());
        fields.push(Span::of(head, header.name.as_bytes()), value, line_end(head, header));
    }
    fields.mark_listed();
}

impl Fields {
    /// Takes the field lines of a head in the usual form, from `at` on. Returns the length of the head. `None`: the head is
    /// incomplete, in another form, or over the limits. Then `self` has no fields.
    fn take_usual(&mut self, bytes: &[u8], at: usize, limits: &Limits) -> Option<usize> {
        match usual::field_lines(self, bytes, at, limits.max_fields) {
            Some(end) if end <= limits.max_size => Some(end),
            _ => {
                self.clear();
                None
            }
        }
    }
}

/// The end of a field's line, CR LF included. The parser's value ends before the CR. An empty value has no position, so its name counts.
fn line_end(head: &[u8], header: &httparse::Header<'_>) -> usize {
    let known = if header.value.is_empty() { header.name.as_bytes() } else { header.value };
    let end = (known.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize) + known.len();
    match head.get(end..end + 2) {
        Some(b"\r\n") => end + 2,
        _ => memchr::memchr(b'\n', &head[end..]).map_or(0, |feed| end + feed + 1),
    }
}
