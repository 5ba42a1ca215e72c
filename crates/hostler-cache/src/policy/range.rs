//! Which part of a stored answer a request wants (RFC 9110 section 14). Knows no bodies.

use std::ops::Range;

use hostler_wire::parse_digits;

use super::times;
use crate::Head;

/// Whoever wants more parts than this wants trouble, or the whole.
const MOST_PARTS: usize = 16;
/// What each part costs besides its bytes, about (RFC 9110 section 15.3.7.2).
const OVERHEAD: u64 = 80;

/// What a request with `Range` gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranged {
    /// All of it.
    Whole,
    /// A 206 with these bytes, at least one: `Content-Range: bytes start-(end - 1)/length`.
    Part(Range<u64>),
    /// A 206 with these parts, two or more, in ascending order and apart from each other: `multipart/byteranges`.
    Parts(Vec<Range<u64>>),
    /// A 416 with `Content-Range: bytes */length`.
    Unsatisfiable,
}

/// Judges `Range` and `If-Range` of a GET against a stored answer with a body of `length` bytes, after
/// [`conditions`](super::conditions) have said `Send`. Whoever asks for what is none gets all (section 14.2 allows it).
pub fn range(request: &impl Head, status: u16, stored: &impl Head, length: u64) -> Ranged {
    let mut lines = request.lines("range");
    match (lines.next(), lines.next()) {
        (Some(range), None) if status == 200 && is_same(request, stored) => parts(range, length),
        _ => Ranged::Whole,
    }
}

/// `If-Range`: whether the client's parts are parts of what is stored. The comparison is the strong one: parts of two bodies that
/// mean the same make none.
fn is_same(request: &impl Head, stored: &impl Head) -> bool {
    let Some(validator) = request.lines("if-range").next() else { return true };
    if let Some(date) = times::date(validator) {
        let changed = times::date_of(stored, "last-modified");
        // Within the second in which it changed it may have changed once more (RFC 9110 section 8.8.2.2).
        let is_strong = |changed: u64| times::date_of(stored, "date").is_some_and(|made| made > changed);
        return changed.is_some_and(|changed| changed == date && is_strong(changed));
    }
    validator.starts_with(b"\"") && stored.lines("etag").next() == Some(validator)
}

/// Which part of a body of `length` bytes the value of a `Range` asks for. Whoever wants several gets all, which is allowed as well:
/// for bodies of which no parts can be put together.
pub fn part(range: &[u8], length: u64) -> Ranged {
    let is_one =
        range.split(|&byte| byte == b',').filter(|spec| !spec.trim_ascii().is_empty()).nth(1).is_none();
    if is_one { parts(range, length) } else { Ranged::Whole }
}

/// Which part of a body of `length` bytes the value of a `Range` asks for, or which parts. Those that overlap, or lie so near to each
/// other that what tells them apart would be more than what lies between, are one. So nobody gets more than about the whole, however
/// he asks: with many parts, or with parts out of order, he gets just that (section 14.2).
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
    for (nth, spec) in specs.enumerate() {
        let Some(next) = one(spec, length).filter(|_| nth < MOST_PARTS) else { return Ranged::Whole };
        match parts.last_mut() {
            // What lies behind the end is left out.
            _ if next.is_empty() => {}
            Some(last) if next.start < last.start => return Ranged::Whole,
            Some(last) if next.start <= last.end.saturating_add(OVERHEAD) => {
                last.end = last.end.max(next.end)
            }
            _ => parts.push(next),
        }
    }
    match parts.len() {
        0 => Ranged::Unsatisfiable,
        1 => Ranged::Part(parts.swap_remove(0)),
        _ => Ranged::Parts(parts),
    }
}

/// What one range means; empty if it lies behind the end.
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
