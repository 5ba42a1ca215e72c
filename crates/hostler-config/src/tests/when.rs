//! Conditions of routes, rate limits, and what is wrong with them.

use std::time::Duration;

use expect_test::{Expect, expect};

use super::site;
use crate::{FairBy, RateLimit, RequestRate};

/// Two routes: `keys` belong to the first one.
fn routes(keys: &str) -> String {
    format!(
        "[pools.web]\ncommand = \"x\"\n[[routes]]\nmatch = \"/a\"\npool = \"web\"\n{keys}\n[[routes]]\nmatch = \"*\"\npool = \"web\"\n"
    )
}

fn check(keys: &str, expected: Expect) {
    site(&routes(keys)).says(expected);
}

#[test]
fn conditions_are_read_and_the_name_of_the_route_shows_no_values() {
    let keys = "when = { method = ['POST', 'GET', 'GET'], header = { X-Beta = 1, Accept = ['*json*', 'a'] }, query = { preview = true }, \
                cookie = { group = 'b', old = false }, client = '10.0.0.0/8', is = 'crawler', not = { header = { X-Key = 'secret' } } }";
    let config = site(&routes(keys)).config();
    let route = &config.routes[0];
    let when = route.when.as_ref().unwrap();
    expect!["/a when method GET or POST, client 10.0.0.0/8, is crawler, header accept, header x-beta, query preview, cookie group, no cookie old, none of (header x-key)"].assert_eq(&route.name);
    expect![[r#"method GET or POST, client 10.0.0.0/8, is crawler, header accept = "a" or "*json*", header x-beta = "1", query preview, cookie group = "b", no cookie old, none of (header x-key = "secret")"#]].assert_eq(&format!("{when:#}"));
    assert_eq!((config.routes[1].when.as_ref(), config.routes[1].name.as_str()), (None, "*"));
}

#[test]
fn several_routes_may_have_one_pattern_if_their_conditions_differ() {
    let route = |when: &str| format!("[[routes]]\nmatch = \"/a\"\npool = \"web\"\n{when}\n");
    let pool = "[pools.web]\ncommand = \"x\"\n".to_owned();
    let different = ["when.header.x-a = '1'", "when.header.x-a = '2'", "when.method = 'GET'", ""].map(route);
    let config = site(&(pool.clone() + &different.concat())).config();
    let names: Vec<_> = config.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(names, ["/a when header x-a", "/a when header x-a (2)", "/a when method GET", "/a"]);
    let equal = ["when.header.x-a = ['1', '2']", "when.header.X-A = ['2', '1']"].map(route);
    site(&(pool.clone() + &equal.concat())).says(expect![[r#"hostler.toml:8:9: routes[1].match: routes[0] already matches "/a" with the same when (hostler.toml:4:9)"#]]);
    site(&(pool + &["", ""].map(route).concat())).says(expect![[
        r#"hostler.toml:8:9: routes[1].match: routes[0] already matches "/a" (hostler.toml:4:9)"#
    ]]);
}

#[test]
fn a_condition_that_cannot_be_met_or_read_is_refused_with_its_place() {
    check(
        "when = {}",
        expect![
            "hostler.toml:6:8: routes[0].when: has no condition; add method, header, query, cookie, client, is or not, or remove when"
        ],
    );
    check(
        "when = { not = {} }",
        expect![
            "hostler.toml:6:16: routes[0].when.not: has no condition; add method, header, query, cookie, client or is"
        ],
    );
    check(
        "when = { methods = 'GET' }",
        expect![[r#"hostler.toml:6:10: unknown key "routes[0].when.methods"; did you mean "method"?"#]],
    );
    check(
        "when = { method = 'get' }",
        expect![[r#"hostler.toml:6:19: routes[0].when.method: the case of methods counts; write "GET""#]],
    );
    check(
        "when = { method = 'GE T' }",
        expect![[
            r#"hostler.toml:6:19: routes[0].when.method: "GE T" is not the name of a method such as "GET""#
        ]],
    );
    check(
        "when = { header = { 'X Beta' = '1' } }",
        expect![[
            r#"hostler.toml:6:32: routes[0].when.header.X Beta: "X Beta" is not a valid name of a header field"#
        ]],
    );
    check(
        "when = { header = { X-Beta = '1', x-beta = '2' } }",
        expect!["hostler.toml:6:44: routes[0].when.header.x-beta: x-beta is there twice"],
    );
    check(
        "when = { header = { X-Beta = 'a*b' } }",
        expect![[
            r#"hostler.toml:6:30: routes[0].when.header.X-Beta: in "a*b" a * may stand only at the beginning and at the end"#
        ]],
    );
    check(
        "when = { header = { X-Beta = [] } }",
        expect![
            "hostler.toml:6:30: routes[0].when.header.X-Beta: the list is empty; for any value write true"
        ],
    );
    check(
        "when = { header = { X-Beta = { a = 1 } } }",
        expect![
            "hostler.toml:6:30: routes[0].when.header.X-Beta: invalid type: map, expected a string, a list of strings, true or false"
        ],
    );
}

#[test]
fn a_condition_of_the_wrong_kind_is_refused_with_its_place() {
    check(
        "when = { cookie = { 'a=b' = '1' } }",
        expect![[r#"hostler.toml:6:29: routes[0].when.cookie.a=b: "a=b" is not a valid name of a cookie"#]],
    );
    check(
        "when = { client = '10.0.0.1/8' }",
        expect![[
            r#"hostler.toml:6:19: routes[0].when.client: "10.0.0.1/8" has host bits set; write "10.0.0.0/8" for the network or "10.0.0.1" for one host"#
        ]],
    );
    check(
        "when = { is = 'bot' }",
        expect![[r#"hostler.toml:6:15: routes[0].when.is: "bot" is not "prefetch" or "crawler""#]],
    );
    check(
        "when = 'GET'",
        expect![[r#"hostler.toml:6:8: routes[0].when: invalid type: string "GET", expected a table"#]],
    );
    check(
        "when = { not = { not = { method = 'GET' } } }",
        expect![[
            r#"hostler.toml:6:18: unknown key "routes[0].when.not.not"; the keys of this table are method, header, query, cookie, client, is"#
        ]],
    );
}

#[test]
fn a_rate_limit_is_read_with_its_defaults() {
    let limit = |keys: &str| site(&routes(keys)).config().routes[0].rate_limit.clone();
    assert_eq!(limit(""), None);
    let expected = RateLimit {
        requests: Some(RequestRate { requests: 100, burst: 100 }),
        worker_time: None,
        per: Duration::from_secs(60),
        key: vec![FairBy::Client],
        fields: false,
        dry_run: false,
    };
    assert_eq!(limit("rate_limit = { requests = 100 }"), Some(expected));
    let all = limit(
        "rate_limit = { requests = 5, burst = 9, worker_time = '2s', per = '10s', key = ['crawler', 'client'], dry_run = true }",
    );
    expect!["5 requests (9 at once) and 2s of worker time in 10s for each crawler, else client, dry run"]
        .assert_eq(&all.unwrap().to_string());
    let pool = site("[pools.web]\ncommand = \"x\"\nrate_limit = { worker_time = '1s', key = [] }\n")
        .config()
        .pools[0]
        .rate_limit
        .clone();
    expect!["1s of worker time in 1m for all together"].assert_eq(&pool.unwrap().to_string());
}

#[test]
fn a_rate_limit_that_limits_nothing_is_refused_with_its_place() {
    check(
        "rate_limit = {}",
        expect!["hostler.toml:6:14: routes[0].rate_limit: limits nothing; add requests or worker_time"],
    );
    check(
        "rate_limit = { per = '1m' }",
        expect!["hostler.toml:6:14: routes[0].rate_limit: limits nothing; add requests or worker_time"],
    );
    check(
        "rate_limit = { requests = 0 }",
        expect![
            "hostler.toml:6:27: routes[0].rate_limit.requests: 0 is out of range; it must be from 1 to 1000000"
        ],
    );
    check(
        "rate_limit = { worker_time = '1s', burst = 3 }",
        expect![
            "hostler.toml:6:44: routes[0].rate_limit.burst: has no effect without requests; add requests, or remove this key"
        ],
    );
    check(
        "rate_limit = { requests = 3, key = 'ip' }",
        expect![[
            r#"hostler.toml:6:36: routes[0].rate_limit.key: "ip" is not "client", "crawler", "header:NAME" or "cookie:NAME""#
        ]],
    );
    check(
        "rate_limit = { request = 3 }",
        expect![[
            r#"hostler.toml:6:16: unknown key "routes[0].rate_limit.request"; did you mean "requests"?"#
        ]],
    );
    site("[[routes]]\nmatch = \"*\"\nrespond = \"\"\nrate_limit = { requests = 1, worker_time = '1s' }\n")
        .says(expect!["hostler.toml:4:44: routes[0].rate_limit.worker_time: is for routes to a pool only"]);
}
