//! Compares the policy with `http-cache-semantics`, on messages for which both follow the RFCs.

use std::time::{Duration, SystemTime};

use http_cache_semantics::{BeforeRequest, CacheOptions, CachePolicy};

use super::*;

/// Whether a GET this many seconds after another one is served from memory: by `http-cache-semantics`, and by this
/// policy.
fn reuses(answer: &str, first: &str, second: &str, after: u64) -> (bool, bool) {
    (theirs(answer, first, second, after), ours(answer, first, second, after))
}

fn ours(answer: &str, first: &str, second: &str, after: u64) -> bool {
    let (first, second) = (Lines::of(first), Lines::of(second));
    let (rules, answer) = (heeding(), Lines::of(answer));
    let request_directives = |request| RequestDirectives::of(&rules, b"GET", request);
    if admit(&request_directives(&second)).is_err() {
        return false;
    }
    let freshness = Freshness::of(&rules, &request_directives(&first), 200, &answer, NOW, NOW);
    let vary = Vary::of(&answer, &first, RequestSide::default());
    let (Ok(freshness), Ok(vary)) = (freshness, vary) else { return false };
    let now = Moment(NOW.0 + after * 1000);
    vary.matches(&second, RequestSide::default())
        && matches!(judge(&freshness, &request_directives(&second), now), Reuse::Serve { .. })
}

fn theirs(answer: &str, first: &str, second: &str, after: u64) -> bool {
    let request = |text: &str| {
        let lines = Lines::of(text).0;
        let builder = http::Request::get("http://a.test/");
        let builder = lines.into_iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        builder.body(()).expect("a request")
    };
    let lines = Lines::of(answer).0.into_iter();
    let builder = lines.fold(http::Response::builder(), |builder, (name, value)| builder.header(name, value));
    let response = builder.body(()).expect("an answer");
    let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
    let options = CacheOptions { cache_heuristic: 0.0, ..CacheOptions::default() };
    let policy = CachePolicy::new_options(&request(first), &response, at(NOW.0), options);
    let now = at(NOW.0 + after * 1000);
    policy.is_storable() && matches!(policy.before_request(&request(second), now), BeforeRequest::Fresh(_))
}

#[test]
fn our_policy_agrees_with_the_other_library_where_both_follow_the_rfc() {
    let cases = [
        ("Cache-Control: max-age=60", "", "", 10, true),
        ("Cache-Control: max-age=60", "", "", 60, false),
        ("Cache-Control: max-age=60, s-maxage=5", "", "", 10, false),
        ("Cache-Control: max-age=5, s-maxage=60", "", "", 10, true),
        ("Cache-Control: max-age=60, no-store", "", "", 0, false),
        ("Cache-Control: max-age=60, no-cache", "", "", 0, false),
        ("Cache-Control: max-age=60, private", "", "", 0, false),
        ("Cache-Control: max-age=60 | Age: 55", "", "", 10, false),
        ("Cache-Control: max-age=60 | Age: 55", "", "", 1, true),
        ("Expires: Sun, 22 Nov 2026 00:01:00 GMT | Date: NOW", "", "", 10, true),
        ("Expires: 0", "", "", 0, false),
        ("", "", "", 0, false),
        ("Cache-Control: max-age=60 | Vary: a", "a: 1", "a: 1", 10, true),
        ("Cache-Control: max-age=60 | Vary: a", "a: 1", "a: 2", 10, false),
        ("Cache-Control: max-age=60 | Vary: *", "", "", 10, false),
        ("Cache-Control: max-age=60", "Authorization: x", "", 10, false),
        ("Cache-Control: max-age=60, public", "Authorization: x", "", 10, true),
        ("Cache-Control: max-age=60", "", "Cache-Control: no-cache", 10, false),
        ("Cache-Control: max-age=60", "", "Cache-Control: max-age=5", 10, false),
        ("Cache-Control: max-age=60", "", "Cache-Control: min-fresh=55", 10, false),
        ("Cache-Control: max-age=60", "", "Cache-Control: max-stale=60", 70, true),
        ("Cache-Control: max-age=60, must-revalidate", "", "Cache-Control: max-stale=60", 70, false),
        ("Cache-Control: max-age=60 | Set-Cookie: a=b", "", "", 10, false),
    ];
    for (answer, first, second, after, expected) in cases {
        assert_eq!(
            reuses(answer, first, second, after),
            (expected, expected),
            "{answer}; {first}; {second}; {after}"
        );
    }
}

/// Decision 0013 explains these differences. If one of them disappears, the decision must be read again.
#[test]
fn each_difference_from_the_other_library_has_a_written_reason() {
    let cases = [
        ("a name in upper case is a name", "Cache-Control: max-age=60, NO-STORE", "", "", 0, (true, false)),
        (
            "quotes keep their commas",
            "Cache-Control: x=\"no-store, max-age=0\", max-age=60",
            "",
            "",
            0,
            (false, true),
        ),
        (
            "targeted fields count first",
            "CDN-Cache-Control: no-store | Cache-Control: max-age=60",
            "",
            "",
            0,
            (true, false),
        ),
        (
            "a cookie is no secret of all",
            "Cache-Control: max-age=60, public | Set-Cookie: a=b",
            "",
            "",
            0,
            (true, false),
        ),
        (
            "proxy-revalidate is about what is stale",
            "Cache-Control: max-age=60, proxy-revalidate",
            "",
            "",
            0,
            (false, true),
        ),
        ("fields may be named", "Cache-Control: max-age=60, private=\"x-user\"", "", "", 0, (false, true)),
        (
            "a date shows an age",
            "Cache-Control: max-age=60 | Date: Sat, 21 Nov 2026 23:00:00 GMT",
            "",
            "",
            0,
            (true, false),
        ),
        ("a list", "Cache-Control: max-age=60 | Vary: Via", "Via: 1, 2", "Via: 1,2", 0, (false, true)),
        ("the old forms are dates", "Expires: Sunday, 22-Nov-26 00:01:00 GMT", "", "", 0, (false, true)),
        ("must-understand", "Cache-Control: max-age=60, no-store, must-understand", "", "", 0, (false, true)),
        (
            "if-match is the member's",
            "Cache-Control: max-age=60 | ETag: \"a\"",
            "",
            "If-Match: \"a\"",
            0,
            (true, false),
        ),
        ("a request with a login", "Cache-Control: max-age=60", "", "Authorization: x", 0, (true, false)),
    ];
    for (why, answer, first, second, after, expected) in cases {
        assert_eq!(reuses(answer, first, second, after), expected, "{why}: {answer}; {first}; {second}");
    }
}
