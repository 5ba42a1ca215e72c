//! A worker never has more requests than slots, whatever its clients do. The workers themselves count.

use std::collections::HashSet;

use hostler_testkit::{client, eventually};

use super::site::{Site, app, source};

const CROWD: usize = 50;

async fn two_workers() -> Site {
    app("diary.cjs").workers(2).option("pools.app.concurrency=1").started().await
}

/// The most requests that any worker has had at once.
fn most_at_once(site: &Site) -> u64 {
    site.diary().iter().map(|entry| entry["running"].as_u64().unwrap()).max().unwrap()
}

fn urls(site: &Site) -> Vec<String> {
    site.diary().iter().map(|entry| entry["url"].as_str().unwrap().to_owned()).collect()
}

/// `way` is `wait` (the event loop is free meanwhile) or `spin` (it is blocked).
async fn a_crowd_is_served_one_by_one(way: &str) {
    let site = two_workers().await;
    let requests: Vec<_> = (0..CROWD).map(|n| site.ask(&format!("/{way}?ms=20&n={n}"))).collect();
    let mut served_by = HashSet::new();
    for request in requests {
        served_by.insert(request.await.unwrap().assert_status(200).json()["worker"].as_u64());
    }
    assert_eq!(most_at_once(&site), 1);
    assert_eq!(site.diary().len(), CROWD, "each request reached a worker once");
    assert_eq!(served_by.len(), 2, "both workers served");
    site.stop().await;
}

#[tokio::test]
async fn many_requests_that_wait_in_workers_are_served_one_by_one() {
    a_crowd_is_served_one_by_one("wait").await;
}

#[tokio::test]
async fn many_requests_that_compute_in_workers_are_served_one_by_one() {
    a_crowd_is_served_one_by_one("spin").await;
}

/// All clients leave at once while two of them are served: those two requests are finished, the others never reach a worker.
async fn a_crowd_leaves(way: &str) {
    let site = two_workers().await;
    let requests: Vec<_> = (0..CROWD).map(|n| site.ask(&format!("/{way}?until=released&n={n}"))).collect();
    site.settles_at(2, CROWD - 2).await;
    eventually("two have begun", async || (site.diary().len() == 2).then_some(())).await;
    for request in requests {
        request.abort();
    }
    site.settles_at(2, 0).await;

    let newcomers: Vec<_> = (0..4).map(|n| site.ask(&format!("/{way}?ms=20&newcomer={n}"))).collect();
    site.settles_at(2, 4).await;
    assert_eq!(site.diary().len(), 2, "the slots of clients that left are still taken");
    site.touch("released");
    for newcomer in newcomers {
        newcomer.await.unwrap().assert_status(200);
    }

    assert_eq!(most_at_once(&site), 1);
    let first = urls(&site).iter().filter(|url| url.contains("until")).count();
    assert_eq!((first, site.diary().len()), (2, 6), "those that left the queue never reached a worker");
    site.settles_at(0, 0).await;
    let pool = site.pool("app").await;
    assert_eq!(pool["counters"]["left_queue"], CROWD - 2, "{pool}");
    site.stop().await;
}

#[tokio::test]
async fn clients_that_leave_change_nothing_for_workers_that_wait() {
    a_crowd_leaves("wait").await;
}

#[tokio::test]
async fn clients_that_leave_change_nothing_for_workers_that_compute() {
    a_crowd_leaves("spin").await;
}

#[tokio::test]
async fn a_client_that_got_504_leaves_its_slot_taken_until_the_worker_has_finished() {
    let site = app("diary.cjs")
        .option("pools.app.request_timeout=2s")
        .option("pools.app.concurrency=1")
        .started()
        .await;
    site.get("/wait?until=released").await.assert_refused(504, "answer_timeout");
    let next = site.ask("/");
    site.settles_at(1, 1).await;
    assert_eq!(site.diary().len(), 1, "the worker is still busy");
    site.touch("released");
    next.await.unwrap().assert_status(200);
    assert_eq!(most_at_once(&site), 1);
    site.stop().await;
}

#[tokio::test]
async fn clients_that_come_and_go_never_give_a_worker_two_requests() {
    let site = two_workers().await;
    for wave in 0..10 {
        let requests: Vec<_> =
            (0..CROWD / 2).map(|n| site.ask(&format!("/wait?ms=5&wave={wave}&n={n}"))).collect();
        // Some have been served by then, some run, the rest wait.
        eventually("some of the wave are served", async || {
            let served = requests.iter().filter(|request| request.is_finished()).count();
            (served > wave).then_some(())
        })
        .await;
        requests.iter().for_each(tokio::task::JoinHandle::abort);
    }
    site.settles_at(0, 0).await;
    assert_eq!(most_at_once(&site), 1);
    let workers = site.workers().await;
    assert!(workers.iter().all(|worker| worker["restarts"] == 0), "{workers:?}");
    site.stop().await;
}

/// More than the kernel takes of a body that an app does not read.
const UPLOAD: usize = 5 << 20;

/// It reads no body. It answers a POST when the test says so.
const READS_NO_BODY: &str = r"
const { existsSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const file = (name) => join(process.env.TEST_FOLDER, name)
require('node:http').createServer((req, res) => {
  if (req.method === 'GET') return res.end('ok')
  writeFileSync(file('held'), '')
  const timer = setInterval(() => {
    if (!existsSync(file('released'))) return
    clearInterval(timer)
    res.end('done')
  }, 10)
}).listen(process.env.PORT)
";

#[tokio::test]
async fn an_upload_that_an_app_does_not_read_keeps_no_other_request_from_the_worker() {
    let site = source(READS_NO_BODY).started().await;
    let address = site.address();
    let upload = tokio::spawn(async move { client(address).await.post("/", vec![b'x'; UPLOAD]).await });
    eventually("the app has the upload's head", async || site.file("held").exists().then_some(())).await;

    site.get("/").await.assert_ok("ok");

    assert!(!upload.is_finished());
    site.touch("released");
    upload.await.unwrap().assert_ok("done");
    site.stop().await;
}

#[tokio::test]
async fn a_server_in_a_worker_thread_gets_requests_by_the_event_loop_of_that_thread() {
    let site = source(
        "new (require('worker_threads').Worker)(`
            require('http').createServer((req, res) => {
              if (req.url !== '/held') return res.end('ok')
              const file = require('path').join(process.env.TEST_FOLDER, 'released')
              const timer = setInterval(() => {
                if (!require('fs').existsSync(file)) return
                clearInterval(timer)
                res.end('released')
              }, 10)
            }).listen(process.env.PORT)`, { eval: true });",
    );
    let site = site.started().await;
    let held: Vec<_> = (0..CROWD).map(|_| site.ask("/held")).collect();
    site.settles_at(CROWD, 0).await;
    site.get("/").await.assert_ok("ok");
    let worker = &site.workers().await[0];
    assert!(worker["slots_reason"].as_str().unwrap().starts_with("by the event loop ("), "{worker}");
    site.touch("released");
    for request in held {
        request.await.unwrap().assert_ok("released");
    }
    site.stop().await;
}
