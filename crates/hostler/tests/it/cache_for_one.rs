//! Answers of a route with a cache that are neither stored nor shared: what their one client gets for its own conditions and ranges.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hostler_testkit::{Seen, Step, eventually, ok, text, upstream};
use tokio::time::Instant;

use crate::cache_hits::{answer, asked, assert_cache, numbered, with_cache, with_route};
use crate::site;

/// More than `max_entry`.
const FILM: usize = 9 << 20;

/// A member that knows no conditions.
fn page(fields: &'static str) -> impl Fn(&Seen) -> Vec<Step> {
    move |_| text(answer(fields, "hello"))
}

#[tokio::test]
async fn a_client_that_has_an_answer_for_it_alone_already_gets_a_304() {
    let fields = "Cache-Control: private\r\nETag: W/\"v1\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\
        Set-Cookie: n=1\r\nX-Other: 1\r\n";
    let app = upstream().script(page(fields)).start().await;
    let site = with_cache(&app).await;
    for (path, condition) in [
        ("/a", "If-None-Match: \"v0\", W/\"v1\"\r\n"),
        ("/b", "If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT\r\n"),
    ] {
        let known = asked(&site, "GET", path, condition).await;
        known.assert_status(304).assert_says("").assert_no_field("x-other");
        known.assert_field("etag", "W/\"v1\"").assert_field("cache-control", "private");
        known.assert_field("set-cookie", "n=1");
        assert_cache(&known, "fwd=uri-miss; fwd-status=200");
    }
    for (path, condition) in [
        ("/c", "If-None-Match: \"v0\"\r\n"),
        ("/d", "If-Modified-Since: Sun, 31 Dec 2023 23:59:59 GMT\r\n"),
        ("/e", ""),
    ] {
        asked(&site, "GET", path, condition).await.assert_ok("hello").assert_field("x-other", "1");
    }
    assert_eq!(app.targets().len(), 5);
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn without_a_date_of_change_a_date_of_the_client_is_no_condition() {
    let app = upstream().script(page("Cache-Control: private\r\n")).start().await;
    let site = with_cache(&app).await;
    let late = "If-Modified-Since: Fri, 01 Jan 2038 00:00:00 GMT\r\n";
    asked(&site, "GET", "/", late).await.assert_ok("hello");
}

/// Google's storage answers such a GET without a body, and other servers with an error.
#[tokio::test]
async fn an_answer_to_a_get_that_names_another_method_is_for_its_client_alone() {
    let app = upstream().script(numbered(|_, _| "Cache-Control: max-age=60\r\n".into())).start().await;
    let site = with_cache(&app).await;
    for (field, number) in
        [("X-HTTP-Method-Override", "1"), ("x_method_override", "2"), ("X-HTTP-Method", "3")]
    {
        let answer = asked(&site, "GET", "/page", &format!("{field}: HEAD\r\n")).await;
        assert_cache(answer.assert_ok(number), "fwd=bypass");
    }
    for _ in 0..2 {
        asked(&site, "GET", "/page", "X-HTTP-Methods: 1\r\n").await.assert_ok("4");
    }
    asked(&site, "GET", "/page", "X-HTTP-Method-Override: DELETE\r\n").await.assert_ok("5");
}

#[tokio::test]
async fn with_collapse_a_client_shares_no_answer_with_one_that_has_another_certificate() {
    let app = upstream().script(|seen| [vec![Step::Hold], ok(seen.field("client-cert").unwrap())].concat());
    let app = app.start().await;
    let route = "[[routes]]\nmatch = '*'\npool = 'app'\ncollapse = true\n";
    let config = format!("server.trusted_proxies = ['127.0.0.1']\npools.app.concurrency = 2\n{route}");
    let site = site(&config).with("app", &app).start().await;
    let certificates = [":YQ==:", ":Yg==:"];
    let mut clients = Vec::new();
    for certificate in certificates {
        let mut client = site.connect().await;
        client
            .send(format!("GET /me HTTP/1.1\r\nHost: site.test\r\nClient-Cert: {certificate}\r\n\r\n"))
            .await;
        clients.push(client);
    }
    app.has_seen(2).await;
    app.release_all();
    for (mut client, certificate) in clients.into_iter().zip(certificates) {
        client.answer().await.assert_ok(certificate);
    }
}

/// A member that answers a range with its first two bytes, and `If-None-Match` with a 304.
fn film(fields: &'static str) -> impl Fn(&Seen) -> Vec<Step> {
    let whole = answer(fields, &"x".repeat(FILM));
    move |seen| match (seen.field("if-none-match"), seen.field("range")) {
        (Some(_), _) => text("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n"),
        (None, Some(_)) => text(format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\nContent-Range: bytes 0-1/{FILM}\r\n{fields}\r\nxx"
        )),
        (None, None) => text(&whole),
    }
}

#[tokio::test]
async fn a_range_of_an_answer_that_is_too_large_to_store_comes_from_the_member() {
    let fields = "Cache-Control: max-age=60\r\nAccept-Ranges: bytes\r\nETag: \"v1\"\r\n";
    let app = upstream().script(film(fields)).start().await;
    let site = with_cache(&app).await;
    for range in ["Range: bytes=0-1\r\n", "Range: bytes=0-1\r\nIf-Range: \"v1\"\r\n"] {
        let part = asked(&site, "GET", "/film", range).await;
        part.assert_status(206).assert_says("xx").assert_field("content-range", &format!("bytes 0-1/{FILM}"));
        assert_cache(&part, "fwd=uri-miss; fwd-status=206");
    }
    let ranges: Vec<_> = app.requests().iter().map(|seen| seen.field("range").is_some()).collect();
    assert_eq!(ranges, [false, true, true], "the first answer shows that there is nothing to store");
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn the_whole_of_an_answer_that_is_not_stored_is_sent_where_no_part_is_wanted_or_known() {
    let private = "Cache-Control: private\r\nETag: \"v1\"\r\n";
    let with_ranges = "Cache-Control: private\r\nAccept-Ranges: bytes\r\nETag: \"v1\"\r\n";
    for (fields, range) in [
        (private, "Range: bytes=0-1\r\n"),
        (with_ranges, "Range: bytes=0-1\r\nIf-Range: \"v0\"\r\n"),
        (with_ranges, "Range: lines=0-1\r\n"),
    ] {
        let app = upstream().script(page(fields)).start().await;
        let site = with_cache(&app).await;
        asked(&site, "GET", "/", range).await.assert_ok("hello");
        assert_eq!(app.targets().len(), 1, "{fields} {range}");
    }
}

#[tokio::test]
async fn a_fetch_in_the_background_asks_for_no_range() {
    let app = upstream().in_turn([
        text(answer("Cache-Control: max-age=0, stale-while-revalidate=60\r\n", "hello")),
        text(answer("Cache-Control: private\r\nAccept-Ranges: bytes\r\n", "mine")),
    ]);
    let app = app.start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("hello");
    asked(&site, "GET", "/", "Range: bytes=0-1\r\n").await.assert_status(206).assert_says("he");
    app.has_seen(2).await;
    site.settles("app", 0, 0).await;
    assert_eq!(app.targets().len(), 2);
}

#[tokio::test]
async fn a_request_that_is_sent_twice_gets_one_cookie_of_a_sticky_pool() {
    let app = upstream().script(film("Cache-Control: private\r\nAccept-Ranges: bytes\r\n")).start().await;
    let config = "pools.app.sticky = 'cookie'\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let site = site(config).with("app", &app).start().await;
    let part = asked(&site, "GET", "/film", "Range: bytes=0-1\r\n").await;
    assert_eq!(part.assert_status(206).head.all("set-cookie").len(), 1, "{part:?}");
    assert_eq!(app.targets().len(), 2);
}

#[tokio::test]
async fn an_answer_that_is_too_large_removes_the_stale_one_that_it_replaces() {
    let fresh = "Cache-Control: max-age=60\r\n";
    let film = "x".repeat(FILM);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fresh}\r\n{FILM:x}\r\n{film}\r\n0\r\n\r\n"
    );
    // The memory of a thousand tags makes it too large.
    let tags: String = (1000..2000).map(|tag| format!("{tag} ")).collect();
    let tagged = answer(&format!("{fresh}Surrogate-Key: {tags}\r\n"), &film[..(8 << 20) - 34_000]);
    for large in [answer(fresh, &film), chunked, tagged] {
        let stale = answer("Cache-Control: max-age=0, stale-while-revalidate=600\r\n", "small");
        let count = AtomicUsize::new(0);
        let app = upstream().script(move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => text(&stale),
            1 => text(&large),
            // It removes nothing.
            _ => text("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
        });
        let app = app.start().await;
        let site = with_cache(&app).await;
        site.get("/film").await.assert_ok("small");
        assert_cache(&site.get("/film").await, "hit");
        // The refresh gets the large one, and the request after it what comes next.
        let is_gone = async || (site.get("/film").await.status == 503).then_some(());
        eventually("the stale one to be gone", is_gone).await;
    }
}

#[tokio::test]
async fn an_answer_that_no_other_request_can_get_ends_the_time_of_the_stale_one() {
    for new in ["Vary: *\r\n", "Vary: X-Request-Id\r\n"] {
        let stale = "Cache-Control: max-age=0, stale-while-revalidate=600\r\n";
        let count = AtomicUsize::new(0);
        let app = upstream().script(move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => text(answer(stale, "old")),
            _ => text(answer(new, "new")),
        });
        let app = app.start().await;
        let site = with_cache(&app).await;
        site.get("/").await.assert_ok("old");
        assert_cache(&site.get("/").await, "hit");
        let is_new = async || (site.get("/").await.text() == "new").then_some(());
        eventually("the new one", is_new).await;
    }
}

#[tokio::test]
async fn an_answer_to_a_post_that_comes_after_its_504_makes_the_stored_page_void() {
    let page = numbered(|_, _| "Cache-Control: max-age=600\r\n".into());
    let app = upstream().script(move |seen| match seen.method().as_str() {
        "GET" => page(seen),
        _ => [vec![Step::Hold], ok("saved")].concat(),
    });
    let app = app.start().await;
    let pool = "pools.app.concurrency = 2\npools.app.request_timeout = '2s'\n";
    let config = format!("{pool}[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n");
    let site = site(&config).with("app", &app).start().await;
    site.get("/page").await.assert_ok("1");
    site.post("/page", "change").await.assert_refused(504, "answer_timeout");
    app.release_all();
    let is_new = async || (site.get("/page").await.text() == "2").then_some(());
    eventually("the page after the change", is_new).await;
}

#[tokio::test]
async fn a_request_whose_answer_must_not_be_stored_refreshes_nothing() {
    let stale = |_: &Seen, _: usize| "Cache-Control: max-age=0, stale-while-revalidate=60\r\n".to_owned();
    let app = upstream().script(numbered(stale)).start().await;
    let site = with_route(&app, "cache = { request_directives = true }").await;
    site.get("/").await.assert_ok("1");
    asked(&site, "GET", "/", "Cache-Control: no-store\r\n").await.assert_ok("1");
    site.get("/").await.assert_ok("1");
    app.has_seen(2).await;
    assert_eq!(app.requests()[1].field("cache-control"), None, "the next request refreshes it");
    eventually("a new answer", async || (site.get("/").await.text() != "1").then_some(())).await;
}

#[tokio::test]
async fn a_private_answer_to_authorization_leaves_the_stale_one_and_its_refresh_to_others() {
    let for_one = |seen: &Seen, _: usize| match seen.field("authorization") {
        Some(_) => "Cache-Control: private\r\n".to_owned(),
        None => "Cache-Control: public, max-age=0, stale-while-revalidate=60\r\n".to_owned(),
    };
    let app = upstream().script(numbered(for_one)).start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("1");
    asked(&site, "GET", "/", "Authorization: Basic eDp5\r\n").await.assert_ok("1");
    app.has_seen(2).await;
    site.settles("app", 0, 0).await;
    let stale = site.get("/").await;
    stale.assert_ok("1");
    assert_cache(&stale, "hit");
    app.has_seen(3).await;
    eventually("a new answer", async || (site.get("/").await.text() != "1").then_some(())).await;
}

#[tokio::test]
async fn a_private_answer_to_a_head_with_authorization_leaves_the_stale_one_to_others() {
    let app = upstream().in_turn([
        text(answer("Cache-Control: public, max-age=0, stale-if-error=60\r\nETag: \"v1\"\r\n", "hello")),
        text("HTTP/1.1 200 OK\r\nCache-Control: private\r\nETag: \"v1\"\r\nContent-Length: 5\r\n\r\n"),
        text("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
    ]);
    let app = app.start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("hello");
    let head = asked(&site, "HEAD", "/", "Authorization: Basic eDp5\r\n").await;
    head.assert_status(200).assert_field("cache-control", "private");
    site.get("/").await.assert_ok("hello");
    assert_eq!(app.targets().len(), 3);
}

#[tokio::test]
async fn after_a_fetch_in_the_background_has_failed_the_next_one_begins_a_second_later() {
    let (count, stale) = (AtomicUsize::new(0), "Cache-Control: max-age=0, stale-while-revalidate=60\r\n");
    let app = upstream().script(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 => text(answer(stale, "old")),
        _ => text("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
    });
    let app = app.start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("old");
    let began = Instant::now();
    // Another one may begin in the moment in which one fails.
    eventually("four failed fetches", async || {
        site.get("/").await.assert_ok("old");
        (app.targets().len() > 4).then_some(())
    })
    .await;
    assert!(began.elapsed() > Duration::from_millis(900), "{:?}", began.elapsed());
    let log = site.exchanges(1).await;
    let statuses: Vec<_> =
        log.iter().filter(|line| line["cache"] == "refresh").map(|line| &line["status"]).collect();
    assert!(statuses.len() >= 2 && statuses.iter().all(|status| **status == 503), "{statuses:?}");
}

#[tokio::test]
async fn requests_join_one_fetch_again_when_an_answer_is_stored_after_one_for_one_client() {
    let fresh = "Cache-Control: max-age=60\r\n";
    let held = || [vec![Step::Hold], text(answer(fresh, "new"))].concat();
    let app = upstream().in_turn([
        text(answer("Cache-Control: private\r\n", "for one")),
        text(answer(fresh, "for all")),
        text(answer("", "posted")),
        held(),
        held(),
    ]);
    let app = app.start().await;
    let site = with_cache(&app).await;
    site.get("/page").await.assert_ok("for one");
    site.get("/page").await.assert_ok("for all");
    assert_cache(&site.get("/page").await, "hit");
    site.post("/page", "change").await.assert_ok("posted");
    // A fetch that begins in the same millisecond counts as one from before the change.
    let posted = Instant::now();
    eventually("the next millisecond", async || (posted.elapsed().as_millis() >= 2).then_some(())).await;
    let mut first = site.begin("/page").await;
    app.has_seen(4).await;
    let mut second = site.begin("/page").await;
    app.release_all();
    first.answer().await.assert_ok("new");
    second.answer().await.assert_ok("new");
    assert_eq!(app.targets().len(), 4);
}
