//! Which answers are stored (RFC 9111 section 3, RFC 9213).

use super::*;

use NotStored::{
    Authorized, Cookie, Lifetime, Method as NoMethod, NoStore, Private, Status, Vary as VaryAll,
};

#[test]
fn an_answer_with_a_lifetime_is_stored_unless_a_directive_forbids_it() {
    let cases: &[(&str, Result<(), NotStored>)] = &[
        ("", Err(Lifetime)),
        ("Cache-Control: public", Err(Lifetime)),
        ("Cache-Control: must-revalidate | ETag: \"a\"", Err(Lifetime)),
        ("Last-Modified: Sun, 01 Nov 2026 00:00:00 GMT", Err(Lifetime)),
        ("Cache-Control: max-age=60", Ok(())),
        ("Cache-Control: MaX-AgE=60", Ok(())),
        ("Cache-Control: foo, bar=\"baz, max-age=0\", max-age=60", Ok(())),
        ("Cache-Control: s-maxage=60", Ok(())),
        ("Expires: Sun, 22 Nov 2026 00:01:00 GMT", Ok(())),
        ("Cache-Control: max-age=0", Err(Lifetime)),
        ("Cache-Control: max-age=0 | ETag: \"a\"", Ok(())),
        ("Cache-Control: max-age=0 | ETag:", Err(Lifetime)),
        ("Cache-Control: max-age=0, stale-while-revalidate=5", Ok(())),
        ("Cache-Control: max-age=0, stale-if-error=5", Ok(())),
        ("Cache-Control: no-cache", Err(Lifetime)),
        ("Cache-Control: no-cache | ETag: \"a\"", Ok(())),
        ("Cache-Control: no-cache, max-age=60 | Last-Modified: Sun, 01 Nov 2026 00:00:00 GMT", Ok(())),
        ("Cache-Control: no-cache, max-age=60 | Last-Modified: today", Err(Lifetime)),
        ("Cache-Control: no-store, max-age=60", Err(NoStore)),
        ("Cache-Control: max-age=60 | Cache-Control: nO-StOrE", Err(NoStore)),
        ("Cache-Control: max-age=60, no-store=yes", Err(NoStore)),
        ("Cache-Control: max-age=60, private=\"unended, no-store", Err(NoStore)),
        ("Cache-Control: max-age=60, foo=\"no-store\"", Ok(())),
        ("Cache-Control: no-store; max-age=60", Err(NoStore)),
        ("Cache-Control: max-age=60; No-Store", Err(NoStore)),
        ("Cache-Control: public no-store, max-age=60", Err(NoStore)),
        ("Cache-Control: max-age=60, foo=no-store", Ok(())),
        ("Cache-Control: max-age=60, foo no-store-here", Ok(())),
        ("Cache-Control: private, max-age=60", Err(Private)),
        ("Cache-Control: private; max-age=60", Err(Private)),
        ("Cache-Control: max-age=60; private=\"x-user\"", Err(Private)),
        ("Cache-Control: private=\"\", max-age=60", Err(Private)),
        ("Cache-Control: max-age=60, private=\"x-user", Err(Private)),
        ("Cache-Control: private= \"x-user\", max-age=60", Err(Private)),
        ("Cache-Control: private=x-user;x-cart, max-age=60", Err(Private)),
        ("Cache-Control: private=\"x-user\", max-age=60", Ok(())),
        ("Cache-Control: private=\"x-user\", private, max-age=60", Err(Private)),
        ("Cache-Control: private=\"content-encoding\", max-age=60", Err(Private)),
        ("Cache-Control: max-age=60 | Vary: *", Err(VaryAll)),
        ("Cache-Control: max-age=60 | Vary: foo | Vary: , *", Err(VaryAll)),
        ("Cache-Control: max-age=60 | Set-Cookie: a=b", Err(Cookie)),
        ("Cache-Control: max-age=60, public | Set-Cookie: a=b", Err(Cookie)),
        ("Cache-Control: max-age=60, no-cache=\"Set-Cookie\" | Set-Cookie: a=b", Ok(())),
        ("Cache-Control: max-age=60, no-cache=Set-Cookie | Set-Cookie: a=b", Ok(())),
    ];
    for (answer, expected) in cases {
        let found = freshness(&CachingRules::default(), 200, answer).map(|_| ());
        assert_eq!(found, *expected, "{answer}");
    }
}

#[test]
fn final_statuses_are_stored_except_206_304_412_and_416() {
    let with = |status, answer| freshness(&CachingRules::default(), status, answer).map(|_| ());
    for status in [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599] {
        assert_eq!(with(status, "Cache-Control: max-age=60"), Ok(()), "{status}");
    }
    for status in [100, 103, 206, 304, 412, 416] {
        assert_eq!(with(status, "Cache-Control: max-age=60"), Err(Status), "{status}");
    }
}

#[test]
fn must_understand_takes_the_place_of_no_store_for_statuses_that_we_know() {
    let with = |status, answer| freshness(&CachingRules::default(), status, answer).map(|_| ());
    assert_eq!(with(200, "Cache-Control: max-age=60, no-store, must-understand"), Ok(()));
    assert_eq!(with(599, "Cache-Control: max-age=60, no-store, must-understand"), Err(Status));
    assert_eq!(with(599, "Cache-Control: max-age=60, must-understand"), Err(Status));
}

#[test]
fn answers_to_requests_with_authorization_are_stored_only_if_marked_as_shareable() {
    let with = |answer: &str| {
        let request_directives = request_directives("Authorization: Basic eA==");
        Freshness::of(&CachingRules::default(), &request_directives, 200, &Lines::of(answer), NOW, NOW)
            .map(|freshness| freshness.shared)
    };
    assert_eq!(with("Cache-Control: max-age=60"), Err(Authorized));
    assert_eq!(with("Cache-Control: max-age=60, s-maxage=soon"), Err(Authorized));
    assert_eq!(with("Cache-Control: max-age=60, proxy-revalidate"), Err(Authorized));
    for directive in ["public", "s-maxage=60", "must-revalidate"] {
        assert_eq!(with(&format!("Cache-Control: max-age=60, {directive}")), Ok(true), "{directive}");
    }
    assert!(!stored("Cache-Control: max-age=60").shared);
}

#[test]
fn only_answers_to_get_and_head_are_stored() {
    for (method, expected) in
        [("GET", Ok(())), ("HEAD", Ok(())), ("POST", Err(NoMethod)), ("OPTIONS", Err(NoMethod))]
    {
        let request_directives =
            RequestDirectives::of(&CachingRules::default(), method.as_bytes(), &Lines::default());
        let answer = Lines::of("Cache-Control: max-age=60");
        let found =
            Freshness::of(&CachingRules::default(), &request_directives, 200, &answer, NOW, NOW).map(|_| ());
        assert_eq!(found, expected, "{method}");
    }
}

#[test]
fn no_store_in_a_request_applies_where_the_route_honours_it() {
    let answer = Lines::of("Cache-Control: max-age=60");
    let request = Lines::of("Cache-Control: no-store");
    let with = |rules: &CachingRules| {
        let request_directives = RequestDirectives::of(rules, b"GET", &request);
        Freshness::of(rules, &request_directives, 200, &answer, NOW, NOW).map(|_| ())
    };
    assert_eq!(with(&heeding()), Err(NoStore));
    assert_eq!(with(&CachingRules::default()), Ok(()));
}

#[test]
fn the_first_valid_targeted_field_alone_counts() {
    let lifetime =
        |answer: &str| freshness(&CachingRules::default(), 200, answer).map(|freshness| freshness.lifetime);
    let cases = [
        ("CDN-Cache-Control: max-age=60 | Cache-Control: no-store", Ok(60)),
        ("CDN-Cache-Control: max-age=60 | Cache-Control: max-age=10", Ok(60)),
        ("CDN-Cache-Control: no-store | Cache-Control: max-age=10", Err(NoStore)),
        ("CDN-Cache-Control: private=?1 | Cache-Control: max-age=10", Err(Private)),
        ("CDN-Cache-Control: private=?0, max-age=5 | Cache-Control: max-age=10", Ok(5)),
        ("CDN-Cache-Control: max-age=60;a=b, x=(a b)", Ok(60)),
        ("CDN-Cache-Control: max-age=60 | CDN-Cache-Control: max-age=7", Ok(7)),
        ("CDN-Cache-Control: | Cache-Control: max-age=10", Ok(10)),
        ("CDN-Cache-Control: max-age=60, & | Cache-Control: max-age=10", Ok(10)),
        ("CDN-Cache-Control: Max-Age=60 | Cache-Control: max-age=10", Ok(10)),
        ("CDN-Cache-Control: foo | Expires: Sun, 22 Nov 2026 00:01:00 GMT", Err(Lifetime)),
        ("CDN-Cache-Control: max-age=\"60\" | Cache-Control: max-age=10", Err(Lifetime)),
        ("CDN-Cache-Control: max-age=60.5 | Cache-Control: max-age=10", Err(Lifetime)),
        ("CDN-Cache-Control: max-age=-1 | Cache-Control: max-age=10", Err(Lifetime)),
        ("CDN-Cache-Control: max-age=999999999999999 | Cache-Control: max-age=10", Ok(1 << 31)),
        ("CDN-Cache-Control: max-age=60 | Hostler-Cache-Control: max-age=5", Ok(5)),
        ("Other-Cache-Control: max-age=60 | Cache-Control: max-age=5", Ok(5)),
    ];
    for (answer, expected) in cases {
        assert_eq!(lifetime(answer), expected, "{answer}");
    }
    let freshness =
        stored("CDN-Cache-Control: max-age=60, no-cache=\"x-user\", stale-while-revalidate=9 | X-User: a");
    assert!(!freshness.no_cache);
    assert_eq!(freshness.stale_while_revalidate, 9);
}

#[test]
fn the_routes_precedence_decides_between_its_ttl_and_the_answers() {
    let ttl = |precedence| CachingRules {
        ttls: vec![Ttl { seconds: 30, statuses: vec![] }],
        precedence,
        ..CachingRules::default()
    };
    let cases = [
        ("", 200, [Ok(30), Ok(30), Ok(30)]),
        ("Cache-Control: max-age=60", 200, [Ok(60), Ok(30), Ok(30)]),
        ("Cache-Control: max-age=60", 500, [Ok(60), Ok(60), Ok(60)]),
        ("", 500, [Err(Lifetime), Err(Lifetime), Err(Lifetime)]),
        ("Cache-Control: no-cache", 200, [Err(Lifetime), Ok(30), Ok(30)]),
        ("Pragma: no-cache", 200, [Err(Lifetime), Ok(30), Ok(30)]),
        ("Expires: 0", 200, [Err(Lifetime), Ok(30), Ok(30)]),
        ("Cache-Control: private", 200, [Err(Private), Err(Private), Ok(30)]),
        ("Cache-Control: private; max-age=0", 200, [Err(Private), Err(Private), Ok(30)]),
        ("Cache-Control: max-age=0; private", 200, [Err(Private), Err(Private), Ok(30)]),
        ("Cache-Control: no-store, max-age=5", 200, [Err(NoStore), Err(NoStore), Ok(30)]),
        ("Set-Cookie: a=b", 200, [Err(Cookie), Err(Cookie), Err(Cookie)]),
        ("Vary: *", 200, [Err(VaryAll), Err(VaryAll), Err(VaryAll)]),
    ];
    for (answer, status, expected) in cases {
        let found = [Precedence::Answer, Precedence::Lifetime, Precedence::Route].map(|precedence| {
            freshness(&ttl(precedence), status, answer).map(|freshness| freshness.lifetime)
        });
        assert_eq!(found, expected, "{answer} {status}");
    }
}

#[test]
fn the_first_ttl_for_the_status_counts_from_the_arrival_of_the_answer() {
    let rules = CachingRules {
        ttls: vec![Ttl { seconds: 5, statuses: vec![404, 500] }, Ttl { seconds: 30, statuses: vec![] }],
        ..CachingRules::default()
    };
    assert_eq!(freshness(&rules, 404, "").map(|freshness| freshness.lifetime), Ok(5));
    assert_eq!(freshness(&rules, 200, "").map(|freshness| freshness.lifetime), Ok(30));
    let old = freshness(&rules, 200, "Age: 100").expect("stored");
    assert_eq!((old.age(NOW), old.ttl(NOW)), (100, 30));
}

#[test]
fn a_routes_ttl_is_exact_however_long_the_answer_took() {
    let fresh_for = |seconds, delay, answer: &str| {
        let rules = CachingRules { ttls: vec![Ttl { seconds, statuses: vec![] }], ..CachingRules::default() };
        let (directives, received) = (request_directives(""), Moment(NOW.0 + delay));
        let freshness = Freshness::of(&rules, &directives, 200, &Lines::of(answer), NOW, received)?;
        let is_fresh =
            |after| matches!(judge(&freshness, &directives, Moment(received.0 + after)), Reuse::Serve { .. });
        Ok((0..5000).take_while(|after| is_fresh(*after)).count())
    };
    for delay in [0, 1, 150, 1000, 1999] {
        assert_eq!(fresh_for(2, delay, ""), Ok(2000), "{delay}");
        assert_eq!(fresh_for(2, delay, "Date: NOW | Age: 7"), Ok(2000), "{delay}");
        assert_eq!(fresh_for(0, delay, ""), Err(Lifetime), "{delay}");
        assert_eq!(fresh_for(0, delay, "ETag: \"a\""), Ok(0), "{delay}");
    }
}

#[test]
fn set_cookie_is_kept_or_dropped_as_the_route_says() {
    let answer = "Cache-Control: max-age=60 | Set-Cookie: a=b";
    for (set_cookie, kept) in [(CookiesOfAnswers::Drop, false), (CookiesOfAnswers::Keep, true)] {
        let rules = CachingRules { set_cookie, ..CachingRules::default() };
        assert!(freshness(&rules, 200, answer).is_ok());
        assert_eq!(Kept::of(&rules, 200, &Lines::of(answer)).keeps(b"Set-Cookie"), kept);
    }
}

#[test]
fn fields_for_one_hop_or_listed_as_private_are_not_stored() {
    let answer = Lines::of("Cache-Control: max-age=60, private=\"X-User, x-cart\", no-cache=set-cookie");
    let kept = Kept::of(&CachingRules::default(), 200, &answer);
    for name in
        ["X-User", "X-CART", "Set-Cookie", "Connection", "TE", "Proxy-Authenticate", "Transfer-Encoding"]
    {
        assert!(!kept.keeps(name.as_bytes()), "{name}");
    }
    for name in ["ETag", "Date", "Age", "Content-Length", "X-Other", "Cache-Control"] {
        assert!(kept.keeps(name.as_bytes()), "{name}");
    }
}

#[test]
fn uncacheable_answers_are_shared_only_when_nothing_in_them_or_their_request_is_personal() {
    let shares =
        |request: &str, answer: &str, why| may_share(why, &request_directives(request), &Lines::of(answer));
    assert!(shares("", "", Lifetime));
    assert!(shares("", "Cache-Control: no-store", NoStore));
    assert!(!shares("", "Cache-Control: private", Private));
    assert!(!shares("", "Set-Cookie: a=b", Lifetime));
    assert!(!shares("", "Vary: *", VaryAll));
    assert!(!shares("Cookie: a=b", "", Lifetime));
    assert!(!shares("Authorization: x", "", Lifetime));
}

#[test]
fn tags_are_read_from_both_fields() {
    let of = |answer| tags(&Lines::of(answer));
    let found = of("Cache-Tag: b, a,,a | Surrogate-Key: c  d | Cache-Tag: with space");
    assert_eq!(found.iter().map(|tag| &**tag).collect::<Vec<_>>(), ["a", "b", "c", "d", "with space"]);
    assert!(of("ETag: \"a\"").is_empty());
}
