//! The chunked transfer coding (RFC 9112 section 7.1): decodes it byte by byte, and encodes it. Knows no sockets.

use crate::field::{Fields, Span};
use crate::trailer::may_trail;
use crate::write::write_field;

/// The most bytes of chunk extensions in a whole body. Normal senders have none; an attacker may send many.
const MOST_EXTENSIONS: usize = 16 * 1024;
/// The most bytes of the trailer section.
const MOST_TRAILERS: usize = 16 * 1024;
/// The most trailer fields.
const MOST_TRAILER_FIELDS: usize = 100;

/// Why a body breaks the chunked coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChunkedError {
    /// The size of a chunk is not a hexadecimal number of at most 16 digits.
    #[error("a chunk size is malformed")]
    Size,
    /// A line, or the data of a chunk, does not end in CR LF.
    #[error("a chunk does not end in CR LF")]
    LineEnd,
    /// A chunk extension has a control character, or white space is not followed by an extension.
    #[error("a chunk extension is malformed")]
    Extension,
    /// The chunk extensions are longer than the limit.
    #[error("the chunk extensions are larger than {MOST_EXTENSIONS} bytes")]
    TooManyExtensions,
    /// A trailer line is not a field line.
    #[error("a trailer field is malformed")]
    Trailer,
    /// The trailer section is longer than the limit, or has too many fields.
    #[error("the trailer section is larger than {MOST_TRAILERS} bytes or {MOST_TRAILER_FIELDS} fields")]
    TooManyTrailers,
}

/// The result of one step of decoding.
#[derive(Debug, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// No data. Continue if input is left, otherwise get more input.
    More,
    /// Bytes of the body.
    Data(&'a [u8]),
    /// The body is complete. [`ChunkedDecoder::trailers`] has its trailers.
    End,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ChunkState {
    #[default]
    SizeStart,
    Size {
        digits: u8,
    },
    /// White space after the size. Only an extension may follow.
    Space,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the start of a trailer line.
    TrailerStart,
    TrailerLine,
    TrailerLf,
    EndLf,
    Ended,
}

/// Decodes one body. Call [`step`](Self::step) until it returns `Chunk::End`.
#[derive(Debug, Default)]
pub struct ChunkedDecoder {
    state: ChunkState,
    remaining: u64,
    extensions: usize,
    trailer_bytes: Vec<u8>,
    trailers: Fields,
}

impl ChunkedDecoder {
    /// Decodes bytes from the start of `input`. Returns how many were used, and the result. Errors: the bytes break the
    /// coding.
    pub fn step<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Chunk<'a>), ChunkedError> {
        let mut at = 0;
        while at < input.len() {
            if self.state == ChunkState::Data {
                let n = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(input.len() - at);
                self.remaining -= n as u64;
                if self.remaining == 0 {
                    self.state = ChunkState::DataCr;
                }
                return Ok((at + n, Chunk::Data(&input[at..at + n])));
            }
            self.byte(input[at])?;
            at += 1;
            if self.state == ChunkState::Ended {
                self.parse_trailers()?;
                return Ok((at, Chunk::End));
            }
        }
        Ok((at, Chunk::More))
    }

    /// The trailer fields. Complete after `Chunk::End`.
    pub fn trailers(&self) -> &Fields {
        &self.trailers
    }

    fn byte(&mut self, byte: u8) -> Result<(), ChunkedError> {
        self.state = match (self.state, byte) {
            (ChunkState::SizeStart, _) => self.digit(byte, 0)?,
            (ChunkState::Size { .. }, b'\r') => ChunkState::SizeLf,
            (ChunkState::Size { .. } | ChunkState::Space, b';') => ChunkState::Extension,
            (ChunkState::Size { .. } | ChunkState::Space, b' ' | b'\t') => {
                self.extension(ChunkState::Space)?
            }
            (ChunkState::Size { digits }, _) => self.digit(byte, digits)?,
            (ChunkState::Space, _) => return Err(ChunkedError::Extension),
            (ChunkState::Extension, b'\r') => ChunkState::SizeLf,
            (ChunkState::Extension, b'\t' | b' '..=b'~' | 0x80..) => self.extension(ChunkState::Extension)?,
            (ChunkState::Extension, _) => return Err(ChunkedError::Extension),
            (ChunkState::SizeLf, b'\n') if self.remaining == 0 => ChunkState::TrailerStart,
            (ChunkState::SizeLf, b'\n') => ChunkState::Data,
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => ChunkState::SizeStart,
            (ChunkState::TrailerStart, b'\r') => ChunkState::EndLf,
            (ChunkState::TrailerStart | ChunkState::TrailerLine, b'\n') => return Err(ChunkedError::LineEnd),
            (ChunkState::TrailerStart, b' ' | b'\t') => return Err(ChunkedError::Trailer),
            (ChunkState::TrailerStart, _) => self.trailer(byte, ChunkState::TrailerLine)?,
            (ChunkState::TrailerLine, b'\r') => self.trailer(byte, ChunkState::TrailerLf)?,
            (ChunkState::TrailerLine, _) => self.trailer(byte, ChunkState::TrailerLine)?,
            (ChunkState::TrailerLf, b'\n') => self.trailer(byte, ChunkState::TrailerStart)?,
            (ChunkState::EndLf, b'\n') => ChunkState::Ended,
            _ => return Err(ChunkedError::LineEnd),
        };
        Ok(())
    }

    fn digit(&mut self, byte: u8, digits: u8) -> Result<ChunkState, ChunkedError> {
        let value = char::from(byte).to_digit(16).ok_or(ChunkedError::Size)?;
        if digits >= 16 {
            return Err(ChunkedError::Size);
        }
        self.remaining = (self.remaining << 4) | u64::from(value);
        Ok(ChunkState::Size { digits: digits + 1 })
    }

    fn extension(&mut self, next: ChunkState) -> Result<ChunkState, ChunkedError> {
        self.extensions += 1;
        if self.extensions > MOST_EXTENSIONS { Err(ChunkedError::TooManyExtensions) } else { Ok(next) }
    }

    fn trailer(&mut self, byte: u8, next: ChunkState) -> Result<ChunkState, ChunkedError> {
        if self.trailer_bytes.len() >= MOST_TRAILERS {
            return Err(ChunkedError::TooManyTrailers);
        }
        self.trailer_bytes.push(byte);
        Ok(next)
    }

    fn parse_trailers(&mut self) -> Result<(), ChunkedError> {
        if self.trailer_bytes.is_empty() {
            return Ok(());
        }
        self.trailer_bytes.extend_from_slice(b"\r\n");
        let bytes = std::mem::take(&mut self.trailer_bytes);
        let mut table = [httparse::EMPTY_HEADER; MOST_TRAILER_FIELDS];
        match httparse::parse_headers(&bytes, &mut table) {
            Ok(httparse::Status::Complete((_, parsed))) => {
                self.trailers.bytes.extend_from_slice(&bytes);
                for header in parsed {
                    let value = header.value.trim_ascii_end();
                    self.trailers.push(Span::of(&bytes, header.name.as_bytes()), Span::of(&bytes, value), 0);
                }
                Ok(())
            }
            Err(httparse::Error::TooManyHeaders) => Err(ChunkedError::TooManyTrailers),
            _ => Err(ChunkedError::Trailer),
        }
    }
}

/// The size line of a chunk, written before the data is there. [`ChunkStart::finish`] fills it in. So one buffer is
/// enough, without a copy.
#[derive(Debug)]
#[must_use]
pub struct ChunkStart(usize);

impl ChunkStart {
    const BLANK: &'static [u8; 8] = b"000000\r\n";
    /// The largest chunk in bytes that the size line has room for.
    pub const MOST: usize = 0xff_ffff;

    /// Appends room for a size line to `out`.
    pub fn open(out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(Self::BLANK);
        Self(out.len())
    }

    /// Ends the chunk. Its data is everything that was appended since [`Self::open`]. Without data, the chunk is removed,
    /// because an empty chunk would end the body.
    pub fn finish(self, out: &mut Vec<u8>) {
        let size = out.len() - self.0;
        debug_assert!(size <= Self::MOST, "a chunk fits its size line");
        if size == 0 {
            out.truncate(self.0 - Self::BLANK.len());
            return;
        }
        for (place, shift) in (0..6).zip([20, 16, 12, 8, 4, 0]) {
            out[self.0 - Self::BLANK.len() + place] = b"0123456789abcdef"[(size >> shift) & 15];
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes the last chunk, and those of the trailers that are allowed.
pub fn write_end(out: &mut Vec<u8>, trailers: Option<&Fields>) {
    out.extend_from_slice(b"0\r\n");
    for (_, name, value) in trailers.into_iter().flat_map(Fields::iter) {
        if !may_trail(name) {
            continue;
        }
        write_field(out, name, value);
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes pieces of at most `piece` bytes. Returns the body, the number of input bytes used, and whether the body
    /// has ended.
    fn decode(input: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), ChunkedError> {
        let mut decoder = ChunkedDecoder::default();
        let (mut body, mut at) = (Vec::new(), 0);
        while at < input.len() {
            let (n, chunk) = decoder.step(&input[at..input.len().min(at + piece)])?;
            at += n;
            match chunk {
                Chunk::Data(data) => body.extend_from_slice(data),
                Chunk::End => return Ok((body, at, true)),
                Chunk::More => {}
            }
        }
        Ok((body, at, false))
    }

    #[test]
    fn bodies_and_extensions_end_before_the_next_bytes() {
        let input = b"4\r\nWiki\r\n05;a=\"b;c\"\r\npedia\r\nA ;x\r\n0123456789\r\n0\r\n\r\nGET /";
        for piece in 1..input.len() {
            let (body, taken, ended) = decode(input, piece).unwrap();
            assert!(ended);
            assert_eq!((body.as_slice(), taken), (&b"Wikipedia0123456789"[..], input.len() - 5), "{piece}");
        }
    }

    #[test]
    fn malformed_bodies() {
        use ChunkedError::*;
        let cases: &[(&str, ChunkedError)] = &[
            ("\r\n", Size),
            ("g\r\n", Size),
            ("-1\r\n", Size),
            ("+1\r\n", Size),
            ("0x1\r\n", Size),
            (" 1\r\n", Size),
            ("00000000000000001\r\n", Size),
            ("1\n", Size),
            ("1 \r\n", Extension),
            ("1 1\r\n", Extension),
            ("1;a\n", Extension),
            ("1;\0\r\n", Extension),
            ("1\rX", LineEnd),
            ("1\r\nab", LineEnd),
            ("1\r\na\n", LineEnd),
            ("1\r\na\rb", LineEnd),
            ("0\r\nA: b\n\r\n", LineEnd),
            ("0\r\n\n", LineEnd),
            ("0\r\n A: b\r\n\r\n", Trailer),
            ("0\r\nA b\r\n\r\n", Trailer),
            ("0\r\nA : b\r\n\r\n", Trailer),
            ("0\r\nA: \0\r\n\r\n", Trailer),
        ];
        for (input, expected) in cases {
            assert_eq!(decode(input.as_bytes(), 64), Err(*expected), "{input:?}");
        }
        let extensions = format!("1;{}", "a".repeat(MOST_EXTENSIONS + 1));
        assert_eq!(decode(extensions.as_bytes(), 4096), Err(TooManyExtensions));
        let trailers = format!("0\r\nA: {}", "a".repeat(MOST_TRAILERS));
        assert_eq!(decode(trailers.as_bytes(), 4096), Err(TooManyTrailers));
    }

    #[test]
    fn trailers_are_kept_but_not_those_that_frame() {
        let mut decoder = ChunkedDecoder::default();
        let input = b"0\r\nServer-Timing: a;dur=1\r\nContent-Length: 9\r\nX-Sum: 1 \r\n\r\n";
        assert_eq!(decoder.step(input), Ok((input.len(), Chunk::End)));
        let mut out = Vec::new();
        write_end(&mut out, Some(decoder.trailers()));
        assert_eq!(out, b"0\r\nServer-Timing: a;dur=1\r\nX-Sum: 1\r\n\r\n");
    }

    proptest! {
        #[test]
        fn an_encoded_body_decodes_to_the_original(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..8), piece in 1usize..64) {
            let mut wire = Vec::new();
            for part in &parts {
                let start = ChunkStart::open(&mut wire);
                wire.extend_from_slice(part);
                start.finish(&mut wire);
            }
            write_end(&mut wire, None);
            prop_assert_eq!(decode(&wire, piece), Ok((parts.concat(), wire.len(), true)));
        }

        #[test]
        fn no_bytes_cause_a_panic_and_the_size_of_pieces_does_not_matter(input in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'0'), Just(b'1'), Just(b';'), any::<u8>()], 0..200)) {
            prop_assert_eq!(decode(&input, 1), decode(&input, 200));
        }
    }
}
