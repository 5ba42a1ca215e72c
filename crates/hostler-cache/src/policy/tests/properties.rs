//! Properties of the policy that hold for any message.

use proptest::prelude::*;

use super::*;

fn directive() -> impl Strategy<Value = String> {
    let names = "max-age|s-maxage|no-store|no-cache|private|public|must-revalidate|proxy-revalidate|immutable|\
                 stale-while-revalidate|stale-if-error|must-understand|min-fresh|max-stale|only-if-cached|x";
    let arguments = "|=[0-9]{1,11}|=\"[0-9]{1,3}\"|=\"[a-z, ]{0,8}|=\"x-[a-z]{1,3}\"|=|=a| =1";
    (names, arguments).prop_map(|(name, argument)| name + &argument)
}

fn field() -> impl Strategy<Value = String> {
    let value = prop::collection::vec(directive(), 0..6).prop_map(|directives| directives.join(", "));
    prop_oneof![
        6 => value.prop_map(|value| format!("Cache-Control: {value}")),
        1 => "CDN-Cache-Control: (max-age=[0-9]{1,3}|no-store|private|[ -{}~]{0,9})",
        1 => "Age: ([0-9]{1,12}|-1)",
        1 => "Vary: (a|b|a, b|[*])",
        1 => Just("ETag: \"a\"".to_string()),
        1 => Just("Date: NOW".to_string()),
        1 => Just("Expires: Sun, 22 Nov 2026 00:01:00 GMT".to_string()),
    ]
}

fn head() -> impl Strategy<Value = String> {
    prop::collection::vec(field(), 0..4).prop_map(|fields| fields.join(" | "))
}

proptest! {
    #[test]
    fn an_uncacheable_answer_is_never_stored(answer in head(), request in head()) {
        let (answer, request_directives) = (Lines::of(&answer), request_directives(&request));
        let kept = Freshness::of(&heeding(), &request_directives, 200, &answer, NOW, NOW);
        let has_no_targeted = answer.lines("cdn-cache-control").next().is_none();
        let says = |word: &str| {
            answer.lines("cache-control").any(|line| {
                line.split(|&byte| byte == b',').any(|part| part.trim_ascii() == word.as_bytes())
            })
        };
        // An open quote may hide a directive, and this is correct. A directive outside of quotes must be found.
        let has_no_quotes = !answer.lines("cache-control").any(|line| line.contains(&b'"'));
        if has_no_targeted && has_no_quotes && (says("no-store") && !says("must-understand") || says("private")) {
            prop_assert!(kept.is_err());
        }
        prop_assert!(!request_directives.no_store || kept.is_err());
    }

    #[test]
    fn no_answer_is_served_after_its_freshness_and_stale_windows(answer in head(), request in head(), after in 0i64..200) {
        let Ok(freshness) = freshness(&heeding(), 200, &answer) else { return Ok(()) };
        let now = later(after);
        let request_directives = request_directives(&request);
        match judge(&freshness, &request_directives, now) {
            Reuse::Serve { ttl, age } => {
                prop_assert!(ttl >= 0 || request_directives.max_stale.is_some() && !freshness.must_revalidate && !freshness.fresh_only);
                prop_assert!(!freshness.no_cache && !request_directives.no_cache);
                prop_assert_eq!(age, freshness.age(now));
            }
            Reuse::ServeAndRefresh { ttl, .. } => {
                prop_assert!(ttl <= 0 && -ttl <= i64::from(freshness.stale_while_revalidate));
                prop_assert!(!freshness.no_cache && !freshness.must_revalidate);
            }
            Reuse::Validate { .. } | Reuse::Pass { .. } => {}
        }
        if may_serve_on_error(&freshness, &request_directives, now).is_some() {
            prop_assert!(!freshness.no_cache && (!freshness.must_revalidate || freshness.ttl(now) >= 0));
        }
    }

    #[test]
    fn the_age_of_a_served_answer_only_grows(answer in head(), first in 0i64..200, second in 0i64..200) {
        let Ok(freshness) = freshness(&heeding(), 200, &answer) else { return Ok(()) };
        let (first, second) = (first.min(second), first.max(second));
        prop_assert!(freshness.age(later(first)) <= freshness.age(later(second)));
        let is_fresh = |after| matches!(judge(&freshness, &request_directives(""), later(after)), Reuse::Serve { .. });
        prop_assert!(is_fresh(first) || !is_fresh(second));
        prop_assert!(!is_fresh(second) || freshness.useless_from() > later(second));
    }

    #[test]
    fn no_bytes_cause_a_panic(name in "[a-z-]{1,12}", value: Vec<u8>, host: Vec<u8>, target: Vec<u8>) {
        let names = ["cache-control", "cdn-cache-control", "vary", "expires", "date", "age", "etag", "last-modified",
            "location", "content-location", "cache-tag", "surrogate-key", "if-none-match", "if-modified-since", "range",
            "if-range", "cookie", "pragma"];
        let head = Lines(names.iter().map(|&name| name.to_string()).chain([name]).map(|name| (name, value.clone())).collect());
        let rules = CachingRules { heuristics: true, personal_cookies: vec!["a".into()], ..heeding() };
        let request_directives = RequestDirectives::of(&rules, b"GET", &head);
        let _ = Freshness::of(&rules, &request_directives, 200, &head, NOW, NOW).map(|freshness| judge(&freshness, &request_directives, later(5)));
        let _ = Vary::of(&head, &head, RequestSide::default()).map(|vary| assert!(vary.matches(&head, RequestSide::default())));
        let _ = (conditions(&head, 200, &head, NOW), confirms(&head, &head), tags(&head));
        let _ = (Kept::of(&rules, 200, &head), invalidated(Method::Unsafe, 200, &head, &host, &target));
        for query in [Query::AsSent, Query::Sorted, Query::Ignored] {
            write_key(&query, false, &host, &target, &mut Vec::new());
        }
    }

    #[test]
    fn two_requests_match_exactly_if_they_share_one_variant(
        name in "accept-encoding|accept-language|cookie",
        first in "[aB,\" ]{0,6}( [|] accept-encoding: [aB, ]{0,3})?",
        second in "[aB,\" ]{0,6}",
    ) {
        let answer = Lines::of("Vary: Accept-Encoding, Accept-Language, Cookie");
        let (first, second) = (Lines::of(&format!("{name}: {first}")), Lines::of(&format!("{name}: {second}")));
        let of = |request| Vary::of(&answer, request, RequestSide::default()).expect("names");
        prop_assert_eq!(of(&first) == of(&second), of(&first).matches(&second, RequestSide::default()));
        prop_assert_eq!(of(&first) == of(&second), of(&second).matches(&first, RequestSide::default()));
    }

    #[test]
    fn a_range_lies_within_the_body(spec in "bytes=[0-9,-]{0,30}", length: u64) {
        if let Ranged::Part(part) = range(&Lines::of(&format!("Range: {spec}")), 200, &Lines::default(), length) {
            prop_assert!(part.start < part.end && part.end <= length);
        }
    }

    #[test]
    fn sorting_a_sorted_query_changes_nothing(target in "/[?]([a-c]{0,2}=?[0-9]{0,1}&){0,6}") {
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        write_key(&Query::Sorted, false, b"", target.as_bytes(), &mut once);
        write_key(&Query::Sorted, false, b"", &once.clone(), &mut twice);
        prop_assert_eq!(once, twice);
    }
}
