//! Routes with conditions (`when`): which route gets a request, and what routes with one URL share.

use std::sync::atomic::{AtomicUsize, Ordering};

use hostler_testkit::{Site, Upstream, eventually, text, upstream};
use http::Request;

use crate::cache_hits::{answer, assert_cache};
use crate::http2::talk;
use crate::{in_front_of, site};

/// Method, path, header fields, and the answer.
type RequestCase = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

/// A route that answers with this text.
fn says(pattern: &str, when: &str, text: &str) -> String {
    let when = if when.is_empty() { String::new() } else { format!("when = {{ {when} }}\n") };
    format!("[[routes]]\nmatch = '{pattern}'\n{when}respond = '{text}'\n")
}

async fn asked(site: &Site, line: &str, fields: &str) -> hostler_testkit::ReceivedAnswer {
    let mut client = site.connect().await;
    client.send(format!("{line} HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n")).await;
    client.answer_to(line.split(' ').next().unwrap_or_default()).await
}

#[tokio::test]
async fn each_kind_of_condition_chooses_the_route_in_both_protocols() {
    const CRAWLER: &str = "Mozilla/5.0 (compatible; ExampleBot/1.0)";
    let config = [
        says("/method", "method = ['PUT', 'DELETE']", "yes"),
        says("/header", "header = { X-Beta = '1' }", "yes"),
        says("/agent", "header = { User-Agent = '*Firefox*' }", "yes"),
        says("/query", "query = { preview = true }", "yes"),
        says("/cookie", "cookie = { group = 'b' }", "yes"),
        says("/client", "client = ['127.0.0.0/8', '::1']", "yes"),
        says("/elsewhere", "client = '192.0.2.0/24'", "yes"),
        says("/prefetch", "is = 'prefetch'", "yes"),
        says("/crawler", "is = 'crawler'", "yes"),
        says("/not", "not = { header = { X-Beta = true }, is = 'crawler' }", "yes"),
        says("*", "", "no"),
    ];
    let site = site(&config.concat()).start().await;
    let cases: [RequestCase; 20] = [
        ("PUT", "/method", &[], "yes"),
        ("GET", "/method", &[], "no"),
        ("GET", "/header", &[("x-beta", "1")], "yes"),
        ("GET", "/header", &[("x-beta", "1"), ("x-beta", "2")], "no"),
        ("GET", "/header", &[], "no"),
        ("GET", "/agent", &[("user-agent", "Mozilla/5.0 Firefox/140.0")], "yes"),
        ("GET", "/agent", &[("user-agent", "curl/8")], "no"),
        ("GET", "/query?preview", &[], "yes"),
        ("GET", "/query?a=1&%70review=x", &[], "yes"),
        ("GET", "/query?a=preview", &[], "no"),
        ("GET", "/cookie", &[("cookie", "a=1"), ("cookie", "group=b")], "yes"),
        ("GET", "/cookie", &[("cookie", "group=a; group=b")], "no"),
        ("GET", "/client", &[], "yes"),
        ("GET", "/elsewhere", &[("x-forwarded-for", "192.0.2.7")], "no"),
        ("GET", "/prefetch", &[("sec-purpose", "prefetch")], "yes"),
        ("GET", "/prefetch", &[], "no"),
        ("GET", "/crawler", &[("user-agent", CRAWLER)], "yes"),
        ("GET", "/not", &[], "yes"),
        ("GET", "/not", &[("x-beta", "0")], "no"),
        ("GET", "/not", &[("user-agent", CRAWLER)], "no"),
    ];
    let mut talk = talk(&site).await;
    for (method, path, fields, expected) in cases {
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        asked(&site, &format!("{method} {path}"), &lines).await.assert_ok(expected);
        let mut request = Request::builder().method(method).uri(format!("http://site.test{path}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (_, body) = talk.ask(request.body(()).unwrap()).await;
        assert_eq!(String::from_utf8_lossy(&body), expected, "{method} {path} {fields:?} over HTTP/2");
    }
}

#[tokio::test]
async fn the_first_route_whose_conditions_hold_gets_the_request_and_then_the_next_pattern() {
    let config = [
        says("/a/*", "", "plain"),
        says("/a/*", "header = { X-One = true }", "one"),
        says("/a/*", "header = { X-Two = true }", "two"),
        says("/a/b/*", "header = { X-Two = true }", "deep"),
        says("site.test", "header = { X-Host = true }", "host"),
        says("*", "", "rest"),
    ];
    let site = site(&config.concat()).start().await;
    for (path, fields, expected) in [
        ("/a/x", "", "plain"),
        ("/a/x", "X-Two: 1\r\n", "two"),
        ("/a/x", "X-Two: 1\r\nX-One: 1\r\n", "one"),
        ("/a/b/x", "X-Two: 1\r\nX-One: 1\r\n", "deep"),
        ("/a/b/x", "X-One: 1\r\n", "one"),
        ("/a/b/x", "", "plain"),
        ("/a/b/x", "X-Host: 1\r\nX-Two: 1\r\n", "host"),
        ("/z", "X-Two: 1\r\n", "rest"),
    ] {
        asked(&site, &format!("GET {path}"), fields).await.assert_ok(expected);
    }
    let names = site.status().await["routes"].clone();
    let names: Vec<_> = names.as_array().unwrap().iter().map(|route| route["pattern"].clone()).collect();
    assert_eq!(
        names,
        [
            "/a/*",
            "/a/* when header x-one",
            "/a/* when header x-two",
            "/a/b/* when header x-two",
            "site.test when header x-host",
            "*"
        ]
    );
}

#[tokio::test]
async fn without_a_route_that_fits_a_request_gets_404() {
    let site = site(&says("/a", "header = { X-One = true }", "one")).start().await;
    asked(&site, "GET /a", "").await.assert_refused(404, "no_route");
    asked(&site, "GET /a", "X-One: 1\r\n").await.assert_ok("one");
}

#[tokio::test]
async fn the_client_network_is_that_of_the_address_that_a_trusted_proxy_names() {
    let config = format!(
        "server.trusted_proxies = ['127.0.0.1']\n{}{}",
        says("*", "client = '192.0.2.0/24'", "inside"),
        says("*", "", "outside")
    );
    let site = site(&config).start().await;
    asked(&site, "GET /", "X-Forwarded-For: 192.0.2.7\r\n").await.assert_ok("inside");
    asked(&site, "GET /", "X-Forwarded-For: 192.0.2.7, 198.51.100.1\r\n").await.assert_ok("outside");
    asked(&site, "GET /", "").await.assert_ok("outside");
    let mut stranger = site.connect_from("127.0.0.2").await;
    stranger.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n").await;
    stranger.answer().await.assert_ok("outside");
}

#[tokio::test]
async fn a_path_that_apps_read_differently_is_refused_only_if_the_other_route_fits() {
    let app = upstream().start().await;
    let config = "[[routes]]\nmatch = '*'\npool = 'app'\n[[routes]]\nmatch = '/admin/*'\nwhen = { header = { X-Admin = true } }\npool = 'app'\n";
    let site = in_front_of(&app, config).await;
    for path in ["/x%2f..%2fadmin", "/Admin/x"] {
        asked(&site, &format!("GET {path}"), "").await.assert_ok("ok");
        asked(&site, &format!("GET {path}"), "X-Admin: 1\r\n").await.assert_refused(400, "bad_target");
    }
}

/// Answers with its name and the number of the request, for a minute.
async fn numbering(name: &'static str) -> Upstream {
    let count = AtomicUsize::new(0);
    upstream()
        .script(move |seen| {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            let fresh = if seen.method() == "GET" { "Cache-Control: max-age=60\r\n" } else { "" };
            text(answer(fresh, &format!("{name}{number}")))
        })
        .start()
        .await
}

/// Two pools with a cache, and one for POST without: group B and the others.
async fn with_two_groups() -> (Site, [Upstream; 2]) {
    let (a, b) = (numbering("a").await, numbering("b").await);
    let config = "[[routes]]\nmatch = '*'\npool = 'a'\ncache = 'standard'\n\
        [[routes]]\nmatch = '*'\nwhen = { cookie = { group = 'b' } }\npool = 'b'\ncache = { query_only = ['x'] }\n\
        [[routes]]\nmatch = '*'\nwhen = { method = 'POST' }\npool = 'a'\n";
    (site(config).with("a", &a).with("b", &b).start().await, [a, b])
}

const B: &str = "Cookie: group=b\r\n";

#[tokio::test]
async fn a_stored_answer_of_one_route_never_serves_a_request_of_another() {
    let (site, [a, b]) = with_two_groups().await;
    let plain = asked(&site, "GET /page", "").await;
    plain.assert_ok("a1");
    assert_cache(&plain, "fwd=uri-miss");
    let other = asked(&site, "GET /page", B).await;
    other.assert_ok("b1");
    assert_cache(&other, "fwd=uri-miss");
    for _ in 0..3 {
        assert_cache(asked(&site, "GET /page", "").await.assert_ok("a1"), "hit");
        assert_cache(asked(&site, "GET /page", B).await.assert_ok("b1"), "hit");
        assert_cache(&asked(&site, "HEAD /page", B).await, "hit");
    }
    assert_eq!((a.targets().len(), b.targets().len()), (1, 1));
}

#[tokio::test]
async fn a_purge_of_a_url_reaches_the_answers_of_all_its_routes() {
    let (site, _members) = with_two_groups().await;
    for fields in ["", B] {
        asked(&site, "GET /page", fields).await.assert_status(200);
    }
    let purged = site.command(&["purge", "http://site.test/page"]).await;
    assert!(purged.assert_exit(0).stdout.contains("2 stored responses purged"), "{}", purged.stdout);
    asked(&site, "GET /page", "").await.assert_ok("a2");
    asked(&site, "GET /page", B).await.assert_ok("b2");
}

#[tokio::test]
async fn an_unsafe_method_makes_void_what_other_routes_have_stored_for_the_url() {
    let (site, _members) = with_two_groups().await;
    asked(&site, "GET /page", "").await.assert_ok("a1");
    asked(&site, "GET /page", B).await.assert_ok("b1");
    // This route has no cache.
    asked(&site, "POST /page", "Content-Length: 0\r\n").await.assert_ok("a2");
    asked(&site, "GET /page", "").await.assert_ok("a3");
    asked(&site, "GET /page", B).await.assert_ok("b2");
}

#[tokio::test]
async fn requests_of_two_routes_for_one_url_share_no_fetch() {
    let app = upstream().holds_requests().start().await;
    let route = |when: &str| format!("[[routes]]\nmatch = '*'\n{when}pool = 'app'\ncache = 'standard'\n");
    let config = route("") + &route("when = { cookie = { group = 'b' } }\n");
    let site = in_front_of(&app, &config).await;
    let mut clients = Vec::new();
    for fields in ["", B, "", B] {
        let mut client = site.connect().await;
        client.send(format!("GET /page HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n")).await;
        clients.push(client);
    }
    eventually("one fetch of each route", async || (app.running() == 2).then_some(())).await;
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    let leaders = app.requests().iter().filter(|seen| seen.field("cookie").is_some()).count();
    assert!((1..=2).contains(&leaders), "{leaders}");
}

#[tokio::test]
async fn a_route_with_conditions_gives_its_requests_low_priority() {
    let app = upstream().holds_requests().start().await;
    let config = "pools.app.concurrency = 1\n\
        [[routes]]\nmatch = '*'\nwhen = { is = ['prefetch', 'crawler'] }\npool = 'app'\npriority = 'low'\n\
        [[routes]]\nmatch = '*'\npool = 'app'\n";
    let site = in_front_of(&app, config).await;
    let mut clients = Vec::new();
    for (waiting, (path, field)) in
        [("/first", "A: b"), ("/prefetched", "Sec-Purpose: prefetch"), ("/person", "A: b")]
            .into_iter()
            .enumerate()
    {
        let mut client = site.connect().await;
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n")).await;
        clients.push(client);
        site.settles("app", 1, waiting).await;
    }
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    assert_eq!(app.targets(), ["/first", "/person", "/prefetched"]);
    assert_eq!(site.access("/prefetched").await["route"], "* when is prefetch or crawler");
}

#[tokio::test]
async fn a_reload_changes_conditions_and_keeps_the_counters_of_the_others() {
    let config = |value: &str| {
        says("/a", "cookie = { kept = true }", "kept")
            + &says("/a", &format!("header = {{ X-Version = '{value}' }}"), "new")
            + &says("*", "", "old")
    };
    let site = site(&config("1")).start().await;
    asked(&site, "GET /a", "X-Version: 1\r\n").await.assert_ok("new");
    asked(&site, "GET /a", "Cookie: kept=1\r\n").await.assert_ok("kept");
    site.exchanges(2).await;
    site.rewrite(&config("2"));
    site.command(&["reload"]).await.assert_exit(0);
    asked(&site, "GET /a", "X-Version: 1\r\n").await.assert_ok("old");
    asked(&site, "GET /a", "X-Version: 2\r\n").await.assert_ok("new");
    asked(&site, "GET /a", "Cookie: kept=1\r\n").await.assert_ok("kept");
    eventually("the counters", async || {
        let routes = site.status().await["routes"].clone();
        (routes[0]["answers"]["2xx"] == 2 && routes[1]["answers"]["2xx"] == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn routes_that_change_their_places_keep_their_names_their_counters_and_their_limits() {
    let route = |version: &str| {
        let limit = "rate_limit = { requests = 2, per = '1h', dry_run = true }\n";
        says("/a", &format!("header = {{ X-Version = '{version}' }}"), version) + limit
    };
    let site = site(&(route("1") + &route("2") + &says("*", "", "other"))).start().await;
    for _ in 0..3 {
        asked(&site, "GET /a", "X-Version: 2\r\n").await.assert_ok("2");
    }
    asked(&site, "GET /a", "X-Version: 1\r\n").await.assert_ok("1");
    site.exchanges(4).await;

    // Version 3 is new and comes first, and the others change their places.
    site.rewrite(&(route("3") + &route("2") + &route("1") + &says("*", "", "other")));
    site.command(&["reload"]).await.assert_exit(0);
    asked(&site, "GET /a", "X-Version: 2\r\n").await.assert_ok("2");
    let rows = eventually("the counters", async || {
        let status = site.status().await;
        let routes = status["routes"].as_array().unwrap();
        let row = |route: &serde_json::Value| {
            let limit = &route["rate_limit"];
            let counts =
                [&route["answers"]["2xx"], &limit["would_refuse"]].map(|count| count.as_u64().unwrap());
            (route["pattern"].as_str().unwrap().to_owned(), counts)
        };
        let rows: Vec<_> = routes[..3].iter().map(row).collect();
        (rows.iter().map(|(_, [answers, _])| answers).sum::<u64>() == 5).then_some(rows)
    })
    .await;
    let name = |end: &str| format!("/a when header x-version{end}");
    assert_eq!(rows, [(name(" (3)"), [0, 0]), (name(" (2)"), [4, 2]), (name(""), [1, 0])]);
}

#[tokio::test]
async fn two_equal_routes_are_an_error_with_both_lines() {
    let config = says("/a", "method = 'GET'", "one") + &says("/a", "method = ['GET']", "two");
    let plan = site(&config);
    let output = plan.run(&["check", "-c", "hostler.toml"]).await;
    output
        .assert_exit(2)
        .assert_complains("routes[0] already matches \"/a\" with the same when (hostler.toml:");
}

#[tokio::test]
async fn hostler_check_shows_conditions_and_rate_limits() {
    let config = "[[routes]]\nmatch = '/a'\nwhen = { method = 'GET', header = { X-Beta = '1' } }\nrate_limit = { requests = 100, burst = 20 }\nrespond = ''\n";
    let output = site(config).run(&["check", "-c", "hostler.toml"]).await;
    output.assert_exit(0);
    for line in [
        "when method GET, header x-beta = \"1\"",
        "rate limit 100 requests (20 at once) in 1m for each client",
    ] {
        assert!(output.stdout.contains(line), "{}", output.stdout);
    }
}
