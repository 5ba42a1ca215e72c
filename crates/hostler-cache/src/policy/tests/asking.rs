//! What a request asks of a cache, and whether the cache may serve it.

use super::*;

#[test]
fn only_get_and_head_without_if_match_are_answered_from_the_cache() {
    let admitted = |method: &str, request: &str| {
        admit(&RequestDirectives::of(&CachingRules::default(), method.as_bytes(), &Lines::of(request)))
    };
    assert_eq!(admitted("GET", ""), Ok(()));
    assert_eq!(
        admitted("HEAD", "Range: bytes=0-1 | If-None-Match: \"a\" | Authorization: a | Cookie: a=b"),
        Ok(())
    );
    for method in ["POST", "OPTIONS", "get", "PURGE"] {
        assert_eq!(admitted(method, ""), Err(Forward::Method), "{method}");
    }
    assert_eq!(admitted("GET", "If-Match: \"a\""), Err(Forward::Bypass));
    assert_eq!(admitted("GET", "If-Unmodified-Since: NOW"), Err(Forward::Bypass));
}

#[test]
fn requests_with_a_personal_cookie_bypass_the_cache() {
    let rules =
        CachingRules { personal_cookies: vec!["session".into(), "id".into()], ..CachingRules::default() };
    let is_personal = |request: &str| RequestDirectives::of(&rules, b"GET", &Lines::of(request)).personal;
    assert!(is_personal("Cookie: a=b; session=1"));
    assert!(is_personal("Cookie: a=b | Cookie: id=1"));
    assert!(is_personal("Cookie: id"));
    assert!(!is_personal("Cookie: sessions=1; a=session; sess=ion; x%73ession=1; =session; ids[0]=1"));
    assert!(!is_personal(""));
    // As ASP.NET, Rack, PHP and older versions of Rack and PHP read cookies.
    for cookie in ["SESSION=1", "a=1,session=1", "session[a]=1", "%73ession=1", "a=1; %20%49D=1"] {
        assert!(is_personal(&format!("Cookie: {cookie}")), "{cookie}");
    }
    let dotted = CachingRules { personal_cookies: vec!["user.id".into()], ..CachingRules::default() };
    let of_php = Lines::of("Cookie: user_id=1");
    assert!(RequestDirectives::of(&dotted, b"GET", &of_php).personal, "PHP reads both as user_id");
    // A no-break space in ISO 8859-1, as Node reads header fields.
    for cookie in [&b"\xa0session=1"[..], b"a=b; \xa0 session \xa0=1"] {
        let request = Lines(vec![("cookie".into(), cookie.to_vec())]);
        assert!(RequestDirectives::of(&rules, b"GET", &request).personal, "{}", cookie.escape_ascii());
    }
    let request_directives = RequestDirectives::of(&rules, b"GET", &Lines::of("Cookie: id=1"));
    assert_eq!(admit(&request_directives), Err(Forward::Bypass));
    let answer = Lines::of("Cache-Control: max-age=60, public");
    assert_eq!(Freshness::of(&rules, &request_directives, 200, &answer, NOW, NOW), Err(NotStored::Cookie));
}

#[test]
fn the_directives_of_a_request_are_read_only_where_the_route_obeys_them() {
    let request =
        Lines::of("Cache-Control: no-store, no-cache, only-if-cached, max-age=1, min-fresh=2, max-stale=3");
    let heeded = RequestDirectives::of(&heeding(), b"GET", &request);
    assert!(heeded.no_store && heeded.no_cache && heeded.only_if_cached);
    assert_eq!((heeded.max_age, heeded.min_fresh, heeded.max_stale), (Some(1), Some(2), Some(3)));
    let plain = RequestDirectives::of(&CachingRules::default(), b"GET", &request);
    assert_eq!(plain, RequestDirectives::of(&CachingRules::default(), b"GET", &Lines::default()));
}
