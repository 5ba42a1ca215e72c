//! Finds the end of a head while its bytes arrive, and refuses bytes that could make two readers see two different ends,
//! or that begin no request, or a response in HTTP/2. Knows no fields.

use memchr::memchr_iter;

use crate::grammar::TOKEN;

/// The largest size of a head.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most bytes of a head, with the start line and the final empty line.
    pub max_size: usize,
    /// The most field lines.
    pub max_fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_size: 64 * 1024, max_fields: 100 }
    }
}

/// Why the bytes so far cannot become a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// A line feed without its carriage return. RFC 9112 section 2.2 allows a recipient to accept it. Two recipients that
    /// differ in this see two different messages.
    #[error("a line ends in a bare LF")]
    BareLf,
    /// A field line that starts with white space: an obsolete line fold (RFC 9112 section 5.2).
    #[error("a header field is folded over several lines (obs-fold)")]
    ObsFold,
    /// A request that begins with this byte, which no method contains.
    #[error(
        "the request line begins with byte {0:#04x}, which no method contains (a TLS handshake begins with 0x16)"
    )]
    NoMethod(u8),
    /// A response that begins with a SETTINGS frame, as each connection of an HTTP/2 server does (RFC 9113 section 3.4).
    #[error("it is in HTTP/2, and the request was in HTTP/1.1")]
    Http2,
    /// There is no end of the head within the limit.
    #[error("the header block is larger than {0} bytes")]
    TooLarge(usize),
    /// There is no complete start line within the limit.
    #[error("the start line is larger than {0} bytes")]
    StartLineTooLarge(usize),
}

/// Reads every byte of a head once, even if it arrives slowly. A parser that starts again with every packet would need
/// quadratic time for a slow sender.
#[derive(Debug, Default, Clone)]
pub struct HeadScan {
    looked: usize,
    line_start: usize,
    lines: usize,
    /// The end of the start line; 0 until it has been read.
    start_line_end: usize,
}

/// More bytes of empty lines than this count as the beginning of a head.
const MOST_EMPTY: usize = 256;

impl HeadScan {
    /// `Ok(Some(n))`: the first `n` bytes are a whole head. `Ok(None)`: more bytes are needed. `bytes` must start with
    /// all bytes of the calls before.
    ///
    /// Errors: the bytes cannot become a head.
    pub fn advance(&mut self, bytes: &[u8], max_size: usize) -> Result<Option<usize>, ScanError> {
        let new = self.looked;
        for found in memchr_iter(b'\n', &bytes[new..]) {
            let at = new + found;
            if at == 0 || bytes[at - 1] != b'\r' {
                return Err(ScanError::BareLf);
            }
            let length = at - 1 - self.line_start;
            let first = bytes[self.line_start];
            self.looked = at + 1;
            self.line_start = at + 1;
            if length == 0 {
                // Empty lines before a start line are skipped (RFC 9112 section 2.2).
                if self.lines > 0 {
                    return self.within(at + 1, max_size).map(Some);
                }
                continue;
            }
            if self.lines > 0 && (first == b' ' || first == b'\t') {
                return Err(ScanError::ObsFold);
            }
            self.lines += 1;
            if self.lines == 1 {
                self.start_line_end = at + 1;
            }
        }
        self.looked = bytes.len();
        self.within(bytes.len(), max_size).map(|_| None)
    }

    /// As [`advance`](Self::advance), for a request. Bytes of another protocol, such as those of a TLS handshake, are
    /// refused at their first byte: their sender waits for an answer, and sends no end of a line.
    pub fn advance_request(&mut self, bytes: &[u8], max_size: usize) -> Result<Option<usize>, ScanError> {
        let end = self.advance(bytes, max_size)?;
        let first = bytes.get(self.line_start).copied();
        // An empty line may precede the request line.
        match first.filter(|&first| self.lines == 0 && first != b'\r' && !TOKEN[usize::from(first)]) {
            Some(first) => Err(ScanError::NoMethod(first)),
            None => Ok(end),
        }
    }

    /// As [`advance`](Self::advance), for a response. A server that speaks only HTTP/2 sends its first frame, which has no end of a line, and then
    /// closes the connection or waits.
    pub fn advance_response(&mut self, bytes: &[u8], max_size: usize) -> Result<Option<usize>, ScanError> {
        if matches!(bytes, [0, _, _, 4, 0, 0, 0, 0, 0, ..]) {
            return Err(ScanError::Http2);
        }
        self.advance(bytes, max_size)
    }

    /// Whether no byte was read yet.
    pub fn is_fresh(&self) -> bool {
        self.looked == 0
    }

    /// Whether a head has begun to arrive: a start line, or more empty lines than a client sends by mistake. A client that sends only these
    /// keeps memory, so it has no more time than one that sends its head slowly.
    pub fn has_begun(&self) -> bool {
        self.lines > 0 || self.looked > self.line_start || self.line_start > MOST_EMPTY
    }

    fn within(&self, size: usize, max: usize) -> Result<usize, ScanError> {
        match size <= max {
            true => Ok(size),
            false if self.lines == 0 || self.start_line_end > max => Err(ScanError::StartLineTooLarge(max)),
            false => Err(ScanError::TooLarge(max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Result<Option<usize>, ScanError> {
        HeadScan::default().advance(bytes, 1024)
    }

    #[test]
    fn the_end_of_a_head_is_found_wherever_the_bytes_are_cut() {
        let head = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nbody";
        for cut in 0..head.len() {
            let mut scan = HeadScan::default();
            let early = scan.advance(&head[..cut], 1024).unwrap();
            assert_eq!(early, (cut >= 29).then_some(29), "cut at {cut}");
            if early.is_none() {
                assert_eq!(scan.advance(head, 1024), Ok(Some(29)));
            }
        }
    }

    #[test]
    fn bare_line_feeds_folds_and_sizes_are_refused() {
        assert_eq!(whole(b"GET / HTTP/1.1\nHost: a\n\n"), Err(ScanError::BareLf));
        assert_eq!(whole(b"\nGET / HTTP/1.1\r\n\r\n"), Err(ScanError::BareLf));
        assert_eq!(whole(b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"), Err(ScanError::ObsFold));
        assert_eq!(whole(b"GET / HTTP/1.1\r\n A: b\r\n\r\n"), Err(ScanError::ObsFold));
        assert_eq!(HeadScan::default().advance(&[b'a'; 2000], 1024), Err(ScanError::StartLineTooLarge(1024)));
        let mut long = b"GET / HTTP/1.1\r\nA: ".to_vec();
        long.resize(1100, b'x');
        assert_eq!(whole(&long), Err(ScanError::TooLarge(1024)));
    }

    #[test]
    fn a_request_is_refused_at_a_first_byte_that_no_method_contains() {
        let begun = |bytes: &[u8]| HeadScan::default().advance_request(bytes, 1024);
        assert_eq!(begun(b"\x16\x03\x01"), Err(ScanError::NoMethod(0x16)));
        assert_eq!(begun(b"\r\n GET"), Err(ScanError::NoMethod(b' ')));
        for good in
            [&b"G"[..], b"\r", b"\r\n", b"\r\n\r\nPOST", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n\x16"]
        {
            assert_eq!(begun(good), Ok(None), "{}", good.escape_ascii());
        }
        // A whole line is the parser's to judge.
        let head = b"\x16 / HTTP/1.1\r\n\r\n";
        assert_eq!(begun(head), Ok(Some(head.len())));
    }

    #[test]
    fn a_head_has_begun_with_its_start_line_or_after_many_empty_lines() {
        let has_begun = |bytes: &[u8]| {
            let mut scan = HeadScan::default();
            scan.advance_request(bytes, 1024).unwrap();
            scan.has_begun()
        };
        assert!(!has_begun(b"\r\n") && !has_begun(&b"\r\n".repeat(128)));
        assert!(has_begun(b"\r\nG") && has_begun(b"GET / HTTP/1.1\r\n") && has_begun(&b"\r\n".repeat(129)));
    }

    #[test]
    fn a_response_in_http_2_is_refused_at_its_first_frame() {
        let begun = |bytes: &[u8]| HeadScan::default().advance_response(bytes, 1024);
        assert_eq!(begun(b"\0\0\x06\x04\0\0\0\0\0\0\x03"), Err(ScanError::Http2));
        assert_eq!(begun(b"\0\0\x0a\x04\0\0\0\0\0"), Err(ScanError::Http2));
        for good in [&b"\0\0\x06\x04"[..], b"H", b"HTTP/1.1 200 OK\r\n"] {
            assert_eq!(begun(good), Ok(None), "{}", good.escape_ascii());
        }
    }

    #[test]
    fn a_start_line_over_the_limit_is_named_even_if_its_end_has_come() {
        let line = |bytes: usize| format!("GET /{} HTTP/1.1\r\n", "x".repeat(bytes - 16));
        for rest in ["", "Host: a\r\n", "Host: a\r\n\r\n"] {
            let head = line(1025) + rest;
            assert_eq!(whole(head.as_bytes()), Err(ScanError::StartLineTooLarge(1024)), "{rest:?}");
        }
        let head = line(1024) + "Host: a\r\n\r\n";
        assert_eq!(whole(head.as_bytes()), Err(ScanError::TooLarge(1024)));
    }

    #[test]
    fn empty_lines_without_end_are_limited_too() {
        assert_eq!(whole(&b"\r\n".repeat(600)), Err(ScanError::StartLineTooLarge(1024)));
    }
}
