//! The encoders, each behind the same three verbs. Knows neither heads nor whose bytes they are.
//!
//! Their settings were measured (`docs/concepts/compression.md`): small windows, because an encoder lives for as long as its
//! answer, and no setting in which one piece of 16 KiB can take longer than about a millisecond.

use std::io;

use compression_codecs::brotli::params::EncoderParams;
use compression_codecs::core::Level;
use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::flate::params::FlateEncoderParams;
use compression_codecs::zstd::params::CParameter;
use compression_codecs::{BrotliEncoder, EncodeV2, GzipEncoder, ZstdEncoder};

use super::Coding;

/// What is made room for at a time.
const ROOM: usize = 8 * 1024;

/// How hard encoders try.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EncoderEffort {
    /// Least work.
    Low,
    /// Most of what can be saved, for a fraction of the work that the rest costs.
    #[default]
    Balanced,
    /// Fewest bytes.
    High,
}

/// One body's encoder.
pub struct Encoder {
    encode: Box<dyn EncodeV2 + Send>,
    /// It may keep bytes back.
    is_holding: bool,
}

impl Encoder {
    /// An encoder at the beginning of a body.
    pub fn new(coding: Coding, effort: EncoderEffort) -> Self {
        let encode: Box<dyn EncodeV2 + Send> = match coding {
            Coding::Brotli => Box::new(brotli(effort)),
            Coding::Zstd => Box::new(zstd(effort)),
            Coding::Gzip => Box::new(gzip(effort)),
        };
        Self { encode, is_holding: false }
    }

    /// What one needs at most, in bytes.
    pub fn memory(coding: Coding, effort: EncoderEffort) -> u64 {
        let kib = match (coding, effort) {
            (Coding::Brotli, EncoderEffort::Low) => 200,
            (Coding::Brotli, EncoderEffort::Balanced) => 1100,
            (Coding::Brotli, EncoderEffort::High) => 1900,
            (Coding::Zstd, _) => 650,
            (Coding::Gzip, _) => 330,
        };
        kib * 1024
    }

    /// Takes bytes; what comes of them by now is appended to `into`.
    pub fn encode(&mut self, plain: &[u8], into: &mut Vec<u8>) -> io::Result<()> {
        let mut input = PartialBuffer::new(plain);
        while !input.unwritten().is_empty() {
            self.is_holding = true;
            with_room(into, |output| self.encode.encode(&mut input, output))?;
        }
        Ok(())
    }

    /// Appends whatever is kept back, so that the client can read all that was taken.
    pub fn flush(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        while self.is_holding {
            self.is_holding = !with_room(into, |output| self.encode.flush(output))?;
        }
        Ok(())
    }

    /// Whether a flush would bring anything.
    pub fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// Appends the end.
    pub fn finish(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        while !with_room(into, |output| self.encode.finish(output))? {}
        self.is_holding = false;
        Ok(())
    }
}

fn with_room<T>(
    into: &mut Vec<u8>,
    write: impl FnOnce(&mut WriteBuffer<'_>) -> io::Result<T>,
) -> io::Result<T> {
    let start = into.len();
    into.resize(start + ROOM, 0);
    let mut output = WriteBuffer::new_initialized(&mut into[start..]);
    let outcome = write(&mut output);
    let written = output.written_len();
    into.truncate(start + written);
    outcome
}

fn brotli(effort: EncoderEffort) -> BrotliEncoder {
    let quality = match effort {
        EncoderEffort::Low => 1,
        EncoderEffort::Balanced => 3,
        // From 5 on this encoder's tables take tens of megabytes, and a piece tens of milliseconds.
        EncoderEffort::High => 4,
    };
    BrotliEncoder::new(EncoderParams::default().quality(Level::Precise(quality)).window_size(16))
}

fn zstd(effort: EncoderEffort) -> ZstdEncoder {
    // Every client must have room for 8 MiB of window (RFC 9659 section 3); an eighth of one is enough for a page.
    let small = [CParameter::window_log(17), CParameter::hash_log(15), CParameter::chain_log(15)];
    match effort {
        EncoderEffort::Low => ZstdEncoder::new_with_params(1, &small),
        EncoderEffort::Balanced => ZstdEncoder::new_with_params(3, &small),
        EncoderEffort::High => ZstdEncoder::new_with_params(6, &small),
    }
}

fn gzip(effort: EncoderEffort) -> GzipEncoder {
    let level = match effort {
        EncoderEffort::Low => 1,
        EncoderEffort::Balanced => 4,
        EncoderEffort::High => 6,
    };
    GzipEncoder::new(FlateEncoderParams::from(Level::Precise(level)))
}
