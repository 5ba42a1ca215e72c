//! Which requests meet which conditions.

use hostler_config::{Invocation, LoadContext};
use hostler_wire::Limits;

use super::*;
use crate::gateway::tests::exchange;

/// The conditions of the only route, written as in the file.
fn when(written: &str) -> When {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("[[routes]]\nmatch = \"/x\"\nrespond = \"\"\nwhen = {written}\n");
    std::fs::write(folder.path().join("hostler.toml"), text).unwrap();
    let load_context = LoadContext {
        environment: Default::default(),
        folder: folder.path().into(),
        temp_dir: folder.path().into(),
        cores: 1,
        cpus: None,
        open_files: None,
        soft_open_files: None,
        memory: None,
        has_ipv6: true,
        workers_before: Default::default(),
    };
    let invocation = Invocation { file: Some("hostler.toml".into()), settings: Vec::new(), load_context };
    let config = hostler_config::load(&invocation).unwrap_or_else(|errors| panic!("{errors}"));
    When::new(&config.routes[0].pattern, config.routes[0].when.as_ref().unwrap())
}

fn request(line: &str, fields: &str) -> Exchange {
    let mut exchange = exchange();
    let head = format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
    exchange
}

#[track_caller]
fn check(written: &str, cases: &[(&str, &str, bool)]) {
    let when = when(written);
    for (line, fields, expected) in cases {
        assert_eq!(when.holds(&request(line, fields)), *expected, "{written}: {line} {fields}");
    }
}

#[tokio::test]
async fn get_includes_head_and_other_methods_are_themselves() {
    let cases = [("GET /", "", true), ("HEAD /", "", true), ("POST /", "", false), ("get /", "", false)];
    check("{ method = 'GET' }", &cases);
    check("{ method = 'HEAD' }", &[("GET /", "", false), ("HEAD /", "", true)]);
    check(
        "{ method = ['PUT', 'PURGE'] }",
        &[("PURGE /", "", true), ("PUT /", "", true), ("GET /", "", false)],
    );
    check("{ method = 'GET', not = { method = 'HEAD' } }", &[("GET /", "", true), ("HEAD /", "", false)]);
}

#[tokio::test]
async fn the_lines_of_a_field_are_one_value_and_the_case_of_its_name_does_not_count() {
    check(
        "{ header = { X-Beta = '1' } }",
        &[
            ("GET /", "x-beta: 1\r\n", true),
            ("GET /", "X-BETA:   1  \r\n", true),
            ("GET /", "X-Beta: 1, 2\r\n", false),
            ("GET /", "X-Beta: 1\r\nX-Beta: 2\r\n", false),
            ("GET /", "X-Beta-Two: 1\r\n", false),
            ("GET /", "", false),
        ],
    );
    check("{ header = { X-Beta = '1, 2' } }", &[("GET /", "X-Beta: 1\r\nX-Other: 3\r\nx-beta: 2\r\n", true)]);
    check("{ header = { X-Beta = 1 } }", &[("GET /", "X-Beta: 1\r\n", true)]);
    check("{ header = { X-Beta = true } }", &[("GET /", "X-Beta:\r\n", true), ("GET /", "", false)]);
    check("{ header = { X-Beta = false } }", &[("GET /", "X-Beta:\r\n", false), ("GET /", "", true)]);
    check(
        "{ header = { User-Agent = ['curl/*', '*Firefox*'] } }",
        &[
            ("GET /", "User-Agent: curl/8.5\r\n", true),
            ("GET /", "User-Agent: Mozilla/5.0 (X11) Firefox/140.0\r\n", true),
            ("GET /", "User-Agent: Wget/1\r\n", false),
        ],
    );
    check("{ header = { Cookie = 'a=1; b=2' } }", &[("GET /", "Cookie: a=1\r\nCookie: b=2\r\n", true)]);
}

#[tokio::test]
async fn parameters_are_compared_decoded_and_the_first_one_counts() {
    check(
        "{ query = { 'a b' = 'c d' } }",
        &[
            ("GET /?a+b=c+d", "", true),
            ("GET /?x=1&a%20b=c%20d&y", "", true),
            ("GET /?%61%20b=%63+d", "", true),
            ("GET /?a+b=c%2Bd", "", false),
            ("GET /?a+b=x&a+b=c+d", "", false),
            ("GET /?a+b=c+d&a+b=x", "", true),
            ("GET /?b=c+d", "", false),
            ("GET /", "", false),
        ],
    );
    check(
        "{ query = { preview = true } }",
        &[
            ("GET /?preview", "", true),
            ("GET /?preview=", "", true),
            ("GET /?preview=0", "", true),
            ("GET /?previews=0", "", false),
            ("GET /preview", "", false),
        ],
    );
    check("{ query = { preview = '' } }", &[("GET /?preview", "", true), ("GET /?preview=1", "", false)]);
    check(
        "{ query = { lang = ['de', 'fr'] } }",
        &[("GET /?lang=fr", "", true), ("GET /?lang=en", "", false)],
    );
    check("{ query = { a = '*%*' } }", &[("GET /?a=100%25", "", true), ("GET /?a=%zz", "", true)]);
}

#[tokio::test]
async fn cookies_are_found_in_all_lines_and_the_first_one_counts() {
    check(
        "{ cookie = { group = 'b' } }",
        &[
            ("GET /", "Cookie: group=b\r\n", true),
            ("GET /", "Cookie: x=1;group=b ; y=2\r\n", true),
            ("GET /", "Cookie: x=1\r\nCookie: group=b\r\n", true),
            ("GET /", "Cookie: group=\"b\"\r\n", true),
            ("GET /", "Cookie: group=a; group=b\r\n", false),
            ("GET /", "Cookie: Group=b\r\n", false),
            ("GET /", "Cookie: xgroup=b\r\n", false),
            ("GET /", "", false),
        ],
    );
    check(
        "{ cookie = { session = false } }",
        &[("GET /", "Cookie: a=b\r\n", true), ("GET /", "Cookie: session=\r\n", false)],
    );
}

#[tokio::test]
async fn the_network_is_that_of_the_trusted_client_address() {
    let inside = when("{ client = ['10.0.0.0/8', '2001:db8::/32', '192.0.2.7'] }");
    let from = |ip: &str| {
        let mut request = request("GET /", "X-Forwarded-For: 10.0.0.1\r\n");
        request.client.ip = ip.parse().unwrap();
        inside.holds(&request)
    };
    assert!(from("10.1.2.3") && from("::ffff:10.1.2.3") && from("2001:db8:1::1") && from("192.0.2.7"));
    assert!(!from("11.1.2.3") && !from("2001:db9::1") && !from("192.0.2.8"));
}

#[tokio::test]
async fn a_request_says_that_it_is_in_advance_or_of_a_crawler() {
    let crawler = "User-Agent: Mozilla/5.0 (compatible; ExampleBot/1.0)\r\n";
    check("{ is = 'prefetch' }", &[("GET /", "Sec-Purpose: prefetch\r\n", true), ("GET /", crawler, false)]);
    check("{ is = 'crawler' }", &[("GET /", "Sec-Purpose: prefetch\r\n", false), ("GET /", crawler, true)]);
    check("{ is = ['prefetch', 'crawler'] }", &[("GET /", crawler, true), ("GET /", "", false)]);
}

#[tokio::test]
async fn all_conditions_must_hold_and_none_of_those_in_not() {
    check(
        "{ method = 'GET', header = { A = '1', B = true }, not = { header = { C = true }, query = { d = '1' } } }",
        &[
            ("GET /", "A: 1\r\nB: x\r\n", true),
            ("POST /", "A: 1\r\nB: x\r\n", false),
            ("GET /", "A: 1\r\n", false),
            ("GET /", "A: 1\r\nB: x\r\nC: 1\r\n", false),
            ("GET /?d=1", "A: 1\r\nB: x\r\n", false),
            ("GET /?d=2", "A: 1\r\nB: x\r\n", true),
        ],
    );
}

#[test]
fn equal_conditions_have_one_identity_and_others_have_others() {
    let identity = |written: &str| when(written).identity();
    let first = identity("{ header = { A = '1', b = ['x', 'y'] } }");
    assert_eq!(first, identity("{ header = { B = ['y', 'x'], a = 1 } }"));
    assert_ne!(first, identity("{ header = { A = '2', b = ['x', 'y'] } }"));
    assert_ne!(identity("{ cookie = { A = '1' } }"), identity("{ query = { A = '1' } }"));
}
