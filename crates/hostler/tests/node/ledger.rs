//! The ledger of a pool and the CPU time of real workers: who has used how much.

use std::fs;
use std::time::Duration;

use hostler_testkit::{client, eventually};
use serde_json::Value;
use tokio::task::JoinSet;

use super::proc::kill;
use super::site::{Site, app, configured, repository, source};

/// How long the workers of the two tests of the sum compute in all, in milliseconds.
const COMPUTED: u64 = 4_000;

/// The CPU time of all threads of a process, in milliseconds.
fn cpu_of(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let nanos = |thread: fs::DirEntry| -> Option<f64> {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    threads.filter_map(nanos).sum::<f64>() / 1e6
}

async fn cpu_of_workers(site: &Site) -> f64 {
    site.pids().await.into_iter().map(cpu_of).sum()
}

/// What a route has used, in milliseconds. 0: it is not in the ledger.
fn cpu(ledger: &Value, table: &str, name: &str) -> f64 {
    let rows = ledger[table].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name);
    row.map_or(0.0, |row| row["cpu_ms"]["1d"].as_f64().unwrap())
}

async fn ledger(site: &Site) -> Value {
    site.pool("app").await["ledger"].clone()
}

/// Two workers with two routes: `/spin` computes, and `/wait` waits.
async fn two_routes(concurrency: &str) -> Site {
    let folder = repository().join("crates/hostler/tests/node/apps");
    let text = format!(
        "[pools.app]\ncommand = 'node memory.cjs'\ncwd = '{}'\nworkers = 2\nconcurrency = {concurrency}\n\
         queue.fair = ['header:x-key', 'client']\n\
         [[routes]]\nmatch = '/spin'\npool = 'app'\n[[routes]]\nmatch = '*'\npool = 'app'\n",
        folder.display()
    );
    let site = configured(&text).started().await;
    site.is_ready().await;
    site
}

/// An app whose `/compute` uses 100 ms of CPU time, however busy the machine is. `/wait` takes 100 ms and computes nothing.
const COMPUTES: &str = "
    const http = require('node:http');
    const used = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
    http.createServer((req, res) => {
        if (req.url === '/wait') return setTimeout(() => res.end(), 100);
        const until = used() + 100;
        let sum = 0;
        while (req.url === '/compute' && used() < until) for (let i = 0; i < 1e5; i++) sum += i;
        res.end(String(sum));
    }).listen(3000);";

/// Sends requests from eight clients until each route has had its share, and compares the ledger with the workers' CPU time.
///
/// `times`: computing costs so many times more than waiting. With several requests at once, one that waits shares the CPU time of
/// those beside it.
async fn the_sum_agrees(concurrency: &str, times: f64) {
    let site = two_routes(concurrency).await;
    site.get("/spin?ms=5").await.assert_status(200);
    let before = cpu_of_workers(&site).await;
    let mut clients = JoinSet::new();
    let address = site.address();
    for number in 0..8_u64 {
        clients.spawn(async move {
            let mut client = client(address).await;
            for round in 0..COMPUTED / 8 / 20 {
                // 3 + 29 + 8 ms of computing in two rounds, and waits between them.
                let target = match (number + round) % 3 {
                    0 => "/spin?ms=3",
                    1 => "/spin?ms=29",
                    _ => "/wait?ms=10",
                };
                let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-Key: {number}\r\n\r\n");
                client.send(head).await;
                client.answer().await.assert_status(200);
            }
        });
    }
    clients.join_all().await;
    // The next request of each worker shows what it did after its last answer.
    let requests: Vec<_> = (0..8).map(|_| site.ask("/wait?ms=20")).collect();
    for request in requests {
        request.await.unwrap().assert_status(200);
    }
    let used = cpu_of_workers(&site).await - before;
    let ledger = ledger(&site).await;
    let (spin, rest) = (cpu(&ledger, "routes", "/spin"), cpu(&ledger, "routes", "*"));
    let unowned = ledger["unowned_cpu_ms"]["1d"].as_f64().unwrap();
    let charged = spin + rest + unowned;
    let logged: f64 = site.access_lines().iter().filter_map(|line| line["worker_cpu_ms"].as_f64()).sum();
    println!(
        "concurrency {concurrency}: workers {used:.0} ms; ledger {charged:.0} ms: /spin {spin}, * {rest}, unowned {unowned}; log {logged:.0} ms"
    );
    // 2 %, and what the clock of the kernel cannot show yet: a tick and an answer's end for each of two workers.
    let most = used * 0.02 + 20.0;
    assert!((charged - used).abs() <= most, "{charged} of {used}: {ledger:#}");
    assert!(spin > times * rest, "computing costs more than waiting: {ledger:#}");
    let keys: f64 =
        ledger["keys"].as_array().unwrap().iter().filter_map(|key| key["cpu_ms"]["1d"].as_f64()).sum();
    assert!((keys - (spin + rest)).abs() <= most, "the same by key: {ledger:#}");
    assert!((cpu(&ledger, "releases", "0") - (spin + rest)).abs() <= 2.0, "the same by release: {ledger:#}");
    site.stop().await;
}

#[tokio::test]
async fn with_one_slot_the_ledger_has_the_cpu_time_of_the_workers() {
    the_sum_agrees("1", 4.0).await;
}

#[tokio::test]
async fn with_several_requests_at_once_the_ledger_has_the_cpu_time_of_the_workers() {
    the_sum_agrees("'auto'", 1.5).await;
}

/// An app with a timer that computes for 10 ms of 50.
const TICKS: &str = "
    const http = require('node:http');
    setInterval(() => { const until = Date.now() + 10; while (Date.now() < until); }, 50);
    http.createServer((req, res) => res.end('ok')).listen(3000);";

#[tokio::test]
async fn what_workers_do_without_a_request_is_in_the_ledger_in_time() {
    let site = source(TICKS).workers(2).started().await;
    site.is_ready().await;
    let unowned = async || ledger(&site).await["unowned_cpu_ms"]["1d"].as_f64().unwrap_or_default();
    let (before, owned) = (cpu_of_workers(&site).await, unowned().await);
    eventually("300 ms of CPU time", async || (cpu_of_workers(&site).await > before + 300.0).then_some(()))
        .await;
    let (paid, used) = (unowned().await - owned, cpu_of_workers(&site).await - before);
    println!("without a request, workers used {used:.0} ms; ledger {paid} ms");
    assert!((paid - used).abs() < 100.0, "{paid} of {used}");
    site.stop().await;
}

#[tokio::test]
async fn the_log_tells_computing_from_waiting() {
    let site = source(COMPUTES).option("pools.app.concurrency=1").started().await;
    for target in ["/", "/wait", "/compute"] {
        site.get(target).await.assert_status(200);
    }
    let (waited, computed) = (site.access("/wait").await, site.access("/compute").await);
    let cpu = |line: &Value| line["worker_cpu_ms"].as_f64().unwrap();
    println!("waited: {} ms, computed: {} ms", cpu(&waited), cpu(&computed));
    assert!(cpu(&waited) < 50.0, "{waited}");
    assert!((85.0..150.0).contains(&cpu(&computed)), "{computed}");
    site.stop().await;
}

#[tokio::test]
async fn a_request_whose_client_has_left_still_pays() {
    let site = app("memory.cjs").option("pools.app.concurrency=1").started().await;
    site.get("/").await.assert_status(200);
    let before = cpu(&ledger(&site).await, "routes", "*");
    drop(site.begin("/spin?until=over").await);
    site.settles_at(1, 0).await;
    let pid = site.pid_of(1).await;
    let used = cpu_of(pid);
    eventually("200 ms of CPU time", async || (cpu_of(pid) > used + 200.0).then_some(())).await;
    site.touch("over");
    site.settles_at(0, 0).await;
    let paid = cpu(&ledger(&site).await, "routes", "*") - before;
    println!("after its client had left, a request paid {paid} ms");
    assert!(paid > 150.0, "{paid}");
    site.stop().await;
}

#[tokio::test]
async fn a_request_over_which_its_worker_was_killed_still_pays() {
    let site = app("memory.cjs").option("pools.app.concurrency=1").started().await;
    site.post("/", "x").await.assert_status(200);
    let before = cpu(&ledger(&site).await, "routes", "*");
    let pid = site.pid_of(1).await;
    let request = site
        .send("POST /spin?until=never HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let killed = async {
        let used = cpu_of(pid);
        eventually("200 ms of CPU time", async || (cpu_of(pid) > used + 200.0).then_some(())).await;
        kill(pid);
    };
    let (answer, ()) = tokio::join!(request, killed);
    answer.assert_status(502);
    let paid = async || {
        let paid = cpu(&ledger(&site).await, "routes", "*") - before;
        (paid > 150.0).then_some(paid)
    };
    let paid = eventually("the request has paid", paid).await;
    println!("after its worker was killed, a request paid {paid} ms");
    assert!(paid < Duration::from_secs(30).as_millis() as f64, "{paid}");
    site.stop().await;
}
