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
        let (wanted, kept) = (config.server.max_connections, kept(config));
        let fits = fitting(limit, kept);
        config.server.max_connections = wanted.min(fits);
        config.spare_descriptors = Some(limit.saturating_sub(kept + config.server.max_connections));
        if wanted <= fits {
            return;
        }
        let path = KeyPath::of("server").key("max_connections");
        let enough = kept + wanted + wanted.div_ceil(4);
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

/// Descriptors that are not for clients. A thread keeps one connection to each slot of a member that it has used.
fn kept(config: &Config) -> usize {
    let threads = config.server.threads;
    let slots = |pool: &Pool| {
        let slots = match pool.slots() {
            Slots::Fixed(slots) => slots,
            Slots::Auto { most } => most.min(Slots::USUAL),
        };
        slots * threads
    };
    let of_pools = config.pools.iter().map(|pool| match &pool.source {
        PoolMembers::Workers(workers) => usual(workers) * (OF_WORKER + slots(pool)),
        // Requests use at most this many at a time. More would leave nothing for clients.
        PoolMembers::Members(members) => (members.endpoints.len() * slots(pool)).min(256),
    });
    // Apps are busy at different times: one pool at a time has all its workers.
    let of_busiest = config.pools.iter().filter_map(|pool| match &pool.source {
        PoolMembers::Workers(workers) => Some((workers.count - usual(workers)) * (OF_WORKER + slots(pool))),
        PoolMembers::Members(_) => None,
    });
    let own = OWN + threads * OF_THREAD + BOOTING;
    own + of_pools.sum::<usize>() + of_busiest.max().unwrap_or(0)
}

/// How many workers a pool has without much load.
fn usual(workers: &WorkerSettings) -> usize {
    workers.least.map_or(workers.count, |least| least.max(1))
}
