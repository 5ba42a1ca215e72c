//! What happens to the workers when Hostler dies without stopping them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::support::*;

const STUCK: &str = "const { spawn } = require('child_process');
    const child = spawn('sleep', ['600']);
    const inItsSession = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
    process.on('SIGTERM', () => {});
    require('http').createServer(() => {}).listen(3000, () => {
        console.log('pids', process.pid, child.pid, inItsSession.pid);
        setTimeout(() => { for (;;); }, 100);
    });";

/// A Hostler in a process of its own, with one worker that is stuck.
struct Hostler {
    process: Child,
    workers: Vec<u32>,
    runtime_directory: PathBuf,
    _output: Box<dyn Iterator<Item = String>>,
    _app: tempfile::TempDir,
}

fn hostler() -> Hostler {
    let app = tempfile::tempdir().unwrap();
    std::fs::write(app.path().join("app.js"), STUCK).unwrap();
    let mut process = Command::new(example("supervise"))
        .args(["node", "app.js"])
        .current_dir(app.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut said = BTreeMap::new();
    while said.len() < 3 {
        let line = output.next().expect("more output");
        for word in ["directory ", "pids ", "address "] {
            said.extend(line.split_once(word).map(|(_, rest)| (word, rest.to_owned())));
        }
    }
    Hostler {
        process,
        workers: said["pids "].split(' ').map(|pid| pid.parse().unwrap()).collect(),
        runtime_directory: said["directory "].clone().into(),
        _output: Box::new(output),
        _app: app,
    }
}

impl Hostler {
    fn guard(&self) -> Option<u32> {
        let is_guard = |pid: &u32| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.starts_with(b"hostler-guard\0"))
        };
        children_of(self.process.id()).into_iter().find(is_guard)
    }

    async fn dies_with_all_its_workers(mut self) {
        assert!(self.runtime_directory.exists() && self.workers.iter().all(|&pid| is_alive(pid)));
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        eventually("its workers are gone", || !self.workers.iter().any(|&pid| is_alive(pid))).await;
        eventually("its directory is gone", || !self.runtime_directory.exists()).await;
    }
}

#[tokio::test]
async fn killing_hostler_ends_a_worker_in_an_infinite_loop_and_its_children() {
    hostler().dies_with_all_its_workers().await;
}

#[tokio::test]
async fn a_guard_ignores_termination_signals_and_is_replaced_after_sigkill() {
    let mut hostler = hostler();
    let guard = hostler.guard().unwrap();
    for harmless in [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP] {
        signal(guard, harmless);
    }
    signal(hostler.workers[0], Signal::KILL);
    // What a worker that was killed from outside has started in a session of its own is not known any more.
    signal(hostler.workers[2], Signal::KILL);
    eventually("the worker is replaced", || successor(&hostler).is_some()).await;
    assert_eq!(hostler.guard(), Some(guard));

    signal(guard, Signal::KILL);
    eventually("the guard is replaced", || hostler.guard().is_some_and(|other| other != guard)).await;
    hostler.workers = successor(&hostler).into_iter().collect();
    hostler.dies_with_all_its_workers().await;
}

#[tokio::test]
async fn what_is_left_after_the_guard_is_killed_as_well_is_removed_by_the_next_start() {
    let mut dead = hostler();
    // A frozen guard cannot do anything between the two.
    let guard = dead.guard().unwrap();
    signal(guard, Signal::STOP);
    dead.process.kill().unwrap();
    dead.process.wait().unwrap();
    signal(guard, Signal::KILL);
    let workers = std::mem::take(&mut dead.workers);
    workers.into_iter().filter(|&pid| is_alive(pid)).for_each(|pid| signal(pid, Signal::KILL));
    assert!(dead.runtime_directory.exists());
    let next = hostler();
    eventually("the folder of the dead is gone", || !dead.runtime_directory.exists()).await;
    next.dies_with_all_its_workers().await;
}

/// Its guard ends the workers of a test that has failed.
impl Drop for Hostler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The process of the current worker, if it is not the first one.
fn successor(hostler: &Hostler) -> Option<u32> {
    let first = hostler.workers[0];
    let is_other = |pid: &u32| Some(*pid) != hostler.guard() && *pid != first && is_alive(*pid);
    children_of(hostler.process.id()).into_iter().find(is_other)
}
