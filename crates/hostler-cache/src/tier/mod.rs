//! The tier that several Hostlers share: memcached servers behind the memory of each. No request waits longer than a time
//! limit for them. Knows no HTTP.

mod coarse;
mod dial;
mod item;
mod keeper;
mod log;
mod page;
mod ring;
mod server;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::{Cache, Entry, FetchMark, Moment, Purge, Variants};
use item::Unreadable;
use log::PurgeLog;
use ring::Ring;
use server::{MemcachedServer, Op, Reply, ServerFailure};
use writer::{Write, WriteQueue};

pub use item::Packing;
pub use server::{Notice, ServerCounts, ServerStatus};

/// The servers, and how long to wait for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierSettings {
    /// `host:port`, `[IPv6]:port` or `unix:/path`. This text decides which server has which key, so all Hostlers must use
    /// the same text.
    pub servers: Vec<Box<str>>,
    /// The beginning of all keys in memcached.
    pub namespace: Box<str>,
    /// How long a request waits for a server at most. A server that answers later is not used for a while.
    pub timeout: Duration,
    /// The largest item in bytes. The default limit of memcached itself is 1 MiB.
    pub max_item: usize,
}

/// The memcached servers of a site. Dropping it ends its tasks.
pub struct Tier<H> {
    shared: Arc<TierShared<H>>,
    tasks: Vec<AbortHandle>,
}

struct TierShared<H> {
    settings: TierSettings,
    packing: Packing<H>,
    cache: Arc<Cache<H>>,
    ring: Ring,
    servers: Box<[MemcachedServer]>,
    queues: Box<[WriteQueue<H>]>,
    log: Mutex<PurgeLog>,
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
        let tell: Arc<server::Tell> = Arc::new(tell);
        let servers: Box<[_]> = settings
            .servers
            .iter()
            .map(|name| MemcachedServer::new(name, settings.timeout, tell.clone()))
            .collect();
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
        let weight = variants.weight();
        self.shared.queue(key).push(Write::Put(key.into(), variants), weight, self.shared.server(key));
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
        FetchMark { at: Moment::now(), under }
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
            if server.is_here() && keeper::agree(&self.shared, index).await.is_ok() {
                told += 1;
            }
        }
        Purged { entries, told, servers: servers.len() }
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

impl<H: Send + Sync + 'static> TierShared<H> {
    fn server(&self, key: &[u8]) -> &MemcachedServer {
        &self.servers[self.ring.of(key)]
    }

    fn queue(&self, key: &[u8]) -> &WriteQueue<H> {
        &self.queues[self.ring.of(key)]
    }

    /// The lock guards a set, and each change to it is one call.
    fn log(&self) -> std::sync::MutexGuard<'_, PurgeLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Purges memory. This looks at every key, so it runs away from the threads that serve requests.
    async fn purge_memory(self: &Arc<Self>, purges: Vec<Purge>) -> u64 {
        let shared = Arc::clone(self);
        let purge = move || purges.iter().map(|purge| shared.cache.purge(purge, Moment::now())).sum();
        tokio::task::spawn_blocking(purge).await.unwrap_or(0)
    }

    async fn fetch(&self, key: &[u8]) -> bool {
        let server = self.server(key);
        if !server.is_here() {
            return false;
        }
        let since = Moment::now();
        let name = item::name(&self.settings.namespace, key);
        let reply = server.ask(Op::Get(&name), self.settings.timeout).await;
        let counts = &server.counts;
        let bytes = match reply {
            Ok(Reply::Found(bytes)) => bytes,
            Ok(_) => {
                counts.misses.add(1);
                return false;
            }
            // Counted where it was seen.
            Err(ServerFailure::Slow | ServerFailure::Broken(_)) => return false,
        };
        let entries = match item::read(&self.packing, key, bytes) {
            Ok(entries) => entries,
            Err(Unreadable::Garbled) => {
                counts.garbled.add(1);
                return false;
            }
            Err(Unreadable::OtherKey) => {
                counts.misses.add(1);
                return false;
            }
        };
        let is_kept = self.keep(key, entries, since);
        if is_kept {
            counts.hits.add(1)
        } else {
            counts.void.add(1)
        }
        is_kept
    }

    /// Stores the entries that no purge has voided. The newest comes last, so that it is in front.
    fn keep(&self, key: &[u8], entries: Vec<Entry<H>>, since: Moment) -> bool {
        let index = self.ring.of(key);
        let is_good = |entry: &Entry<H>| {
            entry.freshness.useless_from() > since && self.is_for_others(index, key, entry)
        };
        let valid = entries.into_iter().rev().filter(is_good);
        valid.map(|entry| self.cache.keep_found(key, Arc::new(entry), since)).filter(|kept| *kept).count() > 0
    }

    /// The item to write, with the mark by which a later purge voids it.
    fn item(&self, index: usize, key: &[u8], variants: &Variants<H>) -> Option<(Vec<u8>, u32)> {
        let entries = variants.iter().map(|entry| &**entry);
        let good: Vec<_> = entries.filter(|entry| self.is_for_others(index, key, entry)).collect();
        let oldest = good.iter().filter_map(|entry| Some(entry.asked.under?.number)).min()?;
        Some((item::write(&self.packing, key, &good, self.settings.max_item)?, page::mark(oldest)))
    }

    fn is_for_others(&self, index: usize, key: &[u8], entry: &Entry<H>) -> bool {
        entry.asked.under.is_some_and(|under| !self.log().voids(index, key, entry, under))
    }
}
