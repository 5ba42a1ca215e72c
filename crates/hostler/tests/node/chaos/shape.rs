//! The configuration file of the chaos test, which reloads change. Knows no process.

use super::{LOOPS, LOOPS_TIMEOUT, MANY, ONE};
use crate::site::repository;

/// The parts that a reload may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    workers_of_one: usize,
    slots_of_many: usize,
    /// In the workers' environment: a change needs new workers.
    revision: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self { workers_of_one: 3, slots_of_many: 4, revision: 0 }
    }
}

impl Shape {
    /// A changed one.
    pub fn changed(self, chance: &mut fastrand::Rng) -> Self {
        match chance.u8(..3) {
            0 => Self { workers_of_one: 7 - self.workers_of_one, ..self },
            1 => Self { slots_of_many: 6 - self.slots_of_many, ..self },
            _ => Self { revision: self.revision + 1, ..self },
        }
    }

    pub fn workers(self, pool: &str) -> usize {
        if pool == ONE { self.workers_of_one } else { 2 }
    }

    /// The text of the file.
    pub fn text(self) -> String {
        let minute = "request_timeout = \"60s\"\nhang_timeout = \"61s\"\n";
        let timeout = LOOPS_TIMEOUT.as_secs();
        let hangs = format!("request_timeout = \"{timeout}s\"\nhang_timeout = \"{}s\"\n", timeout + 1);
        let recycled = format!("{minute}max_requests = 100\n");
        let leaks = format!("{minute}max_memory = \"120 MiB\"\n");
        [
            "[server]\ndrain_timeout = \"20s\"\n".to_owned(),
            self.pool(ONE, 1, &recycled),
            self.pool(MANY, self.slots_of_many, &leaks),
            self.pool(LOOPS, 1, &hangs),
        ]
        .concat()
    }

    fn pool(self, name: &str, slots: usize, more: &str) -> String {
        let app = repository().join("crates/hostler/tests/node/apps/chaos.cjs");
        let (workers, revision) = (self.workers(name), self.revision);
        // The app's own limit is the largest ever: a worker keeps its number of slots until it changes.
        let most = Self::default().slots_of_many.max(slots) * usize::from(name == MANY);
        let most = most.max(1);
        format!(
            r#"
[pools.{name}]
command = ["node", {app:?}]
workers = {workers}
concurrency = {slots}
env = {{ CHAOS_SLOTS = {most}, CHAOS_REVISION = {revision} }}
{more}
[pools.{name}.queue]
limit = 1000
timeout = "1m"
[pools.{name}.poison]
keep_off = "2s"
[[routes]]
match = "/{name}/*"
pool = "{name}"
"#
        )
    }
}
