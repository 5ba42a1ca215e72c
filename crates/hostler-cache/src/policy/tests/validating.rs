//! Conditions of requests, ranges, and validation (RFC 9110 sections 13, 14; RFC 9111 section 4.3).

use super::*;

use Condition::{NotModified, Send};
use Ranged::{Part, Parts, Unsatisfiable, Whole};

const MODIFIED: &str = "Sat, 21 Nov 2026 00:00:00 GMT";
const BEFORE: &str = "Fri, 20 Nov 2026 23:59:59 GMT";

fn dated(text: &str) -> Lines {
    Lines::of(&text.replace("MODIFIED", MODIFIED).replace("BEFORE", BEFORE))
}

#[test]
fn a_client_that_has_the_stored_answer_gets_a_304() {
    let strong = "ETag: \"a\" | Last-Modified: MODIFIED";
    let cases = [
        (strong, "", Send),
        (strong, "If-None-Match: \"a\"", NotModified),
        (strong, "If-None-Match: W/\"a\"", NotModified),
        (strong, "If-None-Match: \"x\", W/\"y\" ,\"a\"", NotModified),
        (strong, "If-None-Match: \"x\" | If-None-Match: \"a\"", NotModified),
        (strong, "If-None-Match: *", NotModified),
        (strong, "If-None-Match: \"b\"", Send),
        (strong, "If-None-Match: a", Send),
        (strong, "If-None-Match: \"x, \\\"a\"", Send),
        (strong, "If-None-Match: \"b\" | If-Modified-Since: MODIFIED", Send),
        (strong, "If-None-Match: \"a\" | If-Modified-Since: BEFORE", NotModified),
        (strong, "If-Modified-Since: MODIFIED", NotModified),
        (strong, "If-Modified-Since: Saturday, 21-Nov-26 00:00:00 GMT", NotModified),
        (strong, "If-Modified-Since: NOW", NotModified),
        (strong, "If-Modified-Since: BEFORE", Send),
        (strong, "If-Modified-Since: yesterday", Send),
        ("ETag: W/\"a\"", "If-None-Match: \"a\"", NotModified),
        ("ETag: W/\"a\"", "If-None-Match: W/\"a\"", NotModified),
        ("", "If-None-Match: \"a\"", Send),
        ("", "If-None-Match: *", NotModified),
        ("Date: MODIFIED", "If-Modified-Since: MODIFIED", NotModified),
        ("Date: MODIFIED", "If-Modified-Since: BEFORE", Send),
        ("", "If-Modified-Since: NOW", NotModified),
        ("", "If-Modified-Since: MODIFIED", Send),
    ];
    for (stored, request, expected) in cases {
        let found = conditions(&dated(request), 200, &dated(stored), NOW);
        assert_eq!(found, expected, "{stored}; {request}");
    }
    let other = conditions(&dated("If-None-Match: \"a\""), 404, &dated(strong), NOW);
    assert_eq!(other, Send, "conditions are about what a 200 would bring");
}

#[test]
fn a_range_request_gets_a_partial_answer() {
    let cases = [
        ("bytes=0-0", Part(0..1)),
        ("bytes=10-19", Part(10..20)),
        ("BYTES=10-", Part(10..100)),
        ("bytes=-1", Part(99..100)),
        ("bytes=-1000", Part(0..100)),
        ("bytes=99-99999999999999999999999999", Part(99..100)),
        ("bytes= 1-2 ,", Part(1..3)),
        ("bytes=100-", Unsatisfiable),
        ("bytes=-0", Unsatisfiable),
        ("bytes=5-4", Whole),
        ("bytes=1-2 | Range: bytes=5-6", Whole),
        ("bytes=", Whole),
        ("bytes=-", Whole),
        ("bytes=+1-2", Whole),
        ("lines=1-2", Whole),
        ("byte", Whole),
    ];
    for (value, expected) in cases {
        assert_eq!(
            range(&Lines::of(&format!("Range: {value}")), 200, &Lines::default(), 100),
            expected,
            "{value}"
        );
    }
    for (value, of_nothing) in [
        ("bytes=0-", Unsatisfiable),
        ("bytes=-0", Unsatisfiable),
        ("bytes=-1", Whole),
        ("bytes=0-0, -5", Whole),
        ("bytes=--5", Whole),
    ] {
        let asked = Lines::of(&format!("Range: {value}"));
        assert_eq!(range(&asked, 200, &Lines::default(), 0), of_nothing, "{value}");
    }
    let asked = Lines::of("Range: bytes=0-");
    assert_eq!(range(&asked, 404, &Lines::default(), 100), Whole);
    assert_eq!(range(&Lines::default(), 200, &Lines::default(), 100), Whole);
}

#[test]
fn a_range_of_another_representation_is_not_sent() {
    let stored = "ETag: \"a\" | Last-Modified: MODIFIED | Date: NOW";
    let cases = [
        (stored, "\"a\"", Part(1..3)),
        (stored, "W/\"a\"", Whole),
        (stored, "\"b\"", Whole),
        (stored, "MODIFIED", Part(1..3)),
        (stored, "BEFORE", Whole),
        (stored, "NOW", Whole),
        ("ETag: W/\"a\"", "W/\"a\"", Whole),
        ("Last-Modified: MODIFIED | Date: MODIFIED", "MODIFIED", Whole),
        ("Last-Modified: MODIFIED", "MODIFIED", Whole),
        ("", "\"a\"", Whole),
    ];
    for (stored, validator, expected) in cases {
        let request = dated(&format!("Range: bytes=1-2 | If-Range: {validator}"));
        assert_eq!(range(&request, 200, &dated(stored), 100), expected, "{stored}; {validator}");
    }
}

#[test]
fn validation_sends_the_etag_and_the_modification_date() {
    let of = |stored: &str| {
        let stored = Lines::of(stored);
        let validators = Validators::of(&stored);
        let text = |value: Option<&[u8]>| value.map(|value| String::from_utf8_lossy(value).into_owned());
        (text(validators.if_none_match), text(validators.if_modified_since))
    };
    assert_eq!(of("ETag: W/\"a\""), (Some("W/\"a\"".into()), None));
    assert_eq!(of("Last-Modified: NOW"), (None, Some(NOW_AS_DATE.into())));
    assert_eq!(of("ETag: \"a\" | Last-Modified: NOW"), (Some("\"a\"".into()), Some(NOW_AS_DATE.into())));
    assert_eq!(of("ETag:"), (None, None));
}

#[test]
fn a_304_confirms_only_the_entry_that_it_matches() {
    let cases = [
        ("ETag: \"a\"", "", true),
        ("ETag: \"a\"", "ETag: \"a\"", true),
        ("ETag: \"a\"", "ETag: W/\"a\"", true),
        ("ETag: W/\"a\"", "ETag: W/\"a\"", true),
        ("ETag: W/\"a\"", "ETag: \"a\"", false),
        ("ETag: \"a\"", "ETag: \"b\"", false),
        ("", "ETag: \"b\"", false),
        ("Last-Modified: MODIFIED", "Last-Modified: MODIFIED", true),
        ("Last-Modified: MODIFIED", "Last-Modified: BEFORE", false),
        ("ETag: \"a\" | Last-Modified: MODIFIED", "ETag: \"a\" | Last-Modified: BEFORE", true),
    ];
    for (stored, not_modified, expected) in cases {
        assert_eq!(confirms(&dated(stored), &dated(not_modified)), expected, "{stored}; {not_modified}");
    }
}

#[test]
fn a_304_brings_new_fields_but_not_those_of_the_body() {
    for name in
        ["Test-Header", "Cache-Control", "Expires", "Date", "Content-Type", "Set-Cookie", "Content-Location"]
    {
        assert!(Kept::replaces(name.as_bytes()), "{name}");
    }
    for name in ["Content-Length", "content-encoding", "Content-Range", "Content-MD5", "ETag", "Connection"] {
        assert!(!Kept::replaces(name.as_bytes()), "{name}");
    }
    let not_modified = Lines::of("Cache-Control: max-age=5 | Content-Length: 0 | ETag: \"a\"");
    let outlives = |name: &str| Kept::outlives(name.as_bytes(), &not_modified);
    assert!(!outlives("cache-control"));
    assert!(!outlives("Date") && !outlives("Age"), "it is as old as its validation");
    assert!(outlives("Content-Length") && outlives("ETag") && outlives("Test-Header"));
    assert!(Kept::outlives(b"Vary", &Lines::of("Vary: Origin")), "it has selected the body");
}

#[test]
fn a_url_in_an_answer_is_invalidated_as_it_is_written_and_as_a_browser_writes_it() {
    let of = |answer: &str| {
        let targets = invalidated(Method::Unsafe, 303, &Lines::of(answer), b"a.test", b"/b/c?d=e");
        targets.into_iter().skip(1).map(|target| String::from_utf8(target).unwrap()).collect::<Vec<_>>()
    };
    let cases: [(&str, &[&str]); 9] = [
        ("Location: /x?a='b'", &["/x?a='b'", "/x?a=%27b%27"]),
        ("Location: http://A.test/x?'", &["/x?'", "/x?%27"]),
        ("Location: //a.test?'", &["/?'", "/?%27"]),
        ("Location: ?'", &["/b/c?'", "/b/c?%27"]),
        ("Location: /x{y}", &["/x{y}", "/x%7By%7D"]),
        ("Location: ./y/../z/.?'#w", &["/b/z/?'", "/b/z/?%27"]),
        ("Location: ../../..?'", &["/?'", "/?%27"]),
        ("Location: /x%7e'", &["/x%7e'"]),
        ("Location: http://b.test/x'", &[]),
    ];
    for (answer, expected) in cases {
        assert_eq!(of(answer), expected, "{answer}");
    }
}

#[test]
fn a_successful_unsafe_request_invalidates_its_url() {
    let of = |method: &str, status, answer: &str| {
        let targets =
            invalidated(Method::of(method.as_bytes()), status, &Lines::of(answer), b"a.test", b"/b/c?d=e");
        targets.into_iter().map(|target| String::from_utf8_lossy(&target).into_owned()).collect::<Vec<_>>()
    };
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "get"] {
        assert_eq!(of(method, 200, ""), ["/b/c?d=e"], "{method}");
        assert_eq!(of(method, 303, ""), ["/b/c?d=e"], "{method}");
        assert!(of(method, 404, "").is_empty() && of(method, 500, "").is_empty(), "{method}");
    }
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        assert!(of(method, 200, "Location: /x").is_empty(), "{method}");
    }
    let others = [
        ("Location: /x", Some("/x")),
        ("Content-Location: y?z#w", Some("/b/y?z")),
        ("Location: ../x", Some("/x")),
        ("Location: ?q", Some("/b/c?q")),
        ("Location: http://a.test/x", Some("/x")),
        ("Location: https://A.test/x", Some("/x")),
        ("Location: //a.test:443/x", Some("/x")),
        ("Location: http://a.test", Some("/")),
        ("Location: /b/c?d=e", None),
        ("Location: http://b.test/x", None),
        ("Location: http://a.test:8080/x", None),
        ("Location: //a.test@b.test/x", None),
        ("Location: ftp://a.test/x", None),
        ("Location: mailto:a@a.test", None),
        ("Location: http://[", None),
    ];
    for (answer, expected) in others {
        let found = of("POST", 201, answer);
        assert_eq!(found.get(1).map(|other| &**other), expected, "{answer}");
    }
    assert_eq!(of("POST", 201, "Location: /x | Content-Location: /y | Content-Location: /x").len(), 3);
}

#[test]
fn an_answer_to_head_shows_whether_the_stored_answer_is_current() {
    use HeadComparison::{Other, Same, Unknown};
    let both = "ETag: \"a\" | Last-Modified: MODIFIED";
    let cases = [
        (both, "ETag: \"a\"", Same),
        (both, "Last-Modified: MODIFIED | Content-Length: 5", Same),
        (both, "ETag: \"a\" | Last-Modified: MODIFIED | Content-Length: 5", Same),
        (both, "ETag: \"b\"", Other),
        (both, "ETag: W/\"a\"", Other),
        (both, "ETag: \"a\" | Last-Modified: BEFORE", Other),
        (both, "ETag: \"a\" | Content-Length: 6", Other),
        (both, "ETag: \"a\" | Content-Length: five", Other),
        ("", "ETag: \"a\"", Other),
        (both, "Content-Length: 6", Other),
        (both, "Content-Length: 5", Unknown),
        (both, "", Unknown),
    ];
    for (stored, to_head, expected) in cases {
        assert_eq!(compare(&dated(stored), 5, &dated(to_head)), expected, "{stored}; {to_head}");
    }
}

#[test]
fn an_outdated_entry_becomes_stale_and_keeps_its_age() {
    let freshness = stored("Cache-Control: max-age=60, stale-if-error=10");
    let outdated = |seconds| {
        outdated(&freshness, later(seconds))
            .map(|freshness| (freshness.ttl(later(seconds)), freshness.stale_if_error))
    };
    assert_eq!(outdated(7), Some((0, 10)));
    assert_eq!(outdated(60), None);
    let rules = CachingRules { ttls: vec![Ttl { seconds: 60, statuses: vec![] }], ..CachingRules::default() };
    let by_route = self::freshness(&rules, 200, "Age: 100").expect("stored");
    assert_eq!(super::outdated(&by_route, later(7)).map(|outdated| outdated.ttl(later(7))), Some(0));
}

#[test]
fn several_ranges_are_sent_if_they_are_few_ordered_and_apart() {
    let many =
        |count: u64| (0..count).map(|n| format!("{}-{}", n * 100, n * 100)).collect::<Vec<_>>().join(",");
    let parts = |count: u64| Parts((0..count).map(|n| n * 100..n * 100 + 1).collect());
    let cases = [
        ("0-0,200-299".to_owned(), Parts(vec![0..1, 200..300])),
        ("0-0, 200-299 ,,-1".to_owned(), Parts(vec![0..1, 200..300, 9999..10000])),
        // A part beyond the end is left out. One part that remains is a single part.
        ("0-0,10000-".to_owned(), Part(0..1)),
        ("10000-,20000-".to_owned(), Unsatisfiable),
        // Parts with a small gap, one within another, and adjacent ones.
        ("1-2,5-6".to_owned(), Part(1..7)),
        ("0-999,10-20,900-1100,5000-".to_owned(), Parts(vec![0..1101, 5000..10000])),
        ("0-0,81-81".to_owned(), Part(0..82)),
        ("0-0,82-82".to_owned(), Parts(vec![0..1, 82..83])),
        ("0-,0-,0-,0-,0-".to_owned(), Part(0..10000)),
        // Out of order, too many, or invalid.
        ("500-600,0-10".to_owned(), Whole),
        ("0-0,200-100".to_owned(), Whole),
        (many(16), parts(16)),
        (many(17), Whole),
        ("0-,".repeat(100_000), Whole),
    ];
    for (value, expected) in cases {
        let found = range(&Lines::of(&format!("Range: bytes={value}")), 200, &Lines::default(), 10_000);
        assert_eq!(found, expected, "{}", &value[..value.len().min(80)]);
    }
}
