//! The bodies of messages: decides where a body ends (RFC 9112 section 6), so strictly that no reader behind this proxy
//! can decide otherwise, and takes it out of the bytes of a connection. Knows no sockets.

use crate::chunked::{Chunk, ChunkedDecoder, ChunkedError};
use crate::field::{Fields, Name};
use crate::grammar::{is_token, parse_digits, tokens};
use crate::head::{RequestHead, ResponseHead, Version};

/// The length of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// This many bytes. 0: no body.
    Known(u64),
    /// The chunked coding marks the end.
    Chunked,
    /// The end of the connection (responses only).
    UntilClose,
}

/// Why the length of a message is ambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// Both `Content-Length` and `Transfer-Encoding` (RFC 9112 section 6.1): the classic form of request smuggling.
    #[error("Content-Length and Transfer-Encoding together")]
    LengthAndEncoding,
    /// `Content-Length` is not a number, or is too large.
    #[error("Content-Length is malformed")]
    BadLength,
    /// `Content-Length` comes more than once. Even with equal values this is a mistake or an attack.
    #[error("more than one Content-Length")]
    SeveralLengths,
    /// `Transfer-Encoding` is not a single final `chunked`.
    #[error("Transfer-Encoding is not exactly \"chunked\"")]
    BadEncoding,
    /// Other codings, and `chunked` after them: the end of the body is clear, but nothing here reads the codings.
    #[error("Transfer-Encoding has a coding besides \"chunked\"")]
    UnknownCoding,
    /// `Transfer-Encoding` in HTTP/1.0, which has no transfer codings (RFC 9112 section 6.1).
    #[error("Transfer-Encoding in an HTTP/1.0 message")]
    EncodingInHttp10,
}

/// The length of a request's body. Errors: it is ambiguous.
pub fn request_body(head: &RequestHead) -> Result<BodyLength, FramingError> {
    Ok(declared(&head.fields, head.version)?.unwrap_or(BodyLength::Known(0)))
}

/// The length of a response's body. `to_head`: the request's method was HEAD. Errors: it is ambiguous.
pub fn response_body(head: &ResponseHead, to_head: bool) -> Result<BodyLength, FramingError> {
    let declared = declared(&head.fields, head.version)?;
    if to_head || head.is_interim() || head.status == 204 || head.status == 304 {
        return Ok(BodyLength::Known(0));
    }
    Ok(declared.unwrap_or(BodyLength::UntilClose))
}

/// Whether another response may follow on the connection, as this head says (RFC 9112 section 9.3). Not after a 204 that announces a body: a 204
/// has none, but this sender may send one, and its bytes would be read as the next response.
pub(crate) fn lets_another_follow(head: &ResponseHead) -> bool {
    let is_clear = head.status != 204
        || matches!(declared(&head.fields, head.version), Ok(None | Some(BodyLength::Known(0))));
    is_clear && head.version == Version::Http11 && !head.is_interim() && !head.fields.says_close()
}

fn declared(fields: &Fields, version: Version) -> Result<Option<BodyLength>, FramingError> {
    let mut lengths = fields.all(Name::ContentLength);
    let length = lengths.next().map(number).transpose()?;
    if lengths.next().is_some() {
        return Err(FramingError::SeveralLengths);
    }
    let mut codings = fields.all(Name::TransferEncoding);
    let encoding = codings.next();
    if codings.next().is_some() {
        return Err(FramingError::BadEncoding);
    }
    match (length, encoding) {
        (Some(_), Some(_)) => Err(FramingError::LengthAndEncoding),
        (Some(length), None) => Ok(Some(BodyLength::Known(length))),
        (None, None) => Ok(None),
        (None, Some(_)) if version == Version::Http10 => Err(FramingError::EncodingInHttp10),
        (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Some(BodyLength::Chunked)),
        (None, Some(codings)) if has_unknown(codings) => Err(FramingError::UnknownCoding),
        (None, Some(_)) => Err(FramingError::BadEncoding),
    }
}

/// Whether a list of transfer codings is well-formed, and has others before a final `chunked`.
fn has_unknown(codings: &[u8]) -> bool {
    let is_chunked = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
    let Some(comma) = memchr::memrchr(b',', codings) else { return false };
    let mut others = codings[..comma].split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    is_chunked(&codings[comma + 1..]) && others.all(|coding| is_token(coding) && !is_chunked(coding))
}

/// `1*DIGIT`, at most 18 digits: no sign, no list, and no overflow in any later reader.
fn number(value: &[u8]) -> Result<u64, FramingError> {
    let number = if value.len() > 18 { None } else { parse_digits(value) };
    number.ok_or_else(|| match tokens(value).count() {
        0 | 1 => FramingError::BadLength,
        _ => FramingError::SeveralLengths,
    })
}

/// Reads one body.
#[derive(Debug)]
pub enum BodyReader {
    /// This many bytes are still to come.
    Length(u64),
    /// The chunked coding. `true` when it has ended.
    Chunked(Box<ChunkedDecoder>, bool),
    /// All bytes until the connection ends. `true` when it has ended.
    UntilClose(bool),
}

impl BodyReader {
    /// The reader of a body with this length.
    pub fn new(length: BodyLength) -> Self {
        match length {
            BodyLength::Known(bytes) => Self::Length(bytes),
            BodyLength::Chunked => Self::Chunked(Box::default(), false),
            BodyLength::UntilClose => Self::UntilClose(false),
        }
    }

    /// Whether the body is complete.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(_, ended) | Self::UntilClose(ended) => *ended,
        }
    }

    /// Appends the bytes of the body in `input` to `into`. Returns how many bytes of `input` were used: the rest follows the body. Errors:
    /// the body breaks the chunked coding.
    pub fn take(&mut self, input: &[u8], into: &mut Vec<u8>) -> Result<usize, ChunkedError> {
        let mut used = 0;
        match self {
            Self::Length(left) => {
                used = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                into.extend_from_slice(&input[..used]);
                *left -= used as u64;
            }
            Self::UntilClose(_) => {
                into.extend_from_slice(input);
                used = input.len();
            }
            Self::Chunked(decoder, ended) => {
                while used < input.len() && !*ended {
                    let (n, chunk) = decoder.step(&input[used..])?;
                    used += n;
                    match chunk {
                        Chunk::Data(data) => into.extend_from_slice(data),
                        Chunk::End => *ended = true,
                        Chunk::More => {}
                    }
                }
            }
        }
        Ok(used)
    }

    /// The connection has ended. Returns `true` if the body may end there, `false` if it was cut off.
    pub fn end_of_input(&mut self) -> bool {
        if let Self::UntilClose(ended) = self {
            *ended = true;
        }
        self.has_ended()
    }

    /// The trailer fields of a chunked body that has ended.
    pub fn trailers(&self) -> Option<&Fields> {
        match self {
            Self::Chunked(decoder, true) if !decoder.trailers().is_empty() => Some(decoder.trailers()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Limits;

    fn of_request(fields: &str) -> Result<BodyLength, FramingError> {
        let mut head = RequestHead::default();
        head.parse(format!("POST / HTTP/1.1\r\n{fields}\r\n").as_bytes(), &Limits::default()).unwrap();
        request_body(&head)
    }

    fn of_answer(head: &str, to_head: bool) -> Result<BodyLength, FramingError> {
        let mut parsed = ResponseHead::default();
        parsed.parse(head.as_bytes(), &Limits::default()).unwrap();
        response_body(&parsed, to_head)
    }

    #[test]
    fn request_bodies() {
        use BodyLength::{Chunked, Known};
        use FramingError::*;
        let cases: &[(&str, Result<BodyLength, FramingError>)] = &[
            ("", Ok(Known(0))),
            ("Content-Length: 0\r\n", Ok(Known(0))),
            ("Content-Length: 12\r\n", Ok(Known(12))),
            ("Content-Length: 0012\r\n", Ok(Known(12))),
            ("Content-Length: \r\n", Err(BadLength)),
            ("Content-Length: +1\r\n", Err(BadLength)),
            ("Content-Length: -1\r\n", Err(BadLength)),
            ("Content-Length: 0x1\r\n", Err(BadLength)),
            ("Content-Length: 1 1\r\n", Err(BadLength)),
            ("Content-Length: 1_000\r\n", Err(BadLength)),
            ("Content-Length: 18446744073709551617\r\n", Err(BadLength)),
            ("Content-Length: 5, 5\r\n", Err(SeveralLengths)),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", Err(SeveralLengths)),
            ("Content-Length: 5\r\nContent-Length: 6\r\n", Err(SeveralLengths)),
            ("Transfer-Encoding: chunked\r\n", Ok(Chunked)),
            ("Transfer-Encoding: Chunked\r\n", Ok(Chunked)),
            ("Transfer-Encoding: gzip, chunked\r\n", Err(UnknownCoding)),
            ("Transfer-Encoding: a , gzip,Chunked\r\n", Err(UnknownCoding)),
            ("Transfer-Encoding: chunked, gzip\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: gzip, chunked, chunked\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: gzip, \"chunked\"\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: ,chunked\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: chunked, chunked\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: identity\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: xchunked\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: chunked;q=1\r\n", Err(BadEncoding)),
            ("Transfer-Encoding: \r\n", Err(BadEncoding)),
            ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", Err(LengthAndEncoding)),
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Err(LengthAndEncoding)),
            ("Content-Length: 0\r\nTransfer-Encoding: identity\r\n", Err(LengthAndEncoding)),
        ];
        for (fields, expected) in cases {
            assert_eq!(of_request(fields), *expected, "{fields:?}");
        }
    }

    #[test]
    fn transfer_codings_in_http_1_0_are_refused() {
        let mut head = RequestHead::default();
        head.parse(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", &Limits::default()).unwrap();
        assert_eq!(request_body(&head), Err(FramingError::EncodingInHttp10));
    }

    #[test]
    fn answers() {
        use BodyLength::{Chunked, Known, UntilClose};
        assert_eq!(of_answer("HTTP/1.1 200 OK\r\n\r\n", false), Ok(UntilClose));
        assert_eq!(of_answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false), Ok(Known(9)));
        assert_eq!(of_answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true), Ok(Known(0)));
        assert_eq!(of_answer("HTTP/1.1 304 N\r\nContent-Length: 9\r\n\r\n", false), Ok(Known(0)));
        assert_eq!(of_answer("HTTP/1.1 204 N\r\n\r\n", false), Ok(Known(0)));
        assert_eq!(of_answer("HTTP/1.1 103 Early Hints\r\n\r\n", false), Ok(Known(0)));
        assert_eq!(of_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false), Ok(Chunked));
        assert_eq!(
            of_answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", false),
            Err(FramingError::LengthAndEncoding)
        );
        assert_eq!(
            of_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false),
            Err(FramingError::BadEncoding)
        );
        assert_eq!(
            of_answer("HTTP/1.1 304 N\r\nContent-Length: x\r\n\r\n", false),
            Err(FramingError::BadLength)
        );
    }
}
