//! How a run of the chaos test must end: the pools whole, the books in order, and after the stop nothing left behind.

use std::path::Path;

use hostler_testkit::eventually;
use serde_json::Value;

use super::Chaos;
use super::verdict::{self, Unlucky};

impl Chaos {
    /// Sees to all that must hold once nobody asks any more, and stops it.
    pub(super) async fn end(mut self, rounds: usize) {
        self.is_whole().await;
        let (entries, Unlucky(unlucky)) = self.judge();
        let access = self.access_lines(&entries).await;
        if let Err(wrong) = verdict::compare_with_log(&entries, &access) {
            panic!("{}", self.story(&wrong));
        }
        self.counts_add_up(&access).await;

        let folder = self.site.folder().to_owned();
        self.site.terminate();
        assert_eq!(self.site.exit().await, 0);
        eventually("no process is left", async || processes_with(&folder).is_empty().then_some(())).await;
        assert_eq!(self.site.run_directory().len(), 0, "the private directory is removed");
        assert_eq!(sockets_in(&folder), [""; 0]);
        println!(
            "chaos: {} requests, {rounds} rounds, {unlucky} refused because struck twice",
            entries.len()
        );
    }

    /// Every worker is ready, nobody is served, nobody waits.
    async fn is_whole(&self) {
        eventually("the pools are whole", async || {
            let status = self.site.status().await;
            let is_whole = |pool: &Value| {
                let mut workers = pool["workers"].as_array().unwrap().iter();
                pool["in_use"] == 0
                    && pool["queue_length"] == 0
                    && workers.len() == super::workers_of(pool["name"].as_str().unwrap())
                    && workers.all(|worker| worker["state"] == "ready")
            };
            status["pools"].as_array().unwrap().iter().all(is_whole).then_some(())
        })
        .await;
    }

    /// All of them: the log is written by a thread of its own.
    async fn access_lines(&self, entries: &[super::Entry]) -> Vec<Value> {
        let answered = entries.iter().filter(|entry| entry.outcome.is_answer()).count();
        self.site.exchanges(answered).await
    }

    /// What the pools have counted is what the log says.
    async fn counts_add_up(&self, access: &[Value]) {
        for pool in self.site.status().await["pools"].as_array().unwrap() {
            let own = access.iter().filter(|line| line["pool"] == pool["name"]);
            let attempts: u64 = own.map(|line| line["attempts"].as_u64().unwrap()).sum();
            assert_eq!(pool["counters"]["granted"], attempts, "leases taken: {pool}");
        }
    }
}

/// The processes whose environment names this folder: Hostler, its guard, its workers and all their children.
fn processes_with(folder: &Path) -> Vec<String> {
    let name = folder.to_str().unwrap().as_bytes();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let environments =
        entries.filter_map(|entry| Some((std::fs::read(entry.path().join("environ")).ok()?, entry)));
    environments
        .filter(|(environment, _)| environment.windows(name.len()).any(|window| window == name))
        .map(|(_, entry)| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// The Unix sockets below this folder.
fn sockets_in(folder: &Path) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/unix").unwrap();
    table.lines().filter(|line| line.contains(folder.to_str().unwrap())).map(str::to_owned).collect()
}
