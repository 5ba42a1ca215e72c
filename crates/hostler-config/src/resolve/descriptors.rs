//! How many client connections fit into the file descriptors of the process. Opens none.

use hostler_worker::{Slots, WorkerSettings};

use super::Resolver;
use crate::document::KeyPath;
use crate::resolved::{Config, Pool, PoolMembers};

/// Descriptors of Hostler itself: log, guard, admin listener and its clients, data files, NATS, memcached.
const OWN: usize = 32;
/// Descriptors of each data-plane thread: its event queue and its listeners.
const OF_THREAD: usize = 8;
/// Descriptors of each worker: its channel, its output, its sockets.
const OF_WORKER: usize = 8;
/// Descriptors of workers that are booting.
const BOOTING: usize = 24;
/// Hostler always accepts this many connections, however few descriptors there are. A client then gets at least a 503.
const LEAST: usize = 8;

impl Resolver<'_> {
    /// Lowers `max_connections` to what the process can hold, and warns. Tells how many descriptors are left besides.
    pub(super) fn fit_into_descriptors(&mut self, config: &mut Config) {
        let Some(limit) = self.load_context.open_files else { return };
        let (wanted, needs) = (config.server.max_connections, needs(config));
        let kept = needs.within(limit);
        let fits = fitting(limit, kept);
        config.server.max_connections = wanted.min(fits);
        config.spare_descriptors = Some(limit.saturating_sub(kept + config.server.max_connections));
        if wanted <= fits {
            return;
        }
        let path = KeyPath::of("server").key("max_connections");
        let of_clients = wanted + wanted.div_ceil(4);
        let enough = needs.fixed + needs.to_workers.min(of_clients) + of_clients;
        let message = format!(
            "{path}: lowered from {wanted} to {fits}, because this process may have {limit} file descriptors, of which workers, members \
             and Hostler itself need {kept}; {wanted} connections need {enough} (ulimit -Hn, or LimitNOFILE= of systemd)"
        );
        let place = self.document.place_of_value(&path);
        self.report.warn(place, message);
    }
}

/// A fifth of the rest is for files of large bodies, tunnels to members, and files that are sent.
fn fitting(limit: usize, kept: usize) -> usize {
    (limit.saturating_sub(kept) / 5 * 4).max(LEAST)
}

/// Descriptors that are not for clients.
#[derive(Default)]
struct DescriptorNeeds {
    /// Those of Hostler itself, of the workers' processes, and of connections to members.
    fixed: usize,
    /// Connections to workers: a thread keeps one to each slot that it has used.
    to_workers: usize,
}

impl DescriptorNeeds {
    /// How many are kept. Not all slots are in use at a time, and a request needs one connection of its client for each to a worker. So clients get
    /// half of what is left: with more for workers, a machine with many cores and few descriptors would serve few clients.
    fn within(&self, limit: usize) -> usize {
        self.fixed + self.to_workers.min(limit.saturating_sub(self.fixed) / 2)
    }
}

fn needs(config: &Config) -> DescriptorNeeds {
    let threads = config.server.threads;
    let fixed = OWN + threads * OF_THREAD + BOOTING;
    let mut needs = DescriptorNeeds { fixed, ..DescriptorNeeds::default() };
    let (mut most_connections, mut most_processes) = (0, 0);
    for pool in &config.pools {
        let slots = slots(pool) * threads;
        match &pool.source {
            PoolMembers::Workers(workers) => {
                let usual = usual(workers);
                needs.fixed += usual * OF_WORKER;
                needs.to_workers += usual * slots;
                // Apps are busy at different times: one pool at a time has all its workers.
                let others = workers.count - usual;
                most_connections = most_connections.max(others * slots);
                most_processes = most_processes.max(others * OF_WORKER);
            }
            // Requests use at most this many at a time. More would leave nothing for clients.
            PoolMembers::Members(members) => needs.fixed += (members.endpoints.len() * slots).min(256),
        }
    }
    needs.fixed += most_processes;
    needs.to_workers += most_connections;
    needs
}

fn slots(pool: &Pool) -> usize {
    match pool.slots() {
        Slots::Fixed(slots) => slots,
        Slots::Auto { most } => most.min(Slots::USUAL),
    }
}

/// How many workers a pool has without much load.
fn usual(workers: &WorkerSettings) -> usize {
    workers.least.map_or(workers.count, |least| least.max(1))
}
