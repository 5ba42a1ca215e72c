//! The tier that several Hostlers share: memcached servers behind the memory of each. What they do not answer in time, nobody
//! waits for. Knows no HTTP.

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

use serde::Serialize;
use tokio::task::AbortHandle;

use crate::{Cache, Entry, FetchMark, Moment, Purge, Variants};
use item::Unreadable;
use log::PurgeLog;
use ring::Ring;
use server::{MemcachedServer, Op, Reply, ServerFailure};
use writer::{Write, WriteQueue};

pub use server::{Notice, ServerCounts, ServerStatus};

/// The most seconds that an item stays, whatever its terms say: so long a purge has to be remembered.
const LONGEST_SECONDS: u64 = 24 * 60 * 60;

/// Where the servers are and how long they are waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierSettings {
    /// `host:port`, `[IPv6]:port` or `unix:/path`. Which one has a key goes by these words, so all Hostlers must write the same.
    pub servers: Vec<Box<str>>,
    /// What all keys begin with.
    pub namespace: Box<str>,
    /// The longest that a request waits for a server, and the longest in which one has to answer so as not to be left alone.
    pub timeout: Duration,
    /// The largest item; memcached's own limit is 1 MiB by default.
    pub max_item: usize,
}

/// How the program's heads become bytes.
#[derive(Debug, Clone, Copy)]
pub struct Packing<H> {
    /// Appends it.
    pub write: fn(&H, &mut Vec<u8>),
    /// Reads what was written; none if it is not that.
    pub read: fn(&[u8]) -> Option<H>,
    /// What one takes in memory, in bytes.
    pub bytes: fn(&H) -> usize,
}

/// The memcached servers of a site. Its tasks end with it.
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

/// What came of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Purged {
    /// Entries that lay in this process's memory.
    pub entries: u64,
    /// Servers that know of it; the others do as soon as they are back.
    pub told: usize,
    /// Of so many.
    pub servers: usize,
}

impl<H: Send + Sync + 'static> Tier<H> {
    /// Begins to look for the servers, on the runtime that this is called on; `tell` is called when one is found or lost.
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

    /// Brings what a server has under this key into memory; false if that is nothing, or if it cannot be had in time.
    pub async fn fetch(&self, key: &[u8]) -> bool {
        self.shared.fetch(key).await
    }

    /// Stores all that memory has under this key, later. What is too large, or too much for now, is not stored.
    pub fn put(&self, key: &[u8], variants: Variants<H>) {
        let weight = variants.weight();
        self.shared.queue(key).push(Write::Put(key.into(), variants), weight, self.shared.server(key));
    }

    /// Takes away what the server has under this key, later; others may keep what they have.
    pub fn delete(&self, key: &[u8]) {
        let index = self.shared.ring.of(key);
        if !self.shared.queues[index].push(Write::Delete(key.into()), key.len(), &self.shared.servers[index])
        {
            self.shared.log().change(index, key);
        }
    }

    /// An unsafe method has changed what is under this key: what the server has is void from now on, and other Hostlers are told as
    /// soon as it can be. Nobody waits for that, and many of them are told at once.
    pub fn forget(&self, key: &[u8]) {
        let index = self.shared.ring.of(key);
        self.shared.log().change(index, key);
        self.shared.servers[index].nudge();
    }

    /// A member is asked now for what is to be stored under this key.
    pub fn mark_fetch(&self, key: &[u8]) -> FetchMark {
        let under = self.shared.log().under(self.shared.ring.of(key));
        FetchMark { at: Moment::now(), under }
    }

    /// Forgets what is meant, here and everywhere: memory now, the servers as soon as they can be told, and other Hostlers
    /// when they look there the next time.
    pub async fn purge(&self, purges: Vec<Purge>) -> Purged {
        purges.iter().for_each(|purge| self.shared.log().add(purge.clone()));
        let entries = self.shared.purge_memory(purges).await;
        let servers = &self.shared.servers;
        let mut told = 0;
        for (index, server) in servers.iter().enumerate() {
            // Who is away is told by its keeper once it is back.
            if server.is_here() && keeper::agree(&self.shared, index).await.is_ok() {
                told += 1;
            }
        }
        Purged { entries, told, servers: servers.len() }
    }

    /// Each server.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.shared.servers.iter().map(MemcachedServer::status).collect()
    }

    /// What it was started with.
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

    /// The lock guards a set; each change to it is one call.
    fn log(&self) -> std::sync::MutexGuard<'_, PurgeLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at every key in memory: away from the threads that serve.
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

    /// Keeps in memory what nothing has voided; the newest last, so that it lies in front.
    fn keep(&self, key: &[u8], entries: Vec<Entry<H>>, since: Moment) -> bool {
        let index = self.ring.of(key);
        let is_good = |entry: &Entry<H>| {
            entry.freshness.useless_from() > since && self.is_for_others(index, key, entry)
        };
        let valid = entries.into_iter().rev().filter(is_good);
        valid.map(|entry| self.cache.keep_found(key, Arc::new(entry), since)).filter(|kept| *kept).count() > 0
    }

    /// What of this is to be written, with the mark by which it is found void later.
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
