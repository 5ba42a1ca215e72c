//! Clients that leave, or get a 504, while their worker goes on: the worker is told, and other clients are served.

use hostler_testkit::{Frame, eventually, frame_client, request};

use super::site::{Plan, Site, app, source};

fn plan() -> Plan {
    app("abandoned.cjs")
}

/// The diary of the app says this of the request.
async fn noted(site: &Site, what: &str, url: &str) {
    eventually(format!("{what} {url}"), async || {
        site.diary().iter().any(|entry| entry["what"] == what && entry["url"] == url).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_worker_learns_that_its_client_has_left_and_its_slot_is_free() {
    let site = plan().option("pools.app.concurrency=1").started().await;
    let mut client = site.begin("/answer").await;
    client.read_until("word").await;
    let next = site.ask("/next");
    site.settles_at(1, 1).await;
    drop(client);
    noted(&site, "left", "/answer").await;
    next.await.unwrap().assert_status(200);
    site.settles_at(0, 0).await;
    site.get("/answer/next").await.assert_status(200);
    site.stop().await;
}

#[tokio::test]
async fn an_answer_whose_client_has_left_closes_no_path_for_others() {
    let site = plan().option("pools.app.request_timeout=2s").started().await;
    for _ in 0..3 {
        let mut client = site.begin("/answer").await;
        client.read_until("word").await;
        drop(client);
    }
    // Longer than the time after which a request whose client has left counts as holding its worker.
    site.get("/other?ms=1500").await.assert_status(200);
    let mut client = site.begin("/answer").await;
    client.read_until("word").await;
    assert_eq!(site.pool("app").await["suspects"]["refused"], 0);
    site.stop().await;
}

#[tokio::test]
async fn without_a_fixed_concurrency_a_worker_learns_before_its_answer_that_the_client_has_left() {
    // A 504 would tell it as well.
    let site = plan().option("pools.app.request_timeout=1h").started().await;
    let client = site.begin("/wait?until=never").await;
    noted(&site, "begins", "/wait?until=never").await;
    drop(client);
    noted(&site, "left", "/wait?until=never").await;
    let mut http2 = frame_client(site.address()).await;
    let get = [(":method", "GET"), (":scheme", "http"), (":path", "/wait?until=none"), (":authority", "a")];
    http2.send(&[Frame::request(1, &get)]).await;
    noted(&site, "begins", "/wait?until=none").await;
    http2.send(&[Frame::new(Frame::RST_STREAM, 0, 1, [0, 0, 0, 8])]).await;
    noted(&site, "left", "/wait?until=none").await;
    site.settles_at(0, 0).await;
    // The app reads nothing of this body, which is more than the sockets hold, so it cannot see that the connection has ended.
    let mut client = site.connect().await;
    client.send(&request("POST /wait?until=later", "", &vec![b'x'; 4 << 20])).await;
    noted(&site, "begins", "/wait?until=later").await;
    drop(client);
    assert_eq!(site.access("/wait?until=later").await["refusal"], "client_left");
    site.touch("later");
    site.settles_at(0, 0).await;
    site.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_an_answer_longer_than_hang_timeout_ends_no_worker() {
    for concurrency in ["'auto'", "2"] {
        let site = plan()
            .option("pools.app.request_timeout=1s")
            .option("pools.app.hang_timeout=2s")
            .option(&format!("pools.app.concurrency={concurrency}"))
            .started()
            .await;
        let pids = site.pids().await;
        let mut client = site.begin("/answer").await;
        // A word each 20 ms, so this takes longer than `hang_timeout`.
        for _ in 0..150 {
            client.read_until("word").await;
        }
        drop(client);
        noted(&site, "left", "/answer").await;
        site.settles_at(0, 0).await;
        site.get("/next").await.assert_status(200);
        assert_eq!(site.pids().await, pids, "the worker lives on with {concurrency}");
        site.stop().await;
    }
}

#[tokio::test]
async fn a_client_that_has_finished_sending_gets_an_answer_that_begins_soon() {
    let site = plan().option("pools.app.request_timeout=1h").started().await;
    let mut client = site.begin("/wait?ms=100").await;
    client.finish_sending().await;
    client.answer().await.assert_status(200);
    site.stop().await;
}

#[tokio::test]
async fn a_504_of_an_app_that_waits_closes_no_path_for_others() {
    for concurrency in ["'auto'", "2"] {
        let site = plan()
            .option("pools.app.request_timeout=1s")
            .option(&format!("pools.app.concurrency={concurrency}"))
            .option("pools.app.queue.timeout=200ms")
            .started()
            .await;
        site.get("/wait?until=released").await.assert_refused(504, "answer_timeout");
        for _ in 0..3 {
            site.get("/wait?ms=1").await.assert_status(200);
        }
        site.touch("released");
        site.settles_at(0, 0).await;
        site.stop().await;
    }
}

#[tokio::test]
async fn a_request_that_waits_without_its_client_closes_no_path_for_others() {
    let site = plan()
        .option("pools.app.request_timeout=3s")
        .option("pools.app.concurrency=2")
        .option("pools.app.queue.timeout=200ms")
        .started()
        .await;
    let client = site.begin("/wait?until=released").await;
    noted(&site, "begins", "/wait?until=released").await;
    drop(client);
    // Longer than a quarter of `request_timeout`, after which a request that blocks its worker counts as holding it.
    site.get("/other?ms=1500").await.assert_status(200);
    site.get("/wait?ms=1").await.assert_status(200);
    site.settles_at(1, 0).await;
    site.touch("released");
    site.settles_at(0, 0).await;
    site.stop().await;
}

#[tokio::test]
async fn a_request_of_a_route_with_a_longer_time_holds_its_worker_only_after_that_time() {
    let site = plan()
        .option("routes=[{match=\"*\",pool=\"app\",request_timeout=\"1h\"}]")
        .option("pools.app.request_timeout=1s")
        .option("pools.app.concurrency=2")
        .started()
        .await;
    let client = site.begin("/wait?until=released").await;
    noted(&site, "begins", "/wait?until=released").await;
    drop(client);
    // Longer than the pool's own time.
    site.get("/other?ms=2500").await.assert_status(200);
    assert_eq!(site.pool("app").await["suspects"]["one_at_a_time"], 0);
    site.touch("released");
    site.settles_at(0, 0).await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_waits_for_a_slow_upload_is_not_taken_for_hung() {
    let site = source("require('http').createServer((request, response) => request.resume().on('end', () => response.end('ok'))).listen(3000)")
        .option("routes=[{match=\"*\",pool=\"app\",buffer=\"none\"}]")
        .option("pools.app.concurrency=2")
        .option("pools.app.request_timeout=1s")
        .option("pools.app.hang_timeout=2s")
        .started()
        .await;
    let pids = site.pids().await;
    let mut client = site.connect().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf").await;
    client.answer().await.assert_refused(504, "answer_timeout");
    site.settles_at(0, 0).await;
    assert_eq!(site.pids().await, pids);
    site.get("/").await.assert_ok("ok");
    site.stop().await;
}

#[tokio::test]
async fn a_worker_whose_app_leaves_an_upload_unread_is_not_taken_for_hung() {
    let site =
        plan().option("pools.app.request_timeout=1s").option("pools.app.hang_timeout=2s").started().await;
    let pids = site.pids().await;
    // More than the sockets hold, so the app cannot see that the connection has ended.
    let upload = request("POST /wait?until=never", "", &vec![b'x'; 4 << 20]);
    site.send(upload).await.assert_refused(504, "answer_timeout");
    site.settles_at(0, 0).await;
    site.get("/next").await.assert_status(200);
    assert_eq!(site.pids().await, pids, "its event loop turns");
    site.stop().await;
}

#[tokio::test]
async fn requests_that_are_given_up_pay_for_what_others_hold_although_the_cache_reads_their_responses() {
    let app = "require('http').createServer((req, res) => {
            if (req.url !== '/pieces') return;
            res.setHeader('cache-control', 'max-age=60');
            res.write('first ');
            setTimeout(() => res.end('second'), 1000);
        }).listen(3000)";
    let limit = "rate_limit={worker_time=\"3s\",per=\"1h\"}";
    let site = source(app)
        .option(&format!("routes=[{{match=\"*\",pool=\"app\",cache=\"standard\",{limit}}}]"))
        .started()
        .await;
    site.get("/pieces").await.assert_ok("first second");
    site.settles_at(0, 0).await;
    let is_refused = async || site.status().await["routes"][0]["rate_limit"]["refused"].as_u64().unwrap() > 0;
    // Each pays a second at least, although it holds its slot for a moment only.
    for _ in 0..4 {
        let client = site.begin("/never").await;
        eventually("the request is at its worker, or refused", async || {
            (is_refused().await || site.pool("app").await["in_use"] == 1).then_some(())
        })
        .await;
        drop(client);
        site.settles_at(0, 0).await;
    }
    assert!(is_refused().await, "3 s are used up");
    site.stop().await;
}
