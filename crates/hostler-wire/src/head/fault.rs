//! Explains what is wrong with a head, with the number of the line. Knows only refused heads.

use std::fmt::Write as _;

use crate::scan::{Limits, ScanError};

/// Why bytes with the end of a head are not a head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The scan refuses the bytes.
    #[error("{0}")]
    Scan(#[from] ScanError),
    /// The request line is not `method SP target SP HTTP/1.x`.
    #[error("the request line is malformed")]
    RequestLine,
    /// The status line is not `HTTP/1.x SP status SP reason`.
    #[error("the status line is malformed")]
    StatusLine,
    /// The protocol version is neither HTTP/1.0 nor HTTP/1.1. A higher minor version is refused, too: none exists (decision 1).
    #[error("the protocol version is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// A field line breaks RFC 9112 section 5.
    #[error("header line {line} is malformed{}", shown(.name))]
    Field {
        /// The number of the line. The start line is 1.
        line: usize,
        /// The name of the field, printable and shortened.
        name: String,
    },
    /// There are more field lines than the limit, which is given.
    #[error("there are more than {0} header fields")]
    TooManyFields(usize),
}

fn shown(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

/// Turns the parser's error into one with the number of the line. Only for refused heads, so it may parse again.
pub(super) fn explain(
    error: httparse::Error,
    head: &[u8],
    limits: &Limits,
    start_line: HeadError,
) -> HeadError {
    match error {
        httparse::Error::TooManyHeaders => HeadError::TooManyFields(limits.max_fields),
        httparse::Error::Version if names_another_version(head) => HeadError::Version,
        httparse::Error::HeaderName | httparse::Error::HeaderValue | httparse::Error::NewLine => {
            offender(head).unwrap_or(start_line)
        }
        _ => start_line,
    }
}

/// Whether only the version in the start line is wrong. The parser reports a space in the target as a wrong version, too.
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

/// A name that may be invalid, shortened and printable for a log.
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

/// The first field line that does not parse on its own.
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
