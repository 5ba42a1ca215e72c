//! Evaluates conditional requests (RFC 9110 section 13) and ranges (section 14). Knows no files.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use hostler_cache::{Ranged, any_tag, part};
use hostler_wire::{Fields, parse_http_date};

/// The conditional fields of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Conditions {
    if_match: Option<Vec<u8>>,
    if_none_match: Option<Vec<u8>>,
    if_modified_since: Option<SystemTime>,
    if_unmodified_since: Option<SystemTime>,
    if_range: Option<Vec<u8>>,
    range: Option<Vec<u8>>,
}

/// The validators of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileValidators {
    /// A strong entity tag, quotes included.
    pub etag: String,
    /// The last modification in whole seconds, if known.
    pub modified: Option<SystemTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConditionOutcome {
    /// The whole file.
    Whole,
    /// These bytes; at least one.
    Part(Range<u64>),
    /// 304.
    NotModified,
    /// 412.
    Failed,
    /// 416.
    OutOfRange,
}

impl Conditions {
    /// The fields of a request.
    pub fn of(fields: &Fields) -> Self {
        let mut found = Self::default();
        for (_, name, value) in fields.iter() {
            // A quick check: most field names begin with another letter.
            if !matches!(name.first(), Some(b'i' | b'I' | b'r' | b'R')) {
                continue;
            }
            let place = match name {
                _ if name.eq_ignore_ascii_case(b"if-none-match") => &mut found.if_none_match,
                _ if name.eq_ignore_ascii_case(b"if-match") => &mut found.if_match,
                _ if name.eq_ignore_ascii_case(b"if-range") => &mut found.if_range,
                _ if name.eq_ignore_ascii_case(b"range") => &mut found.range,
                _ if name.eq_ignore_ascii_case(b"if-modified-since") => {
                    found.if_modified_since = parse_http_date(value);
                    continue;
                }
                _ if name.eq_ignore_ascii_case(b"if-unmodified-since") => {
                    found.if_unmodified_since = parse_http_date(value);
                    continue;
                }
                _ => continue,
            };
            match place {
                // A list over several lines is one list.
                Some(before) => before.extend_from_slice(&[b", ", value].concat()),
                None => *place = Some(value.to_vec()),
            }
        }
        found
    }

    /// Evaluates in the order of RFC 9110 section 13.2.2. `has_parts`: the method is GET, the only one for which ranges are defined.
    pub fn judge(
        &self,
        there: &FileValidators,
        length: u64,
        has_parts: bool,
        now: SystemTime,
    ) -> ConditionOutcome {
        let changed_since = |date: SystemTime| there.modified.is_some_and(|modified| modified > date);
        let holds = match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => any_tag(tags, |tag, weak| !weak && tag == there.etag.as_bytes()),
            (None, Some(date)) => !changed_since(date),
            (None, None) => true,
        };
        if !holds {
            return ConditionOutcome::Failed;
        }
        let is_known = match (&self.if_none_match, self.if_modified_since) {
            // The weak comparison: an encoded answer has our tag as a weak one.
            (Some(tags), _) => any_tag(tags, |tag, _| tag == there.etag.as_bytes()),
            (None, Some(date)) => there.modified.is_some() && !changed_since(date),
            (None, None) => false,
        };
        if is_known {
            return ConditionOutcome::NotModified;
        }
        match &self.range {
            Some(range) if has_parts && self.is_same(there, now) => match part(range, length) {
                Ranged::Whole | Ranged::Parts(_) => ConditionOutcome::Whole,
                Ranged::Part(part) => ConditionOutcome::Part(part),
                Ranged::Unsatisfiable => ConditionOutcome::OutOfRange,
            },
            _ => ConditionOutcome::Whole,
        }
    }

    /// Whether `If-Range` has a date. All encoded forms of a file have the same date, while each form has an entity tag of its own.
    pub fn compares_date_of_part(&self) -> bool {
        self.if_range.as_ref().is_some_and(|validator| !validator.starts_with(b"\""))
    }

    /// Evaluates `If-Range`: whether the parts that the client has are of the current file.
    fn is_same(&self, there: &FileValidators, now: SystemTime) -> bool {
        let Some(validator) = &self.if_range else { return true };
        if validator.starts_with(b"\"") {
            return validator == there.etag.as_bytes();
        }
        // A date less than a second ago is a weak validator: the file may change again within that second.
        let settled = |modified: &SystemTime| *modified + Duration::from_secs(1) <= now;
        parse_http_date(validator).is_some_and(|date| there.modified.filter(settled) == Some(date))
    }
}

#[cfg(test)]
mod tests {
    use hostler_wire::{Limits, RequestHead};

    use super::ConditionOutcome::{Failed, NotModified, OutOfRange, Part, Whole};
    use super::*;

    const MODIFIED: u64 = 1_000_000_000;
    const AT: &str = "Sun, 09 Sep 2001 01:46:40 GMT";
    const BEFORE: &str = "Sun, 09 Sep 2001 01:46:39 GMT";
    const AFTER: &str = "Sun, 09 Sep 2001 01:46:41 GMT";

    fn judged(lines: &str) -> ConditionOutcome {
        judged_at(lines, 100, MODIFIED + 10)
    }

    fn judged_at(lines: &str, length: u64, now: u64) -> ConditionOutcome {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut head = RequestHead::default();
        let text = lines.replace("AT", AT).replace("BEFORE", BEFORE).replace("AFTER", AFTER);
        let fields: String = text.split('|').map(|line| format!("{}\r\n", line.trim())).collect();
        let fields = if lines.is_empty() { String::new() } else { fields };
        head.parse(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes(), &Limits::default())
            .unwrap();
        let there = FileValidators { etag: "\"x\"".into(), modified: Some(at(MODIFIED)) };
        Conditions::of(&head.fields).judge(&there, length, true, at(now))
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_the_rfc() {
        let cases = [
            ("", Whole),
            ("If-None-Match: \"x\"", NotModified),
            ("if-none-match: W/\"x\"", NotModified),
            ("If-None-Match: \"y\", W/\"z\" ,\"x\"", NotModified),
            ("If-None-Match: \"y\" | If-None-Match: \"x\"", NotModified),
            ("If-None-Match: *", NotModified),
            ("If-None-Match: \"a, \\\"x\"", Whole),
            ("If-None-Match: x", Whole),
            ("If-None-Match: \"y\" | If-Modified-Since: AT", Whole),
            ("If-Modified-Since: AT", NotModified),
            ("If-Modified-Since: AFTER", NotModified),
            ("If-Modified-Since: Sun Sep  9 01:46:40 2001", NotModified),
            ("If-Modified-Since: Sun Sep  9 01:46:39 2001", Whole),
            ("If-Modified-Since: Sunday, 09-Sep-01 01:46:40 GMT", NotModified),
            ("If-Unmodified-Since: Sun Sep  9 01:46:39 2001", Failed),
            ("If-Modified-Since: BEFORE", Whole),
            ("If-Modified-Since: yesterday", Whole),
            ("If-Match: \"x\"", Whole),
            ("If-Match: *", Whole),
            ("If-Match: W/\"x\"", Failed),
            ("If-Match: \"y\"", Failed),
            ("If-Match: \"x\" | If-None-Match: \"x\"", NotModified),
            ("If-Unmodified-Since: BEFORE", Failed),
            ("If-Unmodified-Since: AT", Whole),
            ("If-Match: \"x\" | If-Unmodified-Since: BEFORE", Whole),
            ("Range: bytes=0-1 | If-None-Match: \"x\"", NotModified),
            ("Range: bytes=500- | If-Match: \"y\"", Failed),
        ];
        for (lines, expected) in cases {
            assert_eq!(judged(lines), expected, "{lines}");
        }
    }

    #[test]
    fn one_range_gets_a_partial_answer_and_several_get_the_whole_file() {
        let cases = [
            ("bytes=0-0", Part(0..1)),
            ("bytes=10-19", Part(10..20)),
            ("BYTES=10-", Part(10..100)),
            ("bytes=-1", Part(99..100)),
            ("bytes=-1000", Part(0..100)),
            ("bytes=99-99999999999999999999999999", Part(99..100)),
            ("bytes= 1-2 ,", Part(1..3)),
            ("bytes=100-", OutOfRange),
            ("bytes=99999999999999999999999999-", OutOfRange),
            ("bytes=-0", OutOfRange),
            ("bytes=5-4", Whole),
            ("bytes=1-2,5-6", Whole),
            ("bytes=", Whole),
            ("bytes=-", Whole),
            ("bytes=a-b", Whole),
            ("bytes=+1-2", Whole),
            ("lines=1-2", Whole),
            ("byte", Whole),
        ];
        for (range, expected) in cases {
            assert_eq!(judged(&format!("Range: {range}")), expected, "{range}");
        }
        assert_eq!(judged_at("Range: bytes=0-", 0, MODIFIED), OutOfRange);
        assert_eq!(judged_at("Range: bytes=-5", 0, MODIFIED), Whole);
    }

    #[test]
    fn a_range_of_a_replaced_file_is_not_sent() {
        let cases = [
            ("If-Range: \"x\"", Part(1..3)),
            ("If-Range: \"y\"", Whole),
            ("If-Range: W/\"x\"", Whole),
            ("If-Range: AT", Part(1..3)),
            ("If-Range: Sun Sep  9 01:46:40 2001", Part(1..3)),
            ("If-Range: AFTER", Whole),
            ("If-Range: BEFORE", Whole),
        ];
        for (lines, expected) in cases {
            assert_eq!(judged(&format!("Range: bytes=1-2 | {lines}")), expected, "{lines}");
        }
        let too_fresh = judged_at("Range: bytes=1-2 | If-Range: AT", 100, MODIFIED);
        assert_eq!(too_fresh, Whole, "it may still change within this second");
    }
}
