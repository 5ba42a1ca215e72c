//! Routes with priorities, and the order in which a pool serves them.

use hostler_testkit::{Client, Seen, Site, Step, Upstream, eventually, text, upstream};

use crate::cache_hits::answer;
use crate::in_front_of;

/// Sends each request when the one before has the only slot or waits behind it.
async fn in_turn(site: &Site, requests: &[String]) -> Vec<Client> {
    let mut clients = Vec::new();
    for (waiting, request) in requests.iter().enumerate() {
        let mut client = site.connect().await;
        client.send(request).await;
        clients.push(client);
        site.settles("app", 1, waiting).await;
    }
    clients
}

/// An app that holds each request, and whose responses the cache may store.
async fn app_with_held_page() -> Upstream {
    upstream()
        .script(|_| [vec![Step::Hold], text(answer("Cache-Control: max-age=60\r\n", "ok"))].concat())
        .start()
        .await
}

/// A request by the client with this key of a fair queue.
fn by(path: &str, who: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Who: {who}\r\n\r\n")
}

#[tokio::test]
async fn routes_of_a_higher_priority_are_served_first() {
    let app = upstream().holds_requests().start().await;
    let route = |path: &str, more: &str| format!("[[routes]]\nmatch = '{path}'\npool = 'app'\n{more}\n");
    let config = [
        "pools.app.concurrency = 1\n".to_owned(),
        route("*", ""),
        route("/high/*", "priority = 'high'"),
        route("/low/*", "priority = 'low'"),
    ];
    let site = in_front_of(&app, &config.concat()).await;
    let mut clients = Vec::new();
    for (waiting, path) in ["/first", "/low/1", "/low/2", "/normal", "/high/1"].into_iter().enumerate() {
        clients.push(site.begin(path).await);
        site.settles("app", 1, waiting).await;
    }
    assert_eq!(site.pool("app").await["waiting"], serde_json::json!({ "high": 1, "normal": 1, "low": 2 }));
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    assert_eq!(app.targets(), ["/first", "/high/1", "/normal", "/low/1", "/low/2"]);
}

#[tokio::test]
async fn a_pool_uses_the_configured_queue_policy() {
    let app = upstream().start().await;
    let adaptive = in_front_of(&app, "").await;
    assert_eq!(adaptive.pool("app").await["policy"], "adaptive");
    let fifo = in_front_of(&app, "pools.app.queue.policy = 'fifo'").await;
    assert_eq!(fifo.pool("app").await["policy"], "fifo");
}

#[tokio::test]
async fn a_fair_pool_serves_the_client_that_has_used_least_and_the_status_names_the_dearest() {
    let app = upstream().holds_requests().start().await;
    let config = "pools.app.concurrency = 1\npools.app.queue.fair = ['crawler', 'header:x-who']\n[[routes]]\nmatch = '*'\npool = 'app'\n";
    let site = in_front_of(&app, config).await;
    let requests = [("/1", "a"), ("/2", "a"), ("/3", "a"), ("/4", "b"), ("/5", "a"), ("/6", "c")]
        .map(|(path, who)| format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Who: {who}\r\n\r\n"));
    let mut clients = in_turn(&site, &requests).await;
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    assert_eq!(app.targets(), ["/1", "/4", "/6", "/2", "/3", "/5"]);
    let fair = site.pool("app").await["fair"].clone();
    assert_eq!(fair["by"], serde_json::json!(["crawler", "header:x-who"]));
    let dearest = &fair["keys"][0];
    assert!(dearest["key"].as_str().unwrap().starts_with("header x-who #"), "{fair}");
    assert_eq!(dearest["requests"], 4);
}

#[tokio::test]
async fn a_route_with_its_own_list_shares_the_slots_of_its_pool_by_it() {
    let app = upstream().holds_requests().start().await;
    let config = "pools.app.concurrency = 1\npools.app.queue.fair = 'header:x-who'\n[[routes]]\nmatch = '*'\npool = 'app'\n[[routes]]\nmatch = '/api/*'\npool = 'app'\nfair = 'header:x-team'\n";
    let site = in_front_of(&app, config).await;
    // Both have another x-who in each request, which counts on other routes only.
    let requests = [("/api/1", "a"), ("/api/2", "a"), ("/api/3", "a"), ("/api/4", "b"), ("/5", "a")].map(
        |(path, team)| format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Team: {team}\r\nX-Who: {path}\r\n\r\n"),
    );
    let mut clients = in_turn(&site, &requests).await;
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    assert_eq!(app.targets(), ["/api/1", "/api/4", "/5", "/api/2", "/api/3"]);
}

#[tokio::test]
async fn requests_in_advance_and_crawlers_are_served_last_and_the_log_says_why() {
    let app = upstream().holds_requests().start().await;
    let config =
        "pools.app.concurrency = 1\npools.app.queue.low = ['prefetch', 'crawler', 'header:x-plan=free']\n";
    let site = in_front_of(&app, config).await;
    let mut clients = Vec::new();
    let requests = [
        ("/first", "Accept: */*"),
        ("/prefetched", "Sec-Purpose: prefetch;prerender"),
        ("/next", "Next-Router-Prefetch: 1"),
        ("/crawled", "User-Agent: Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"),
        ("/free", "X-Plan: free"),
        ("/paid", "X-Plan: gold"),
        ("/person", "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ];
    for (waiting, (path, field)) in requests.into_iter().enumerate() {
        let mut client = site.connect().await;
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n")).await;
        clients.push(client);
        site.settles("app", 1, waiting).await;
    }
    assert_eq!(site.pool("app").await["waiting"], serde_json::json!({ "high": 0, "normal": 2, "low": 4 }));
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    assert_eq!(app.targets(), ["/first", "/paid", "/person", "/prefetched", "/next", "/crawled", "/free"]);
    for (path, reason) in [("/next", "prefetch"), ("/crawled", "crawler"), ("/free", "header")] {
        assert_eq!(site.access(path).await["low"], reason, "{path}");
    }
    assert_eq!(site.access("/person").await["low"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_person_waits_for_no_fetch_of_a_request_in_advance() {
    let app = app_with_held_page().await;
    let config = "pools.app.concurrency = 1\npools.app.queue.low = ['prefetch']\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let site = in_front_of(&app, config).await;
    let requests = [("/first", ""), ("/page", "Sec-Purpose: prefetch\r\n"), ("/other", ""), ("/page", "")]
        .map(|(path, field)| format!("GET {path} HTTP/1.1\r\nHost: a\r\n{field}\r\n"));
    let mut clients = in_turn(&site, &requests).await;
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_ok("ok");
    }
    assert_eq!(app.targets(), ["/first", "/other", "/page", "/page"]);
    let are_in_advance: Vec<_> =
        app.requests().iter().map(|seen| seen.field("sec-purpose").is_some()).collect();
    assert_eq!(are_in_advance, [false, false, false, true]);
}

/// The only request for the page that reaches the app, if the client leaves whose request fetches it while `waiting` requests wait for that. `before`:
/// the request of that client is the last of these.
async fn fetch_after_the_first(queue: &str, before: &[String], waiting: [String; 2]) -> Seen {
    let app = app_with_held_page().await;
    let config = format!(
        "server.threads = 1\npools.app.concurrency = 1\n{queue}\n[[routes]]\nmatch = '/ping'\nrespond = 'pong'\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n"
    );
    let site = in_front_of(&app, &config).await;
    let mut clients = in_turn(&site, before).await;
    let leader = clients.pop();
    for request in &waiting {
        let mut client = site.connect().await;
        client.send(request).await;
        // With one thread, the request before has begun to wait when this response comes.
        site.get("/ping").await.assert_ok("pong");
        clients.push(client);
    }
    drop(leader);
    site.access("/page").await;
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_ok("ok");
    }
    let mut pages: Vec<_> = app.requests().into_iter().filter(|seen| seen.target() == "/page").collect();
    assert_eq!(pages.len(), 1);
    pages.remove(0)
}

#[tokio::test]
async fn when_the_fetching_client_leaves_a_person_fetches_before_a_request_in_advance() {
    let request = |path: &str, field: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n{field}\r\n");
    let before = ["/first", "/page"].map(|path| request(path, ""));
    let waiting = ["Sec-Purpose: prefetch\r\n", ""].map(|field| request("/page", field));
    let page = fetch_after_the_first("pools.app.queue.low = ['prefetch']", &before, waiting).await;
    assert_eq!(page.field("sec-purpose"), None);
}

#[tokio::test]
async fn when_the_fetching_client_leaves_a_client_fetches_before_one_with_others_in_the_queue() {
    let before = [("/1", "a"), ("/2", "a"), ("/3", "a"), ("/page", "b")].map(|(path, who)| by(path, who));
    let waiting = ["a", "c"].map(|who| by("/page", who));
    let page = fetch_after_the_first("pools.app.queue.fair = 'header:x-who'", &before, waiting).await;
    assert_eq!(page.field("x-who").as_deref(), Some("c"));
}

#[tokio::test]
async fn a_client_does_not_wait_for_the_fetch_of_a_client_whose_turn_comes_later() {
    let app = app_with_held_page().await;
    let config = "pools.app.concurrency = 1\npools.app.queue.fair = 'header:x-who'\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let site = in_front_of(&app, config).await;
    let requests = [("/1", "a"), ("/2", "a"), ("/3", "a"), ("/page", "a"), ("/page", "b")]
        .map(|(path, who)| by(path, who));
    let mut clients = in_turn(&site, &requests).await;
    // The turn of this client comes after that of the second one, so it waits for that fetch.
    let mut third = site.connect().await;
    third.send(&by("/page", "c")).await;
    site.settles("app", 1, 4).await;
    app.release_all();
    for client in clients.iter_mut().chain([&mut third]) {
        client.answer().await.assert_ok("ok");
    }
    assert_eq!(app.targets(), ["/1", "/page", "/2", "/3", "/page"]);
    assert_eq!(app.requests()[1].field("x-who").as_deref(), Some("b"));
}

#[tokio::test]
async fn a_refresh_does_not_wait_for_one_of_a_client_whose_turn_comes_later() {
    let fields = "Cache-Control: max-age=0, stale-while-revalidate=60\r\n";
    let script = move |_: &Seen| [vec![Step::Hold], text(answer(fields, "ok"))].concat();
    let app = upstream().script(script).start().await;
    let config = "pools.app.concurrency = 1\npools.app.queue.fair = 'header:x-who'\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let site = in_front_of(&app, config).await;
    let mut first = site.connect().await;
    first.send(&by("/page", "z")).await;
    app.has_seen(1).await;
    app.release(1);
    first.answer().await.assert_ok("ok");
    site.settles("app", 0, 0).await;
    let requests = [("/1", "a"), ("/2", "a"), ("/3", "a"), ("/page", "a"), ("/page", "b")]
        .map(|(path, who)| by(path, who));
    let _clients = in_turn(&site, &requests).await;
    app.release_all();
    app.has_seen(6).await;
    assert_eq!(app.targets(), ["/page", "/1", "/page", "/2", "/3", "/page"]);
    assert_eq!(app.requests()[2].field("x-who").as_deref(), Some("b"));
}

const SHORT_FIRST: &str =
    "pools.app.queue.order = 'short_first'\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";

/// Whether the pool knows what its requests cost. It needs 16 of them.
async fn knows_costs(site: &Site) -> Option<()> {
    let pool = site.pool("app").await;
    let requests = pool["order"]["expected"].as_array()?.first()?["requests"].as_u64();
    (requests >= Some(16)).then_some(())
}

#[tokio::test]
async fn a_pool_learns_what_a_page_costs_that_comes_into_the_cache_in_pieces() {
    let app = upstream().script(|_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\n01234";
        [text(head), vec![Step::Hold], text("56789")].concat()
    });
    let app = app.start().await;
    let site = in_front_of(&app, SHORT_FIRST).await;
    for at in 0..16 {
        let mut client = site.begin(&format!("/page/{at}")).await;
        client.read_until("01234").await;
        app.release(1);
        assert_eq!(client.read_exactly(5).await, b"56789");
    }
    eventually("its costs", async || knows_costs(&site).await).await;
}

#[tokio::test]
async fn a_pool_learns_what_the_refresh_of_a_stored_page_costs() {
    let fields = "Cache-Control: max-age=0, stale-while-revalidate=60\r\n";
    let app = upstream().answers(answer(fields, "page")).start().await;
    let site = in_front_of(&app, SHORT_FIRST).await;
    let knows = async || {
        site.get("/page").await.assert_ok("page");
        knows_costs(&site).await
    };
    eventually("its costs", knows).await;
}

#[tokio::test]
async fn a_pool_learns_what_requests_cost_that_are_never_answered_in_time() {
    let app = upstream().holds_requests().start().await;
    let config = "pools.app.queue.order = 'short_first'\npools.app.request_timeout = '100ms'\n\
        pools.app.concurrency = 1000\npools.app.ejection.timeouts = 0\n";
    let site = in_front_of(&app, config).await;
    let knows = async || {
        site.get("/page").await.assert_refused(504, "answer_timeout");
        knows_costs(&site).await
    };
    eventually("its costs", knows).await;
}
