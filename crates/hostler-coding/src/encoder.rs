//! The encoders, with the same three operations for each. Knows neither heads nor the source of the bytes.
//!
//! The settings were measured (`docs/concepts/compression.md`). The windows are small, because an encoder lives as long
//! as its response. No setting needs more than about a millisecond for a piece of 16 KiB.

use std::io;

use compression_codecs::brotli::params::EncoderParams;
use compression_codecs::core::Level;
use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::flate::params::FlateEncoderParams;
use compression_codecs::zstd::params::CParameter;
use compression_codecs::{BrotliEncoder, EncodeV2, GzipEncoder, ZstdEncoder};

use super::Coding;

/// How many bytes of output space are reserved at a time.
const ROOM: usize = 8 * 1024;

/// The effort of the encoders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EncoderEffort {
    /// The least work.
    Low,
    /// Most of the possible saving, for a fraction of the work that the rest would cost.
    #[default]
    Balanced,
    /// The fewest bytes.
    High,
}

/// The encoder of one body.
pub struct Encoder {
    encode: Box<dyn EncodeV2 + Send>,
    /// It may hold bytes back.
    is_holding: bool,
}

impl Encoder {
    /// An encoder for the beginning of a body.
    pub fn new(coding: Coding, effort: EncoderEffort) -> Self {
        let encode: Box<dyn EncodeV2 + Send> = match coding {
            Coding::Brotli => Box::new(brotli(effort)),
            Coding::Zstd => Box::new(zstd(effort)),
            Coding::Gzip => Box::new(gzip(effort)),
        };
        Self { encode, is_holding: false }
    }

    /// The most memory that one encoder needs, in bytes.
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

    /// Takes bytes of the body. Appends the encoded bytes that are ready to `into`.
    pub fn encode(&mut self, plain: &[u8], into: &mut Vec<u8>) -> io::Result<()> {
        let mut input = PartialBuffer::new(plain);
        while !input.unwritten().is_empty() {
            self.is_holding = true;
            with_room(into, |output| self.encode.encode(&mut input, output))?;
        }
        Ok(())
    }

    /// Appends all bytes that are held back, so that the client can decode everything so far.
    pub fn flush(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        while self.is_holding {
            self.is_holding = !with_room(into, |output| self.encode.flush(output))?;
        }
        Ok(())
    }

    /// Whether a flush would append anything.
    pub fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// Appends the end of the encoded body.
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
        // From level 5 on, the tables of this encoder need tens of megabytes, and a piece takes tens of milliseconds.
        EncoderEffort::High => 4,
    };
    BrotliEncoder::new(EncoderParams::default().quality(Level::Precise(quality)).window_size(16))
}

fn zstd(effort: EncoderEffort) -> ZstdEncoder {
    // Every client must support a window of 8 MiB (RFC 9659 section 3). An eighth of one MiB is enough for a page.
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
