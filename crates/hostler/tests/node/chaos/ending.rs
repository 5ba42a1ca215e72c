//! The end of a run of the chaos test: the pools are whole, the counters match the log, and nothing is left after the stop.

use std::path::Path;

use hostler_testkit::eventually;
use rustix::process::Signal;
use serde_json::Value;

use super::Chaos;
use super::verdict;
use crate::proc;

impl Chaos {
    /// Checks everything that must hold after the last request, and stops Hostler.
    pub(super) async fn end(mut self, rounds: usize) {
        self.is_whole().await;
        let (entries, excused) = self.judge();
        let access = self.access_lines(&entries).await;
        if let Err(wrong) = verdict::compare_with_log(&entries, &access) {
            panic!("{}", self.story(&wrong));
        }
        self.counts_add_up(&access).await;

        let folder = self.site.folder().to_owned();
        proc::signal(self.users.pid().await, Signal::TERM);
        assert_eq!(self.site.exit().await, 0);
        eventually("no process is left", async || processes_with(&folder).is_empty().then_some(())).await;
        assert_eq!(self.site.run_directory().len(), 0, "the private directory is removed");
        assert_eq!(sockets_in(&folder), [""; 0]);
        println!(
            "chaos: {rounds} rounds, {} requests, {excused:?}, workers retired: {} in all, {} for their requests, {} for their memory\n{}",
            entries.len(),
            self.retired(""),
            self.retired(" requests"),
            self.retired(" resident"),
            self.users.ledger.summary()
        );
    }

    /// How many workers have left for this reason.
    fn retired(&self, why: &str) -> usize {
        let log = self.site.log();
        let own =
            log.iter().filter(|line| line["event"] == "hostler").filter_map(|line| line["text"].as_str());
        own.filter(|line| line.contains(": ends (pid") && line.contains(why)).count()
    }

    /// Waits until every worker is ready and no request runs or waits.
    async fn is_whole(&self) {
        self.settles("the pools are whole", |pool| pool["in_use"] == 0 && pool["queue_length"] == 0).await;
    }

    /// Every worker is ready.
    pub(super) async fn has_its_workers(&self) {
        self.settles("all workers are ready", |_| true).await;
    }

    async fn settles(&self, what: &str, also: impl Fn(&Value) -> bool) {
        let shape = self.operator.shape();
        let has_its_workers = |pool: &Value| {
            let workers = pool["workers"].as_array().unwrap();
            workers.len() == shape.workers(pool["name"].as_str().unwrap())
                && workers.iter().all(|worker| worker["state"] == "ready")
        };
        eventually(what, async || {
            let status = self.users.status().await;
            let pools = status["pools"].as_array().unwrap();
            pools.iter().all(|pool| has_its_workers(pool) && also(pool)).then_some(())
        })
        .await;
    }

    /// All access lines: the log is written by a separate thread, so the test waits.
    async fn access_lines(&self, entries: &[super::Entry]) -> Vec<Value> {
        let answered = entries.iter().filter(|entry| entry.outcome.is_answer()).count();
        self.site.exchanges(answered).await
    }

    /// The counters of the pools match the log.
    async fn counts_add_up(&self, access: &[Value]) {
        // The counters of a successor begin at 0.
        if self.users.upgrades() > 0 {
            return;
        }
        for pool in self.users.status().await["pools"].as_array().unwrap() {
            let own = access.iter().filter(|line| line["pool"] == pool["name"]);
            let attempts: u64 = own.map(|line| line["attempts"].as_u64().unwrap()).sum();
            assert_eq!(pool["counters"]["granted"], attempts, "leases taken: {pool}");
        }
    }
}

/// The processes whose environment contains this folder: Hostler, its guard, its workers and their children.
pub(super) fn processes_with(folder: &Path) -> Vec<u32> {
    let name = folder.to_str().unwrap().as_bytes();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let environments =
        entries.filter_map(|entry| Some((std::fs::read(entry.path().join("environ")).ok()?, entry)));
    environments
        .filter(|(environment, _)| environment.windows(name.len()).any(|window| window == name))
        .filter_map(|(_, entry)| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The Unix sockets below this folder.
fn sockets_in(folder: &Path) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/unix").unwrap();
    table.lines().filter(|line| line.contains(folder.to_str().unwrap())).map(str::to_owned).collect()
}
