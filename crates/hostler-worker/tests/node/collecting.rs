//! Garbage that is collected between requests.

use super::support::*;

/// Says whatever garbage is collected because somebody asked for it.
const TELLS: &str = "
const { PerformanceObserver, constants } = require('perf_hooks');
new PerformanceObserver((list) => {
  for (const { detail } of list.getEntries()) {
    if (detail.flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) console.log('was asked to collect');
  }
}).observe({ entryTypes: ['gc'] });
require('http').createServer((req, res) => res.end('ok')).listen(3000);";

#[tokio::test]
async fn an_idle_worker_collects_garbage_and_goes_on() {
    let crew = crew(TELLS).with(|settings| settings.collect_when_idle = true).started().await;
    for _ in 0..20 {
        crew.get("/").await;
    }
    eventually("it has collected", || crew.worker().collections > 0).await;
    eventually("it says so itself", || crew.log().contains("was asked to collect")).await;
    crew.get("/").await;
    assert_eq!(crew.worker().generation, 1);
    crew.stop().await;
}

#[tokio::test]
async fn nobody_is_asked_to_collect_unless_that_is_wanted() {
    let crew = crew(TELLS).started().await;
    for _ in 0..40 {
        crew.get("/").await;
    }
    assert_eq!(crew.worker().collections, 0);
    assert!(!crew.log().contains("was asked to collect"), "{}", crew.log());
    crew.stop().await;
}
