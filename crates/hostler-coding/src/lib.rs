//! Content codings: which one a client accepts, which responses are worth encoding, the changes to their heads, and the
//! encoders. Knows fields and bytes, and no requests.

mod accept;
mod allowance;
mod encoder;
mod head;
mod media;
mod plan;
mod stream;

pub use accept::choose;
pub use allowance::{Allowance, ClientEncoders, EncoderMemory, MemoryGrant, Usage};
pub use encoder::{Encoder, EncoderEffort};
pub use head::{encoded, revalidated, trailers, varying};
pub use media::MediaRange;
pub use plan::{EncodingDecision, EncodingPlan};
pub use stream::{EncodedStream, Flow, StreamError};

/// A content coding that this crate can produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878, and RFC 9659 for its window).
    Zstd,
    /// gzip (RFC 1952).
    Gzip,
}

impl Coding {
    /// The name, as in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The coding with this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Brotli, Self::Zstd, Self::Gzip].into_iter().find(|coding| coding.name() == name)
    }

    /// Whether a member of `Accept-Encoding` names this coding.
    fn is_named(self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name().as_bytes())
            // RFC 9110 section 8.4.1.3: `x-gzip` is the same as `gzip`.
            || self == Self::Gzip && name.eq_ignore_ascii_case(b"x-gzip")
    }
}
