//! How answers are compressed, as written. Knows no routes.

use std::fmt;
use std::str::FromStr;

use hostler_coding::MediaRange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{OneOrMany, Size, one_string};

/// One media type, or a range of them.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaType(pub MediaRange);

impl FromStr for MediaType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

one_string!(MediaType, kind: "media type", expects: "a media type such as \"text/html\", \"text/*\" or \"application/*+json\"");

/// How answers are compressed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Compress {
    /// What may be used, the best first: the client's weights decide (`Accept-Encoding`), and among those with the same weight
    /// this order.
    pub encodings: Vec<Encoding>,
    /// The media types that are compressed. What is compressed already (images, video, archives, `woff2`) only gets larger.
    pub types: OneOrMany<MediaType>,
    /// Bytes below which an answer is not worth it, where its length is known.
    pub min_size: Size<0, 1_073_741_824>,
    /// What is saved for how much work.
    pub effort: Effort,
    /// Streams of events (`text/event-stream`) as well. Each event is sent at once; each stream keeps an encoder for as long as
    /// it is open, which counts for `server.compress_memory`.
    pub event_streams: bool,
}

impl Default for Compress {
    fn default() -> Self {
        let types = [
            "text/*",
            "application/json",
            "application/*+json",
            "application/javascript",
            "application/xml",
            "application/*+xml",
            "application/x-ndjson",
            "application/wasm",
            "application/vnd.ms-fontobject",
            "image/svg+xml",
            "image/bmp",
            "image/x-icon",
            "image/vnd.microsoft.icon",
            "font/ttf",
            "font/otf",
        ];
        let parse = |text: &str| text.parse().expect("invariant: a media range");
        Self {
            encodings: vec![Encoding::Zstd, Encoding::Br, Encoding::Gzip],
            types: OneOrMany(types.map(parse).into()),
            min_size: Size(1 << 10),
            effort: Effort::Balanced,
            event_streams: false,
        }
    }
}

/// A content coding, by its registered name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// Zstandard: as small as Brotli for a fraction of its work, at these efforts.
    Zstd,
    /// Brotli.
    Br,
    /// What every client knows.
    Gzip,
}

/// What is saved for how much work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Least work.
    Low,
    /// Most of what can be saved, for a fraction of the work that the rest would take.
    #[default]
    Balanced,
    /// Fewest bytes.
    High,
}
