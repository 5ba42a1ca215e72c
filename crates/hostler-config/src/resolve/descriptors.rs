//! How many client connections fit into the file descriptors that the process may have. Opens none.

use hostler_worker::Slots;

use super::Resolver;
use crate::document::KeyPath;
use crate::resolved::{Config, PoolMembers};

/// Descriptors of the program itself: log, guard, admin listener and its clients, data files, NATS, memcached.
const OWN: usize = 32;
/// Of each data-plane thread: its event queue, its listeners.
const OF_THREAD: usize = 8;
/// Of each worker: its channel, its output, its sockets.
const OF_WORKER: usize = 8;
/// Of workers that are being started.
const BOOTING: usize = 24;
/// So many connections are let in however few descriptors there are; each then gets an answer, be it that there is no room.
const LEAST: usize = 8;

impl Resolver<'_> {
    /// Lowers `max_connections` to what the process can hold, and says so.
    pub(super) fn fit_into_descriptors(&mut self, config: &mut Config) {
        let Some(limit) = self.surroundings.open_files else { return };
        let (wanted, kept) = (config.server.max_connections, kept(config));
        let fits = fitting(limit, kept);
        if wanted <= fits {
            return;
        }
        config.server.max_connections = fits;
        let path = KeyPath::of("server").key("max_connections");
        let enough = kept + wanted + wanted.div_ceil(4);
        let message = format!(
            "{path}: lowered from {wanted} to {fits}, because this process may have {limit} file descriptors and {kept} of them are for \
             workers, members and the program itself; {wanted} connections need {enough} (ulimit -Hn, or LimitNOFILE= of systemd)"
        );
        let place = self.document.place_of_value(&path);
        self.report.warn(place, message);
    }
}

/// Of what is left, a fifth is for the files of large bodies, the members' ends of tunnels, and files that are sent.
fn fitting(limit: usize, kept: usize) -> usize {
    (limit.saturating_sub(kept) / 5 * 4).max(LEAST)
}

/// What is not for clients. A thread keeps a connection of its own to each slot of a member that it has used.
fn kept(config: &Config) -> usize {
    let threads = config.server.threads;
    let of_pools = config.pools.iter().map(|pool| {
        let slots = match pool.slots() {
            Slots::Fixed(slots) => slots,
            // What most apps come to.
            Slots::Auto => 8,
        };
        match &pool.source {
            PoolMembers::Workers(workers) => workers.count * (OF_WORKER + slots * threads),
            // No more of them are used at a time than there are requests; more than this would leave nothing for clients.
            PoolMembers::Members(members) => (members.endpoints.len() * slots * threads).min(256),
        }
    });
    OWN + threads * OF_THREAD + BOOTING + of_pools.sum::<usize>()
}
