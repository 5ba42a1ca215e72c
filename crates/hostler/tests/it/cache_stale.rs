//! Stored answers that are stale: validated, served while they are validated, or served in place of a failure.

use std::time::Duration;

use hostler_testkit::{Seen, Step, eventually, ok, text, upstream};
use tokio::time::Instant;

use crate::cache_hits::{answer, asked, assert_cache, numbered, with_cache, with_route};
use crate::http2::{get, talk};
use crate::site;

/// Stale at once, but can be validated.
const STALE: &str = "Cache-Control: max-age=0\r\nETag: \"v1\"\r\n";

/// The first answer is this one, later ones are 304 with these lines.
fn confirmed(first: &'static str, lines: &'static str) -> impl Fn(&Seen) -> Vec<Step> {
    move |seen| match seen.field("if-none-match") {
        None => text(answer(first, "hello")),
        Some(_) => text(format!("HTTP/1.1 304 Not Modified\r\n{lines}\r\n")),
    }
}

#[tokio::test]
async fn an_entry_that_its_member_confirms_is_fresh_again() {
    let app = upstream().script(confirmed(STALE, "Cache-Control: max-age=60\r\nX-New: 1\r\n")).start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("hello").assert_no_field("x-new");
    let confirmed = site.get("/").await;
    confirmed.assert_ok("hello").assert_field("x-new", "1").assert_field("etag", "\"v1\"");
    confirmed.assert_field("cache-status", "Hostler; fwd=stale; fwd-status=304; stored");
    let fresh = site.get("/").await;
    fresh.assert_ok("hello").assert_field("x-new", "1").assert_field("cache-control", "max-age=60");
    assert_cache(&fresh, "hit");
    let asked: Vec<_> = app.requests().iter().map(|seen| seen.field("if-none-match")).collect();
    assert_eq!(asked, [None, Some("\"v1\"".into())]);
}

#[tokio::test]
async fn the_wait_for_a_slot_does_not_make_an_answer_older() {
    let page = text(answer("Cache-Control: max-age=2\r\n", "hello"));
    let app = upstream().in_turn([[vec![Step::Hold], ok("slow")].concat(), page]).start().await;
    let config = "pools.app.concurrency = 1\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let site = site(config).with("app", &app).start().await;
    let mut slow = site.begin("/slow").await;
    app.has_seen(1).await;
    let mut waits = site.begin("/page").await;
    site.settles("app", 1, 1).await;
    let queued = Instant::now();
    let lifetime = Duration::from_secs(2);
    eventually("its lifetime to pass", async || (queued.elapsed() > lifetime).then_some(())).await;
    app.release_all();
    slow.answer().await.assert_ok("slow");
    let answer = waits.answer().await;
    answer.assert_ok("hello").assert_field("cache-status", "Hostler; fwd=uri-miss; fwd-status=200; stored");
}

#[tokio::test]
async fn a_cookie_that_is_not_stored_reaches_the_client_of_the_fetch() {
    let app = upstream()
        .script(confirmed(
            "Cache-Control: max-age=0\r\nETag: \"v1\"\r\nSet-Cookie: n=1\r\n",
            "Cache-Control: max-age=60\r\nSet-Cookie: n=2\r\n",
        ))
        .start()
        .await;
    let site = with_route(&app, "cache = { set_cookie = 'drop' }").await;
    for (path, fields, status) in [("/a", "", 200), ("/b", "If-None-Match: \"v1\"\r\n", 304)] {
        asked(&site, "GET", path, "").await.assert_status(200).assert_field("set-cookie", "n=1");
        let validated = asked(&site, "GET", path, fields).await;
        validated.assert_status(status).assert_field("set-cookie", "n=2");
        assert_cache(&validated, "fwd=stale; fwd-status=304; stored");
        let stored = asked(&site, "GET", path, fields).await;
        stored.assert_status(status).assert_no_field("set-cookie");
        assert_cache(&stored, "hit");
    }
}

#[tokio::test]
async fn the_client_gets_an_answer_to_its_condition_and_the_member_sees_hostlers() {
    let app = upstream().script(confirmed(STALE, "")).start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("hello");
    asked(&site, "GET", "/", "If-None-Match: \"v0\"\r\n").await.assert_ok("hello");
    asked(&site, "GET", "/", "If-None-Match: \"v1\"\r\n").await.assert_status(304);
    asked(&site, "GET", "/", "Range: bytes=1-2\r\n").await.assert_status(206).assert_says("el");
    let requests = app.requests();
    assert!(requests[1..].iter().all(|seen| seen.field("if-none-match").as_deref() == Some("\"v1\"")));
    assert!(requests.iter().all(|seen| seen.field("range").is_none()));
}

#[tokio::test]
async fn a_304_for_another_entry_is_no_confirmation() {
    let app = upstream().in_turn([
        text(answer(STALE, "old")),
        text("HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n"),
        text(answer("Cache-Control: max-age=60\r\nETag: \"v2\"\r\n", "new")),
    ]);
    let app = app.start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("old");
    site.get("/").await.assert_ok("new");
    assert_cache(&site.get("/").await, "hit");
    assert_eq!(app.requests()[2].field("if-none-match"), None);
}

#[tokio::test]
async fn a_304_that_forbids_storing_removes_its_own_variant_only() {
    let app = upstream()
        .script(|seen: &Seen| {
            let language = seen.field("accept-language").unwrap_or_default();
            let lifetime = if language == "de" { 60 } else { 0 };
            match seen.field("if-none-match") {
                Some(_) => text("HTTP/1.1 304 Not Modified\r\nCache-Control: no-store\r\n\r\n"),
                None => text(answer(
                    &format!("Cache-Control: max-age={lifetime}\r\nETag: \"{language}\"\r\nVary: Accept-Language\r\n"),
                    &language,
                )),
            }
        })
        .start()
        .await;
    let site = with_cache(&app).await;
    for language in ["de", "en", "en"] {
        let lines = format!("Accept-Language: {language}\r\n");
        asked(&site, "GET", "/", &lines).await.assert_ok(language);
    }
    assert_cache(&asked(&site, "GET", "/", "Accept-Language: de\r\n").await, "hit");
    let removed = asked(&site, "GET", "/", "Accept-Language: en\r\n").await;
    assert!(removed.field("cache-status").unwrap().contains("miss"), "{removed:?}");
}

#[tokio::test]
async fn stale_while_revalidate_makes_no_client_wait() {
    let fields = |_: &Seen, number: usize| match number {
        1 => "Cache-Control: max-age=0, stale-while-revalidate=60\r\nETag: \"1\"\r\n".into(),
        _ => "Cache-Control: max-age=60\r\n".to_string(),
    };
    let (numbered, first) = (numbered(fields), std::sync::atomic::AtomicBool::new(true));
    let app = upstream().script(move |seen| {
        let is_first = first.swap(false, std::sync::atomic::Ordering::Relaxed);
        [if is_first { vec![] } else { vec![Step::Hold] }, numbered(seen)].concat()
    });
    let app = app.start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("1");
    for _ in 0..3 {
        let old = site.get("/").await;
        old.assert_ok("1");
        // Within its first millisecond the age is 0.
        assert_cache(&old, "hit; ttl=");
    }
    app.has_seen(2).await;
    app.release_all();
    eventually("the new one", async || (site.get("/").await.text() == "2").then_some(())).await;
    assert_eq!(app.targets().len(), 2);
    let asked = &app.requests()[1];
    assert_eq!(asked.field("if-none-match").as_deref(), Some("\"1\""));
    assert!(asked.field("x-forwarded-for").is_some() && asked.field("x-request-id").is_some());
    site.settles("app", 0, 0).await;
}

const SURVIVES: &str = "Cache-Control: max-age=0, stale-if-error=60\r\nETag: \"v1\"\r\n";

#[tokio::test]
async fn a_stale_entry_replaces_a_failure() {
    // The connection ends with the answer. On a kept connection, a lost request would be sent again.
    let failure = || {
        let text = text("HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno!");
        [text, vec![Step::Close]].concat()
    };
    let lost = || vec![Step::Close];
    let app = upstream()
        .in_turn([text(answer(SURVIVES, "old")), failure(), lost(), lost(), lost(), failure()])
        .start()
        .await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("old");
    let stale = site.get("/").await;
    stale.assert_ok("old").assert_field("cache-status", "Hostler; fwd=stale; fwd-status=503");
    let lost = site.get("/").await;
    lost.assert_ok("old").assert_field("cache-status", "Hostler; fwd=stale");
    // Without a stored answer, the failure is sent.
    site.get("/other").await.assert_status(503).assert_says("no!");
    assert_eq!(site.exchanges(4).await[1]["cache"], "stale");
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn an_error_of_one_client_leaves_the_stale_entry_for_all_others() {
    for status in [400, 401, 403, 429, 501] {
        let no = |status| text(format!("HTTP/1.1 {status} No\r\nContent-Length: 3\r\n\r\nno!"));
        let app = upstream().in_turn([text(answer(SURVIVES, "old")), no(status), no(503)]).start().await;
        let site = with_cache(&app).await;
        site.get("/").await.assert_ok("old");
        site.get("/").await.assert_status(status).assert_says("no!");
        site.get("/").await.assert_ok("old");
    }
}

#[tokio::test]
async fn an_answer_to_the_range_or_the_credentials_of_one_client_leaves_the_stale_entry_for_all_others() {
    let part = "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-0/3\r\nContent-Length: 1\r\nCache-Control: public\r\n\r\no";
    let app = upstream().in_turn([
        text(answer("Cache-Control: public, max-age=0, stale-if-error=60\r\n", "old")),
        text(part),
        text(answer("", "mine")),
        text("HTTP/1.1 503 No\r\nContent-Length: 3\r\n\r\nno!"),
    ]);
    let app = app.start().await;
    let site = with_cache(&app).await;
    site.get("/").await.assert_ok("old");
    asked(&site, "GET", "/", "Authorization: me\r\nRange: bytes=0-0\r\n").await.assert_status(206);
    asked(&site, "GET", "/", "Authorization: me\r\n").await.assert_ok("mine");
    site.get("/").await.assert_ok("old");
    assert_eq!(app.targets().len(), 4);
}

#[tokio::test]
async fn a_page_that_is_gone_leaves_no_stale_entry() {
    for status in [404, 410] {
        let no = |status| {
            text(format!("HTTP/1.1 {status} No\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\nno!"))
        };
        let app = upstream().in_turn([text(answer(SURVIVES, "old")), no(status), no(503)]).start().await;
        let site = with_cache(&app).await;
        site.get("/").await.assert_ok("old");
        site.get("/").await.assert_status(status);
        site.get("/").await.assert_status(503);
    }
}

#[tokio::test]
async fn a_stale_answer_comes_before_the_fallback_and_the_fallback_before_the_refusal() {
    let lost = || vec![Step::Close];
    let app =
        upstream().in_turn([vec![text(answer(SURVIVES, "old"))], (0..10).map(|_| lost()).collect()].concat());
    let app = app.start().await;
    let plan = site("[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\nfallback = 'shell.html'");
    std::fs::write(plan.folder().join("shell.html"), "shell").unwrap();
    let site = plan.with("app", &app).start().await;
    site.get("/").await.assert_ok("old");
    site.get("/").await.assert_ok("old").assert_no_field("hostler-fallback");
    site.get("/other").await.assert_ok("shell").assert_field("hostler-fallback", "worker_lost");
    asked(&site, "GET", "/other", "Accept: text/css\r\n").await.assert_refused(502, "worker_lost");
}

#[tokio::test]
async fn a_must_revalidate_entry_replaces_no_failure() {
    let fields = "Cache-Control: max-age=0, must-revalidate, stale-if-error=60\r\nETag: \"v1\"\r\n";
    let failure = text("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
    let app = upstream().in_turn([text(answer(fields, "old")), failure]).start().await;
    let site = with_route(&app, "cache = { stale_if_error = '1h' }").await;
    site.get("/").await.assert_ok("old");
    site.get("/").await.assert_status(503);
}

/// The head is valid and the body is not. The answer is private, so the stored one stays.
const NONSENSE: &str = "HTTP/1.1 200 OK\r\nVary: *\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n";

/// A site with a fallback. Its member answers once with these lines, then with garbage.
async fn before_nonsense(fields: &str) -> (hostler_testkit::Upstream, hostler_testkit::Site) {
    let nonsense = (0..5).map(|_| text(NONSENSE));
    let app = upstream().in_turn(std::iter::once(text(answer(fields, "old"))).chain(nonsense)).start().await;
    let plan = site("[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\nfallback = 'shell.html'");
    std::fs::write(plan.folder().join("shell.html"), "shell").unwrap();
    let site = plan.with("app", &app).start().await;
    (app, site)
}

#[tokio::test]
async fn a_stale_entry_replaces_an_answer_that_breaks_off_before_its_first_byte() {
    let (_app, site) = before_nonsense(SURVIVES).await;
    site.get("/").await.assert_ok("old");
    let stale = site.get("/").await;
    stale.assert_ok("old").assert_no_field("hostler-fallback");
    stale.assert_field("cache-status", "Hostler; fwd=stale; fwd-status=200");
    asked(&site, "GET", "/", "If-None-Match: \"v1\"\r\n").await.assert_status(304);
    asked(&site, "GET", "/", "Range: bytes=1-\r\n").await.assert_status(206).assert_says("ld");
    let (answer, body) = talk(&site).await.ask(get("/")).await;
    assert_eq!((answer.status().as_u16(), &*body), (200, &b"old"[..]), "over HTTP/2 as well");
    let line = &site.exchanges(5).await[1];
    assert_eq!((&line["cache"], &line["bytes_out"]), (&"stale".into(), &3.into()), "{line}");
    site.get("/other").await.assert_ok("shell").assert_field("hostler-fallback", "bad_answer");
}

#[tokio::test]
async fn a_must_revalidate_entry_replaces_no_broken_answer() {
    let (_app, site) =
        before_nonsense("Cache-Control: max-age=0, must-revalidate, stale-if-error=60\r\nETag: \"v1\"\r\n")
            .await;
    site.get("/").await.assert_ok("old");
    site.get("/").await.assert_ok("shell").assert_field("hostler-fallback", "bad_answer");
}

/// The first answer to GET, the answer to HEAD, and the answers to GET from then on.
fn answering(first: &'static str, to_head: &'static str) -> impl Fn(&Seen) -> Vec<Step> {
    let first = std::sync::Mutex::new(Some(first));
    move |seen| match &*seen.method() {
        "HEAD" => text(format!("HTTP/1.1 200 OK\r\n{to_head}\r\n")),
        _ => match first.lock().unwrap().take() {
            Some(first) => text(answer(first, "hello")),
            None => text(answer("Cache-Control: max-age=60\r\nETag: \"v2\"\r\n", "anew!")),
        },
    }
}

#[tokio::test]
async fn an_equal_answer_to_head_refreshes_the_entry() {
    let cases = [
        ("ETag: \"v1\"\r\nContent-Length: 5\r\n", true),
        ("ETag: \"v1\"\r\n", true),
        ("ETag: \"v2\"\r\n", false),
        ("ETag: \"v1\"\r\nContent-Length: 6\r\n", false),
        ("Content-Length: 5\r\n", false),
        ("", false),
    ];
    for (said, is_same) in cases {
        let to_head = format!("Cache-Control: max-age=60\r\nX-New: 1\r\n{said}").leak();
        let app = upstream().script(answering(STALE, to_head)).start().await;
        let site = with_cache(&app).await;
        site.get("/").await.assert_ok("hello");
        let head = asked(&site, "HEAD", "/", "").await;
        head.assert_status(200).assert_field("x-new", "1");
        head.assert_field("cache-status", "Hostler; fwd=stale; fwd-status=200");
        let after = site.get("/").await;
        if is_same {
            after.assert_ok("hello").assert_field("x-new", "1").assert_field("etag", "\"v1\"");
            assert_cache(&after, "hit; ttl=");
        } else {
            after.assert_ok("anew!");
            assert_cache(&after, "fwd=stale");
        }
    }
}

#[tokio::test]
async fn a_different_answer_to_head_invalidates_a_fresh_entry() {
    let fresh = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
    for (said, expected) in [("ETag: \"v2\"\r\n", "anew!"), ("", "hello")] {
        let app = upstream().script(answering(fresh, said)).start().await;
        let site = with_route(&app, "cache = { request_directives = true }").await;
        site.get("/").await.assert_ok("hello");
        asked(&site, "HEAD", "/", "Cache-Control: no-cache\r\n").await.assert_status(200);
        site.get("/").await.assert_ok(expected);
    }
}

#[tokio::test]
async fn a_background_fetch_is_logged_and_counts_for_no_client() {
    let fields = "Cache-Control: max-age=0, stale-while-revalidate=60, stale-if-error=60\r\nETag: \"v1\"\r\n";
    let app = upstream()
        .in_turn([
            text(answer(fields, "old")),
            text("HTTP/1.1 304 Not Modified\r\n\r\n"),
            text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\nnonsense\r\n"),
        ])
        .start()
        .await;
    let site = with_cache(&app).await;
    let mut client = site.connect().await;
    client.get("/page").await.assert_ok("old");
    let mut lines = Vec::new();
    for fetches in 1..=2 {
        client.get("/page").await.assert_ok("old");
        lines = eventually("a line about it", async || {
            let log = site.exchanges(1).await;
            let lines: Vec<_> = log.into_iter().filter(|line| line["cache"] == "refresh").collect();
            (lines.len() == fetches).then_some(lines)
        })
        .await;
    }
    let statuses: Vec<_> = lines.iter().map(|line| line["status"].clone()).collect();
    assert_eq!(statuses, [304, 200]);
    for line in &lines {
        assert!(line["client"].is_null() && line["user_agent"].is_null(), "{line}");
        assert_eq!(
            (&line["method"], &line["target"], &line["pool"]),
            (&"GET".into(), &"/page".into(), &"app".into())
        );
        assert!(line["member"].is_string() && line["attempts"] == 1, "{line}");
        assert!(line["total_ms"].is_f64() && line["worker_time_ms"].is_f64(), "{line}");
    }
    let own: Vec<_> = app.requests().iter().map(|seen| seen.field("x-request-id").unwrap()).collect();
    let logged: Vec<_> = lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(logged, own[1..], "by the name under which the member knows it");
    // A client may get its answer before it is counted, and within its first millisecond an answer is not stale.
    eventually("its clients' answers to be counted, and nothing else", async || {
        let counted = &site.status().await["routes"][0];
        (counted["answers"]["2xx"] == 3 && counted["cache"]["miss"] == 1).then_some(())
    })
    .await;
}
