//! Whether the workers fit into the memory of the control group. Measures nothing.

use super::Resolver;
use crate::document::KeyPath;
use crate::resolved::{Config, Pool, PoolMembers};

/// What the process of a small app takes, in bytes. Node alone takes about a half of it.
const SMALL_WORKER: u64 = 48 << 20;

impl Resolver<'_> {
    /// Warns of workers that would be too many even for small apps. A container without a CPU limit has all cores of its machine, so by default
    /// a pool has as many workers, and the kernel kills what is above the limit of memory.
    pub(super) fn fit_into_memory(&mut self, config: &Config) {
        let Some(limit) = self.load_context.memory else { return };
        let all: usize = config.pools.iter().map(workers).sum();
        let least = SMALL_WORKER.saturating_mul(all as u64);
        let Some(largest) = config.pools.iter().max_by_key(|pool| workers(pool)).filter(|_| least > limit)
        else {
            return;
        };
        let path = KeyPath::of("pools").key(&largest.name).key("workers");
        let message = format!(
            "{path}: {all} workers take about {} MiB or more, and the control group (the container or the unit) may use {} MiB; set \
             workers, or give it more memory",
            least >> 20,
            limit >> 20,
        );
        let place = self.document.place_of_value(&path);
        self.report.warn(place, message);
    }
}

/// How many there are always.
fn workers(pool: &Pool) -> usize {
    match &pool.source {
        PoolMembers::Workers(workers) => workers.least.unwrap_or(workers.count),
        PoolMembers::Members(_) => 0,
    }
}
