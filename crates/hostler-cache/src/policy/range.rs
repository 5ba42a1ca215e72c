//! Which part of a stored response a request wants (RFC 9110 section 14). Knows no bodies.

use std::ops::Range;

use hostler_wire::parse_digits;

use super::times;
use crate::Head;

/// A request for more parts than this gets the whole response.
const MOST_PARTS: usize = 16;
/// About how many bytes each part needs besides its content (RFC 9110 section 15.3.7.2).
const OVERHEAD: u64 = 80;

/// What a request with `Range` gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranged {
    /// The whole response.
    Whole,
    /// A 206 with these bytes, at least one: `Content-Range: bytes start-(end - 1)/length`.
    Part(Range<u64>),
    /// A 206 with these parts, two or more, in ascending order and apart from each other: `multipart/byteranges`.
    Parts(Vec<Range<u64>>),
    /// A 416 with `Content-Range: bytes */length`.
    Unsatisfiable,
}

/// Evaluates `Range` and `If-Range` of a GET against a stored response with a body of `length` bytes. Call it after
/// [`conditions`](super::conditions) returned `Send`. An invalid `Range` gets the whole response (section 14.2 allows
/// it).
pub fn range(request: &impl Head, status: u16, stored: &impl Head, length: u64) -> Ranged {
    let mut lines = request.lines("range");
    match (lines.next(), lines.next()) {
        (Some(range), None) if status == 200 && is_same(request, stored) => parts(range, length),
        _ => Ranged::Whole,
    }
}

/// `If-Range`: whether the client's parts belong to the stored body. The comparison is the strong one, because parts of
/// two equivalent bodies cannot be combined.
fn is_same(request: &impl Head, stored: &impl Head) -> bool {
    let Some(validator) = request.lines("if-range").next() else { return true };
    if let Some(date) = times::date(validator) {
        let changed = times::date_of(stored, "last-modified");
        // In the second of its change it may have changed once more (RFC 9110 section 8.8.2.2).
        let is_strong = |changed: u64| times::date_of(stored, "date").is_some_and(|made| made > changed);
        return changed.is_some_and(|changed| changed == date && is_strong(changed));
    }
    validator.starts_with(b"\"") && stored.lines("etag").next() == Some(validator)
}

/// Which part of a body of `length` bytes a value of `Range` asks for. A request for several parts gets the whole body
/// (section 14.2 allows it). For callers that cannot make a multipart response.
pub fn part(range: &[u8], length: u64) -> Ranged {
    let is_one =
        range.split(|&byte| byte == b',').filter(|spec| !spec.trim_ascii().is_empty()).nth(1).is_none();
    if is_one { parts(range, length) } else { Ranged::Whole }
}

/// Which part or parts of a body of `length` bytes a value of `Range` asks for.
///
/// Parts that overlap become one, and so do parts with a gap smaller than the bytes that a separator needs. So the
/// response is never much larger than the whole body. A request with too many parts, or with parts out of order, gets the
/// whole body (section 14.2).
fn parts(range: &[u8], length: u64) -> Ranged {
    let Some((unit, specs)) = range.split_at_checked(6) else { return Ranged::Whole };
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return Ranged::Whole;
    }
    let specs = specs.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let mut specs = specs.filter(|spec| !spec.is_empty()).peekable();
    if specs.peek().is_none() {
        return Ranged::Whole;
    }
    let mut parts: Vec<Range<u64>> = Vec::new();
    let mut wants_end = false;
    for (nth, spec) in specs.enumerate() {
        wants_end |= is_suffix(spec);
        let Some(next) = one(spec, length).filter(|_| nth < MOST_PARTS) else { return Ranged::Whole };
        match parts.last_mut() {
            // A part beyond the end is left out.
            _ if next.is_empty() => {}
            Some(last) if next.start < last.start => return Ranged::Whole,
            Some(last) if next.start <= last.end.saturating_add(OVERHEAD) => {
                last.end = last.end.max(next.end)
            }
            _ => parts.push(next),
        }
    }
    match parts.len() {
        // The last bytes of an empty body are a satisfiable range (section 14.1.2), but no `Content-Range` can say that it is empty.
        0 if length == 0 && wants_end => Ranged::Whole,
        0 => Ranged::Unsatisfiable,
        1 => Ranged::Part(parts.swap_remove(0)),
        _ => Ranged::Parts(parts),
    }
}

/// Whether a valid range is about the last bytes of the body, at least one.
fn is_suffix(spec: &[u8]) -> bool {
    spec.strip_prefix(b"-").and_then(parse_digits).is_some_and(|bytes| bytes > 0)
}

/// The bytes of one range. Empty if it begins beyond the end.
fn one(spec: &[u8], length: u64) -> Option<Range<u64>> {
    let dash = spec.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    match (parse_digits(first), parse_digits(last)) {
        (Some(first), Some(last)) if first <= last => Some(first..last.saturating_add(1).min(length)),
        (Some(first), None) if last.is_empty() => Some(first..length),
        (None, Some(suffix)) if first.is_empty() => Some(length.saturating_sub(suffix)..length),
        _ => None,
    }
}
