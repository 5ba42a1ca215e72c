//! Whether a stored response may be served now (RFC 9111 sections 4.2.4, 5.2, RFC 5861, RFC 8246).

use super::*;

use Reuse::{Pass, Serve, ServeAndRefresh, Validate};

const STALE: Reuse = Validate { why: Forward::Stale };
const REQUEST: Reuse = Validate { why: Forward::Request };

fn judged(answer: &str, request: &str, after: i64) -> Reuse {
    judge(&stored(answer), &request_directives(request), later(after))
}

#[test]
fn a_fresh_answer_is_served_and_a_stale_one_is_validated() {
    let answer = "Cache-Control: max-age=60 | ETag: \"a\"";
    assert_eq!(judged(answer, "", 0), Serve { age: 0, ttl: 60 });
    assert_eq!(judged(answer, "", 59), Serve { age: 59, ttl: 1 });
    assert_eq!(judged(answer, "", 60), STALE);
    let half = Moment(later(59).0 + 500);
    assert_eq!(judge(&stored(answer), &request_directives(""), half), Serve { age: 59, ttl: 0 });
}

#[test]
fn after_the_clock_was_set_back_an_answer_is_validated() {
    let answer = "Cache-Control: max-age=60, stale-while-revalidate=10, stale-if-error=60";
    assert_eq!(judged(answer, "", -60), Serve { age: 0, ttl: 60 }, "another Hostler's clock may be ahead");
    assert_eq!(judged(answer, "", -61), STALE);
    let on_error = may_serve_on_error(&stored(answer), &request_directives(""), later(-3600));
    assert_eq!(on_error, Some((0, 60)), "better than an error");
}

#[test]
fn no_cache_is_always_validated_even_while_it_is_fresh() {
    assert_eq!(judged("Cache-Control: no-cache, max-age=60 | ETag: \"a\"", "", 0), STALE);
    assert_eq!(judged("Cache-Control: no-cache=\"x-user\", max-age=60", "", 0), Serve { age: 0, ttl: 60 });
}

#[test]
fn stale_answers_are_served_while_a_new_one_is_fetched_only_within_their_window() {
    let answer = "Cache-Control: max-age=60, stale-while-revalidate=10";
    assert_eq!(judged(answer, "", 60), ServeAndRefresh { age: 60, ttl: 0 });
    assert_eq!(judged(answer, "", 69), ServeAndRefresh { age: 69, ttl: -9 });
    assert_eq!(judged(answer, "", 70), STALE);
    let forbidden = ["must-revalidate", "proxy-revalidate"];
    for directive in forbidden {
        let answer = format!("Cache-Control: max-age=60, stale-while-revalidate=10, {directive}");
        assert_eq!(judged(&answer, "", 60), STALE, "{directive}");
    }
    let none = [
        "Cache-Control: max-age=60, stale-while-revalidate",
        "Cache-Control: max-age=60, stale-while-revalidate=a",
    ];
    for answer in none {
        assert_eq!(judged(answer, "", 60), STALE, "{answer}");
    }
}

#[test]
fn the_routes_stale_windows_apply_to_answers_that_neither_name_nor_forbid_one() {
    let rules = CachingRules { stale_while_revalidate: 10, stale_if_error: 20, ..CachingRules::default() };
    let windows = |answer| {
        let freshness = freshness(&rules, 200, answer).expect("stored");
        (freshness.stale_while_revalidate, freshness.stale_if_error)
    };
    assert_eq!(windows("Cache-Control: max-age=60"), (10, 20));
    assert_eq!(windows("Cache-Control: s-maxage=60"), (10, 20));
    assert_eq!(windows("Cache-Control: max-age=60, stale-while-revalidate=1, stale-if-error=2"), (1, 2));
    assert_eq!(windows("Cache-Control: max-age=60, stale-while-revalidate=0"), (0, 20));
    assert_eq!(windows("Cache-Control: max-age=60, stale-while-revalidate=a"), (0, 20));
    assert_eq!(windows("Cache-Control: s-maxage=60, stale-while-revalidate"), (10, 20), "Nitro, Next.js");
    assert_eq!(windows("CDN-Cache-Control: max-age=60, stale-while-revalidate, stale-if-error"), (10, 20));
    assert_eq!(windows("CDN-Cache-Control: max-age=60, stale-while-revalidate=\"5\""), (0, 20));
    assert_eq!(windows("Cache-Control: max-age=60, must-revalidate"), (0, 0));
    assert_eq!(windows("Cache-Control: no-cache | ETag: \"a\""), (0, 0));
}

#[test]
fn stale_answers_are_served_on_failure_only_within_their_window_and_never_when_they_forbid_it() {
    let served = |answer: &str, request: &str, after| {
        may_serve_on_error(&stored(answer), &request_directives(request), later(after))
    };
    let answer = "Cache-Control: max-age=60, stale-if-error=10";
    assert_eq!(served(answer, "", 69), Some((69, -9)));
    assert_eq!(served(answer, "", 70), None);
    assert_eq!(served(answer, "Cache-Control: stale-if-error=100", 70), Some((70, -10)));
    assert_eq!(served("Cache-Control: max-age=60", "", 60), None);
    assert_eq!(
        served("Cache-Control: max-age=60", "Cache-Control: no-cache", 59),
        Some((59, 1)),
        "it is fresh"
    );
    assert_eq!(served("Cache-Control: max-age=60, s-maxage=60, stale-if-error=10", "", 65), Some((65, -5)));
    for directive in ["must-revalidate", "proxy-revalidate", "no-cache"] {
        let answer = format!("Cache-Control: max-age=60, stale-if-error=10, {directive} | ETag: \"a\"");
        assert_eq!(served(&answer, "Cache-Control: stale-if-error=100", 65), None, "{directive}");
    }
    assert_eq!(served(answer, "Authorization: a", 65), None);
    let failures = (100..600).filter(|&status| is_failure(status)).collect::<Vec<_>>();
    assert_eq!(failures, [500, 502, 503, 504]);
    let about_the_page = (400..600).filter(|&status| replaces_stored(status)).collect::<Vec<_>>();
    assert_eq!(about_the_page, [404, 410, 451]);
    let not_about_the_page = (200..400).filter(|&status| !replaces_stored(status)).collect::<Vec<_>>();
    assert_eq!(not_about_the_page, [206, 304]);
}

#[test]
fn request_directives_apply_where_the_route_honours_them() {
    let answer = "Cache-Control: max-age=60 | Age: 10";
    let fresh = Serve { age: 20, ttl: 40 };
    let cases = [
        ("Cache-Control: no-cache", REQUEST),
        ("Pragma: no-cache", REQUEST),
        ("Pragma: foo, No-Cache", REQUEST),
        ("Pragma: no-cache | Cache-Control: foo", fresh),
        ("Pragma: foo", fresh),
        ("Cache-Control: max-age=20", fresh),
        ("Cache-Control: max-age=19", REQUEST),
        ("Cache-Control: max-age=0", REQUEST),
        ("Cache-Control: max-age=soon", REQUEST),
        ("Cache-Control: min-fresh=40", fresh),
        ("Cache-Control: min-fresh=41", REQUEST),
        ("Cache-Control: max-age=19, max-stale", REQUEST),
        ("Cache-Control: only-if-cached", fresh),
        ("Cache-Control: no-store", fresh),
    ];
    for (request, expected) in cases {
        assert_eq!(judged(answer, request, 10), expected, "{request}");
        let heedless = RequestDirectives::of(&CachingRules::default(), b"GET", &Lines::of(request));
        assert_eq!(judge(&stored(answer), &heedless, later(10)), fresh, "{request}, not obeyed");
    }
}

#[test]
fn a_request_may_accept_a_stale_answer_unless_the_answer_forbids_it() {
    let stale = Serve { age: 70, ttl: -10 };
    let cases = [
        ("max-age=60", "max-stale", stale),
        ("max-age=60", "max-stale=11", stale),
        ("max-age=60", "max-stale=10", STALE),
        ("max-age=60", "max-stale, max-age=65", REQUEST),
        ("max-age=60", "max-stale=a", STALE),
        ("s-maxage=60", "max-stale", STALE),
        ("max-age=60, must-revalidate", "max-stale", STALE),
        ("max-age=60, proxy-revalidate", "max-stale", STALE),
        ("max-age=60, no-cache", "max-stale", STALE),
    ];
    for (answer, request, expected) in cases {
        let answer = format!("Cache-Control: {answer} | ETag: \"a\"");
        assert_eq!(judged(&answer, &format!("Cache-Control: {request}"), 70), expected, "{answer} {request}");
    }
}

#[test]
fn max_age_0_in_a_request_does_not_validate_an_immutable_answer_and_no_cache_does() {
    let answer = "Cache-Control: max-age=60, immutable";
    assert_eq!(judged(answer, "Cache-Control: max-age=0", 10), Serve { age: 10, ttl: 50 });
    assert_eq!(judged(answer, "Cache-Control: no-cache", 10), REQUEST);
    assert_eq!(judged(answer, "Cache-Control: max-age=5", 10), REQUEST);
    assert_eq!(judged(answer, "Cache-Control: max-age=0", 60), REQUEST);
    assert_eq!(judged(answer, "", 60), STALE);
}

#[test]
fn requests_with_authorization_get_only_answers_marked_as_shareable() {
    assert_eq!(judged("Cache-Control: max-age=60", "Authorization: a", 0), Pass { why: Forward::Request });
    for directive in ["public", "s-maxage=60", "must-revalidate"] {
        let answer = format!("Cache-Control: max-age=60, {directive}");
        assert_eq!(judged(&answer, "Authorization: a", 0), Serve { age: 0, ttl: 60 }, "{directive}");
    }
}
