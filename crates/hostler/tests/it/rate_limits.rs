//! Rate limits of routes and pools: who is refused, and what the client, the log and the status are told.

use std::time::Duration;

use hostler_testkit::{Site, eventually, request, upstream};
use http::Request;
use tokio::time::Instant;

use crate::http2::talk;
use crate::metrics::samples;
use crate::{in_front_of, site};

/// A route to the pool with this limit.
fn limited(limit: &str) -> String {
    format!("[[routes]]\nmatch = '*'\npool = 'app'\nrate_limit = {{ {limit} }}\n")
}

async fn get_with(site: &Site, fields: &str) -> hostler_testkit::ReceivedAnswer {
    site.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await
}

#[tokio::test]
async fn the_requests_over_the_limit_get_429_on_a_connection_that_stays() {
    let app = upstream().start().await;
    let site = in_front_of(&app, &limited("requests = 3, per = '1h', fields = true")).await;
    let mut client = site.connect().await;
    for left in ["r=2", "r=1", "r=0"] {
        let answer = client.get("/").await;
        answer.assert_ok("ok").assert_field("ratelimit-policy", "\"route\";q=3;w=3600");
        answer.assert_field("ratelimit", &format!("\"route\";{left};t=1200"));
    }
    for _ in 0..3 {
        let refused = client.get("/").await;
        refused.assert_refused(429, "rate_limited").assert_field("ratelimit-policy", "\"route\";q=3;w=3600");
        let wait: u64 = refused.field("retry-after").unwrap().parse().unwrap();
        assert!((1190..=1200).contains(&wait), "{wait}");
        refused.assert_field("ratelimit", &format!("\"route\";r=0;t={wait}"));
    }
    // A small body is read and discarded.
    client.post("/", "small").await.assert_refused(429, "rate_limited");
    client.get("/").await.assert_refused(429, "rate_limited");
    assert_eq!(app.requests().len(), 3);

    let line = site.refusal("rate_limited").await;
    assert_eq!((&line["status"], &line["attempts"]), (&429.into(), &0.into()), "{line}");
    assert_eq!(line["detail"], "route *: 3 requests in 1h for each client (client 127.0.0.1)");
    let route = eventually("the counters", async || {
        let route = site.status().await["routes"][0].clone();
        (route["refusals"]["rate_limited"] == 5).then_some(route)
    })
    .await;
    assert_eq!(route["rate_limit"]["refused"], 5);
    assert_eq!(route["rate_limit"]["limit"], "3 requests in 1h for each client");
    let row = "hostler_rate_limited_requests_total{scope=\"route\",name=\"*\",dry_run=\"false\"}";
    assert_eq!(samples(&site).await.get(row), Some(&5.0));
}

#[tokio::test]
async fn a_refused_request_need_not_send_its_body() {
    let app = upstream().start().await;
    let site = in_front_of(&app, &limited("requests = 1, per = '1h'")).await;
    site.get("/").await.assert_ok("ok").assert_no_field("ratelimit");
    let mut waits = site.connect().await;
    waits.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n").await;
    waits.answer().await.assert_refused(429, "rate_limited");
    let mut sends = site.connect().await;
    sends.send(&request("POST /", "", &[b'x'; 1000])[..200]).await;
    sends.answer().await.assert_refused(429, "rate_limited");
}

#[tokio::test]
async fn streams_of_http_2_are_refused_and_their_connection_stays() {
    let app = upstream().start().await;
    let site = in_front_of(&app, &limited("requests = 2, per = '1h'")).await;
    let mut talk = talk(&site).await;
    for expected in [200, 200, 429, 429] {
        let request = Request::get("http://site.test/").body(()).unwrap();
        let (head, _) = talk.ask(request).await;
        assert_eq!(head.status(), expected);
        assert_eq!(head.headers().contains_key("retry-after"), expected == 429);
        assert_eq!(head.headers().contains_key("ratelimit"), expected == 429);
    }
}

#[tokio::test]
async fn a_request_after_the_time_of_retry_after_passes() {
    let app = upstream().start().await;
    let site = in_front_of(&app, &limited("requests = 1, per = '1s'")).await;
    // On a busy machine a second may pass between two requests.
    let (refused, asked) = eventually("a refusal", async || {
        let asked = Instant::now();
        let answer = site.get("/").await;
        (answer.status == 429).then_some((answer, asked))
    })
    .await;
    refused.assert_field("retry-after", "1");
    eventually("a second to be over", async || (asked.elapsed().as_millis() > 1000).then_some(())).await;
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn threads_share_one_bucket() {
    let app = upstream().start().await;
    let site =
        in_front_of(&app, &format!("server.threads = 4\n{}", limited("requests = 20, per = '1h'"))).await;
    let mut passed = 0;
    for _ in 0..50 {
        // Each connection may belong to another thread.
        passed += usize::from(site.get("/").await.status == 200);
    }
    assert_eq!((passed, app.requests().len()), (20, 20));
}

#[tokio::test]
async fn keys_have_their_own_buckets_and_the_trusted_address_counts() {
    let app = upstream().start().await;
    let limit = limited("requests = 1, per = '1h', key = ['header:x-api-key', 'client']");
    let site = in_front_of(&app, &format!("server.trusted_proxies = ['127.0.0.1']\n{limit}")).await;
    for fields in [
        "X-Api-Key: secret-1\r\n",
        "X-Api-Key: secret-2\r\n",
        "X-Forwarded-For: 192.0.2.1\r\n",
        "X-Forwarded-For: 192.0.2.2\r\n",
    ] {
        get_with(&site, fields).await.assert_ok("ok");
        get_with(&site, fields).await.assert_refused(429, "rate_limited");
    }
    get_with(&site, "X-Api-Key: secret-1\r\nX-Forwarded-For: 192.0.2.3\r\n")
        .await
        .assert_refused(429, "rate_limited");
    let details: Vec<_> = site.exchanges(9).await.iter().map(|line| line["detail"].to_string()).collect();
    let details = details.concat();
    assert!(details.contains("header x-api-key #") && !details.contains("secret-"), "{details}");
}

#[tokio::test]
async fn routes_of_a_pool_share_its_limit() {
    let app = upstream().start().await;
    let config = "pools.app.rate_limit = { requests = 3, per = '1h' }\n\
        [[routes]]\nmatch = '/a/*'\npool = 'app'\nrate_limit = { requests = 1, per = '1h' }\n[[routes]]\nmatch = '*'\npool = 'app'\n";
    let site = in_front_of(&app, config).await;
    site.get("/a/1").await.assert_ok("ok");
    // The route's own limit refuses these, and they cost the pool's nothing.
    for _ in 0..5 {
        let refused = site.get("/a/2").await;
        refused.assert_refused(429, "rate_limited").assert_field("ratelimit-policy", "\"route\";q=1;w=3600");
    }
    site.get("/b").await.assert_ok("ok");
    site.get("/b").await.assert_ok("ok");
    site.get("/b")
        .await
        .assert_refused(429, "rate_limited")
        .assert_field("ratelimit-policy", "\"pool\";q=3;w=3600");
    assert_eq!(site.pool("app").await["rate_limit"]["refused"], 1);
}

#[tokio::test]
async fn a_dry_run_refuses_nothing_and_the_log_and_the_status_say_what_it_would_refuse() {
    let app = upstream().start().await;
    let site = in_front_of(&app, &limited("requests = 1, per = '1h', dry_run = true")).await;
    for path in ["/1", "/2", "/3"] {
        site.get(path).await.assert_ok("ok").assert_no_field("retry-after");
    }
    assert_eq!(site.access("/1").await["would_refuse"], serde_json::Value::Null);
    let line = site.access("/3").await;
    assert_eq!((&line["would_refuse"], &line["refusal"]), (&"rate_limited".into(), &serde_json::Value::Null));
    let limit = site.status().await["routes"][0]["rate_limit"].clone();
    assert_eq!((&limit["refused"], &limit["would_refuse"]), (&0.into(), &2.into()));
    let table = site.command(&["status"]).await.assert_exit(0).stdout.clone();
    let line = "rate limit of *: 1 request in 1h for each client, dry run, 2 would have been refused\n";
    assert!(table.contains(line), "{table}");
}

#[tokio::test]
async fn worker_time_is_charged_at_the_end_of_a_request() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, &limited("worker_time = '1ms', per = '1h'")).await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let mut second = site.begin("/second").await;
    site.settles("app", 2, 0).await;
    app.release_all();
    first.answer().await.assert_ok("/first");
    second.answer().await.assert_ok("/second");
    eventually("the charge", async || {
        let refused = site.get("/third").await;
        (refused.status == 429).then(|| {
            let wait: u64 = refused.field("retry-after").unwrap().parse().unwrap();
            assert!(wait > 3000, "{wait}");
            refused.assert_no_field("ratelimit");
        })
    })
    .await;
}

#[tokio::test]
async fn a_request_pays_for_what_its_worker_does_after_its_client_was_answered() {
    let app = upstream().holds_requests().start().await;
    let limit = limited("worker_time = '100ms', per = '1h'");
    let site = in_front_of(&app, &format!("pools.app.request_timeout = '50ms'\n{limit}")).await;
    site.get("/late").await.assert_refused(504, "answer_timeout");
    let answered = Instant::now();
    eventually("the worker to go on for longer", async || {
        (answered.elapsed() > Duration::from_millis(200)).then_some(())
    })
    .await;
    site.settles("app", 1, 0).await;
    app.release_all();
    eventually("the charge", async || (site.get("/next").await.status == 429).then_some(())).await;
}

#[tokio::test]
async fn a_reload_keeps_the_buckets_of_a_limit_that_stays() {
    let app = upstream().start().await;
    let limit = limited("requests = 1, per = '1h'");
    let site = in_front_of(&app, &limit).await;
    site.get("/").await.assert_ok("ok");
    let pool = format!("[pools.app]\nmembers = ['{}']\n", app.address());
    site.rewrite(&format!("{pool}{limit}[[routes]]\nmatch = '/other'\nrespond = 'x'\n"));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/other").await.assert_ok("x");
    site.get("/").await.assert_refused(429, "rate_limited");
    site.rewrite(&format!("{pool}{}", limited("requests = 2, per = '1h'")));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_reload_that_starts_a_pool_anew_keeps_the_buckets_of_its_limit() {
    let app = upstream().start().await;
    let pool = format!(
        "[pools.app]\nmembers = ['{}']\nrate_limit = {{ requests = 1, per = '1h' }}\n",
        app.address()
    );
    let site = site(&pool).start().await;
    site.get("/").await.assert_ok("ok");
    // Its connections are useless for the other protocol.
    site.rewrite(&format!("{pool}protocol = 'http2'\n"));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/").await.assert_refused(429, "rate_limited");
}

#[tokio::test]
async fn answers_of_hostler_itself_and_from_the_cache_count_as_well() {
    let app = upstream()
        .answers("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok")
        .start()
        .await;
    let route = "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\nrate_limit = { requests = 2, per = '1h' }\n\
        [[routes]]\nmatch = '/fixed'\nrespond = 'fixed'\nrate_limit = { requests = 1, per = '1h' }\n";
    let site = in_front_of(&app, route).await;
    site.get("/").await.assert_ok("ok");
    site.get("/").await.assert_ok("ok");
    site.get("/").await.assert_refused(429, "rate_limited");
    site.get("/fixed").await.assert_ok("fixed");
    site.get("/fixed").await.assert_refused(429, "rate_limited");
    assert_eq!(app.requests().len(), 1);
}
