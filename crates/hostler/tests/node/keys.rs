//! Configuration keys for workers: each takes effect.

use hostler_testkit::eventually;

use super::load::Load;
use super::site::{Plan, app, source, worker};

/// Timeouts that a slow or busy machine does not exceed.
fn patient(plan: Plan) -> Plan {
    ["request_timeout=60s", "queue.timeout=60s", "queue.policy=fifo"]
        .iter()
        .fold(plan, |plan, setting| plan.option(&format!("pools.app.{setting}")))
}

#[tokio::test]
async fn an_app_that_waits_gets_many_requests_without_any_setting() {
    let waits = "require('http').createServer((req, res) => setTimeout(() => res.end(), 300)).listen(3000);";
    let site = patient(source(waits)).started().await;
    let load = Load::on(site.address());
    let busy = worker(&site, "several requests at once", |worker| worker["in_use"].as_u64() > Some(3)).await;
    assert!(busy["slots_reason"].as_str().unwrap().starts_with("by the event loop ("), "{busy}");
    load.stop().await;
}

#[tokio::test]
async fn two_event_streams_do_not_keep_a_page_waiting() {
    let app = "require('http').createServer((req, res) => {
        if (req.url === '/page') return res.end('page');
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('data: 1\\n\\n');
    }).listen(3000);";
    let site = patient(source(app)).started().await;
    let mut streams = Vec::new();
    for _ in 0..2 {
        streams.push(site.begin("/stream").await);
    }
    eventually("two streams", async || (site.pool("app").await["streams"] == 2).then_some(())).await;
    site.settles_at(0, 0).await;
    site.get("/page").await.assert_status(200);
}

#[tokio::test]
async fn a_worker_is_recycled_after_as_many_requests_as_the_file_allows() {
    let site = patient(app("diary.cjs")).option("pools.app.max_requests=20").started().await;
    let load = Load::on(site.address());
    let successor = worker(&site, "recycled", |worker| worker["recycled"].is_string()).await;
    assert!(successor["recycled"].as_str().unwrap().ends_with(" requests"), "{successor}");
    load.stop().await;
}

#[tokio::test]
async fn with_gc_idle_a_worker_collects_between_requests() {
    let site = app("diary.cjs").option("pools.app.gc=idle").started().await;
    eventually("it has collected", async || {
        site.get("/").await.assert_status(200);
        (site.workers().await[0]["collections"].as_u64()? > 0).then_some(())
    })
    .await;
}
