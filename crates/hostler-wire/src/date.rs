//! Parses dates of fields in their three forms. Knows no field.

use std::time::{Duration, SystemTime};

use crate::grammar::parse_digits;

/// A date in any form of RFC 9110 section 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun
/// Nov  6 08:49:37 1994`. In whole seconds. `None`: not a date, or a date before 1970.
///
/// A wrong day of the week is ignored: it adds no information, and senders get it wrong. (The `httpdate` crate does not
/// ignore it.) Letters may have any case: caches should read a date so (RFC 9111 section 4.2). A year of two digits is between 1970 and 2069.
pub fn parse_http_date(value: &[u8]) -> Option<SystemTime> {
    seconds_since_1970(value).map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn seconds_since_1970(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let day_name = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (day_name, rest) = value.split_at(day_name);
    let is_it =
        |day: &&[u8]| day.get(..day_name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(day_name));
    let index = DAYS.iter().position(is_it).filter(|_| !day_name.is_empty())?;
    let is_short = day_name.len() == 3;
    let (rest, is_gmt) = match rest.split_last_chunk::<4>() {
        Some((before, zone)) if zone.eq_ignore_ascii_case(ZONE) => (before, true),
        _ => (rest, false),
    };
    let (year, month, day, time) = match rest {
        [b',', b' ', d0, d1, b' ', m0, m1, m2, b' ', y0, y1, y2, y3, b' ', time @ ..]
            if is_short && is_gmt =>
        {
            (parse_digits(&[*y0, *y1, *y2, *y3])?, [*m0, *m1, *m2], parse_digits(&[*d0, *d1])?, time)
        }
        [b',', b' ', d0, d1, b'-', m0, m1, m2, b'-', y0, y1, b' ', time @ ..]
            if day_name.len() == DAYS[index].len() && is_gmt =>
        {
            let year = parse_digits(&[*y0, *y1])?;
            let year = if year < 70 { 2000 + year } else { 1900 + year };
            (year, [*m0, *m1, *m2], parse_digits(&[*d0, *d1])?, time)
        }
        [b' ', m0, m1, m2, b' ', d0, d1, b' ', time @ .., b' ', y0, y1, y2, y3] if is_short && !is_gmt => {
            let day = if *d0 == b' ' { parse_digits(&[*d1])? } else { parse_digits(&[*d0, *d1])? };
            (parse_digits(&[*y0, *y1, *y2, *y3])?, [*m0, *m1, *m2], day, time)
        }
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(&month))? as u64 + 1;
    Some(days(year, month, day)? * 86_400 + time_of_day(time)?)
}

const ZONE: &[u8; 4] = b" GMT";
const DAYS: [&[u8]; 7] =
    [b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// The seconds since midnight of `hour:minute:second`. A leap second is the first of the next minute.
fn time_of_day(time: &[u8]) -> Option<u64> {
    let [h0, h1, b':', m0, m1, b':', s0, s1] = *time else { return None };
    let (hour, minute, second) =
        (parse_digits(&[h0, h1])?, parse_digits(&[m0, m1])?, parse_digits(&[s0, s1])?);
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Days from 1970 to a day of the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = |month: u64| match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year < 1970 || day == 0 || day > length(month) {
        return None;
    }
    let leap_days = |year: u64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let in_years = (year - 1970) * 365 + leap_days(year) - leap_days(1970);
    Some(in_years + (1..month).map(length).sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_three_date_forms_are_read_and_others_refused() {
        const NOVEMBER: Option<u64> = Some(784_111_777);
        let cases = [
            ("Sun, 06 Nov 1994 08:49:37 GMT", NOVEMBER),
            ("Sunday, 06-Nov-94 08:49:37 GMT", NOVEMBER),
            ("Sun Nov  6 08:49:37 1994", NOVEMBER),
            ("Sun Nov 06 08:49:37 1994", NOVEMBER),
            (" Sun Nov  6 08:49:37 1994\t", NOVEMBER),
            ("Wed Nov  6 08:49:37 1994", NOVEMBER),
            ("Wednesday, 06-Nov-94 08:49:37 GMT", NOVEMBER),
            ("sun, 06 nov 1994 08:49:37 gmt", NOVEMBER),
            ("SUNDAY, 06-NOV-94 08:49:37 GMT", NOVEMBER),
            ("sUN nOV  6 08:49:37 1994", NOVEMBER),
            ("Thu Aug  8 02:01:18 2050", Some(2_543_536_878)),
            ("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_800)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Thursday, 18-Aug-50 02:01:18 GMT", Some(2_544_400_878)),
            ("Thursday, 01-Jan-70 00:00:00 GMT", Some(0)),
            ("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400)),
            ("Sun Nov 6 08:49:37 1994", None),
            ("Sun Nov   6 08:49:37 1994", None),
            ("Sun, Nov  6 08:49:37 1994", None),
            ("Sun Nov  6 08:49:37 1994 GMT", None),
            ("Sun,  6 Nov 1994 08:49:37 GMT", None),
            ("Sunday, 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06-Nov-94 08:49:37 GMT", None),
            ("Sunday Nov  6 08:49:37 1994", None),
            ("Su, 06 Nov 1994 08:49:37 GMT", None),
            ("Xyz, 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 UTC", None),
            ("Sun, 06 Nov 1994 24:00:00 GMT", None),
            ("Sun, 06 Nov 1994 08:60:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:61 GMT", None),
            ("Sun, 31 Nov 1994 08:49:37 GMT", None),
            ("Sun, 00 Nov 1994 08:49:37 GMT", None),
            ("Thu, 29 Feb 1900 00:00:00 GMT", None),
            ("Wed, 31 Dec 1969 23:59:59 GMT", None),
            ("", None),
            (",", None),
            ("Sun", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(parse_http_date(text.as_bytes()), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_date_written_by_the_rfc_is_read_back(seconds in 0..253_402_300_800_u64) {
            let date = UNIX_EPOCH + Duration::from_secs(seconds);
            prop_assert_eq!(parse_http_date(httpdate::fmt_http_date(date).as_bytes()), Some(date));
        }

        #[test]
        fn an_invalid_date_causes_no_panic(bytes: Vec<u8>, text in "Sun[a-zA-Z0-9 :,-]{0,30}") {
            let _ = (parse_http_date(&bytes), parse_http_date(text.as_bytes()));
        }
    }
}
