//! What a request makes the answer from memory depend on (RFC 9110 section 13, RFC 9111 section 4.3.2). Knows no freshness.

use super::times;
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
    // Conditions are about what a 200 would bring.
    if status != 200 {
        return Condition::Send;
    }
    let mut tags = request.lines("if-none-match").peekable();
    let is_known = if tags.peek().is_some() {
        let stored = stored.lines("etag").next().map(opaque);
        tags.any(|list| any_tag(list, |tag| stored == Some(tag)))
    } else {
        has_since(request, stored, received)
    };
    if is_known { Condition::NotModified } else { Condition::Send }
}

/// `If-Modified-Since`: whether the stored answer is no newer, by the best that it says about itself.
fn has_since(request: &impl Head, stored: &impl Head, received: Moment) -> bool {
    let Some(since) = times::date_of(request, "if-modified-since") else { return false };
    let changed = times::date_of(stored, "last-modified").or_else(|| times::date_of(stored, "date"));
    changed.unwrap_or(received.0 / 1000) <= since
}

/// A tag without the mark that makes it weak: a copy that was compressed on its way has the weak form of ours, and means ours.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Whether the list has `*`, or a tag that `fits`, which gets it with its quotes. What is malformed ends the list.
fn any_tag(list: &[u8], fits: impl Fn(&[u8]) -> bool) -> bool {
    let mut rest = list.trim_ascii();
    if rest == b"*" {
        return true;
    }
    loop {
        rest = match rest.split_first() {
            Some((b',' | b' ' | b'\t', rest)) => rest,
            _ => {
                let inner = opaque(rest).strip_prefix(b"\"");
                let Some(end) = inner.and_then(|inner| inner.iter().position(|&byte| byte == b'"')) else {
                    return false;
                };
                let (tag, rest) = opaque(rest).split_at(end + 2);
                if fits(tag) {
                    return true;
                }
                rest
            }
        }
    }
}
