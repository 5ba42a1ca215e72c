//! Parses the fields that hold times: dates, and `Age`. Does not know what they are used for.

use std::time::SystemTime;

use hostler_wire::parse_http_date;

use super::directives::delta_seconds;
use crate::Head;

/// Seconds since 1970 of a date.
pub(super) fn date(value: &[u8]) -> Option<u64> {
    let since = parse_http_date(value)?.duration_since(SystemTime::UNIX_EPOCH);
    since.ok().map(|since| since.as_secs())
}

/// The date in a field. `None`: the field is missing, is not a date, or there are two.
pub(super) fn date_of(head: &impl Head, name: &'static str) -> Option<u64> {
    let mut lines = head.lines(name);
    let first = lines.next()?;
    if lines.any(|other| other != first) { None } else { date(first) }
}

/// The field `Age` in seconds: its first member, or 0 if that is not a number (RFC 9111 section 5.1).
pub(super) fn age(head: &impl Head) -> u64 {
    let first = head.lines("age").next().and_then(|line| line.split(|&byte| byte == b',').next());
    first.and_then(|age| delta_seconds(age.trim_ascii())).map_or(0, u64::from)
}
