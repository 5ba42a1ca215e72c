//! How long responses are fresh and how old they are (RFC 9111 sections 4.2, 5.1, 5.3).

use super::*;

/// Seconds for which a response is fresh after its arrival. 0 if it is stale or not stored.
fn fresh_for(answer: &str) -> i64 {
    freshness(&CachingRules::default(), 200, answer).map_or(0, |freshness| freshness.ttl(NOW).max(0))
}

#[test]
fn the_strongest_directive_sets_the_lifetime() {
    let cases = [
        ("Cache-Control: max-age=60", 60),
        ("Cache-Control: max-age=60, s-maxage=5", 5),
        ("Cache-Control: s-maxage=5 | Cache-Control: max-age=60", 5),
        ("Cache-Control: max-age=0, s-maxage=60", 60),
        ("Cache-Control: max-age=60 | Expires: 0", 60),
        ("Cache-Control: max-age=0 | Expires: Sun, 22 Nov 2026 00:01:00 GMT", 0),
        ("Cache-Control: s-maxage=x, max-age=60", 0),
        ("Expires: Sun, 22 Nov 2026 00:01:00 GMT", 60),
        ("Expires: Sun, 22 Nov 2026 00:01:00 GMT | Date: Sat, 21 Nov 2026 23:59:30 GMT", 60),
        ("Expires: Sun, 22 Nov 2026 00:01:00 GMT | Date: Sun, 22 Nov 2026 00:00:50 GMT", 10),
        ("Expires: Sun, 22 Nov 2026 00:01:00 GMT | Date: now", 60),
        ("Expires: NOW | Date: NOW", 0),
        ("Expires: Sat, 21 Nov 2026 00:00:00 GMT", 0),
    ];
    for (answer, expected) in cases {
        assert_eq!(fresh_for(answer), expected, "{answer}");
    }
}

#[test]
fn seconds_are_digits_only_and_two_different_values_are_invalid() {
    let cases = [
        ("60", 60),
        ("\"60\"", 60),
        ("60 , foo", 60),
        ("\"6\\0\"", 60),
        ("0060", 60),
        ("60, max-age=60", 60),
        ("2147483648", 1 << 31),
        ("2147483649", 1 << 31),
        ("99999999999999999999999999999999", 1 << 31),
        ("60, max-age=30", 0),
        ("30, max-age=60", 0),
        ("'60'", 0),
        ("60.0", 0),
        ("-60", 0),
        ("+60", 0),
        (" 60", 0),
        ("a60", 0),
        ("60a", 0),
        ("60;a=b", 0),
        ("\"60", 0),
        ("\"60\" , foo", 60),
        ("\"60\"x", 0),
        ("", 0),
    ];
    for (value, expected) in cases {
        assert_eq!(fresh_for(&format!("Cache-Control: max-age={value}")), expected, "{value}");
    }
    assert_eq!(fresh_for("Cache-Control: max-age"), 0);
    assert_eq!(fresh_for("Cache-Control: foo=\"max-age=60\", max-age=5"), 5);
    assert_eq!(fresh_for("Cache-Control: max-age=60 | Cache-Control: max-age=5"), 0);
}

#[test]
fn expires_takes_three_date_forms_and_any_other_value_means_expired() {
    let cases = [
        ("Sun, 22 Nov 2026 00:01:00 GMT", 60),
        ("Sunday, 22-Nov-26 00:01:00 GMT", 60),
        ("Sun Nov 22 00:01:00 2026", 60),
        ("Tue Dec  1 00:00:00 2026", 9 * 24 * 60 * 60),
        // The day of the week is wrong, and is ignored.
        ("Mon Dec  1 00:00:00 2026", 9 * 24 * 60 * 60),
        ("Sun, 22 Nov 2026 00:01:00 UTC", 0),
        ("Sun, 22 Nov 2026 00:01:00 +0000", 0),
        ("Sun, 22 Nov 2026 0:01:00 GMT", 0),
        ("Sun, 22-Nov-2026 00:01:00 GMT", 0),
        ("Sun 22 Nov 2026 00:01:00 GMT", 0),
        ("22 Nov 2026", 0),
        ("1795305660", 0),
        ("0", 0),
        ("-1", 0),
        ("", 0),
        ("Sun, 22 Nov 2026 00:01:00 GMT | Expires: Sun, 22 Nov 2026 00:01:00 GMT", 60),
        ("Sun, 22 Nov 2026 00:01:00 GMT | Expires: Sun, 22 Nov 2026 00:02:00 GMT", 0),
        ("Mon, 31 Dec 1900 23:59:59 GMT", 0),
    ];
    for (expires, expected) in cases {
        assert_eq!(fresh_for(&format!("Expires: {expires}")), expected, "{expires}");
    }
    assert_eq!(fresh_for("Expires: Fri, 31 Dec 9999 23:59:59 GMT"), i64::from(u32::MAX));
}

#[test]
fn the_age_is_the_greater_of_the_age_field_and_the_age_by_date() {
    let age = |answer: &str| stored(&format!("Cache-Control: max-age=100000 | {answer}")).age(NOW);
    let cases = [
        ("", 0),
        ("Age: 30", 30),
        ("Age: 30 | Date: NOW", 30),
        ("Date: Sat, 21 Nov 2026 23:59:00 GMT", 60),
        ("Age: 30 | Date: Sat, 21 Nov 2026 23:59:00 GMT", 60),
        ("Age: 90 | Date: Sat, 21 Nov 2026 23:59:00 GMT", 90),
        ("Date: Sun, 22 Nov 2026 00:10:00 GMT", 0),
        ("Date: yesterday", 0),
    ];
    for (answer, expected) in cases {
        assert_eq!(age(answer), expected, "{answer}");
    }
}

#[test]
fn the_first_age_of_a_list_counts_and_an_invalid_age_is_ignored() {
    let age = |age: &str| stored(&format!("Cache-Control: max-age=3600 | ETag: \"a\" | Age: {age}")).age(NOW);
    let cases = [
        ("7200,0", 7200),
        ("0,7200", 0),
        ("0 | Age: 7200", 0),
        ("7200 | Age: 0", 7200),
        ("7200, old", 7200),
        ("old, 7200", 0),
        ("-7200", 0),
        ("7200.0", 0),
        ("7200;foo=bar", 0),
        ("", 0),
        ("99999999999999", 1 << 31),
    ];
    for (value, expected) in cases {
        assert_eq!(age(value), expected, "{value}");
    }
}

#[test]
fn a_date_from_the_second_before_the_request_makes_no_answer_older() {
    let received = Moment(NOW.0 + 50);
    let age = |date: &str, requested: u64| {
        let answer = Lines::of(&format!("Cache-Control: max-age=1, stale-if-error=9 | Date: {date}"));
        let request = request_directives("");
        let freshness =
            Freshness::of(&CachingRules::default(), &request, 200, &answer, Moment(requested), received);
        freshness.expect("stored").millis(received)
    };
    let (before, long_before) = ("Sat, 21 Nov 2026 23:59:59 GMT", "Sat, 21 Nov 2026 23:59:58 GMT");
    assert_eq!(age(before, NOW.0 - 100), 150, "the second has changed while it was made");
    assert_eq!(age(before, NOW.0 + 10), 40);
    assert_eq!(age(long_before, NOW.0 - 100), 150);
    assert_eq!(age(long_before, NOW.0 + 10), 2000);
}

#[test]
fn the_response_delay_is_part_of_the_age() {
    let answer = Lines::of("Cache-Control: max-age=10 | Age: 3");
    let freshness =
        Freshness::of(&CachingRules::default(), &request_directives(""), 200, &answer, NOW, later(2))
            .expect("stored");
    assert_eq!(freshness.age(later(2)), 5);
    assert_eq!((freshness.age(later(4)), freshness.ttl(later(4))), (7, 3));
    assert_eq!(freshness.ttl(later(8)), -1);
}

#[test]
fn setting_the_clock_back_makes_no_answer_younger() {
    let freshness = stored("Cache-Control: max-age=60 | Age: 10");
    assert_eq!((freshness.age(later(-3600)), freshness.ttl(later(-3600))), (10, 50));
    assert!(freshness.age(Moment(u64::MAX)) > u64::MAX / 2000, "nor does one that is far ahead overflow");
    assert_eq!(
        judge(&freshness, &request_directives(""), Moment(u64::MAX)),
        Reuse::Validate { why: Forward::Stale }
    );
}

#[test]
fn heuristic_freshness_is_a_tenth_of_the_age_at_most_a_day_and_only_if_configured() {
    let rules = CachingRules { heuristics: true, ..CachingRules::default() };
    let lifetime =
        |status, answer: &str| freshness(&rules, status, answer).map(|freshness| freshness.lifetime).ok();
    assert_eq!(lifetime(200, "Last-Modified: Sat, 21 Nov 2026 23:58:20 GMT"), Some(10));
    assert_eq!(lifetime(404, "Last-Modified: Sat, 21 Nov 2026 23:58:20 GMT"), Some(10));
    assert_eq!(lifetime(200, "Last-Modified: Sun, 22 Nov 1998 00:00:00 GMT"), Some(86_400));
    assert_eq!(lifetime(200, "Last-Modified: Sun, 29 Nov 2026 00:00:00 GMT"), Some(0));
    assert_eq!(lifetime(503, "Last-Modified: Sat, 21 Nov 2026 23:58:20 GMT"), None);
    let public = "Cache-Control: public | Last-Modified: Sat, 21 Nov 2026 23:58:20 GMT";
    assert_eq!(lifetime(599, public), Some(10));
    assert_eq!(
        lifetime(200, "Cache-Control: max-age=5 | Last-Modified: Sat, 21 Nov 2026 23:58:20 GMT"),
        Some(5)
    );
    assert_eq!(lifetime(200, "ETag: \"a\""), None);
    let closed = freshness(&CachingRules::default(), 200, "Last-Modified: Sat, 21 Nov 2026 23:58:20 GMT");
    assert_eq!(closed, Err(NotStored::Lifetime));
}

#[test]
fn no_answer_is_fresh_for_longer_than_the_route_allows() {
    let rules = CachingRules { longest: Some(20), ..CachingRules::default() };
    assert_eq!(freshness(&rules, 200, "Cache-Control: max-age=60").expect("stored").lifetime, 20);
    assert_eq!(freshness(&rules, 200, "Cache-Control: max-age=6").expect("stored").lifetime, 6);
}

#[test]
fn an_answer_is_kept_while_it_may_be_served_and_a_day_more_to_be_validated() {
    let seconds = |answer: &str| (stored(answer).useless_from().0 - NOW.0) / 1000;
    assert_eq!(seconds("Cache-Control: max-age=60"), 60);
    assert_eq!(seconds("Cache-Control: max-age=60 | Age: 20"), 40);
    assert_eq!(seconds("Cache-Control: max-age=60, stale-while-revalidate=5, stale-if-error=30"), 90);
    assert_eq!(seconds("Cache-Control: max-age=60 | ETag: \"a\""), 60 + 86_400);
}

#[test]
fn an_answer_may_be_served_in_its_last_second_too() {
    let at = |answer: &str, millis: u64| stored(answer).is_servable(Moment(NOW.0 + millis));
    assert!(at("Cache-Control: max-age=1", 10) && at("Cache-Control: max-age=1", 999));
    assert!(!at("Cache-Control: max-age=1", 1000));
    let refreshed = "Cache-Control: max-age=1, stale-while-revalidate=2";
    assert!(at(refreshed, 2999) && !at(refreshed, 3000));
    assert!(!at("Cache-Control: max-age=60, no-cache | ETag: \"a\"", 0));
}
