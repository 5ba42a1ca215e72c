//! Garbage collection between requests.

use hostler_worker::{Rotation, WorkerState};

use super::support::*;

/// An app that prints each garbage collection that was asked for.
const TELLS: &str = "
const { PerformanceObserver, constants } = require('perf_hooks');
new PerformanceObserver((list) => {
  for (const { detail } of list.getEntries()) {
    if (detail.flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) console.log('was asked to collect');
  }
}).observe({ entryTypes: ['gc'] });
require('http').createServer((req, res) => res.end('ok')).listen(3000);";

#[tokio::test]
async fn an_idle_worker_collects_garbage_and_goes_on_and_a_drain_keeps_the_count() {
    let test_pool = test_pool(TELLS).with(|settings| settings.collect_when_idle = true).started().await;
    for _ in 0..20 {
        test_pool.get("/").await;
    }
    eventually("it has collected", || test_pool.worker().collections > 0).await;
    eventually("it says so itself", || test_pool.log().contains("was asked to collect")).await;
    let before = test_pool.worker().collections;
    test_pool.workers.rotate(1, Rotation::Out { length: None, force: true }).await.unwrap();
    eventually("drained", || test_pool.worker().state == WorkerState::OutOfRotation).await;
    test_pool.workers.rotate(1, Rotation::In).await.unwrap();
    eventually("back", || test_pool.worker().state == WorkerState::Ready).await;
    assert!(test_pool.worker().collections >= before, "the process is the same, so its figures go on");
    test_pool.get("/").await;
    assert_eq!(test_pool.worker().generation, 1);
    test_pool.stop().await;
}

#[tokio::test]
async fn no_worker_is_asked_to_collect_unless_configured() {
    let test_pool = test_pool(TELLS).started().await;
    for _ in 0..40 {
        test_pool.get("/").await;
    }
    assert_eq!(test_pool.worker().collections, 0);
    assert!(!test_pool.log().contains("was asked to collect"), "{}", test_pool.log());
    test_pool.stop().await;
}
