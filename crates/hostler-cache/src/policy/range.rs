//! Which part of a stored answer a request wants (RFC 9110 section 14). Knows no bodies.

use std::ops::Range;

use super::times;
use crate::Head;

/// What a request with `Range` gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranged {
    /// All of it.
    Whole,
    /// A 206 with these bytes, at least one: `Content-Range: bytes start-(end - 1)/length`.
    Part(Range<u64>),
    /// A 416 with `Content-Range: bytes */length`.
    Unsatisfiable,
}

/// Judges `Range` and `If-Range` of a GET against a stored answer with a body of `length` bytes, after
/// [`conditions`](super::conditions) have said `Send`. Whoever wants several parts gets all, as does whoever asks for what is
/// none (section 14.2 allows both).
pub fn range(request: &impl Head, status: u16, stored: &impl Head, length: u64) -> Ranged {
    let mut lines = request.lines("range");
    match (lines.next(), lines.next()) {
        (Some(range), None) if status == 200 && is_same(request, stored) => part(range, length),
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

/// Which part of a body of `length` bytes the value of a `Range` asks for.
pub fn part(range: &[u8], length: u64) -> Ranged {
    let Some((unit, specs)) = range.split_at_checked(6) else { return Ranged::Whole };
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return Ranged::Whole;
    }
    let specs = specs.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let mut specs = specs.filter(|spec| !spec.is_empty());
    let (Some(spec), None) = (specs.next(), specs.next()) else { return Ranged::Whole };
    let Some(dash) = spec.iter().position(|&byte| byte == b'-') else { return Ranged::Whole };
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    let wanted = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(suffix)) if first.is_empty() => length.saturating_sub(suffix)..length,
        _ => return Ranged::Whole,
    };
    if wanted.is_empty() { Ranged::Unsatisfiable } else { Ranged::Part(wanted) }
}

/// Digits only; what is beyond every body is as good as the largest number.
fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(digits).ok()?.parse().ok().or(Some(u64::MAX)))?
}
