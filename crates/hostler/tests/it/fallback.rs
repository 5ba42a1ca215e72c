//! A route's fallback: which requests get it when the pool fails, and which get a refusal.

use hostler_testkit::{Site, Step, Upstream, no_upstream, text, upstream};

use crate::site;

const SHELL: &str = "<!doctype html><title>Shop</title><div id=root></div>";

/// A site in front of a member, whose route has a fallback.
async fn with_shell(member: &str, config: &str) -> Site {
    let route = "
        [[routes]]
        match = '*'
        pool = 'app'
        fallback = 'shell.html'";
    let plan = site(&format!("{config}{route}"));
    std::fs::write(plan.folder().join("shell.html"), SHELL).unwrap();
    plan.with_member("app", member).start().await
}

async fn in_front_of(app: &Upstream, config: &str) -> Site {
    with_shell(app.address(), &format!("pools.app.concurrency = 1\n{config}\n")).await
}

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[tokio::test]
async fn a_browser_that_asks_for_an_unavailable_page_gets_the_fallback() {
    let site = with_shell(&no_upstream(), "pools.app.queue.timeout = '200ms'\n").await;
    let mut client = site.connect().await;
    let answer = client.get("/page").await;
    answer
        .assert_ok(SHELL)
        .assert_field("content-type", "text/html; charset=utf-8")
        .assert_field("hostler-fallback", "unreachable")
        .assert_field("cache-control", "no-store")
        .assert_no_field("hostler-refusal")
        .assert_no_field("connection");
    client.send("HEAD /page HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = client.answer_to("HEAD").await;
    head.assert_status(200).assert_field("content-length", &SHELL.len().to_string());

    let line = site.access("/page").await;
    let logged = (&line["status"], &line["refusal"], &line["fallback"]);
    assert_eq!(logged, (&200.into(), &"unreachable".into(), &true.into()), "{line}");
    site.exchanges(2).await;
    let route = site.status().await["routes"][0].clone();
    assert_eq!((&route["fallbacks"]["unreachable"], &route["answers"]["2xx"]), (&2.into(), &2.into()));
    assert!(route["refusals"].as_object().unwrap().is_empty(), "{route}");
}

#[tokio::test]
async fn a_request_that_asks_for_no_page_gets_the_refusal() {
    let site = with_shell(&no_upstream(), "pools.app.queue.timeout = '200ms'\n").await;
    let mut client = site.connect().await;
    client.post("/order", "1").await.assert_refused(502, "unreachable");
    client.send(get("/data", "Accept: application/json\r\n")).await;
    client.answer().await.assert_refused(502, "unreachable");
    client.send(get("/page", "Accept: application/json\r\nAccept: text/html\r\n")).await;
    client.answer().await.assert_ok(SHELL);
}

#[tokio::test]
async fn a_full_queue_gives_the_fallback_without_a_member() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.queue.limit = 0").await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let mut client = site.connect().await;
    for _ in 0..3 {
        client.get("/page").await.assert_ok(SHELL).assert_field("hostler-fallback", "queue_full");
    }
    app.release_all();
    first.answer().await.assert_ok("/first");
    client.get("/page").await.assert_ok("/page");
}

#[tokio::test]
async fn a_timed_out_answer_gives_the_fallback_and_the_member_keeps_its_slot() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.request_timeout = '1s'").await;
    site.get("/slow").await.assert_ok(SHELL).assert_field("hostler-fallback", "answer_timeout");
    assert_eq!(site.pool("app").await["in_use"], 1);
    site.get("/next").await.assert_ok(SHELL).assert_field("hostler-fallback", "queue_timeout");
    app.release_all();
}

#[tokio::test]
async fn a_broken_answer_gives_the_fallback_and_the_apps_own_errors_do_not() {
    let nonsense = || text("nonsense\r\n\r\n");
    let bad_body = || text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
    let lost = || vec![Step::Close];
    let own = || text("HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\noops");
    let app = upstream().in_turn([nonsense(), bad_body(), lost(), lost(), lost(), own()]).start().await;
    let site = in_front_of(&app, "").await;
    for reason in ["bad_answer", "bad_answer", "worker_lost"] {
        site.get("/").await.assert_ok(SHELL).assert_field("hostler-fallback", reason);
    }
    site.get("/").await.assert_status(500).assert_says("oops").assert_no_field("hostler-fallback");
}

#[tokio::test]
async fn a_bad_request_gets_its_own_refusal_and_no_fallback() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.max_body_size = 2").await;
    site.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
        .await
        .assert_refused(413, "body_too_large");
}
