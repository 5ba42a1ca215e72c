//! `hostler drain` and `hostler undrain` with real workers: under load, with a running request, for a time, alone, and with a snapshot.

use hostler_testkit::{Output, eventually, run};
use serde_json::Value;

use super::load::Load;
use super::proc;
use super::site::{Plan, Site, source};

/// `/held` ends when the file `release` exists.
const APP: &str = "const fs = require('fs');
    const isReleased = () => fs.existsSync(`${process.env.TEST_FOLDER}/release`);
    const held = (res) => (isReleased() ? res.end(`pid ${process.pid}`) : setTimeout(held, 10, res));
    require('http').createServer((req, res) => (req.url === '/held' ? held(res) : res.end(`pid ${process.pid}`))).listen(3000);";

fn plan(workers: usize) -> Plan {
    source(APP).workers(workers).option("pools.app.concurrency=1")
}

async fn hostler(site: &Site, arguments: &[&str]) -> Output {
    let admin = site.admin().to_string();
    run(env!("CARGO_BIN_EXE_hostler"), &[arguments, &["--admin", &admin]].concat(), site.folder()).await
}

async fn worker(site: &Site, index: usize) -> Value {
    site.status().await["pools"][0]["workers"][index - 1].clone()
}

async fn is(site: &Site, index: usize, state: &str) {
    eventually(format!("worker {index} to be {state}"), async || {
        (worker(site, index).await["state"] == state).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_drained_worker_gets_no_request_and_comes_back() {
    let site = plan(2).started().await;
    let load = Load::on(site.address());
    load.goes_on_for(50).await;
    eventually("its utilisation is measured", async || {
        worker(&site, 2).await["utilisation"].is_number().then_some(())
    })
    .await;
    hostler(&site, &["drain", "app/2"]).await.assert_exit(0);
    is(&site, 2, "out of rotation").await;
    site.logged("app/2: drained: its last request has ended").await;
    eventually("its utilisation is not known any more", async || {
        worker(&site, 2).await["utilisation"].is_null().then_some(())
    })
    .await;
    let before = worker(&site, 2).await;
    assert!(before["drained_ms"].is_number() && before["drain_ends_in_ms"].is_null(), "{before}");
    load.goes_on_for(100).await;
    let drained = worker(&site, 2).await;
    assert_eq!((&drained["pid"], &drained["requests"]), (&before["pid"], &before["requests"]));
    let had = before["requests"].as_u64().filter(|had| *had > 0).expect("its process has had requests");
    let shown = hostler(&site, &["status"]).await;
    assert!(shown.stdout.contains("drained"), "{}", shown.stdout);
    hostler(&site, &["undrain", "app/2"]).await.assert_exit(0);
    is(&site, 2, "ready").await;
    eventually("more requests of the same process", async || {
        (worker(&site, 2).await["requests"].as_u64() > Some(had + 20)).then_some(())
    })
    .await;
    assert_eq!(worker(&site, 2).await["pid"], before["pid"], "the process has stayed");
    load.stop().await;
    hostler(&site, &["undrain", "app/2"]).await.assert_exit(1).assert_complains("app/2 is not drained");
}

#[tokio::test]
async fn a_new_worker_that_is_drained_does_not_hold_up_the_restart() {
    let site = source(
        "const fs = require('fs'), { HOSTLER_WORKER, HOSTLER_GENERATION, TEST_FOLDER } = process.env;
        const serve = () => require('http').createServer((req, res) => res.end()).listen(3000);
        const waits = HOSTLER_WORKER === '2' && HOSTLER_GENERATION === '2';
        const look = () => (!waits || fs.existsSync(TEST_FOLDER + '/go') ? serve() : setTimeout(look, 10));
        look();",
    );
    let site = site.workers(3).started().await;
    site.is_ready().await;
    let drained = async {
        site.logged("app/1: ends (pid").await;
        hostler(&site, &["drain", "app/1"]).await.assert_exit(0);
        site.touch("go");
    };
    let (restart, ()) = tokio::join!(hostler(&site, &["restart"]), drained);
    restart.assert_exit(0);
    is(&site, 1, "out of rotation").await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_with_a_running_request_gets_no_second_one_when_it_comes_back() {
    let site = plan(1).started().await;
    let held = site.ask("/held");
    eventually("the request", async || (worker(&site, 1).await["in_use"] == 1).then_some(())).await;
    hostler(&site, &["drain", "app/1"]).await.assert_exit(1).assert_complains("Use --force");
    hostler(&site, &["drain", "app/1", "--force"]).await.assert_exit(0);
    hostler(&site, &["undrain", "app/1"]).await.assert_exit(0);
    assert_eq!(worker(&site, 1).await["state"], "out of rotation", "it finishes its request first");
    site.touch("release");
    held.await.unwrap().assert_status(200);
    is(&site, 1, "ready").await;
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn a_stop_serves_requests_that_wait_for_a_drained_worker() {
    let mut site =
        plan(1).option("server.drain_timeout=1h").option("pools.app.queue.timeout=1h").started().await;
    hostler(&site, &["drain", "app/1", "--force"]).await.assert_exit(0);
    is(&site, 1, "out of rotation").await;
    let waiting = site.ask("/");
    site.settles_at(0, 1).await;
    site.terminate();
    waiting.await.unwrap().assert_status(200);
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_drain_ends_after_its_time_or_with_its_process() {
    let site = plan(2).started().await;
    hostler(&site, &["drain", "app/1", "--for", "300ms"]).await.assert_exit(0);
    is(&site, 1, "ready").await;
    hostler(&site, &["drain", "app/1", "--for", "10m"]).await.assert_exit(0);
    is(&site, 1, "out of rotation").await;
    let drained = worker(&site, 1).await;
    assert!(drained["drain_ends_in_ms"].as_u64() > Some(500_000), "{drained}");
    proc::kill(drained["pid"].as_u64().unwrap() as u32);
    eventually("a new process in rotation", async || {
        let now = worker(&site, 1).await;
        (now["state"] == "ready" && now["pid"] != drained["pid"] && now["drained_ms"].is_null()).then_some(())
    })
    .await;
    hostler(&site, &["drain", "app/1", "--for", "0s"])
        .await
        .assert_exit(2)
        .assert_complains("from 1ms to 7days");
    hostler(&site, &["drain", "app/7"]).await.assert_exit(1).assert_complains("app/1 to app/2");
    hostler(&site, &["drain", "app"]).await.assert_exit(2).assert_complains("name the worker");
}

#[tokio::test]
async fn a_heap_snapshot_of_a_drained_worker_leaves_it_drained() {
    let site = plan(2).started().await;
    hostler(&site, &["drain", "app/2"]).await.assert_exit(0);
    is(&site, 2, "out of rotation").await;
    hostler(&site, &["heap", "app/2"]).await.assert_exit(0);
    let after = worker(&site, 2).await;
    assert!(after["state"] == "out of rotation" && after["drained_ms"].is_number(), "{after}");
    hostler(&site, &["undrain", "app/2"]).await.assert_exit(0);
    is(&site, 2, "ready").await;
}
