//! Takes a body out of the bytes of a connection, whatever frames it. Knows no sockets.

use crate::chunked::{Chunk, ChunkedDecoder, ChunkedError};
use crate::field::Fields;
use crate::framing::BodyLength;

/// The reading of one body.
#[derive(Debug)]
pub enum BodyReader {
    /// So many bytes are still to come.
    Length(u64),
    /// The coding knows.
    Chunked(Box<ChunkedDecoder>, bool),
    /// All that comes until the end of the connection; `true` when that was reached.
    UntilClose(bool),
}

/// What was taken from the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Bytes of input used up.
    pub used: usize,
    /// The body is complete; the rest of the input belongs to something else.
    pub ended: bool,
}

impl BodyReader {
    /// A body of this length, nothing of it read.
    pub fn new(length: BodyLength) -> Self {
        match length {
            BodyLength::Known(bytes) => Self::Length(bytes),
            BodyLength::Chunked => Self::Chunked(Box::default(), false),
            BodyLength::UntilClose => Self::UntilClose(false),
        }
    }

    /// True when nothing more belongs to this body.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(_, ended) | Self::UntilClose(ended) => *ended,
        }
    }

    /// Moves what belongs to the body from `input` to the end of `into`.
    pub fn take(&mut self, input: &[u8], into: &mut Vec<u8>) -> Result<Taken, ChunkedError> {
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
        Ok(Taken { used, ended: self.has_ended() })
    }

    /// The connection has ended: `true` if the body may end there, `false` if it was cut.
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
