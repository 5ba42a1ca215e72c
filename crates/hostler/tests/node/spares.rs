//! Spares: they serve while another worker boots or is blocked, and run the newest code.

use hostler_testkit::{eventually, run};
use serde_json::Value;

use super::proc;
use super::site::{Site, app, configured};

/// The app boots only while there is no file `hold`, and answers with its version and process.
const APP: &str = "const fs = require('fs');
    const server = require('http').createServer((q, r) => r.end(`${process.env.VERSION} ${process.pid}`));
    const boot = () => (fs.existsSync(`${process.env.TEST_FOLDER}/hold`) ? setTimeout(boot, 10) : server.listen(3000));
    boot();";

fn config(spares: usize, version: &str) -> String {
    let queue = "queue.timeout = '1h'\nrequest_timeout = '1h'";
    format!(
        "[pools.app]\ncommand = 'node app.cjs'\nworkers = 1\nspares = {spares}\nenv.VERSION = '{version}'\n{queue}\n"
    )
}

async fn started() -> Site {
    let plan = configured(&config(1, "v1"));
    std::fs::write(plan.folder().join("app.cjs"), APP).unwrap();
    plan.started().await
}

async fn spares(site: &Site) -> Vec<Value> {
    site.pool("app").await["spares"].as_array().cloned().unwrap_or_default()
}

/// The process of the only spare, once it stands by.
async fn standby(site: &Site) -> u64 {
    eventually("a spare stands by", async || {
        let spares = spares(site).await;
        spares.iter().find(|spare| spare["state"] == "standby")?["pid"].as_u64()
    })
    .await
}

async fn answer(site: &Site) -> String {
    site.get("/").await.assert_status(200).text()
}

#[tokio::test]
async fn a_spare_serves_while_the_worker_that_died_boots() {
    let site = started().await;
    let spare = standby(&site).await;
    let worker = site.pid_of(1).await;
    assert_eq!(answer(&site).await, format!("v1 {worker}"), "the spare gets no requests");
    let admin = site.admin().to_string();
    let table = run(env!("CARGO_BIN_EXE_hostler"), &["status", "--admin", &admin], site.folder()).await;
    assert!(table.stdout.contains("standby (spare)"), "{}", table.stdout);
    let metrics = site.ask_admin("/metrics").await.text();
    for worker in [1, 2] {
        let memory = format!("\nhostler_worker_resident_memory_bytes{{pool=\"app\",worker=\"{worker}\"}} ");
        assert!(metrics.contains(&memory), "{memory}: {metrics}");
    }

    site.touch("hold");
    proc::kill(worker);
    eventually("the worker is missing", async || {
        (site.workers().await[0]["state"] == "booting").then_some(())
    })
    .await;
    assert_eq!(answer(&site).await, format!("v1 {spare}"));
    std::fs::remove_file(site.file("hold")).unwrap();
    assert_eq!(standby(&site).await, spare, "it stands by again");
    let worker = site.pid_of(1).await;
    assert_eq!(answer(&site).await, format!("v1 {worker}"));

    // The spare itself dies, and boots again.
    proc::kill(spare as u32);
    let is_back = |other: &Value| other["state"] == "standby" && other["pid"] != spare;
    eventually("another spare stands by", async || spares(&site).await.iter().any(is_back).then_some(()))
        .await;
    site.stop().await;
}

#[tokio::test]
async fn after_a_restart_the_spare_runs_the_new_code_and_a_reload_can_remove_it() {
    let site = started().await;
    let old = standby(&site).await;
    site.configure(&config(1, "v2"));
    site.command(&["reload"]).await.assert_exit(0);
    let new = eventually("a new spare", async || {
        let spares = spares(&site).await;
        let new = spares.iter().find(|spare| spare["state"] == "standby" && spare["pid"] != old)?;
        new["pid"].as_u64()
    })
    .await;
    site.touch("hold");
    proc::kill(site.pid_of(1).await);
    eventually("the spare serves", async || (answer(&site).await == format!("v2 {new}")).then_some(())).await;
    std::fs::remove_file(site.file("hold")).unwrap();
    site.is_ready().await;
    site.configure(&config(0, "v2"));
    site.command(&["reload"]).await.assert_exit(0);
    eventually("no spare is left", async || spares(&site).await.is_empty().then_some(())).await;
    assert_eq!(answer(&site).await, format!("v2 {}", site.pid_of(1).await));
    site.stop().await;
}

#[tokio::test]
async fn a_spare_serves_while_all_workers_are_blocked() {
    let times = ["request_timeout", "hang_timeout", "queue.timeout"];
    let plan = times
        .iter()
        .fold(app("diary.cjs").workers(2), |plan, time| plan.option(&format!("pools.app.{time}=1h")));
    let site = plan.started().await;
    let mut blocking = Vec::new();
    for blocked in 1..=2 {
        blocking.push(site.ask("/spin?until=released"));
        eventually("a worker has it", async || (site.diary().len() == blocked).then_some(())).await;
    }
    let served = site.get("/").await.assert_status(200).json();
    let blocked: Vec<Value> = site.diary().iter().take(2).map(|entry| entry["pid"].clone()).collect();
    assert!(!blocked.contains(&served["pid"]), "{served} {blocked:?}");
    site.logged("its event loop has not turned for 3 s").await;
    site.logged("is started as a spare").await;
    eventually("the metrics show both as blocked", async || {
        let metrics = site.ask_admin("/metrics").await.text();
        let blocked = |worker: usize| {
            let name = format!("hostler_worker_blocked_seconds{{pool=\"app\",worker=\"{worker}\"}} ");
            metrics.lines().find_map(|line| line.strip_prefix(name.as_str())?.parse::<f64>().ok())
        };
        (blocked(1) >= Some(3.0) && blocked(2) >= Some(3.0)).then_some(())
    })
    .await;

    site.touch("released");
    for request in blocking {
        request.await.unwrap().assert_status(200);
    }
    assert_eq!(standby(&site).await, served["pid"], "the spare stands by again");
    site.stop().await;
}
