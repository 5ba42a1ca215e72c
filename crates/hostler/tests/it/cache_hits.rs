//! Answers from memory: which answers are stored, which requests get them, and how they are sent.

use std::sync::atomic::{AtomicUsize, Ordering};

use hostler_testkit::{ReceivedAnswer, Seen, Site, Step, Upstream, authority, ok, text, upstream};

use crate::site;

/// A site whose only route stores answers as their fields allow.
pub(crate) async fn with_cache(upstream: &Upstream) -> Site {
    with_route(upstream, "cache = 'standard'").await
}

/// A site whose only route has these keys.
pub(crate) async fn with_route(upstream: &Upstream, keys: &str) -> Site {
    site(&format!("[[routes]]\nmatch = '*'\npool = 'app'\n{keys}\n")).with("app", upstream).start().await
}

/// An answer with these field lines and this body.
pub(crate) fn answer(fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{body}")
}

/// Answers with the number of the request, and with the fields that `fields` makes of the number.
pub(crate) fn numbered(
    fields: impl Fn(&Seen, usize) -> String + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Vec<Step> {
    let count = AtomicUsize::new(0);
    move |seen| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        text(answer(&fields(seen, number), &number.to_string()))
    }
}

pub(crate) async fn asked(site: &Site, method: &str, path: &str, fields: &str) -> ReceivedAnswer {
    let mut client = site.connect().await;
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n")).await;
    client.answer_to(method).await
}

/// The result of the cache, without figures.
#[track_caller]
pub(crate) fn assert_cache(answer: &ReceivedAnswer, expected: &str) {
    let status = answer.field("cache-status").unwrap_or_default();
    assert!(status.starts_with(&format!("Hostler; {expected}")), "{status:?} is not {expected:?}");
}

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[tokio::test]
async fn an_answer_with_a_lifetime_is_fetched_once() {
    let app = upstream().answers(answer(FRESH, "hello")).start().await;
    let site = with_cache(&app).await;
    let first = site.get("/a?b=1").await;
    first.assert_ok("hello").assert_field("cache-status", "Hostler; fwd=uri-miss; fwd-status=200; stored");
    let mut client = site.connect().await;
    for _ in 0..3 {
        let again = client.get("/a?b=1").await;
        again.assert_ok("hello").assert_field("cache-control", "max-age=60");
        assert!(again.field("age").is_some(), "{again:?}");
        assert_cache(&again, "hit; ttl=");
    }
    client.get("/a?b=2").await.assert_ok("hello");
    assert_eq!(app.targets(), ["/a?b=1", "/a?b=2"]);

    let words: Vec<_> = site.exchanges(5).await.iter().map(|line| line["cache"].clone()).collect();
    assert_eq!(words, ["miss", "hit", "hit", "hit", "miss"]);
    let route = site.status().await["routes"][0].clone();
    assert_eq!((&route["cache"]["hit"], &route["cache"]["miss"]), (&3.into(), &2.into()), "{route}");
}

#[tokio::test]
async fn an_uncacheable_answer_is_fetched_each_time() {
    let kinds = ["", "Cache-Control: no-store\r\n", "Cache-Control: private, max-age=60\r\n"];
    let cookie = "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n";
    for fields in kinds.into_iter().chain([cookie]) {
        let app = upstream().script(numbered(move |_, _| fields.into())).start().await;
        let site = with_cache(&app).await;
        for number in ["1", "2", "3"] {
            site.get("/").await.assert_ok(number);
        }
    }
    let app = upstream().script(numbered(|_, _| FRESH.into())).start().await;
    let site = with_route(&app, "").await;
    site.get("/").await.assert_ok("1").assert_no_field("cache-status");
    site.get("/").await.assert_ok("2").assert_no_field("cache-status");
}

#[tokio::test]
async fn head_is_answered_from_the_stored_get() {
    let app = upstream().answers(answer(FRESH, "hello")).start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("hello");
    let head = asked(&site, "HEAD", "/", "").await;
    head.assert_status(200).assert_field("content-length", "5");
    assert_cache(&head, "hit");
    assert_eq!(app.targets().len(), 1);
}

#[tokio::test]
async fn a_request_with_other_vary_values_gets_its_own_variant() {
    let language = |seen: &Seen, _: usize| {
        let language = seen.field("accept-language").unwrap_or_default();
        format!("{FRESH}Vary: Accept-Language\r\nContent-Language: {language}\r\n")
    };
    let app = upstream().script(numbered(language)).start().await;
    let site = with_cache(&app).await;
    for (language, body) in [("de", "1"), ("fr", "2"), ("de", "1"), ("fr", "2")] {
        let fields = format!("Accept-Language: {language}\r\n");
        let answer = asked(&site, "GET", "/", &fields).await;
        answer.assert_ok(body).assert_field("content-language", language);
    }
    assert_cache(&site.get("/").await, "fwd=vary-miss");
}

#[tokio::test]
async fn vary_compares_the_fields_that_the_member_receives() {
    let shop = |_: &Seen, _: usize| format!("{FRESH}Vary: X-Shop, X-Forwarded-Host\r\n");
    let app = upstream().script(numbered(shop)).start().await;
    let site = with_route(&app, "cache = 'standard'\nrequest_headers = { set = { X-Shop = 'a' } }").await;
    asked(&site, "GET", "/", "X-Shop: b\r\n").await.assert_ok("1");
    asked(&site, "GET", "/", "X-Shop: c\r\nX-Forwarded-Host: elsewhere\r\n").await.assert_ok("1");
}

#[tokio::test]
async fn a_request_with_authorization_gets_only_shareable_answers() {
    let public = |seen: &Seen, _: usize| match &*seen.target() {
        "/public" => "Cache-Control: public, max-age=60\r\n".into(),
        _ => FRESH.to_string(),
    };
    let app = upstream().script(numbered(public)).start().await;
    let site = with_cache(&app).await;
    let name = "Authorization: Basic eDp5\r\n";
    asked(&site, "GET", "/own", name).await.assert_ok("1");
    asked(&site, "GET", "/own", name).await.assert_ok("2");
    asked(&site, "GET", "/public", name).await.assert_ok("3");
    asked(&site, "GET", "/public", name).await.assert_ok("3");
    asked(&site, "GET", "/public", "").await.assert_ok("3");
}

#[tokio::test]
async fn a_conditional_request_gets_a_304_from_the_cache() {
    let app =
        upstream().answers(answer("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "hello")).start().await;
    let site = with_cache(&app).await;
    // The same for the client whose request fetches the answer: its condition is not sent to the member, which is asked for the whole
    // answer.
    let first = asked(&site, "GET", "/", "If-None-Match: \"v1\"\r\n").await;
    first.assert_status(304).assert_field("etag", "\"v1\"").assert_no_field("content-length");
    asked(&site, "GET", "/", "If-None-Match: \"v0\", W/\"v1\"\r\n").await.assert_status(304);
    asked(&site, "GET", "/", "If-None-Match: \"v2\"\r\n").await.assert_ok("hello");
    assert_eq!(app.only_request().field("if-none-match"), None);
}

#[tokio::test]
async fn a_range_is_served_from_the_stored_answer() {
    let app = upstream()
        .answers(answer("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "0123456789"))
        .start()
        .await;
    let site = with_cache(&app).await;
    for _ in 0..2 {
        let part = asked(&site, "GET", "/", "Range: bytes=2-4\r\n").await;
        part.assert_status(206)
            .assert_field("content-range", "bytes 2-4/10")
            .assert_field("content-length", "3");
        assert_eq!(part.text(), "234");
    }
    asked(&site, "GET", "/", "Range: bytes=-2\r\nIf-Range: \"v1\"\r\n").await.assert_says("89");
    asked(&site, "GET", "/", "Range: bytes=2-4\r\nIf-Range: \"v0\"\r\n").await.assert_ok("0123456789");
    let behind = asked(&site, "GET", "/", "Range: bytes=10-\r\n").await;
    behind.assert_refused(416, "range").assert_field("content-range", "bytes */10");
    assert_eq!(app.only_request().field("range"), None);
}

#[tokio::test]
async fn several_ranges_are_served_from_the_stored_answer() {
    let letters: String = ('a'..='z').flat_map(|letter| std::iter::repeat_n(letter, 100)).collect();
    let fields = "Cache-Control: max-age=60\r\nContent-Type: text/x-letters\r\nETag: \"v1\"\r\n";
    let app = upstream().answers(answer(fields, &letters)).start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok(&letters);
    let several = asked(&site, "GET", "/", "Range: bytes=0-1, 298-301, 300-302, -1, 9999-\r\n").await;
    several.assert_status(206).assert_no_field("content-range").assert_field("etag", "\"v1\"");
    let kind = several.field("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let part = |range: &str, body: &str| {
        format!(
            "--{boundary}\r\nContent-Type: text/x-letters\r\nContent-Range: bytes {range}/2600\r\n\r\n{body}\r\n"
        )
    };
    let parts =
        [part("0-1", "aa"), part("298-302", "ccddd"), part("2599-2599", "z"), format!("--{boundary}--\r\n")];
    assert_eq!(several.text(), parts.concat());

    let other = asked(&site, "GET", "/", "Range: bytes=0-1,500-501\r\nIf-Range: \"v0\"\r\n").await;
    other.assert_ok(&letters);
    let backwards = asked(&site, "GET", "/", "Range: bytes=500-501,0-1\r\n").await;
    backwards.assert_ok(&letters);
    let behind = asked(&site, "GET", "/", "Range: bytes=5000-,6000-\r\n").await;
    behind.assert_refused(416, "range");
    assert_eq!(app.targets().len(), 1);
}

#[tokio::test]
async fn after_an_unsafe_method_the_answer_is_fetched_again() {
    let app = upstream().script(numbered(|_, _| FRESH.into())).start().await;
    let site = with_cache(&app).await;
    site.get("/page").await.assert_ok("1");
    site.get("/other").await.assert_ok("2");
    site.post("/page", "new").await.assert_ok("3");
    site.get("/page").await.assert_ok("4");
    site.get("/other").await.assert_ok("2");
}

#[tokio::test]
async fn an_unsafe_method_invalidates_what_other_routes_have_stored() {
    let script = |seen: &Seen| match &*seen.method() {
        "GET" => text(answer(FRESH, &format!("page {}", seen.target()))),
        _ => text(format!(
            "HTTP/1.1 303 See\r\nContent-Length: 0\r\nLocation: {}\r\n\r\n",
            seen.field("x-to").unwrap()
        )),
    };
    let app = upstream().script(script).start().await;
    let config = "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n\
        [[routes]]\nmatch = '/api/*'\npool = 'app'\n\
        [[routes]]\nmatch = '/q/*'\npool = 'app'\ncache = { query_without = ['utm'] }\n";
    let site = site(config).with("app", &app).start().await;
    for (from, to) in [
        ("/api/a", "/page"),
        ("/api/a", "/page?name='x'"),
        ("/other", "/page?b=1&a=2"),
        ("/other", "/q/page?b=1&utm=x&a=2"),
        ("/api/a", "http://site.test/q/page?b=1&utm=x&a=2"),
    ] {
        let path = to.trim_start_matches("http://site.test");
        asked(&site, "GET", path, "").await;
        assert_cache(&asked(&site, "GET", path, "").await, "hit");
        let fields = format!("Content-Length: 0\r\nX-To: {to}\r\n");
        asked(&site, "POST", from, &fields).await.assert_status(303);
        assert_cache(&asked(&site, "GET", path, "").await, "fwd=uri-miss");
    }
}

#[tokio::test]
async fn a_method_that_is_not_cached_is_the_reason_also_with_a_body() {
    let app = upstream().script(numbered(|_, _| FRESH.into())).start().await;
    let site = with_cache(&app).await;
    for length in [0, 2] {
        let request = format!(
            "POST /page HTTP/1.1\r\nHost: site.test\r\nContent-Length: {length}\r\n\r\n{}",
            "x".repeat(length)
        );
        assert_cache(&site.send(request).await, "fwd=method");
    }
}

#[tokio::test]
async fn a_failed_unsafe_method_invalidates_nothing() {
    let fails = |seen: &Seen| match &*seen.method() {
        "GET" => text(answer(FRESH, "page")),
        _ => text("HTTP/1.1 409 No\r\nContent-Length: 0\r\n\r\n"),
    };
    let app = upstream().script(fails).start().await;
    let site = with_cache(&app).await;
    site.get("/page").await.assert_ok("page");
    site.post("/page", "new").await.assert_status(409);
    assert_cache(&site.get("/page").await, "hit");
}

#[tokio::test]
async fn a_get_with_a_body_is_not_cached() {
    let app = upstream().script(numbered(|_, _| FRESH.into())).start().await;
    let site = with_cache(&app).await;
    for _ in 0..2 {
        let answer = asked(&site, "GET", "/", "Content-Length: 0\r\n").await;
        answer.assert_ok("1");
        let own = site.send("GET / HTTP/1.1\r\nHost: site.test\r\nContent-Length: 2\r\n\r\nhi").await;
        assert_cache(own.assert_status(200), "fwd=bypass");
    }
    assert_eq!(app.targets().len(), 3);
}

#[tokio::test]
async fn a_route_can_set_the_lifetime_of_its_answers() {
    let app = upstream().script(numbered(|_, _| "Set-Cookie: a=b\r\n".into())).start().await;
    let keys = "cache = { ttl = '1m', set_cookie = 'drop', query_without = ['utm_source'] }";
    let site = with_route(&app, keys).await;
    // Only the client whose request fetched the answer gets the cookie.
    site.get("/?b=2&utm_source=x&a=1").await.assert_ok("1").assert_field("set-cookie", "a=b");
    site.get("/?a=1&b=2").await.assert_ok("1").assert_no_field("set-cookie");
    site.get("/?a=2").await.assert_ok("2");
}

#[tokio::test]
async fn a_request_with_only_if_cached_waits_for_no_member() {
    let app = upstream().answers(answer(FRESH, "hello")).start().await;
    let site = with_route(&app, "cache = { request_directives = true }").await;
    let alone = "Cache-Control: only-if-cached\r\n";
    let refused = asked(&site, "GET", "/", alone).await;
    refused.assert_refused(504, "only_if_cached");
    refused.assert_field("cache-status", "Hostler; detail=only-if-cached");
    site.get("/").await.assert_ok("hello");
    asked(&site, "GET", "/", alone).await.assert_ok("hello");
    assert_eq!(app.targets().len(), 1);
}

#[tokio::test]
async fn only_if_cached_holds_for_requests_that_no_stored_answer_may_serve() {
    let app = upstream().answers(answer(FRESH, "hello")).start().await;
    let site = with_route(&app, "cache = { request_directives = true, personal_cookies = ['id'] }").await;
    for fields in ["Cookie: id=1\r\n", "If-Match: \"a\"\r\n"] {
        let refused = asked(&site, "GET", "/", &format!("Cache-Control: only-if-cached\r\n{fields}")).await;
        refused.assert_refused(504, "only_if_cached");
        refused.assert_field("cache-status", "Hostler; detail=only-if-cached");
    }
    assert_eq!(app.targets(), [""; 0]);
}

#[tokio::test]
async fn a_stored_chunked_answer_is_sent_with_its_length() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let app = upstream().answers(chunked).start().await;
    let site = with_cache(&app).await;
    let first = site.get("/").await;
    first.assert_ok("hello");
    let again = site.get("/").await;
    again.assert_ok("hello").assert_field("content-length", "5").assert_no_field("transfer-encoding");
    let old = site.send("GET / HTTP/1.0\r\nHost: site.test\r\n\r\n").await;
    old.assert_ok("hello").assert_field("content-length", "5");
    assert_eq!(app.targets().len(), 1);
}

#[tokio::test]
async fn a_chunked_answer_keeps_its_trailers_for_the_client_that_fetched_it() {
    let app = upstream().script(|_| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\nTrailer: X-Sum\r\n\r\n";
        [text(format!("{head}2\r\nab\r\n")), vec![Step::Hold], text("0\r\nX-Sum: 7\r\n\r\n")].concat()
    });
    let app = app.start().await;
    let site = with_cache(&app).await;
    let mut waits = site.begin("/").await;
    waits.read_until("ab").await;
    app.release_all();
    assert!(waits.read_until("X-Sum: 7\r\n\r\n").await.contains("X-Sum"));
    site.get("/").await.assert_ok("ab").assert_no_field("x-sum");
    assert_eq!(app.targets().len(), 1);
}

/// An answer without a length, which ends with its connection.
fn ended_by(end: Step) -> Vec<Step> {
    let head = format!("HTTP/1.0 200 OK\r\n{FRESH}Connection: close\r\n\r\nhello");
    [text(head), vec![end]].concat()
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_is_stored() {
    let app = upstream().in_turn([ended_by(Step::Close)]).start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("hello");
    let hit = site.get("/").await;
    hit.assert_ok("hello").assert_field("content-length", "5");
    assert_cache(&hit, "hit");
    asked(&site, "GET", "/", "Range: bytes=1-\r\n").await.assert_status(206).assert_says("ello");
    assert_eq!(app.targets().len(), 1);
}

#[tokio::test]
async fn an_answer_that_ends_with_a_connection_error_is_not_stored() {
    let cut = || {
        let [head, _] = <[Step; 2]>::try_from(ended_by(Step::Reset)).unwrap();
        vec![head, Step::Hold, Step::Reset]
    };
    let app = upstream().in_turn([cut(), ok("whole")]).start().await;
    let site = with_cache(&app).await;
    let mut client = site.begin("/").await;
    client.read_until("hello").await;
    app.release_all();
    client.rest().await;
    site.get("/").await.assert_ok("whole");
}

#[tokio::test]
async fn over_tls_only_close_notify_ends_an_answer() {
    let trust = authority();
    let config = trust.vouch_for(&["127.0.0.1"]).for_server(None);
    let cut = [ended_by(Step::Hold), vec![Step::Close]].concat();
    let app = upstream().in_turn([cut, ok("whole")]).over_tls(config).start().await;
    let plan =
        site("[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n[pools.app.tls]\nca = 'ca.pem'\n");
    std::fs::write(plan.folder().join("ca.pem"), trust.cert()).unwrap();
    let site = plan.with("app", &app).start().await;
    let mut client = site.begin("/").await;
    client.read_until("hello").await;
    app.release_all();
    client.rest().await;
    site.get("/").await.assert_ok("whole");
}
