//! Answers that come in pieces reach the client in pieces, and an app that streams learns when its client leaves.

use hostler_testkit::{Client, eventually};

use super::site::{Site, app, configured};

async fn streams(concurrency: u32) -> Site {
    app("streams.cjs").option(&format!("pools.app.concurrency={concurrency}")).started().await
}

async fn asks(site: &Site, path: &str) -> Client {
    let mut client = site.connect().await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
    client
}

async fn has_streams(site: &Site, streams: usize) {
    eventually("streams", async || (site.pool("app").await["streams"] == streams).then_some(())).await;
}

/// The app's own log, which it writes when it is told that the connection closed. The slot may be free before that.
async fn has_noticed(site: &Site, what: &str) {
    eventually("the app has noticed", async || {
        let log = site.get("/log").await.assert_status(200).json();
        (log == serde_json::json!([what])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_page_that_react_streams_appears_before_it_is_complete() {
    let site = streams(1).await;
    let mut client = asks(&site, "/react").await;
    let early = client.read_until("</main>").await;
    assert!(early.contains("early") && early.contains("wait") && !early.contains("is there"), "{early}");
    site.settles_at(1, 0).await;
    site.touch("late");
    let (late, _) = client.rest().await;
    assert!(late.contains("late is there") && late.ends_with("0\r\n\r\n"), "complete: {late}");
    site.settles_at(0, 0).await;
    site.stop().await;
}

#[tokio::test]
async fn events_arrive_one_by_one_and_a_client_that_leaves_ends_the_stream() {
    let site = streams(1).await;
    let mut client = asks(&site, "/events").await;
    client.read_until("data: 1\n").await;
    client.read_until("data: 3\n").await;
    has_streams(&site, 1).await;
    site.settles_at(0, 0).await;

    drop(client);
    has_streams(&site, 0).await;
    has_noticed(&site, "events closed").await;
    assert_eq!(site.workers().await[0]["restarts"], 0);
    site.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_between_two_events_ends_the_stream() {
    let site = streams(1).await;
    let mut client = asks(&site, "/silence").await;
    client.read_until("data: the only one").await;
    drop(client);
    has_streams(&site, 0).await;
    has_noticed(&site, "silence closed").await;
    assert_eq!(site.access("/silence").await["stream_end"], "client");
    site.stop().await;
}

#[tokio::test]
async fn an_unread_answer_holds_its_slot_until_the_app_has_finished() {
    let site = streams(1).await;
    let mut client = asks(&site, "/chunks").await;
    client.read_until("first ").await;
    drop(client);
    let next = site.ask("/log");
    site.settles_at(1, 1).await;
    site.touch("late");
    assert_eq!(next.await.unwrap().assert_status(200).json(), serde_json::json!(["chunks closed"]));
    site.stop().await;
}

#[tokio::test]
async fn a_client_that_disconnects_leaves_the_slot_taken_until_the_app_has_finished() {
    let site = streams(1).await;
    let mut client = asks(&site, "/flood").await;
    client.read_until("x\r\n").await;
    client.reset();
    assert_eq!(site.access("/flood").await["aborted"], "client");
    let next = site.ask("/log");
    site.settles_at(1, 1).await;
    site.touch("late");
    assert_eq!(next.await.unwrap().assert_status(200).json(), serde_json::json!(["flood finished"]));
    site.stop().await;
}

/// Its answers end with the connection, which ends with the process.
const HANGS_UP: &str = "require('http').createServer((request, response) => {
  response.useChunkedEncodingByDefault = false;
  response.shouldKeepAlive = false;
  response.writeHead(200, { 'Cache-Control': 'max-age=60' });
  response.write('half of it', () => process.kill(process.pid, 'SIGKILL'));
}).listen(3000);";

#[tokio::test]
async fn an_answer_that_ends_with_a_workers_connection_is_not_stored() {
    let config = "[pools.app]\ncommand = 'node app.cjs'\nworkers = 1\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'";
    let plan = configured(config);
    std::fs::write(plan.folder().join("app.cjs"), HANGS_UP).unwrap();
    let site = plan.started().await;
    let half = site.get("/").await;
    half.assert_ok("half of it").assert_field("cache-status", "Hostler; fwd=uri-miss; fwd-status=200");
    let next = site.get("/").await;
    assert!(!next.field("cache-status").unwrap_or_default().contains("hit"), "{next:?}");
    site.stop().await;
}
