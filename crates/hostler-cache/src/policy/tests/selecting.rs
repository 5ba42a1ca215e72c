//! Which of the responses under one key a request gets (RFC 9111 section 4.1).

use std::time::Duration;

use tokio::time::Instant;

use super::*;

/// Whether the response to `first` with this `Vary` also matches `second`.
fn is_for(vary: &str, first: &str, second: &str) -> bool {
    let answer = Lines::of(&format!("Vary: {vary}"));
    let vary = Vary::of(&answer, &Lines::of(first), RequestSide::default()).expect("names");
    assert!(vary.matches(&Lines::of(first), RequestSide::default()), "{first} matches itself");
    vary.matches(&Lines::of(second), RequestSide::default())
}

#[test]
fn an_answer_serves_requests_with_equal_values_in_all_vary_fields() {
    let cases = [
        ("", "a: 1", "a: 2", true),
        ("A", "a: 1", "a: 1", true),
        ("A", "a: 1", "a: 2", false),
        ("A", "a: 1", "", false),
        ("A", "", "a: 1", false),
        ("A", "a:", "", false),
        ("A", "", "", true),
        ("A", "a: 1 | b: 1", "a: 1 | b: 2", true),
        ("a, B , ,c", "a: 1 | b: 2 | c: 3", "c: 3 | b: 2 | a: 1", true),
        ("a, B , ,c", "a: 1 | b: 2 | c: 3", "a: 1 | b: 2 | c: 4", false),
        ("a, B , ,c", "a: 1 | b: 2", "a: 1 | b: 2", true),
        ("a | Vary: b", "a: 1 | b: 2", "a: 1 | b: 3", false),
        ("A", "a: 1", "a: 1 | a: 1", false),
        ("A", "a: x", "a: X", false),
    ];
    for (vary, first, second, expected) in cases {
        assert_eq!(is_for(vary, first, second), expected, "Vary: {vary}; {first}; {second}");
    }
}

#[test]
fn equivalent_field_values_match() {
    let cases = [
        ("accept", "accept: 1,2", "accept: 1 ,  2", true),
        ("accept", "accept: 1, 2", "accept: 1 | accept: 2", true),
        ("accept", "accept: 1, 2", "accept: 2, 1", false),
        ("accept", "accept: 1, 2", "accept: 1", false),
        ("accept", "accept: 1", "accept: 1, 2", false),
        ("accept", "accept: \"1,2\"", "accept: \"1, 2\"", false),
        ("accept", "accept: \"1,2\"", "accept: \"1,2\"", true),
        ("accept", "accept: \"1\", 2", "accept: \"1\" | accept: 2", true),
        ("a", "a: 1,2", "a: 1, 2", true),
        ("a", "a: 1, 2", "a: 1 | a: 2", true),
        ("a", "a: 1 | a: 2", "a: 1 | a: 2", true),
        ("a", "a: \t1", "a: 1", true),
        ("accept-encoding", "accept-encoding: gzip, br", "accept-encoding: BR,gzip", true),
        ("accept-encoding", "accept-encoding: gzip, br", "accept-encoding: gzip", false),
        ("accept-encoding", "accept-encoding: gzip", "accept-encoding: gzip, br", false),
        ("accept-encoding", "accept-encoding: gzip, gzip", "accept-encoding: gzip, br", false),
        ("accept-encoding", "accept-encoding: gzip;q=1", "accept-encoding: gzip;q=0", false),
        ("accept-language", "accept-language: en, de", "accept-language: EN,DE", true),
        ("accept-language", "accept-language: EN", "accept-language: en", true),
        ("accept-language", "accept-language: en, de", "accept-language: de, en", false),
        ("cookie", "cookie: a=b; c=d", "cookie: a=b; C=d", false),
    ];
    for (vary, first, second, expected) in cases {
        assert_eq!(is_for(vary, first, second), expected, "Vary: {vary}; {first}; {second}");
    }
}

/// An application may read them differently, so a stored response for one would be wrong for the other.
#[test]
fn different_field_values_do_not_match() {
    let cases = [
        ("origin", "origin: ,https://good.example", "origin: https://good.example"),
        ("x-tenant", "x-tenant: ,a", "x-tenant: a"),
        ("x-tenant", "x-tenant: a,", "x-tenant: a"),
        ("x-tenant", "x-tenant: ,", "x-tenant:"),
        ("cookie", "cookie: u=x, y", "cookie: u=x,y"),
        ("user-agent", "user-agent: M (KHTML, like G)", "user-agent: M (KHTML,like G)"),
        ("x-forwarded-for", "x-forwarded-for: ,1.1.1.1", "x-forwarded-for: 1.1.1.1"),
        ("user-agent", "user-agent: 1, 2", "user-agent: 1 | user-agent: 2"),
        ("a", "a: 1 | a: 2", "a: 2 | a: 1"),
        ("a", "a: 1 | a:", "a: 1"),
        ("accept-language", "accept-language: ,en", "accept-language: en"),
    ];
    for (vary, first, second) in cases {
        assert!(!is_for(vary, first, second), "Vary: {vary}; {first}; {second}");
        assert!(!is_for(vary, second, first), "Vary: {vary}; {second}; {first}");
    }
}

#[test]
fn equivalent_requests_share_one_variant() {
    let of = |request: &str| {
        let answer = Lines::of("Vary: Accept-Encoding, Accept-Language");
        Vary::of(&answer, &Lines::of(request), RequestSide::default()).expect("names")
    };
    assert_eq!(
        of("Accept-Encoding: gzip, BR | Accept-Language: EN"),
        of("accept-encoding: br,gzip,br | accept-language: en")
    );
    let many: Vec<String> = (0..40).map(|at| format!("x-{at}")).collect();
    let (forth, back) = (many.join(", "), many.iter().rev().cloned().collect::<Vec<_>>().join(","));
    assert!(
        of(&format!("Accept-Encoding: {forth}"))
            .matches(&Lines::of(&format!("Accept-Encoding: {back}")), RequestSide::default())
    );
}

#[test]
fn what_one_client_sends_in_64_kb_makes_no_other_request_slow() {
    let answer = Lines::of("Vary: Accept-Encoding, Accept");
    let many = (0..10_000).map(|at| format!("x-{at}")).collect::<Vec<_>>().join(", ");
    let wide = (0..16).map(|at| format!("{at}{}", "x".repeat(4000))).collect::<Vec<_>>().join(", ");
    let long = "x".repeat(64_000);
    let usual = Lines::of("Accept-Encoding: gzip, deflate, br | Accept: text/html, */*");
    // With a look at all that is stored for each request, and with its members sorted for each of its own, this takes minutes.
    let began = Instant::now();
    for request in [
        format!("Accept-Encoding: gzip, deflate, br, {many} | Accept: text/html, */*"),
        format!("Accept-Encoding: gzip, deflate, br, {wide} | Accept: text/html, */*"),
        format!("Accept-Encoding: gzip, deflate, br | Accept: {long}"),
    ] {
        let request = Lines::of(&request);
        let vary = Vary::of(&answer, &request, RequestSide::default()).expect("names");
        let matching =
            |request: &Lines| (0..50_000).filter(|_| vary.matches(request, RequestSide::default())).count();
        assert_eq!(matching(&usual), 0);
        assert!((0..100).all(|_| vary.matches(&request, RequestSide::default())));
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn a_star_or_an_invalid_name_matches_no_other_request() {
    for vary in ["*", "*, *", "* | Vary: *", ", *", "a, *", "*, a", "a b", "a;b", "\"a\"", "\u{e4}"] {
        let answer = Lines::of(&format!("Vary: {vary}"));
        assert_eq!(
            Vary::of(&answer, &Lines::default(), RequestSide::default()),
            Err(NotStored::Vary),
            "{vary}"
        );
    }
}

#[test]
fn a_field_that_differs_in_each_request_matches_no_other_request() {
    for vary in ["X-Request-Id", "a, TraceParent", "a | Vary: x-b3-traceid"] {
        let answer = Lines::of(&format!("Vary: {vary}"));
        assert_eq!(
            Vary::of(&answer, &Lines::default(), RequestSide::default()),
            Err(NotStored::Vary),
            "{vary}"
        );
        assert!(varies_by_each_request(&answer).is_some_and(|name| vary.contains(name)), "{vary}");
    }
    for vary in ["", "*", "X-Forwarded-For, Via", "x-request"] {
        assert_eq!(varies_by_each_request(&Lines::of(&format!("Vary: {vary}"))), None, "{vary}");
    }
}

#[test]
fn an_answer_of_one_scheme_does_not_serve_the_other() {
    let secure = RequestSide { secure: true, ..RequestSide::default() };
    let vary = Vary::of(&Lines::default(), &Lines::default(), secure).expect("names");
    assert!(vary.matches(&Lines::default(), secure));
    assert!(!vary.matches(&Lines::default(), RequestSide::default()));
}

#[test]
fn a_response_of_one_route_matches_no_request_of_another() {
    let side = |route| RequestSide { route, ..RequestSide::default() };
    let vary = Vary::of(&Lines::default(), &Lines::default(), side(7)).expect("names");
    assert!(vary.matches(&Lines::default(), side(7)));
    assert!(!vary.matches(&Lines::default(), side(8)) && !vary.matches(&Lines::default(), side(0)));
}

#[test]
fn a_response_of_one_told_host_matches_no_request_with_another() {
    let mut fields = ToldFields::default();
    fields.note(b"X-Forwarded-Host");
    let told = RequestSide { told: fields, ..RequestSide::default() };
    let request = |host: &str| Lines::of(&format!("X-Forwarded-Host: {host}"));
    let of = |host, side| Vary::of(&Lines::default(), &request(host), side).expect("names");
    let (usual, other) = (of("a.test", RequestSide::default()), of("b.test", told));
    assert!(usual.matches(&request("a.test"), RequestSide::default()));
    assert!(other.matches(&request("b.test"), told));
    assert!(!other.matches(&request("c.test"), told));
    assert!(!other.matches(&request("a.test"), RequestSide::default()));
    assert!(!usual.matches(&request("b.test"), told));
}
