//! Equal requests at the same time: one fetch for all. If the fetch fails, no other request suffers.

use std::sync::atomic::{AtomicUsize, Ordering};

use hostler_testkit::{Client, Step, client_with_window, ok, text, upstream};

use crate::cache_hits::{answer, assert_cache, numbered, with_cache, with_route};
use crate::site;

pub const FRESH: &str = "Cache-Control: max-age=60\r\n";

/// Each request waits for a release, and gets its number.
fn held(fields: &'static str) -> impl Fn(&hostler_testkit::Seen) -> Vec<Step> {
    let numbered = numbered(move |_, _| fields.into());
    move |seen| [vec![Step::Hold], numbered(seen)].concat()
}

fn one_at_a_time(keys: &str) -> String {
    format!("pools.app.concurrency = 1\n[[routes]]\nmatch = '*'\npool = 'app'\n{keys}\n")
}

#[tokio::test]
async fn a_burst_of_equal_misses_is_one_request() {
    let app = upstream().script(held(FRESH)).start().await;
    let config = format!("server.threads = 2\n{}", one_at_a_time("cache = 'standard'"));
    let site = site(&config).with("app", &app).start().await;
    let mut clients = Vec::new();
    for _ in 0..500 {
        clients.push(site.begin("/page").await);
    }
    app.has_seen(1).await;
    app.release_all();
    let mut collapsed = 0;
    for client in &mut clients {
        let answer = client.answer().await;
        answer.assert_ok("1");
        collapsed += usize::from(answer.field("cache-status").unwrap().contains("collapsed"));
    }
    assert_eq!(app.targets(), ["/page"]);
    assert!(collapsed > 0, "some have waited");
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn when_the_fetching_client_leaves_another_request_fetches() {
    let app = upstream().script(held(FRESH)).start().await;
    let site = site(&one_at_a_time("cache = 'standard'")).with("app", &app).start().await;
    let mut other = site.begin("/other").await;
    site.settles("app", 1, 0).await;
    let leader = site.begin("/page").await;
    site.settles("app", 1, 1).await;
    let mut follower = site.begin("/page").await;
    drop(leader);
    site.access("/page").await;
    app.release_all();
    other.answer().await.assert_ok("1");
    follower.answer().await.assert_ok("2");
    assert_eq!(app.targets(), ["/other", "/page"]);
}

#[tokio::test]
async fn a_failed_fetch_fails_only_its_own_request() {
    let lost = || vec![Step::Hold, Step::Close];
    let app = upstream().in_turn([lost(), lost(), lost(), ok("at last"), ok("at last")]).start().await;
    let site = with_cache(&app).await;
    let mut leader = site.begin("/page").await;
    app.has_seen(1).await;
    let mut follower = site.begin("/page").await;
    app.release_all();
    leader.answer().await.assert_refused(502, "worker_lost");
    follower.answer().await.assert_ok("at last");
}

/// Fails this many times, each time after a release. Later answers may be stored.
fn failing(times: usize) -> impl Fn(&hostler_testkit::Seen) -> Vec<Step> {
    let (failed, numbered) = (AtomicUsize::new(0), numbered(|_, _| FRESH.into()));
    move |seen| {
        let fails = failed.fetch_add(1, Ordering::Relaxed) < times;
        let failure = || text("HTTP/1.1 503 No\r\nContent-Length: 3\r\n\r\nno!");
        [vec![Step::Hold], if fails { failure() } else { numbered(seen) }].concat()
    }
}

/// One thread, which handles requests in order.
const IN_ORDER: &str = "server.threads = 1\npools.app.concurrency = 10\n[[routes]]\nmatch = '/ping'\nrespond = 'pong'\n\
    [[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";

/// Starts this many requests. The first one fetches, the others wait.
async fn burst(site: &hostler_testkit::Site, app: &hostler_testkit::Upstream, size: usize) -> Vec<Client> {
    let mut clients = vec![site.begin("/page").await];
    app.has_seen(1).await;
    for _ in 1..size {
        clients.push(site.begin("/page").await);
    }
    site.get("/ping").await.assert_ok("pong");
    clients
}

#[tokio::test]
async fn after_a_failed_fetch_one_waiting_request_fetches_and_the_others_wait() {
    let app = upstream().script(failing(1)).start().await;
    let site = site(IN_ORDER).with("app", &app).start().await;
    let mut clients = burst(&site, &app, 40).await;
    app.release(1);
    clients.remove(0).answer().await.assert_status(503).assert_says("no!");
    app.has_seen(2).await;
    site.settles("app", 1, 0).await;
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_ok("1");
    }
    assert_eq!(app.targets().len(), 2);
}

#[tokio::test]
async fn after_two_failed_fetches_no_request_waits_for_another() {
    let app = upstream().script(failing(2)).start().await;
    let site = site(IN_ORDER).with("app", &app).start().await;
    let mut clients = burst(&site, &app, 10).await;
    app.release(1);
    clients.remove(0).answer().await.assert_status(503);
    app.has_seen(2).await;
    app.release(1);
    app.has_seen(10).await;
    app.release_all();
    let mut failed = 0;
    for client in &mut clients {
        failed += usize::from(client.answer().await.status == 503);
    }
    assert_eq!(failed, 1, "only the second of them failed");
}

#[tokio::test]
async fn a_private_answer_goes_to_no_other_client() {
    let app = upstream().script(held("Cache-Control: private\r\n")).start().await;
    let site = with_route(&app, "cache = 'standard'\ncollapse = true").await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(site.begin("/me").await);
    }
    app.has_seen(1).await;
    app.release_all();
    let mut bodies = Vec::new();
    for client in &mut clients {
        bodies.push(client.answer().await.text());
    }
    bodies.sort();
    assert_eq!(bodies, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn with_collapse_an_uncacheable_answer_is_shared_by_waiting_requests() {
    let app = upstream().script(held("Cache-Control: no-store\r\n")).start().await;
    let site = site(&one_at_a_time("collapse = true")).with("app", &app).start().await;
    let mut leader = site.begin("/search").await;
    app.has_seen(1).await;
    let mut follower = site.begin("/search").await;
    let mut own = site.connect().await;
    own.send("GET /search HTTP/1.1\r\nHost: site.test\r\nCookie: session=1\r\n\r\n").await;
    // It waits for a slot and not for the other request's answer.
    site.settles("app", 1, 1).await;
    app.release_all();
    leader.answer().await.assert_ok("1");
    own.answer().await.assert_ok("2");
    let shared = follower.answer().await;
    assert!(["1", "3"].contains(&&*shared.text()), "{shared:?}");
    site.get("/search").await.assert_status(200);
    assert!((3..=4).contains(&app.targets().len()), "nothing was kept: {:?}", app.targets());
}

/// More than the socket buffers on the way hold.
pub const LARGE: usize = 6 << 20;

pub async fn slow_reader(site: &hostler_testkit::Site, path: &str) -> Client {
    let mut client = client_with_window(4096, site.address()).await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n")).await;
    client
}

#[tokio::test]
async fn a_client_that_reads_slowly_holds_neither_the_slot_nor_the_others() {
    let body = "x".repeat(LARGE);
    let app = upstream().answers(answer(FRESH, &body)).start().await;
    let site = site(&one_at_a_time("cache = 'standard'")).with("app", &app).start().await;
    let mut slow = slow_reader(&site, "/large").await;
    app.has_seen(1).await;
    site.settles("app", 0, 0).await;
    site.get("/large").await.assert_ok(&body);
    assert_eq!(site.status().await["spool"]["answers"], 0, "it waits in the cache");
    slow.answer().await.assert_ok(&body);
    assert_eq!(app.targets().len(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_does_not_end_the_fetch_for_others() {
    let app = upstream().script(|_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\n01234";
        [text(head), vec![Step::Hold], text("56789")].concat()
    });
    let app = app.start().await;
    let site = with_cache(&app).await;
    let mut leader = site.begin("/page").await;
    leader.read_until("01234").await;
    let mut follower = site.begin("/page").await;
    follower.read_until("01234").await;
    drop(leader);
    app.release_all();
    assert_eq!(follower.read_exactly(5).await, b"56789");
    assert_cache(&site.get("/page").await, "hit");
    assert_eq!(app.targets().len(), 1);
}

#[tokio::test]
async fn a_truncated_answer_is_not_stored_and_is_truncated_for_its_readers() {
    let app = upstream().in_turn([[
        text("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\n01234"),
        vec![Step::Hold, Step::Close],
    ]
    .concat()]);
    let app = app.start().await;
    let site = with_cache(&app).await;
    let mut clients = [site.begin("/page").await, site.begin("/page").await];
    for client in &mut clients {
        client.read_until("01234").await;
    }
    app.release_all();
    for client in &mut clients {
        assert_eq!(client.rest().await.0, "", "not a byte more");
    }
    site.get("/page").await.assert_ok("ok");
    assert_eq!(app.targets().len(), 2);
}

#[tokio::test]
async fn an_answer_over_max_entry_is_fetched_by_each_request() {
    let body = "x".repeat(9 << 20);
    let large = answer(FRESH, &body);
    let served = AtomicUsize::new(0);
    let app = upstream().script(move |_| {
        served.fetch_add(1, Ordering::Relaxed);
        [vec![Step::Hold], text(&large)].concat()
    });
    let app = app.start().await;
    let site = with_cache(&app).await;
    let mut first = site.begin("/film").await;
    app.has_seen(1).await;
    let mut second = site.begin("/film").await;
    app.release_all();
    first.answer().await.assert_ok(&body);
    second.answer().await.assert_ok(&body);
    assert_eq!(app.targets().len(), 2);
}

#[tokio::test]
async fn an_answer_that_grows_over_max_entry_reaches_the_client_that_fetched_it() {
    let body = "x".repeat(9 << 20);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let app = upstream().answers(chunked).start().await;
    let site = site(&one_at_a_time("cache = 'standard'")).with("app", &app).start().await;
    let mut slow = slow_reader(&site, "/film").await;
    app.has_seen(1).await;
    let unstored = "Hostler; fwd=uri-miss; fwd-status=200";
    slow.answer().await.assert_ok(&body).assert_field("cache-status", unstored);
    site.settles("app", 0, 0).await;
    site.get("/film").await.assert_ok(&body).assert_field("cache-status", unstored);
    assert_eq!(app.targets().len(), 2);
}

#[tokio::test]
async fn an_answer_that_a_post_made_void_meanwhile_does_not_say_that_it_is_stored() {
    let app = upstream().script(|seen| match seen.method().as_str() {
        "GET" => [vec![Step::Hold], text(answer(FRESH, "before the post"))].concat(),
        _ => ok("posted"),
    });
    let app = app.start().await;
    let site = with_cache(&app).await;
    let mut early = site.begin("/page").await;
    app.has_seen(1).await;
    site.post("/page", "change").await.assert_ok("posted");
    app.release_all();
    let seen = early.answer().await;
    seen.assert_ok("before the post").assert_field("cache-status", "Hostler; fwd=uri-miss; fwd-status=200");
}

#[tokio::test]
async fn a_get_after_a_post_does_not_wait_for_a_fetch_from_before() {
    for keys in ["cache = 'standard'", "collapse = true"] {
        assert_new_fetch_after_post(&IN_ORDER.replace("cache = 'standard'", keys)).await;
    }
}

async fn assert_new_fetch_after_post(config: &str) {
    let numbered = numbered(|_, _| FRESH.into());
    let app = upstream().script(move |seen| match seen.method().as_str() {
        "GET" => [vec![Step::Hold], numbered(seen)].concat(),
        _ => ok("posted"),
    });
    let app = app.start().await;
    let site = site(config).with("app", &app).start().await;
    let mut early = burst(&site, &app, 3).await;
    site.post("/page", "change").await.assert_ok("posted");
    let mut late = site.begin("/page").await;
    app.has_seen(3).await;
    app.release_all();
    late.answer().await.assert_ok("2");
    for client in &mut early {
        client.answer().await.assert_ok("1");
    }
    assert_eq!(app.targets().len(), 3);
}

#[tokio::test]
async fn event_streams_are_not_stored() {
    let app = upstream().script(|_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        [text(head), text("3\r\na\n\n\r\n"), vec![Step::Hold], text("0\r\n\r\n")].concat()
    });
    let app = app.start().await;
    let site = with_cache(&app).await;
    let mut listeners = [site.begin("/events").await, site.begin("/events").await];
    for listener in &mut listeners {
        listener.read_until("a\n\n").await;
    }
    assert_eq!(app.targets().len(), 2);
    app.release_all();
}

#[tokio::test]
async fn a_reload_during_a_fetch_loses_no_answer() {
    let app = upstream().script(held(FRESH)).start().await;
    let config = one_at_a_time("cache = 'standard'");
    let site = site(&config).with("app", &app).start().await;
    let mut leader = site.begin("/page").await;
    app.has_seen(1).await;
    let mut follower = site.begin("/page").await;
    let more = format!(
        "{config}[[routes]]\nmatch = '/more'\nrespond = 'more'\n[pools.app]\nmembers = ['{}']\n",
        app.address()
    );
    let more = more.replacen("pools.app.concurrency = 1\n", "", 1);
    site.rewrite(&more);
    site.hang_up();
    site.says("reload: routes: changed, now 2").await;
    app.release_all();
    leader.answer().await.assert_ok("1");
    follower.answer().await.assert_ok("1");
    assert_cache(&site.get("/page").await, "hit");
}

#[tokio::test]
async fn a_client_that_reads_during_a_stop_gets_the_whole_answer() {
    let app = upstream().script(|_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\n01234";
        [text(head), vec![Step::Hold], text("56789")].concat()
    });
    let app = app.start().await;
    let config = format!("server.drain_timeout = '1h'\n{}", one_at_a_time("cache = 'standard'"));
    let mut site = site(&config).with("app", &app).start().await;
    let mut clients = [site.begin("/page").await, site.begin("/page").await];
    for client in &mut clients {
        client.read_until("01234").await;
    }
    site.terminate();
    site.says("stopping: no new connections").await;
    app.release_all();
    for client in &mut clients {
        assert_eq!(client.read_exactly(5).await, b"56789");
    }
    site.exit().await;
}

#[tokio::test]
async fn requests_with_other_vary_values_wait_for_their_own_fetch() {
    let numbered = numbered(|seen, _| {
        let language = seen.field("accept-language").unwrap_or_default();
        format!("{FRESH}Vary: Accept-Language\r\nContent-Language: {language}\r\n")
    });
    let app = upstream().script(move |seen| [vec![Step::Hold], numbered(seen)].concat()).start().await;
    let site = with_cache(&app).await;
    let mut clients = Vec::new();
    for language in ["de", "fr", "it"].repeat(20) {
        let mut client = site.connect().await;
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Language: {language}\r\n\r\n")).await;
        clients.push((language, client));
    }
    app.has_seen(1).await;
    app.release_all();
    for (language, client) in &mut clients {
        client.answer().await.assert_status(200).assert_field("content-language", language);
    }
    assert_eq!(app.targets().len(), 3);
}
