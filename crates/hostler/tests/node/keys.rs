//! Configuration keys for workers: each takes effect.

use hostler_testkit::eventually;
use serde_json::Value;

use super::load::Load;
use super::site::{Plan, Site, app, source};

/// Timeouts that a slow or busy machine does not exceed.
fn patient(plan: Plan) -> Plan {
    ["request_timeout=60s", "queue.timeout=60s", "queue.policy=fifo"]
        .iter()
        .fold(plan, |plan, setting| plan.option(&format!("pools.app.{setting}")))
}

/// The first worker, once the condition holds.
async fn worker(site: &Site, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(what, async || site.workers().await.into_iter().next().filter(&is_so)).await
}

#[tokio::test]
async fn with_concurrency_auto_an_app_that_waits_gets_more_slots_and_the_status_says_why() {
    let waits = "require('http').createServer((req, res) => setTimeout(() => res.end(), 300)).listen(3000);";
    let site = patient(source(waits)).option("pools.app.concurrency=auto").started().await;
    assert_eq!(site.workers().await[0]["slots"], 1);
    let load = Load::on(site.address());
    let grown = worker(&site, "more slots", |worker| worker["slots"].as_u64() > Some(1)).await;
    assert!(grown["slots_reason"].as_str().unwrap().starts_with("event loop "), "{grown}");
    load.stop().await;
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
