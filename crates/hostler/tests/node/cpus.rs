//! On which CPUs workers run: what the kernel says about their threads, for each value of `cpu`.

use std::collections::BTreeSet;
use std::fs;

use hostler_testkit::{eventually, say_skipped};

use super::proc;
use super::site::{Plan, Site, configured, source};

/// Answers, and uses a thread of libuv's pool for each request.
const APP: &str = "const { readFile } = require('fs');
    require('http').createServer((req, res) => readFile(__filename, () => res.end())).listen(3000);";

/// The CPUs that a thread may use, as the kernel shows them.
fn cpus_of(thread: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim().to_owned())
}

fn all() -> String {
    cpus_of("self").unwrap()
}

fn main_thread(pid: u32) -> String {
    cpus_of(&format!("{pid}/task/{pid}")).unwrap_or_default()
}

/// The CPUs of all other threads of a process.
fn helpers(pid: u32) -> BTreeSet<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let tasks = tasks.filter_map(|task| task.file_name().into_string().ok());
    tasks
        .filter(|task| *task != pid.to_string())
        .filter_map(|task| cpus_of(&format!("{pid}/task/{task}")))
        .collect()
}

/// The first CPUs of the cores that this process may use, if `"auto"` can bind workers here at all.
fn cores() -> BTreeSet<String> {
    let allowed: Vec<usize> = all()
        .split(',')
        .flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse::<usize>().unwrap()..=last.parse().unwrap()
        })
        .collect();
    let siblings = |cpu: &usize| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        fs::read_to_string(file).map_or(cpu.to_string(), |list| list.trim().to_owned())
    };
    let is_limited = std::thread::available_parallelism().unwrap().get() < allowed.len();
    if is_limited { BTreeSet::new() } else { allowed.iter().map(siblings).collect() }
}

/// Whether there are two cores to bind workers to. If not, a line about the skipped test has been printed.
fn has_two_cores() -> bool {
    let has_two = cores().len() >= 2;
    if !has_two {
        say_skipped("it needs two cores that workers can be bound to");
    }
    has_two
}

fn two_workers(cpu: &str) -> Plan {
    source(APP).workers(2).option(&format!("pools.app.cpu={cpu}"))
}

/// Waits until the two workers have cores of their own, and returns their processes.
async fn bound(site: &Site) -> Vec<u32> {
    eventually("each worker has a core of its own", async || {
        let workers = site.workers().await;
        let shown: Vec<&str> = workers.iter().filter_map(|worker| worker["cpus"].as_str()).collect();
        let pids = site.pids().await;
        let real: Vec<String> = pids.iter().map(|pid| main_thread(*pid)).collect();
        (shown.len() == 2 && shown[0] != shown[1] && real == shown).then_some(pids)
    })
    .await
}

async fn helpers_are_free(pids: &[u32]) {
    eventually("all other threads may use all CPUs", async || {
        pids.iter().all(|pid| helpers(*pid) == BTreeSet::from([all()])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn with_cpu_auto_each_main_thread_has_a_core_and_the_other_threads_have_all() {
    if !has_two_cores() {
        return;
    }
    let site = two_workers("auto").started().await;
    let pids = bound(&site).await;
    // The threads of libuv's pool start with the first request, and inherit the core of the main thread.
    for _ in 0..4 {
        site.get("/").await.assert_status(200);
    }
    helpers_are_free(&pids).await;
    let table = site.command(&["status"]).await.assert_exit(0).stdout.clone();
    assert!(table.contains("(each worker has a core of its own)"), "{table}");
    site.stop().await;
}

#[tokio::test]
async fn after_a_restart_and_after_a_crash_workers_have_cores_of_their_own_again() {
    if !has_two_cores() {
        return;
    }
    let site = two_workers("auto").started().await;
    let first = bound(&site).await;
    site.command(&["restart"]).await.assert_exit(0);
    let second = bound(&site).await;
    assert!(second.iter().all(|pid| !first.contains(pid)), "{first:?} {second:?}");
    proc::kill(second[0]);
    eventually("another worker", async || (!site.pids().await.contains(&second[0])).then_some(())).await;
    let third = bound(&site).await;
    helpers_are_free(&third).await;
    site.stop().await;
}

#[tokio::test]
async fn while_a_worker_boots_no_worker_is_bound() {
    if !has_two_cores() {
        return;
    }
    let app = "const fs = require('fs');
        const server = require('http').createServer((req, res) => res.end());
        const boot = () => (fs.existsSync(`${process.env.TEST_FOLDER}/hold`) ? setTimeout(boot, 10) : server.listen(3000));
        boot();";
    let site = source(app).workers(2).option("pools.app.cpu=auto").started().await;
    let before = bound(&site).await;
    site.touch("hold");
    proc::kill(before[0]);
    eventually("the worker that serves is free", async || (main_thread(before[1]) == all()).then_some(()))
        .await;
    let worker = eventually("the reason", async || {
        let workers = site.workers().await;
        workers.into_iter().find(|worker| worker["pid"] == before[1] && worker["cpus"].is_null())
    })
    .await;
    assert!(worker["cpus_reason"].as_str().unwrap().starts_with("a worker boots"), "{worker}");
    fs::remove_file(site.file("hold")).unwrap();
    bound(&site).await;
    site.stop().await;
}

#[tokio::test]
async fn more_workers_than_cores_share_all_cpus() {
    let count = cores().len().max(1) + 1;
    let site = source(APP).workers(count).option("pools.app.cpu=auto").started().await;
    for worker in site.workers().await {
        assert!(worker["cpus"].is_null() && worker["cpus_reason"].is_string(), "{worker}");
    }
    for pid in site.pids().await {
        assert_eq!(main_thread(pid), all());
    }
    site.stop().await;
}

#[tokio::test]
async fn a_reload_binds_workers_to_lists_and_frees_them_again() {
    let file = |cpu: &str| format!("[pools.app]\ncommand = 'node app.cjs'\nworkers = 2\ncpu = '{cpu}'\n");
    let plan = configured(&file("off"));
    fs::write(plan.folder().join("app.cjs"), APP).unwrap();
    let site = plan.started().await;
    let pids = site.pids().await;
    assert!(pids.iter().all(|pid| main_thread(*pid) == all()));
    assert!(site.workers().await.iter().all(|worker| worker["cpus_reason"].is_null()));

    let last = all().split([',', '-']).next_back().unwrap().to_owned();
    site.configure(&file(&last));
    site.command(&["reload"]).await.assert_exit(0);
    eventually("both are on the last CPU", async || {
        pids.iter().all(|pid| main_thread(*pid) == last).then_some(())
    })
    .await;
    helpers_are_free(&pids).await;
    assert_eq!(site.pids().await, pids, "without a restart");

    site.configure(&file("off"));
    site.command(&["reload"]).await.assert_exit(0);
    eventually("both are free", async || pids.iter().all(|pid| main_thread(*pid) == all()).then_some(()))
        .await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_whose_command_has_chosen_its_cpus_keeps_them() {
    if !has_two_cores() {
        return;
    }
    let first = all().split([',', '-']).next().unwrap().to_owned();
    let plan = source(APP).workers(2).runs(&format!("taskset -c {first} node app.cjs"));
    let site = plan.option("pools.app.cpu=auto").started().await;
    let worker = eventually("the reason", async || {
        let worker = site.workers().await.swap_remove(0);
        let reason = worker["cpus_reason"].as_str()?.to_owned();
        reason.contains("chosen the CPUs itself").then_some(worker)
    })
    .await;
    assert!(worker["cpus"].is_null(), "{worker}");
    assert_eq!(main_thread(site.pid_of(1).await), first);
    site.stop().await;
}

#[tokio::test]
async fn on_one_cpu_workers_are_not_bound() {
    use std::os::unix::fs::PermissionsExt as _;
    let first = all().split([',', '-']).next().unwrap().to_owned();
    let plan = two_workers("auto");
    let script = plan.folder().join("on-one-cpu");
    let hostler = env!("CARGO_BIN_EXE_hostler");
    fs::write(&script, format!("#!/bin/sh\nexec taskset -c {first} {hostler} \"$@\"\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let site = plan.called(&script).started().await;
    let worker = site.workers().await.swap_remove(0);
    assert_eq!(worker["cpus_reason"], "there is only one core", "{worker}");
    assert_eq!(main_thread(site.pid_of(2).await), first);
    site.stop().await;
}
