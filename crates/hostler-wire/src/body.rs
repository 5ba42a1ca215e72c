//! Takes a body out of the bytes of a connection, with any framing. Knows no sockets.

use crate::chunked::{Chunk, ChunkedDecoder, ChunkedError};
use crate::field::Fields;
use crate::framing::BodyLength;

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

/// What was taken from the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// How many bytes of the input were used.
    pub used: usize,
    /// The body is complete. The rest of the input does not belong to it.
    pub ended: bool,
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

    /// Appends the bytes of the body in `input` to `into`. Errors: the body breaks the chunked coding.
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
