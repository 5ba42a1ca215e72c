//! Request and response heads, parsed strictly and kept in the bytes they came in. Knows nothing of bodies.

use std::fmt::Write as _;
use std::mem::MaybeUninit;

use crate::field::{Fields, Span};
use crate::scan::{Limits, ScanError};

/// Field lines for which the parser's table lives on the stack. Heads with more are rare, and pay for theirs.
const TABLE: usize = 128;

/// HTTP/1.0 or HTTP/1.1; everything else is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// HTTP/1.0: no chunked coding, no keep-alive unless asked for.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

/// Why bytes that end like a head are none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// What the scan found.
    #[error("{0}")]
    Scan(#[from] ScanError),
    /// The request line is not `method SP target SP HTTP/1.x`.
    #[error("the request line is malformed")]
    RequestLine,
    /// The status line is not `HTTP/1.x SP status SP reason`.
    #[error("the status line is malformed")]
    StatusLine,
    /// Another protocol version.
    #[error("the protocol version is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// A field line that breaks RFC 9112 section 5: the line's number (the start line is 1) and its name as far as it
    /// can be shown.
    #[error("header line {line} is malformed{}", shown(.name))]
    Field {
        /// Line number in the head.
        line: usize,
        /// The field's name, made printable and cut short.
        name: String,
    },
    /// More field lines than the limit.
    #[error("there are more than {0} header fields")]
    TooManyFields(usize),
}

fn shown(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

/// A request's start line and fields. Reusable: `parse` overwrites.
#[derive(Debug, Default, Clone)]
pub struct RequestHead {
    pub(crate) method: Span,
    pub(crate) target: Span,
    /// The protocol version of the request line.
    pub version: Version,
    /// The field lines.
    pub fields: Fields,
}

impl RequestHead {
    /// Parses a whole head, as found by [`HeadScan`](crate::HeadScan).
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
            Err(error) => return Err(explain(error, head, limits, HeadError::RequestLine)),
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

    /// Parses a head that lies whole at the beginning of `bytes`, without looking for its end before: says how long it is, or
    /// leaves the head clear where there is anything about it that [`HeadScan`](crate::HeadScan) and [`parse`](Self::parse) are
    /// to judge.
    pub fn parse_at_once(&mut self, bytes: &[u8], limits: &Limits) -> Option<usize> {
        self.clear();
        let mut table = [const { MaybeUninit::uninit() }; TABLE];
        let mut parsed = httparse::Request::new(&mut []);
        let outcome = httparse::ParserConfig::default().parse_request_with_uninit_headers(
            &mut parsed,
            bytes,
            room(&mut table, limits),
        );
        let Ok(httparse::Status::Complete(end)) = outcome else { return None };
        let (method, target, version) = (parsed.method?, parsed.path?, parsed.version?);
        let head = &bytes[..end];
        self.fields.bytes.extend_from_slice(head);
        // Empty lines before the start line are for others to judge, too.
        let begins = head[0].is_ascii_graphic();
        if end > limits.max_size || !begins || !take_fields(&mut self.fields, head, parsed.headers) {
            self.clear();
            return None;
        }
        self.method = Span::of(head, method.as_bytes());
        self.target = Span::of(head, target.as_bytes());
        self.version = if version == 0 { Version::Http10 } else { Version::Http11 };
        Some(end)
    }

    /// Forgets what was parsed. A head that fails to parse is left like this, too: the spans of the one before must not
    /// point into its bytes.
    pub fn clear(&mut self) {
        self.method = Span::default();
        self.target = Span::default();
        self.version = Version::default();
        self.fields.clear();
    }

    /// The method, as sent (methods are case-sensitive).
    pub fn method(&self) -> &[u8] {
        self.method.get(&self.fields.bytes)
    }

    /// The request target, as sent.
    pub fn target(&self) -> &[u8] {
        self.target.get(&self.fields.bytes)
    }

    /// Narrows the target to a part of itself: absolute-form becomes origin-form without a copy.
    ///
    /// # Panics
    /// If the range does not lie in the target.
    pub fn narrow_target(&mut self, range: std::ops::Range<usize>) {
        assert!(range.end <= self.target().len(), "invariant: a part of the target");
        let bytes = &self.fields.bytes;
        let part = &self.target.get(bytes)[range];
        self.target = Span::of(bytes, part);
    }

    /// Adds a field line that the sender left out.
    pub fn add_field(&mut self, name: &[u8], value: &[u8]) {
        self.fields.add(name, value);
    }

    /// Puts another target in the place of the one that came (a rewrite, or a bare authority's `/`).
    pub fn replace_target(&mut self, target: &[u8]) {
        let start = self.fields.bytes.len();
        self.fields.bytes.extend_from_slice(target);
        self.target = Span::of(target, target).shifted(start);
    }
}

/// A response's start line and fields. Reusable: `parse` overwrites.
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
    /// A head without fields, to be filled.
    pub fn new(status: u16, reason: &str) -> Self {
        let mut head = Self { status, ..Self::default() };
        head.fields.bytes.extend_from_slice(reason.as_bytes());
        head.reason = Span::of(reason.as_bytes(), reason.as_bytes());
        head
    }

    /// Parses a whole head, as found by [`HeadScan`](crate::HeadScan).
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
        let (Some(status @ 100..=599), Some(version)) = (parsed.code, parsed.version) else {
            return Err(HeadError::StatusLine);
        };
        self.status = status;
        self.reason = Span::of(head, parsed.reason.unwrap_or_default().as_bytes());
        self.version = if version == 0 { Version::Http10 } else { Version::Http11 };
        take_fields(&mut self.fields, head, parsed.headers);
        Ok(())
    }

    /// As [`RequestHead::parse_at_once`].
    pub fn parse_at_once(&mut self, bytes: &[u8], limits: &Limits) -> Option<usize> {
        self.reason = Span::default();
        self.fields.clear();
        let mut table = [const { MaybeUninit::uninit() }; TABLE];
        let mut parsed = httparse::Response::new(&mut []);
        let outcome = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut parsed,
            bytes,
            room(&mut table, limits),
        );
        let Ok(httparse::Status::Complete(end)) = outcome else { return None };
        let (Some(status @ 100..=599), Some(version)) = (parsed.code, parsed.version) else { return None };
        let head = &bytes[..end];
        self.fields.bytes.extend_from_slice(head);
        let begins = head[0].is_ascii_graphic();
        if end > limits.max_size || !begins || !take_fields(&mut self.fields, head, parsed.headers) {
            self.fields.clear();
            return None;
        }
        self.status = status;
        self.reason = Span::of(head, parsed.reason.unwrap_or_default().as_bytes());
        self.version = if version == 0 { Version::Http10 } else { Version::Http11 };
        Some(end)
    }

    /// The reason phrase, as sent; often empty.
    pub fn reason(&self) -> &[u8] {
        self.reason.get(&self.fields.bytes)
    }

    /// An interim answer: more is to come.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }
}

type Header<'a> = MaybeUninit<httparse::Header<'a>>;

/// As much of a table as the limits allow.
fn room<'t, 'h>(table: &'t mut [Header<'h>; TABLE], limits: &Limits) -> &'t mut [Header<'h>] {
    &mut table[..limits.max_fields.min(TABLE)]
}

/// The parser has found no room where the limits have some.
fn is_cut_short<T>(outcome: &httparse::Result<T>, limits: &Limits) -> bool {
    limits.max_fields > TABLE && matches!(outcome, Err(httparse::Error::TooManyHeaders))
}

/// A table for all that the limits allow.
#[cold]
fn all_room<'t, 'h>(large: &'t mut Vec<Header<'h>>, limits: &Limits) -> &'t mut [Header<'h>] {
    large.resize_with(limits.max_fields, MaybeUninit::uninit);
    large
}

/// Takes the fields; says whether the head's lines follow one another without a gap, each ends in CR LF, and so does the head: then
/// no other reader can see another end. The parser is not that strict.
fn take_fields(fields: &mut Fields, head: &[u8], parsed: &[httparse::Header<'_>]) -> bool {
    let start =
        |header: &httparse::Header<'_>| (header.name.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize);
    let mut at = parsed.first().map_or(head.len().saturating_sub(2), start);
    let mut is_strict = ends_line(&head[..at]);
    for header in parsed {
        let value = Span::of(head, header.value.trim_ascii_end());
        let end = line_end(head, header);
        is_strict &= start(header) == at && ends_line(&head[..end]);
        at = end;
        fields.push(Span::of(head, header.name.as_bytes()), value, end);
    }
    fields.mark_listed();
    is_strict && head[at..] == *b"\r\n"
}

fn ends_line(text: &[u8]) -> bool {
    matches!(text, [.., b'\r', b'\n'])
}

/// Where a field's line ends. The parser's value reaches to the CR; an empty one has no place of its own.
fn line_end(head: &[u8], header: &httparse::Header<'_>) -> usize {
    let known = if header.value.is_empty() { header.name.as_bytes() } else { header.value };
    let end = (known.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize) + known.len();
    match head.get(end..end + 2) {
        Some(b"\r\n") => end + 2,
        _ => memchr::memchr(b'\n', &head[end..]).map_or(0, |feed| end + feed + 1),
    }
}

/// Turns the parser's word into one that names the line. Only for heads that are refused, so it may look again.
fn explain(error: httparse::Error, head: &[u8], limits: &Limits, start_line: HeadError) -> HeadError {
    match error {
        httparse::Error::TooManyHeaders => HeadError::TooManyFields(limits.max_fields),
        httparse::Error::Version if names_another_version(head) => HeadError::Version,
        httparse::Error::HeaderName | httparse::Error::HeaderValue | httparse::Error::NewLine => {
            offender(head).unwrap_or(start_line)
        }
        _ => start_line,
    }
}

/// True when the start line is sound but for its version; to the parser, a space in the target is a wrong version as well.
fn names_another_version(head: &[u8]) -> bool {
    let line = head
        .split(|&b| b == b'\r')
        .find(|line| !line.trim_ascii().is_empty())
        .unwrap_or_default()
        .trim_ascii();
    let is_version = |word: &[u8]| matches!(word, [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit());
    let mut words = line.split(|&b| b == b' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(first), ..) if is_version(first) => true,
        (_, _, Some(third), None) => is_version(third),
        _ => false,
    }
}

/// A name that may be none, cut short and made fit for a log.
pub(crate) fn printable(name: &[u8]) -> String {
    let mut text = String::new();
    for byte in name.iter().take(64) {
        match byte {
            b' '..=b'~' => text.push(*byte as char),
            other => write!(text, "\\x{other:02x}").unwrap_or_default(),
        }
    }
    text
}

/// The first field line that does not parse alone.
fn offender(head: &[u8]) -> Option<HeadError> {
    let lines = head.split(|&b| b == b'\n').skip_while(|line| line.trim_ascii().is_empty());
    for (at, line) in lines.enumerate().skip(1) {
        let mut one = line.to_vec();
        one.extend_from_slice(b"\n\r\n");
        if line.trim_ascii().is_empty()
            || httparse::parse_headers(&one, &mut [httparse::EMPTY_HEADER; 1]).is_ok()
        {
            continue;
        }
        let name = printable(line.split(|&b| b == b':').next().unwrap_or_default());
        return Some(HeadError::Field { line: at + 1, name });
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::field::Name;
    use crate::scan::HeadScan;

    fn request(head: &str) -> Result<RequestHead, HeadError> {
        let mut parsed = RequestHead::default();
        parsed.parse(head.as_bytes(), &Limits::default()).map(|()| parsed)
    }

    #[test]
    fn a_head_keeps_names_values_and_order_as_sent() {
        let head =
            request("GET /a?b HTTP/1.1\r\nHoSt: x\r\nX-One:  1 \r\nx-two:\r\nX-One: 2\r\n\r\n").unwrap();
        assert_eq!(
            (head.method(), head.target(), head.version),
            (&b"GET"[..], &b"/a?b"[..], Version::Http11)
        );
        let mut lines = Vec::new();
        head.fields.copy_lines(&mut lines, |field, _| field.known != Name::Host);
        assert_eq!(lines, b"X-One:  1 \r\nx-two:\r\nX-One: 2\r\n");
        let seen: Vec<_> = head.fields.iter().map(|(_, n, v)| (n, v)).collect();
        let expected: Vec<(&[u8], &[u8])> =
            vec![(b"HoSt", b"x"), (b"X-One", b"1"), (b"x-two", b""), (b"X-One", b"2")];
        assert_eq!(seen, expected);
        assert_eq!(head.fields.first(Name::Host), Some(&b"x"[..]));
    }

    #[test]
    fn fields_named_by_connection_are_marked_but_never_those_that_frame_the_message() {
        let head = request(
            "GET / HTTP/1.1\r\nHost: x\r\nX-Secret: 1\r\nConnection: close, X-Secret,host\r\nContent-Length: 0\r\n\r\n",
        )
        .unwrap();
        let listed: Vec<_> =
            head.fields.iter().filter(|(f, _, _)| f.listed).map(|(_, n, _)| n.to_vec()).collect();
        assert_eq!(listed, [b"X-Secret".to_vec()]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases: &[(&str, HeadError)] = &[
            ("GET /\r\nHost: x\r\n\r\n", HeadError::RequestLine),
            ("GET  / HTTP/1.1\r\n\r\n", HeadError::RequestLine),
            ("G@T / HTTP/1.1\r\n\r\n", HeadError::RequestLine),
            ("GET / HTTP/2.0\r\n\r\n", HeadError::Version),
            ("GET / HTTP/1.2\r\n\r\n", HeadError::Version),
            ("\r\nGET / HTTP/1.2\r\n\r\n", HeadError::Version),
            ("GET / a HTTP/1.1\r\n\r\n", HeadError::RequestLine),
            ("GET / a HTTP/1.2\r\n\r\n", HeadError::RequestLine),
            ("GET / \r\n\r\n", HeadError::RequestLine),
            ("GET / http/1.1\r\n\r\n", HeadError::RequestLine),
            ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", HeadError::Field { line: 2, name: "Host ".into() }),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nA\0b: 1\r\n\r\n",
                HeadError::Field { line: 3, name: "A\\x00b".into() },
            ),
            ("GET / HTTP/1.1\r\nHost: x\r\nA: 1\0\r\n\r\n", HeadError::Field { line: 3, name: "A".into() }),
            ("GET / HTTP/1.1\r\nHost: x\r\nA: 1\r2\r\n\r\n", HeadError::Field { line: 3, name: "A".into() }),
            ("GET / HTTP/1.1\r\n: x\r\n\r\n", HeadError::Field { line: 2, name: String::new() }),
            ("GET / HTTP/1.1\r\nHost\r\n\r\n", HeadError::Field { line: 2, name: "Host\\x0d".into() }),
        ];
        for (head, expected) in cases {
            assert_eq!(request(head).err().as_ref(), Some(expected), "{head:?}");
        }
    }

    #[test]
    fn field_lines_are_counted() {
        let head = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(101));
        assert_eq!(request(&head).err(), Some(HeadError::TooManyFields(100)));
    }

    #[test]
    fn as_many_field_lines_are_read_as_the_limits_allow_however_many_those_are() {
        for most in [1, TABLE - 1, TABLE, TABLE + 1, 1000] {
            let limits = Limits { max_fields: most, ..Limits::default() };
            let head = |start: &str, lines: usize| format!("{start}\r\n{}\r\n", "A: b\r\n".repeat(lines));
            let request = |lines| {
                let mut parsed = RequestHead::default();
                parsed.parse(head("GET /x HTTP/1.1", lines).as_bytes(), &limits).map(|()| parsed.fields.len())
            };
            let response = |lines| {
                let mut parsed = ResponseHead::default();
                parsed.parse(head("HTTP/1.1 200 OK", lines).as_bytes(), &limits).map(|()| parsed.fields.len())
            };
            assert_eq!((request(most), response(most)), (Ok(most), Ok(most)));
            let refused = Err(HeadError::TooManyFields(most));
            assert_eq!((request(most + 1), response(most + 1)), (refused.clone(), refused));
        }
    }

    #[test]
    fn a_head_that_fails_to_parse_keeps_nothing_of_the_one_before() {
        let mut head = request("DELETE /a/long/target HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(head.parse(b"X\r\n\r\n", &Limits::default()), Err(HeadError::RequestLine));
        assert_eq!((head.method(), head.target(), head.fields.len()), (&b""[..], &b""[..], 0));
    }

    #[test]
    fn a_target_can_be_narrowed_and_replaced() {
        let mut head = request("GET http://x/a?b HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        head.narrow_target(8..12);
        assert_eq!(head.target(), b"/a?b");
        head.replace_target(b"/other");
        assert_eq!(head.target(), b"/other");
        head.add_field(b"X-Late", b"1");
        let mut lines = Vec::new();
        head.fields.copy_lines(&mut lines, |_, _| true);
        assert_eq!(lines, b"Host: x\r\nX-Late: 1\r\n");
        assert_eq!(head.fields.first(Name::Host), Some(&b"x"[..]));
    }

    #[test]
    fn responses_are_read_as_strictly() {
        let mut head = ResponseHead::default();
        let mut parse = |text: &str| head.parse(text.as_bytes(), &Limits::default()).map(|()| head.status);
        assert_eq!(parse("HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), Ok(200));
        assert_eq!(parse("HTTP/1.1 204\r\n\r\n"), Ok(204));
        assert_eq!(parse("HTTP/1.1 600 What\r\n\r\n"), Err(HeadError::StatusLine));
        assert_eq!(parse("HTTP/1.1 20 OK\r\n\r\n"), Err(HeadError::StatusLine));
        assert_eq!(parse("HTTP/3.1 200 OK\r\n\r\n"), Err(HeadError::Version));
        assert_eq!(
            parse("HTTP/1.1 200 OK\r\nA : b\r\n\r\n"),
            Err(HeadError::Field { line: 2, name: "A ".into() })
        );
    }

    /// What the careful make of it: its end found first, then read.
    fn carefully(bytes: &[u8]) -> Option<(usize, RequestHead)> {
        let end = HeadScan::default().advance(bytes, Limits::default().max_size).ok()??;
        let mut head = RequestHead::default();
        head.parse(&bytes[..end], &Limits::default()).ok()?;
        Some((end, head))
    }

    fn shown(head: &RequestHead) -> String {
        let fields: Vec<_> =
            head.fields.iter().map(|(_, n, v)| (n.escape_ascii(), v.escape_ascii())).collect();
        format!(
            "{} {} {:?} {fields:?}",
            head.method().escape_ascii(),
            head.target().escape_ascii(),
            head.version
        )
    }

    #[test]
    fn a_plain_head_is_read_at_once_whatever_follows_it() {
        for fields in ["", "Host: x\r\n", "A:\r\nB: c \t\r\nD:e\r\n"] {
            let text = format!("GET /a HTTP/1.1\r\n{fields}\r\n");
            let mut head = request("DELETE /before HTTP/1.0\r\nA: b\r\n\r\n").unwrap();
            for rest in ["", "x", "\n", "\r\n", "GET /b HTTP/1.1\r\n\r\n"] {
                let bytes = format!("{text}{rest}");
                assert_eq!(
                    head.parse_at_once(bytes.as_bytes(), &Limits::default()),
                    Some(text.len()),
                    "{bytes:?}"
                );
                assert_eq!(shown(&head), shown(&request(&text).unwrap()));
            }
        }
        let mut answer = ResponseHead::default();
        let text = b"HTTP/1.1 200 Fine\r\nA: b\r\n\r\nbody";
        assert_eq!(answer.parse_at_once(text, &Limits::default()), Some(text.len() - 4));
        assert_eq!((answer.status, answer.reason()), (200, &b"Fine"[..]));
        assert_eq!(answer.parse_at_once(b"HTTP/1.1 200 Fine\r\n", &Limits::default()), None);
        assert_eq!((answer.reason(), answer.fields.len()), (&b""[..], 0));
    }

    #[test]
    fn what_two_readers_could_end_in_two_places_is_never_read_at_once() {
        for text in [
            "GET / HTTP/1.1\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\n\r\n",
            "GET / HTTP/1.1\r\nHost: x \n\r\n",
            "GET / HTTP/1.1\r\nHost:\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n\n",
            "GET / HTTP/1.1\r\n\n",
            "GET / HTTP/1.1\n\n",
            "\nGET / HTTP/1.1\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\n\r\n",
        ] {
            let mut head = RequestHead::default();
            assert_eq!(head.parse_at_once(text.as_bytes(), &Limits::default()), None, "{text:?}");
            assert!(head.method().is_empty() && head.fields.is_empty());
        }
        let small = Limits { max_size: 20, ..Limits::default() };
        let text = b"GET / HTTP/1.1\r\nA: b\r\n\r\n";
        assert_eq!(RequestHead::default().parse_at_once(text, &small), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn what_is_read_at_once_is_what_the_careful_read(
            start in prop_oneof![4 => Just("GET /a HTTP/1.1"), 1 => Just("GET /a"), 1 => Just("")],
            pieces in vec(
                prop_oneof![
                    8 => Just(&b"\r\n"[..]),
                    4 => Just(&b"Host: x"[..]),
                    2 => Just(&b"A:"[..]),
                    1 => Just(&b"\n"[..]),
                    1 => Just(&b"\r"[..]),
                    1 => Just(&b" "[..]),
                    1 => Just(&b"\t"[..]),
                    1 => Just(&b":"[..]),
                    1 => Just(&b"\0"[..]),
                    1 => Just(&b"\xff"[..]),
                ],
                0..12,
            ),
        ) {
            let bytes = [start.as_bytes(), &pieces.concat()].concat();
            let mut head = RequestHead::default();
            if let Some(end) = head.parse_at_once(&bytes, &Limits::default()) {
                let (careful_end, careful) = carefully(&bytes).expect("no careful reader accepts it");
                prop_assert_eq!((end, shown(&head)), (careful_end, shown(&careful)));
            } else {
                prop_assert!(head.method().is_empty() && head.fields.is_empty());
            }
        }
    }
}
