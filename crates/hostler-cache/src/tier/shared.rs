//! What the tasks of a tier share: its servers, the purge log and the memory, and how an item comes from a server into memory. Knows
//! no HTTP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::item::{self, Packing, Unreadable, Unwritable};
use super::log::PurgeLog;
use super::page;
use super::ring::Ring;
use super::server::{MemcachedServer, Op, Reply, ServerFailure};
use super::write_queue::WriteQueue;
use crate::{Cache, Entry, Moment, Purge, Tick, Variants};

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

/// What the tasks of a tier share.
pub(super) struct TierShared<H> {
    pub settings: TierSettings,
    pub packing: Packing<H>,
    pub cache: Arc<Cache<H>>,
    pub ring: Ring,
    pub servers: Box<[MemcachedServer]>,
    pub queues: Box<[WriteQueue<H>]>,
    pub log: Mutex<PurgeLog>,
}

impl<H: Send + Sync + 'static> TierShared<H> {
    /// The lock guards a set, and each change to it is one call.
    pub fn log(&self) -> MutexGuard<'_, PurgeLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Purges memory. This looks at every key, so it runs away from the threads that serve requests.
    pub async fn purge_memory(self: &Arc<Self>, purges: Vec<Purge>) -> u64 {
        let shared = Arc::clone(self);
        let purge = move || purges.iter().map(|purge| shared.cache.purge(purge, Tick::now())).sum();
        tokio::task::spawn_blocking(purge).await.unwrap_or(0)
    }

    pub async fn fetch(&self, key: &[u8]) -> bool {
        let index = self.ring.of(key);
        let server = &self.servers[index];
        if !server.is_here() {
            return false;
        }
        let since = (Moment::now(), Tick::now());
        let name = item::name(&self.settings.namespace, key);
        let reply = server.ask(Op::Get(&name), self.settings.timeout).await;
        let counts = &server.counts;
        let bytes = match reply {
            Ok(Reply::Found(bytes)) => bytes,
            Ok(_) => {
                counts.misses.add(1);
                return false;
            }
            // `ask` has counted the failure.
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
        let is_kept = self.keep(index, key, entries, since);
        if is_kept {
            counts.hits.add(1)
        } else {
            counts.void.add(1)
        }
        is_kept
    }

    /// Stores the entries that no purge has voided, the newest last: the one that is stored last is the first under its key.
    fn keep(&self, index: usize, key: &[u8], entries: Vec<Entry<H>>, (now, since): (Moment, Tick)) -> bool {
        let is_good =
            |entry: &Entry<H>| entry.freshness.useless_from() > now && self.is_for_others(index, key, entry);
        let valid = entries.into_iter().rev().filter(is_good);
        let counted = |entry: Entry<H>| {
            let share = self.cache.share(entry.body.len() as u64)?;
            Some(Entry { body: share.own(entry.body), ..entry })
        };
        let keep = |entry| self.cache.keep_found(key, Arc::new(entry), since);
        valid.filter_map(counted).map(keep).filter(|kept| *kept).count() > 0
    }

    /// The item to write, with the mark by which a later purge voids it.
    pub fn item(
        &self,
        index: usize,
        key: &[u8],
        variants: &Variants<H>,
    ) -> Result<(Vec<u8>, u32), Unwritable> {
        let entries = variants.iter().map(|entry| &**entry);
        let good: Vec<_> = entries.filter(|entry| self.is_for_others(index, key, entry)).collect();
        let oldest = good.iter().filter_map(|entry| Some(entry.asked.under?.number)).min();
        let mark = page::mark(oldest.ok_or(Unwritable::Void)?);
        let bytes = item::write(&self.packing, key, &good, self.settings.max_item);
        Ok((bytes.ok_or(Unwritable::TooLarge)?, mark))
    }

    fn is_for_others(&self, index: usize, key: &[u8], entry: &Entry<H>) -> bool {
        entry.asked.under.is_some_and(|under| !self.log().voids(index, key, entry, under))
    }
}
