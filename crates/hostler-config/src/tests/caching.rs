//! Routes that keep answers: what is meant, and every mistake with the line that tells it.

use expect_test::{Expect, expect};
use hostler_cache::{CachingRules, CookiesOfAnswers, Precedence, Query, Ttl};

use super::site;
use crate::Caching;

const POOL: &str = "[pools.web]\nmembers = [\"127.0.0.1:3000\"]\n[[routes]]\nmatch = \"*\"\npool = \"web\"\n";

fn meaning(keys: &str) -> Option<Caching> {
    let config = site(&format!("{POOL}{keys}\n")).config();
    assert_eq!(config.warnings, [""; 0]);
    config.routes[0].caching.clone()
}

fn check(keys: &str, expected: Expect) {
    site(&format!("{POOL}{keys}\n")).says(expected);
}

#[test]
fn cache_true_switches_caching_on_and_it_is_off_by_default() {
    let standard = Caching { stores: true, ..Caching::default() };
    assert_eq!(meaning(""), None);
    assert_eq!(meaning("cache = false"), None);
    assert_eq!(meaning("cache = \"standard\""), Some(standard.clone()));
    assert_eq!(meaning("cache = true"), Some(standard.clone()));
    assert_eq!(meaning("cache = {}"), Some(standard.clone()));
    assert_eq!(meaning("collapse = true"), Some(Caching { collapses: true, ..Caching::default() }));
    let both = Caching { collapses: true, ..standard };
    assert_eq!(meaning("cache = \"standard\"\ncollapse = true"), Some(both));
}

#[test]
fn a_cache_table_sets_more_keys() {
    let meant = meaning(
        "[routes.cache]\nttl = \"1m\"\nttl_by_status = { 404 = \"1500ms\" }\nprecedence = \"lifetime\"\nmax_ttl = \"1h\"\nstale_while_revalidate = \"10s\"\nstale_if_error = \"1days\"\nheuristics = true\nset_cookie = \"drop\"\npersonal_cookies = [\"session\"]\nrequest_directives = true\ntargeted = [\"My-Cache-Control\"]\nquery_only = [\"page\"]\n",
    );
    let rules = CachingRules {
        ttls: vec![Ttl { seconds: 2, statuses: vec![404] }, Ttl { seconds: 60, statuses: Vec::new() }],
        precedence: Precedence::Lifetime,
        longest: Some(3600),
        stale_while_revalidate: 10,
        stale_if_error: 86_400,
        heuristics: true,
        set_cookie: CookiesOfAnswers::Drop,
        personal_cookies: vec!["session".into()],
        obeys_requests: true,
        targeted: vec!["my-cache-control".into()],
    };
    let query = Query::Only(vec!["page".into()]);
    assert_eq!(meant, Some(Caching { rules, query, stores: true, collapses: false }));
}

#[test]
fn only_one_of_the_query_keys_may_be_set() {
    let query = |keys: &str| meaning(&format!("cache = {{ {keys} }}")).unwrap().query;
    assert_eq!(query("query = \"sorted\""), Query::Sorted);
    assert_eq!(query("query = \"ignored\""), Query::Ignored);
    assert_eq!(query("query_without = [\"utm_source\"]"), Query::Without(vec!["utm_source".into()]));
    assert_eq!(query("query_only = []"), Query::Only(Vec::new()));
    check(
        "cache = { query = \"sorted\", query_without = [\"a\"] }",
        expect!["hostler.toml:6:19: routes[0].cache.query: cannot be set together with query_without"],
    );
    check(
        "cache = { query_only = [\"b\"], query_without = [\"a\"] }",
        expect!["hostler.toml:6:47: routes[0].cache.query_without: cannot be set together with query_only"],
    );
}

#[test]
fn mistakes_are_reported() {
    check(
        "cache = \"standart\"",
        expect![[r#"hostler.toml:6:9: routes[0].cache: "standart" is not "standard", false or a table"#]],
    );
    check(
        "cache = 5",
        expect![[
            r#"hostler.toml:6:9: routes[0].cache: invalid type: integer `5`, expected "standard", false or a table"#
        ]],
    );
    check(
        "cache = { tll = \"1m\" }",
        expect![[r#"hostler.toml:6:11: unknown key "routes[0].cache.tll"; did you mean "ttl"?"#]],
    );
    check(
        "cache = { ttl = \"1\" }",
        expect![[
            r#"hostler.toml:6:17: routes[0].cache.ttl: "1" has no unit; write "1s" for seconds or "1ms""#
        ]],
    );
    check(
        "cache = { ttl_by_status = { 206 = \"1s\", ok = \"1s\" } }",
        expect![[r#"
            hostler.toml:6:35: routes[0].cache.ttl_by_status.206: is not a status whose response can be stored, such as 404
            hostler.toml:6:46: routes[0].cache.ttl_by_status.ok: is not a status whose response can be stored, such as 404"#]],
    );
    check(
        "cache = { precedence = \"route\" }",
        expect!["hostler.toml:6:24: routes[0].cache.precedence: needs ttl or ttl_by_status"],
    );
    check(
        "cache = { targeted = [\"a b\"] }",
        expect!["hostler.toml:6:23: routes[0].cache.targeted[0]: is not a valid name of a header field"],
    );
    check(
        "[[routes]]\nmatch = \"/a\"\nrespond = \"a\"\ncache = \"standard\"\ncollapse = true",
        expect![[r#"
            hostler.toml:9:9: routes[1].cache: cannot be set together with respond
            hostler.toml:10:12: routes[1].collapse: cannot be set together with respond"#]],
    );
}

#[test]
fn names_that_no_request_has_are_refused() {
    check(
        "cache = { personal_cookies = [\"user[id]\", \"session \", \"id=1\", \"\"] }",
        expect![[r#"
            hostler.toml:6:43: routes[0].cache.personal_cookies[1]: "session " is not a valid name of a cookie
            hostler.toml:6:55: routes[0].cache.personal_cookies[2]: "id=1" is not a valid name of a cookie
            hostler.toml:6:63: routes[0].cache.personal_cookies[3]: "" is not a valid name of a cookie"#]],
    );
    check(
        "cache = { personal_cookies = [\"wp_*\"] }",
        expect![[
            r#"hostler.toml:6:31: routes[0].cache.personal_cookies[0]: "wp_*" is compared as a whole name: * has no special meaning here; write each name"#
        ]],
    );
    check(
        "cache = { query_only = [\"größe\", \"a=b\", \"x%20y\"] }",
        expect![[r#"
            hostler.toml:6:25: routes[0].cache.query_only[0]: "größe" is not a name as requests have it: write %XX for blanks and non-ASCII characters
            hostler.toml:6:34: routes[0].cache.query_only[1]: "a=b" is not a name as requests have it: write %XX for blanks and non-ASCII characters"#]],
    );
    check("cache = { query_without = [\"utm_*\", \"gr%C3%B6%C3%9Fe\"] }", expect![""]);
}
