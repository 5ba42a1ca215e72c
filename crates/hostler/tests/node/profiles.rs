//! `hostler profile` and `hostler heap` with real workers: busy, idle, hung, dying, alone in their pool, and without the preload.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hostler_testkit::{Output, client, eventually, run};
use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::proc;
use super::site::{Plan, Site, source};

/// `/held`, `/loop` and the loop after `/loop-after` end when the file `release` exists.
const APP: &str = "const fs = require('fs');
    const isReleased = () => fs.existsSync(`${process.env.TEST_FOLDER}/release`);
    globalThis.kept = Buffer.from('a string that only the heap has: ' + process.pid).toString();
    function hottestByConstruction() { let x = 0; for (let i = 0; i < 2e6; i += 1) x = (x * 31 + i) % 1000003; return x; }
    function coldByConstruction() { let x = 0; for (let i = 0; i < 1e4; i += 1) x = (x * 31 + i) % 1000003; return x; }
    function loopsWithoutEnd() { for (let i = 1; ; i += 1) if (i % 1e7 === 0 && isReleased()) return; }
    const held = (res) => (isReleased() ? res.end('released') : setTimeout(held, 10, res));
    require('http').createServer((req, res) => {
      if (req.url === '/held') return held(res);
      if (req.url === '/loop') loopsWithoutEnd();
      if (req.url === '/loop-after') return res.end('the loop follows', () => setImmediate(loopsWithoutEnd));
      if (req.url === '/hot') res.write(String(coldByConstruction() + hottestByConstruction()));
      res.end(`pid ${process.pid}`);
    }).listen(3000);";

fn plan(workers: usize) -> Plan {
    source(APP).workers(workers).option("pools.app.hang_timeout=5m").option("pools.app.concurrency=4")
}

async fn hostler(site: &Site, arguments: &[&str]) -> Output {
    let admin = site.admin().to_string();
    let arguments = [arguments, &["--admin", &admin]].concat();
    run(env!("CARGO_BIN_EXE_hostler"), &arguments, site.folder()).await
}

/// Runs the command beside the test.
fn begin(site: &Site, arguments: &[&str]) -> JoinHandle<Output> {
    let (admin, folder) = (site.admin().to_string(), site.folder().to_owned());
    let mut arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    arguments.extend(["--admin".to_owned(), admin]);
    tokio::spawn(async move {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(env!("CARGO_BIN_EXE_hostler"), &arguments, &folder).await
    })
}

/// The only file with this ending in the folder of the site.
fn only_file(site: &Site, ending: &str) -> PathBuf {
    let files = std::fs::read_dir(site.folder()).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = files.filter(|file| file.to_str().unwrap().ends_with(ending)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let mode = std::fs::metadata(&found[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only the user can read {found:?}");
    found[0].clone()
}

/// No file is left half-written.
fn has_no_part(site: &Site) {
    let files = std::fs::read_dir(site.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let parts: Vec<_> = files.filter(|name| name.to_str().unwrap().ends_with(".part")).collect();
    assert!(parts.is_empty(), "{parts:?}");
}

async fn shows(site: &Site, worker: usize, key: &str, value: Value) {
    eventually(format!("worker {worker} has {key} = {value}"), async || {
        (site.workers().await[worker - 1][key] == value).then_some(())
    })
    .await;
}

/// Requests in the background until the returned flag is set. The result is how many were answered.
fn load(site: &Site, path: &'static str) -> (Arc<AtomicBool>, JoinHandle<usize>) {
    let (stop, address) = (Arc::new(AtomicBool::new(false)), site.address());
    let is_over = stop.clone();
    let task = tokio::spawn(async move {
        let mut count = 0;
        while !is_over.load(Ordering::Relaxed) {
            client(address).await.get(path).await.assert_status(200);
            count += 1;
        }
        count
    });
    (stop, task)
}

#[tokio::test]
async fn a_profile_of_a_busy_worker_has_its_hottest_function_first() {
    let site = plan(1).started().await;
    let (stop, requests) = load(&site, "/hot");
    let output = hostler(&site, &["profile", "app", "--seconds", "2"]).await;
    stop.store(true, Ordering::Relaxed);
    assert!(requests.await.unwrap() > 1, "requests go on");
    output.assert_exit(0);
    let first = output.stdout.lines().skip_while(|line| !line.contains("of busy")).nth(1).unwrap();
    assert!(first.contains("hottestByConstruction") && first.contains("app.cjs:4"), "{}", output.stdout);

    let profile: Value =
        serde_json::from_slice(&std::fs::read(only_file(&site, ".cpuprofile")).unwrap()).unwrap();
    assert!(profile["samples"].as_array().unwrap().len() > 100);
    let page = std::fs::read_to_string(only_file(&site, ".html")).unwrap();
    assert!(page.contains("hottestByConstruction") && !page.contains("src="), "{page}");
    has_no_part(&site);
    shows(&site, 1, "inspection", Value::Null).await;
    assert_eq!(site.workers().await[0]["restarts"], 0);
}

#[tokio::test]
async fn a_profile_of_an_idle_worker_says_that_it_is_idle() {
    let site = plan(2).started().await;
    let output = hostler(&site, &["profile", "app/2", "--seconds", "0.5"]).await;
    output.assert_exit(0);
    assert!(
        output.stdout.starts_with("app/2 (pid ") && output.stdout.contains("idle 9"),
        "{}",
        output.stdout
    );
}

/// The TCP ports on which this process listens.
fn open_ports(pid: u32) -> Vec<u16> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let inodes: Vec<String> = links
        .filter_map(|entry| std::fs::read_link(entry.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[3] == "0A" && inodes.iter().any(|inode| inode == row[9]))
        .map(|row| u16::from_str_radix(row[1].split_once(':').unwrap().1, 16).unwrap())
        .collect()
}

#[tokio::test]
async fn a_profile_of_a_hung_worker_names_the_loop_and_leaves_no_port_open() {
    let site = plan(1).started().await;
    let pid = site.pid_of(1).await;
    let request = site.ask("/loop");
    site.settles_at(1, 0).await;
    let profile = begin(&site, &["profile", "app/1", "--seconds", "1"]);
    let port = eventually("the inspector is open", async || open_ports(pid).first().copied()).await;
    // Another user of the machine can connect, but does not learn the address.
    let mut stranger = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stranger
        .write_all(format!("GET /json/list HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = [0; 12];
    stranger.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.0 404");
    drop(stranger);

    let output = profile.await.unwrap();
    output
        .assert_exit(0)
        .assert_complains("its event loop hangs")
        .assert_complains("it is in loopsWithoutEnd (");
    assert!(output.stdout.contains("app.cjs:") && output.stdout.contains("idle 0.0 %"), "{}", output.stdout);

    site.touch("release");
    request.await.unwrap().assert_status(200);
    eventually("the inspector is closed", async || open_ports(pid).is_empty().then_some(())).await;
    assert_eq!(site.pid_of(1).await, pid, "the worker lives");
}

#[tokio::test]
async fn a_heap_snapshot_under_load_loses_no_request() {
    let site = plan(2).started().await;
    let (stop, requests) = load(&site, "/");
    let output = hostler(&site, &["heap", "app/1"]).await;
    output.assert_exit(0);
    shows(&site, 1, "state", "ready".into()).await;
    stop.store(true, Ordering::Relaxed);
    assert!(requests.await.unwrap() > 0);
    let text = std::fs::read_to_string(only_file(&site, ".heapsnapshot")).unwrap();
    let kept = format!("a string that only the heap has: {}", site.pid_of(1).await);
    let snapshot: Value = serde_json::from_str(&text).unwrap();
    assert!(snapshot["strings"].as_array().unwrap().iter().any(|string| *string == kept));
    assert_eq!(site.workers().await[0]["restarts"], 0);
    has_no_part(&site);
}

#[tokio::test]
async fn a_worker_is_out_of_rotation_until_its_snapshot_and_takes_one_inspection_at_a_time() {
    let site = plan(2).option("pools.app.concurrency=1").started().await;
    let held = [site.ask("/held"), site.ask("/held")];
    site.settles_at(2, 0).await;
    let heap = begin(&site, &["heap", "app/1"]);
    shows(&site, 1, "state", "out of rotation".into()).await;
    shows(&site, 1, "inspection", "heap snapshot".into()).await;
    let second = hostler(&site, &["profile", "app/1"]).await;
    second.assert_exit(1).assert_complains("app/1 is busy: a heap snapshot of it is being taken");
    let other = hostler(&site, &["heap", "app/2"]).await;
    other.assert_exit(1).assert_complains("app/2 is the only worker of pool app that is ready");
    site.touch("release");
    heap.await.unwrap().assert_exit(0);
    for request in held {
        request.await.unwrap().assert_status(200);
    }
    shows(&site, 1, "state", "ready".into()).await;
}

#[tokio::test]
async fn requests_that_do_not_end_in_time_cancel_the_snapshot() {
    let site = plan(1).started().await;
    let held = site.ask("/held");
    site.settles_at(1, 0).await;
    let output = hostler(&site, &["heap", "app/1", "--force", "--wait", "100ms"]).await;
    output.assert_exit(1).assert_complains("its requests have not ended within 0.1 s");
    has_no_part(&site);
    shows(&site, 1, "state", "ready".into()).await;
    site.get("/").await.assert_status(200);
    site.touch("release");
    held.await.unwrap().assert_status(200);
}

#[tokio::test]
async fn a_snapshot_that_was_given_up_is_not_taken_when_the_event_loop_turns_again() {
    let site = plan(1).started().await;
    site.get("/loop-after").await.assert_status(200);
    let output = hostler(&site, &["heap", "app/1", "--force"]).await;
    output.assert_exit(1).assert_complains("its event loop has not turned for 5 s");
    has_no_part(&site);
    // The worker reads both orders at once. Only the second one is still wanted.
    let heap = begin(&site, &["heap", "app/1", "--force"]);
    shows(&site, 1, "inspection", "heap snapshot".into()).await;
    site.touch("release");
    heap.await.unwrap().assert_exit(0);
    let text = std::fs::read_to_string(only_file(&site, ".heapsnapshot")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap();
}

/// Begins a heap snapshot that waits for a request. `hangup`: what SIGHUP does to the command, as an option of `env`.
fn begin_heap(site: &Site, hangup: &str) -> Child {
    let mut command = Command::new("env");
    command.args([hangup, env!("CARGO_BIN_EXE_hostler"), "heap", "app/1", "--force", "--admin"]);
    command.arg(site.admin().to_string()).current_dir(site.folder());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[tokio::test]
async fn a_snapshot_whose_command_is_told_to_end_leaves_no_part_of_a_file() {
    let site = plan(1).started().await;
    let held = site.ask("/held");
    site.settles_at(1, 0).await;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut heap = begin_heap(&site, "--default-signal=HUP");
        shows(&site, 1, "inspection", "heap snapshot".into()).await;
        proc::signal(heap.id(), signal);
        let status = eventually("the end of the command", async || heap.try_wait().unwrap()).await;
        assert_eq!(status.code(), Some(1), "{signal:?}");
        has_no_part(&site);
        shows(&site, 1, "state", "ready".into()).await;
    }
    let mut heap = begin_heap(&site, "--ignore-signal=HUP");
    shows(&site, 1, "inspection", "heap snapshot".into()).await;
    proc::signal(heap.id(), Signal::HUP);
    site.touch("release");
    held.await.unwrap().assert_status(200);
    let status = eventually("the end of the command", async || heap.try_wait().unwrap()).await;
    assert_eq!(status.code(), Some(0), "nohup holds");
    only_file(&site, ".heapsnapshot");
}

#[tokio::test]
async fn the_only_worker_of_a_pool_needs_force() {
    let site = plan(1).started().await;
    hostler(&site, &["heap", "app/1"]).await.assert_exit(1).assert_complains("Use --force");
    hostler(&site, &["heap", "app/1", "--force"]).await.assert_exit(0);
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn a_worker_is_replaced_after_its_snapshot_if_that_is_wanted() {
    let site = plan(2).started().await;
    let pid = site.pid_of(1).await;
    hostler(&site, &["heap", "app/1", "--replace"]).await.assert_exit(0);
    eventually("another process is worker 1", async || (site.pid_of(1).await != pid).then_some(())).await;
}

#[tokio::test]
async fn a_worker_that_dies_meanwhile_is_reported() {
    let site = plan(2).option("pools.app.concurrency=1").started().await;
    let held = [site.ask("/held"), site.ask("/held")];
    site.settles_at(2, 0).await;
    let heap = begin(&site, &["heap", "app/1"]);
    shows(&site, 1, "state", "out of rotation".into()).await;
    proc::kill(site.pid_of(1).await);
    let output = heap.await.unwrap();
    output
        .assert_exit(1)
        .assert_complains("the worker has ended while a heap snapshot of it was taken (signal 9");
    has_no_part(&site);
    shows(&site, 1, "inspection", Value::Null).await;
    shows(&site, 1, "state", "ready".into()).await;
    drop(held);
}

#[tokio::test]
async fn a_worker_that_is_drained_during_its_profile_says_when_its_requests_have_ended() {
    let site = plan(2).started().await;
    let profile = begin(&site, &["profile", "app/1", "--seconds", "2"]);
    shows(&site, 1, "inspection", "profile".into()).await;
    hostler(&site, &["drain", "app/1"]).await.assert_exit(0);
    site.logged("app/1: drained: its last request has ended").await;
    profile.await.unwrap().assert_exit(0);
}

#[tokio::test]
async fn a_drained_worker_stays_drained_after_its_snapshot() {
    let site = plan(2).started().await;
    hostler(&site, &["drain", "app/1"]).await.assert_exit(0);
    let output = hostler(&site, &["heap", "app/1"]).await;
    output.assert_exit(0);
    assert!(
        output.stdout.contains("app/1 gets requests again, unless it is drained; the snapshot has"),
        "{}",
        output.stdout
    );
    shows(&site, 1, "inspection", Value::Null).await;
    shows(&site, 1, "state", "out of rotation".into()).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_profile() {
    let site = plan(1).started().await;
    let mut stream = TcpStream::connect(site.admin()).await.unwrap();
    let head = "POST /pools/app/workers/1/profile?seconds=60 HTTP/1.1\r\nHost: localhost\r\nHostler-Command: 1\r\nContent-Length: 0\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    shows(&site, 1, "inspection", "profile".into()).await;
    drop(stream);
    shows(&site, 1, "inspection", Value::Null).await;
    hostler(&site, &["profile", "app/1", "--seconds", "0.2"]).await.assert_exit(0);
}

#[tokio::test]
async fn a_worker_that_cannot_be_inspected_is_refused_with_the_reason() {
    let text =
        "require('http').createServer((q, r) => r.end('ok')).listen(process.env.PORT, process.env.HOST);";
    let site = source(text).option("pools.app.bind=port").started().await;
    let refused = hostler(&site, &["profile", "app/1"]).await;
    refused.assert_exit(1).assert_complains("bind = \"port\"");
    hostler(&site, &["heap", "app/1", "--force"]).await.assert_exit(1).assert_complains("bind = \"port\"");
    hostler(&site, &["profile", "app/7"]).await.assert_exit(1).assert_complains("its only worker is app/1");
    hostler(&site, &["profile", "apq"]).await.assert_exit(1).assert_complains("there is no pool \"apq\"");
    hostler(&site, &["profile", "app", "--seconds", "61"])
        .await
        .assert_exit(2)
        .assert_complains("from 0.01 to 60");
    has_no_part(&site);
}
