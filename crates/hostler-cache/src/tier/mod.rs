//! The tier that several Hostlers share: memcached servers behind the memory of each. No request waits longer than a time
//! limit for them. Knows no HTTP.

mod coarse;
mod dial;
mod item;
mod keeper;
mod log;
mod page;
mod purges;
mod ring;
mod server;
mod shared;
mod write_queue;
mod writer;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::{Cache, FetchMark, Purge, Variants};
use log::PurgeLog;
use ring::Ring;
use server::MemcachedServer;
use shared::TierShared;
use write_queue::{Write, WriteQueue};

pub use item::Packing;
pub use server::{Notice, ServerCounts, ServerStatus};
pub use shared::TierSettings;

/// The pause between two tries to tell a server of purges before the end.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The memcached servers of a site. Dropping it ends its tasks.
pub struct Tier<H> {
    shared: Arc<TierShared<H>>,
    tasks: Vec<AbortHandle>,
}

/// The result of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purged {
    /// How many entries were removed from this process's memory.
    pub entries: u64,
    /// How many servers have the purge now. The others get it when they are back.
    pub told: usize,
    /// How many servers there are.
    pub servers: usize,
}

impl<H: Send + Sync + 'static> Tier<H> {
    /// Starts to connect to the servers, on the current runtime. `tell` is called when a server is found or lost.
    pub fn start(
        settings: TierSettings,
        packing: Packing<H>,
        cache: Arc<Cache<H>>,
        tell: impl Fn(Notice<'_>) + Send + Sync + 'static,
    ) -> Self {
        let tell: Arc<server::NoticeCallback> = Arc::new(tell);
        let servers: Box<[_]> =
            settings.servers.iter().map(|name| MemcachedServer::new(name, tell.clone())).collect();
        let (queues, writes): (Vec<_>, Vec<_>) = servers.iter().map(|_| WriteQueue::new()).unzip();
        let ring = Ring::new(&settings.servers);
        let (queues, log) = (queues.into(), Mutex::new(PurgeLog::new(servers.len())));
        let shared = Arc::new(TierShared { settings, packing, cache, ring, servers, queues, log });
        let mut tasks = Vec::new();
        for (index, writes) in writes.into_iter().enumerate() {
            tasks.push(tokio::spawn(keeper::keep(shared.clone(), index)).abort_handle());
            tasks.push(tokio::spawn(writer::write(shared.clone(), index, writes)).abort_handle());
        }
        Self { shared, tasks }
    }

    /// Brings what a server has under this key into memory. Returns false if it has nothing, or not in time.
    pub async fn fetch(&self, key: &[u8]) -> bool {
        self.shared.fetch(key).await
    }

    /// Stores all entries that memory has under this key, later. Entries that are too large, or too many at once, are not
    /// stored.
    pub fn put(&self, key: &[u8], variants: Variants<H>) {
        let (index, weight) = (self.shared.ring.of(key), variants.weight());
        let write = Write::Put(key.into(), variants);
        self.shared.queues[index].push(write, weight, &self.shared.servers[index]);
    }

    /// Deletes this key from its server, later. The memory of other Hostlers is not affected.
    pub fn delete(&self, key: &[u8]) {
        let index = self.shared.ring.of(key);
        if !self.shared.queues[index].push(Write::Delete(key.into()), key.len(), &self.shared.servers[index])
        {
            self.shared.log().change(index, key);
        }
    }

    /// An unsafe method has changed what is under this key. The server's item is void from now on, and other Hostlers are
    /// told soon. Many changes are sent together, and no request waits for that.
    pub fn forget(&self, key: &[u8]) {
        let index = self.shared.ring.of(key);
        self.shared.log().change(index, key);
        self.shared.servers[index].nudge();
    }

    /// The mark for a response that is requested now and will be stored under this key.
    pub fn mark_fetch(&self, key: &[u8]) -> FetchMark {
        let under = self.shared.log().under(self.shared.ring.of(key));
        FetchMark::now(under)
    }

    /// Purges here and on all other Hostlers: memory at once, the servers as soon as they can be told, and other Hostlers
    /// when they next read the page there.
    pub async fn purge(&self, purges: Vec<Purge>) -> Purged {
        purges.iter().for_each(|purge| self.shared.log().add(purge.clone()));
        let entries = self.shared.purge_memory(purges).await;
        let servers = &self.shared.servers;
        let mut told = 0;
        for (index, server) in servers.iter().enumerate() {
            // The keeper of a server that is away tells it later.
            if server.is_here() && keeper::synchronise(&self.shared, index).await.is_ok() {
                told += 1;
            }
        }
        Purged { entries, told, servers: servers.len() }
    }

    /// The purges that not all servers have. They are lost with the tier, and what they voided could be used again.
    pub fn undelivered(&self) -> Vec<Purge> {
        self.shared.log().undelivered()
    }

    /// Tries for this long to tell the servers of the purges that they do not have, also servers that are away. Returns those that still
    /// not all servers have.
    pub async fn deliver(&self, time_limit: Duration) -> Vec<Purge> {
        let told = (0..self.shared.servers.len()).map(|index| {
            let shared = self.shared.clone();
            tokio::spawn(timeout(time_limit, async move {
                while shared.log().lacks(index) && keeper::synchronise(&shared, index).await.is_err() {
                    sleep(BETWEEN_TRIES).await;
                }
            }))
        });
        for told in told.collect::<Vec<_>>() {
            // It has its own time limit.
            let _ = told.await;
        }
        self.undelivered()
    }

    /// Tells the servers of these purges as soon as they can be told. The purges have been applied to memory already.
    pub fn tell(&self, purges: Vec<Purge>) {
        purges.into_iter().for_each(|purge| self.shared.log().add(purge));
        self.shared.servers.iter().for_each(MemcachedServer::nudge);
    }

    /// The status of each server.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.shared.servers.iter().map(MemcachedServer::status).collect()
    }

    /// The settings it was started with.
    pub fn settings(&self) -> &TierSettings {
        &self.shared.settings
    }
}

impl<H> Drop for Tier<H> {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
