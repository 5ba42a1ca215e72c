//! How Hostler compresses responses, as written. Knows no routes.

use std::fmt;
use std::str::FromStr;

use hostler_coding::MediaRange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{OneOrMany, Size, Value, one_string};

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

/// How Hostler compresses responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Compress {
    /// The content encodings that Hostler may use, in order of preference.
    ///
    /// The weights in the client's `Accept-Encoding` decide first. For equal weights this order decides.
    pub encodings: Vec<Encoding>,
    /// The media types that Hostler compresses. Examples: `"text/html"`, `"text/*"`, `"application/*+json"`.
    ///
    /// Do not add types that are compressed already (images, video, archives, `woff2`): they only get larger.
    pub types: OneOrMany<MediaType>,
    /// The length below which Hostler does not compress a response, if its length is known.
    pub min_size: Size<0, 1_073_741_824>,
    /// How much CPU time Hostler spends to make responses smaller.
    pub effort: Effort,
    /// Whether Hostler compresses event streams (`text/event-stream`), too.
    ///
    /// It sends each event at once. Each open stream keeps an encoder, which counts for `server.compress_memory`.
    pub event_streams: bool,
}

impl Value for Compress {}

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
    /// Zstandard: at these efforts as small as Brotli, for a fraction of the CPU time.
    Zstd,
    /// Brotli.
    Br,
    /// Gzip, which every client supports.
    Gzip,
}

/// How much CPU time Hostler spends to make responses smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// The least CPU time.
    Low,
    /// Most of the possible saving, for a fraction of the CPU time that the rest would take.
    #[default]
    Balanced,
    /// The smallest responses, for the most CPU time.
    High,
}
