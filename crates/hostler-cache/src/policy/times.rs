//! The fields that hold times: dates in their three forms, and `Age`. Knows not what they are for.

use std::time::UNIX_EPOCH;

use crate::Head;

/// Seconds since 1970 of a date in any of the forms of RFC 9110 section 5.6.7. None: it is no date, or one before 1970.
pub(super) fn date(value: &[u8]) -> Option<u64> {
    let date = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    date.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// The one date that a field names. None: it is not there, or no date, or two.
pub(super) fn date_of(head: &impl Head, name: &'static str) -> Option<u64> {
    let mut lines = head.lines(name);
    let first = lines.next()?;
    if lines.any(|other| other != first) { None } else { date(first) }
}

/// The field `Age` in seconds: its first member, and nothing if that is no number (RFC 9111 section 5.1).
pub(super) fn age(head: &impl Head) -> u64 {
    let first = head.lines("age").next().and_then(|line| line.split(|&byte| byte == b',').next());
    first.and_then(|age| super::directives::delta_seconds(age.trim_ascii())).map_or(0, u64::from)
}
