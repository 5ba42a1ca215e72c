//! Evaluates the conditions of a request against a stored response (RFC 9110 section 13, RFC 9111 section 4.3.2). Knows
//! no freshness.

use super::times;
use crate::{Head, Moment};

/// What a conditional request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The response.
    Send,
    /// A 304 with the stored `Cache-Control`, `Content-Location`, `Date`, `ETag`, `Expires`, `Vary` and `Last-Modified`, and with the fields of CORS.
    NotModified,
}

/// Evaluates `If-None-Match` and `If-Modified-Since` against a stored response that came at `received`, a time used if it
/// has no `Date`. Requests with `If-Match` and `If-Unmodified-Since` never come here: see [`admit`](super::admit).
pub fn conditions(request: &impl Head, status: u16, stored: &impl Head, received: Moment) -> Condition {
    // A condition is about the 200 response.
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

/// `If-Modified-Since`: whether the stored response is no newer, by the best date that it has.
fn has_since(request: &impl Head, stored: &impl Head, received: Moment) -> bool {
    let Some(since) = times::date_of(request, "if-modified-since") else { return false };
    let changed = times::date_of(stored, "last-modified").or_else(|| times::date_of(stored, "date"));
    changed.unwrap_or(received.0 / 1000) <= since
}

/// Whether a value of `If-None-Match` or `If-Match` is `*`, or has a tag for which `fits` returns true.
///
/// `fits` gets the tag with its quotes and without the prefix `W/`, and whether that prefix was there. The weak
/// comparison ignores the prefix: a copy that was compressed on its way has the weak form of our tag. A malformed tag
/// ends the list.
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
