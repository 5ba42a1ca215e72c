//! Workers that are recycled.

use std::time::Duration;

use hostler_worker::{Recycling, SettingsChange, WorkerSettings};

use super::support::*;

fn recycling(change: impl FnOnce(&mut Recycling)) -> impl FnOnce(&mut WorkerSettings) {
    |settings| change(&mut settings.recycling)
}

#[tokio::test]
async fn after_so_many_requests_a_worker_is_recycled_without_losing_any() {
    let test_pool = test_pool(PLAIN)
        .with(|settings| settings.count = 2)
        .with(recycling(|limits| limits.max_requests = Some(50)))
        .started()
        .await;
    let load = test_pool.under_load(3);
    eventually("both were recycled", || {
        test_pool.workers.snapshot().iter().filter(|worker| worker.recycled.is_some()).count() >= 2
    })
    .await;
    let (answers, fewest) = load.end().await;
    assert!(fewest >= 2, "{fewest} workers at the worst moment");
    let mut pids = answers;
    pids.sort();
    pids.dedup();
    assert!(pids.len() >= 3, "answers of more than one generation: {pids:?}");
    test_pool.assert_logged(" requests\n");
    test_pool.assert_logged("): recycled: ");
    let recycled = test_pool.workers.snapshot().into_iter().find_map(|worker| worker.recycled).unwrap();
    assert!(recycled.ends_with(" requests"), "{recycled}");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_has_grown_too_large_or_too_old_is_recycled() {
    let grows = format!(
        "const hoard = []; let on = !require('fs').existsSync('full');
         setInterval(() => on && hoard.length < 20 && hoard.push(Buffer.alloc(16 << 20, 1)), 20); {PLAIN}"
    );
    let test_pool =
        test_pool(&grows).with(recycling(|limits| limits.max_memory = Some(256 << 20))).started().await;
    test_pool.write("full", "");
    eventually("recycled", || test_pool.worker().recycled.is_some()).await;
    assert!(test_pool.worker().recycled.unwrap().contains(" MiB resident"));
    // It was so large when it was looked at first.
    let heavy = test_pool.workers.rollout().heavy_start.expect("it is told");
    assert!(heavy.limit == 256 << 20 && heavy.memory > heavy.limit, "{heavy:?}");
    eventually("one worker", || test_pool.workers.snapshot().len() == 1).await;

    let mut settings = test_pool.settings.clone();
    settings.recycling = Recycling { max_age: Some(Duration::from_secs(1)), ..Recycling::default() };
    assert_eq!(test_pool.workers.update(settings), SettingsChange::Applied);
    eventually("recycled", || {
        test_pool.workers.snapshot().last().unwrap().recycled.as_deref().unwrap().ends_with(" s old")
    })
    .await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_whose_successor_does_not_boot_is_kept() {
    let test_pool = test_pool(PLAIN).started().await;
    let pid = test_pool.worker().pid.unwrap();
    test_pool.write("app.js", "throw new Error('no database')");
    let mut settings = test_pool.settings.clone();
    settings.recycling.max_age = Some(Duration::from_secs(1));
    test_pool.workers.update(settings);
    eventually("it is told", || test_pool.log().contains("not recycled")).await;
    test_pool.assert_logged("because its successor did not get ready: exit code 1 before it was ready: Error: no database; next attempt in 30 s");
    eventually("the successor is gone", || test_pool.workers.snapshot().len() == 1).await;
    assert_eq!(test_pool.get("/").await, pid.to_string());
    test_pool.stop().await;
}
