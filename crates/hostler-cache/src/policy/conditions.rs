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
        let stored = stored.lines("etag").next().map(|tag| split_weak(tag).1);
        tags.any(|list| any_tag(list, |tag, _| stored == Some(tag)))
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

/// Whether the value of an `If-None-Match` or `If-Match` is `*`, or has a tag that `fits`: which gets it with its quotes and without the
/// mark that makes it weak, and whether it has that. By the weak comparison the mark does not matter: a copy that was compressed on
/// its way has the weak form of our tag, and means ours. What is malformed ends the list.
pub fn any_tag(list: &[u8], fits: impl Fn(&[u8], bool) -> bool) -> bool {
    let mut rest = list.trim_ascii();
    if rest == b"*" {
        return true;
    }
    loop {
        rest = match rest.split_first() {
            Some((b',' | b' ' | b'\t', rest)) => rest,
            _ => {
                let (is_weak, opaque) = split_weak(rest);
                let inner = opaque.strip_prefix(b"\"");
                let Some(end) = inner.and_then(|inner| inner.iter().position(|&byte| byte == b'"')) else {
                    return false;
                };
                let (tag, rest) = opaque.split_at(end + 2);
                if fits(tag, is_weak) {
                    return true;
                }
                rest
            }
        }
    }
}

fn split_weak(tag: &[u8]) -> (bool, &[u8]) {
    tag.strip_prefix(b"W/").map_or((false, tag), |opaque| (true, opaque))
}
