//! Composes a request's head from parts, as HTTP/2 delivers them, with the same strict checks as the parser. Knows no
//! HTTP/2.

use crate::field::{Fields, Span};
use crate::grammar::is_token;
use crate::head::{HeadError, RequestHead, Version, printable};
use crate::scan::{Limits, ScanError};
use crate::write::{write_head_end, write_request_line};

/// A field line that is not allowed in HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadLine;

impl RequestHead {
    /// Begins a head with its request line. Then call [`line`](Self::line) for each field and [`finish`](Self::finish).
    pub fn compose(&mut self, method: &[u8], target: &[u8]) -> Result<(), HeadError> {
        self.clear();
        if !is_token(method) || !is_target(target) {
            return Err(HeadError::RequestLine);
        }
        write_request_line(&mut self.fields.bytes, method, target);
        self.method = Span::at(0, method.len());
        self.target = Span::at(method.len() + 1, target.len());
        self.version = Version::Http11;
        Ok(())
    }

    /// Adds a field line. The value may come in several pieces.
    pub fn line<'a>(
        &mut self,
        name: &[u8],
        pieces: impl IntoIterator<Item = &'a [u8]>,
        between: &[u8],
    ) -> Result<(), HeadError> {
        let at = self.fields.len() + 2;
        self.fields
            .write_line(name, pieces, between)
            .map_err(|BadLine| HeadError::Field { line: at, name: printable(name) })
    }

    /// Ends the head. Errors: the head exceeds its limits.
    pub fn finish(&mut self, limits: &Limits) -> Result<(), HeadError> {
        write_head_end(&mut self.fields.bytes);
        if self.fields.bytes.len() > limits.max_size {
            let start_line = self.method().len() + self.target().len() + "  HTTP/1.1\r\n".len();
            let is_long_line = start_line > limits.max_size;
            let too_large = if is_long_line { ScanError::StartLineTooLarge } else { ScanError::TooLarge };
            return Err(too_large(limits.max_size).into());
        }
        if self.fields.len() > limits.max_fields {
            return Err(HeadError::TooManyFields(limits.max_fields));
        }
        self.fields.mark_listed();
        Ok(())
    }
}

impl Fields {
    /// Appends a line as HTTP/1.1 has it. Appends nothing if the line is not allowed there.
    pub fn write_line<'a>(
        &mut self,
        name: &[u8],
        pieces: impl IntoIterator<Item = &'a [u8]>,
        between: &[u8],
    ) -> Result<(), BadLine> {
        if !is_token(name) {
            return Err(BadLine);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        let value_start = self.bytes.len();
        for (count, piece) in pieces.into_iter().enumerate() {
            if count > 0 {
                self.bytes.extend_from_slice(between);
            }
            self.bytes.extend_from_slice(piece);
        }
        let value_end = self.bytes.len();
        if !is_value(&self.bytes[value_start..]) {
            self.bytes.truncate(start);
            return Err(BadLine);
        }
        self.bytes.extend_from_slice(b"\r\n");
        let value = Span::at(value_start, value_end - value_start);
        self.push(Span::at(start, name.len()), value, value_end + 2);
        Ok(())
    }
}

/// Without a branch for each byte, so that the compiler can check many bytes at once. Nearly all bytes are allowed.
#[inline]
fn all(text: &[u8], is_such: impl Fn(u8) -> bool) -> bool {
    text.iter().fold(true, |all, &byte| all & is_such(byte))
}

/// Visible ASCII. For other bytes, some parser behind this proxy would cut the target there.
fn is_target(text: &[u8]) -> bool {
    !text.is_empty() && all(text, |byte| byte.is_ascii_graphic())
}

/// No byte that could end the line (RFC 9110 section 5.5), and no white space around the value (RFC 9113 section 8.2.1).
fn is_value(text: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_allowed = |byte: u8| (byte >= b' ') & (byte != 0x7f) | (byte == b'\t');
    !is_blank(text.first()) && !is_blank(text.last()) && all(text, is_allowed)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    type Line = (Vec<u8>, Vec<u8>);

    fn composed(method: &[u8], target: &[u8], lines: &[Line]) -> Result<RequestHead, HeadError> {
        let mut head = RequestHead::default();
        head.compose(method, target)?;
        for (name, value) in lines {
            head.line(name, [&value[..]], b"")?;
        }
        head.finish(&Limits::default())?;
        Ok(head)
    }

    #[test]
    fn a_head_without_its_fields_takes_little_memory_and_keeps_a_short_request_line() {
        let long = "x".repeat(10_000);
        let lines = [(b"a".to_vec(), vec![b'y'; 40_000])];
        for [method, target, kept_method, kept_target] in
            [["HEAD", "/a?b", "HEAD", "/a?b"], ["HEAD", &long, "HEAD", ""], [&long, "/a?b", "", ""]]
        {
            let mut head = composed(method.as_bytes(), target.as_bytes(), &lines).unwrap();
            head.forget_fields();
            assert_eq!((head.method(), head.target()), (kept_method.as_bytes(), kept_target.as_bytes()));
            assert!(head.fields.is_empty() && head.fields.memory() < 8 * 1024, "{}", head.fields.memory());
        }
    }

    #[test]
    fn a_field_that_http_1_1_could_not_carry_is_refused_with_its_position() {
        let field = |line, name: &str| HeadError::Field { line, name: name.into() };
        let cases: &[(&str, &str, &str, &str, HeadError)] = &[
            ("", "/", "a", "b", HeadError::RequestLine),
            ("GE T", "/", "a", "b", HeadError::RequestLine),
            ("GET", "", "a", "b", HeadError::RequestLine),
            ("GET", "/ HTTP/1.1\r\nx: y", "a", "b", HeadError::RequestLine),
            ("GET", "/a b", "a", "b", HeadError::RequestLine),
            ("GET", "/\u{e9}", "a", "b", HeadError::RequestLine),
            ("GET", "/", "", "b", field(2, "")),
            ("GET", "/", "a:", "b", field(2, "a:")),
            ("GET", "/", "a\n", "b", field(2, "a\\x0a")),
            ("GET", "/", "a", "b\r\nc: d", field(2, "a")),
            ("GET", "/", "a", "b\0", field(2, "a")),
            ("GET", "/", "a", " b", field(2, "a")),
            ("GET", "/", "a", "b\t", field(2, "a")),
        ];
        for (method, target, name, value, expected) in cases {
            let lines = [(name.as_bytes().to_vec(), value.as_bytes().to_vec())];
            let seen = composed(method.as_bytes(), target.as_bytes(), &lines);
            assert_eq!(seen.err().as_ref(), Some(expected), "{method:?} {target:?} {name:?} {value:?}");
        }
    }

    #[test]
    fn limits_hold() {
        let line = |size| (b"a".to_vec(), vec![b'x'; size]);
        assert_eq!(
            composed(b"GET", b"/", &[line(70_000)]).err(),
            Some(HeadError::Scan(ScanError::TooLarge(65_536)))
        );
        assert_eq!(composed(b"GET", b"/", &vec![line(1); 101]).err(), Some(HeadError::TooManyFields(100)));
        assert_eq!(
            composed(b"GET", &[b'/'; 70_000], &[]).err(),
            Some(HeadError::Scan(ScanError::StartLineTooLarge(65_536)))
        );
    }

    #[test]
    fn pieces_are_joined() {
        let mut head = RequestHead::default();
        head.compose(b"GET", b"/").unwrap();
        head.line(b"cookie", [&b"a=1"[..], b"b=2"], b"; ").unwrap();
        assert_eq!(head.fields.get("cookie"), Some(&b"a=1; b=2"[..]));
    }

    /// Mostly bytes that may stand in a method and in a name: with others, no head of several lines would be valid.
    fn of_a_token() -> impl Strategy<Value = u8> {
        prop_oneof![40 => b'a'..=b'z', 1 => any::<u8>()]
    }

    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![40 => b'!'..=b'~', 1 => any::<u8>()]
    }

    proptest! {
        /// A composed head equals the head parsed from the same bytes.
        #[test]
        fn a_composed_head_equals_its_parsed_bytes(
            method in vec(of_a_token(), 0..8),
            target in vec(byte(), 0..20),
            lines in vec((vec(of_a_token(), 1..12), vec(byte(), 0..20)), 0..8),
        ) {
            if let Ok(head) = composed(&method, &target, &lines) {
                let mut parsed = RequestHead::default();
                parsed.parse(&head.fields.bytes, &Limits::default()).unwrap();
                prop_assert_eq!((head.method(), head.target(), head.version), (parsed.method(), parsed.target(), parsed.version));
                let seen = |head: &RequestHead| -> Vec<_> {
                    head.fields.iter().map(|(f, n, v)| (f.known, f.listed, n.to_vec(), v.to_vec())).collect()
                };
                prop_assert_eq!(seen(&head), seen(&parsed));
                let lines = |head: &RequestHead| { let mut out = Vec::new(); head.fields.copy_lines(&mut out, |_, _| true); out };
                prop_assert_eq!(lines(&head), lines(&parsed));
            }
        }
    }
}
