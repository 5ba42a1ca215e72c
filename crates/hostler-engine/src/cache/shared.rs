//! Applies every change of the cache to memory and to memcached, and reads from memcached what memory lacks. Knows no requests.

use std::sync::Arc;
use std::time::Duration;

use hostler_cache::{Entry, FetchMark, Freshness, Notice, Packing, Purge, Purged, Tick, Tier, TierSettings};
use hostler_wire::ResponseHead;
use tokio::time::sleep;

use super::{SharedCache, head};

/// How often replaced servers are checked until no request uses them any more.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A response that each request validates is written to memcached at most once in each period of this length.
const VALIDATED_MS: u64 = 10_000;

impl SharedCache {
    /// Changes the memcached servers; None: uses none. Entries are not copied from old to new servers. The new ones are told the purges that
    /// the old ones lack.
    pub fn share(
        self: &Arc<Self>,
        settings: Option<&TierSettings>,
        tell: impl Fn(Notice<'_>) + Send + Sync + 'static,
    ) {
        let packing = Packing { write: head::pack, read: head::unpack, bytes: head::size };
        let tier = settings.map(|settings| Tier::start(settings.clone(), packing, self.memory.clone(), tell));
        let Some(mut before) = self.tier.swap(tier.map(Arc::new)) else { return };
        self.tell(before.undelivered());
        let cache = self.clone();
        tokio::spawn(async move {
            // A request that has just loaded the old tier may still note purges there. When `get_mut` succeeds, no request has the old tier
            // any more, and all their purges are visible here.
            while Arc::get_mut(&mut before).is_none() {
                sleep(POLL_INTERVAL).await;
            }
            cache.tell(before.undelivered());
        });
    }

    /// The purges that memcached has not got yet, because it was away.
    pub fn undelivered(&self) -> Vec<Purge> {
        self.tier.load().as_ref().map(|tier| tier.undelivered()).unwrap_or_default()
    }

    /// Tries for this long to tell memcached of the purges that it has not got. Returns those that it still has not got.
    pub async fn deliver(&self, time_limit: Duration) -> Vec<Purge> {
        match self.tier.load_full() {
            Some(tier) => tier.deliver(time_limit).await,
            None => Vec::new(),
        }
    }

    /// Tells memcached of purges that were applied to memory before.
    pub fn tell(&self, purges: Vec<Purge>) {
        if let Some(tier) = &*self.tier.load() {
            tier.tell(purges);
        }
    }

    /// Whether there is memcached.
    pub fn has_tier(&self) -> bool {
        self.tier.load().is_some()
    }

    /// Stores an entry in memory; one that others may use goes to memcached too. False if it is not stored: it is too large, or a purge
    /// came meanwhile.
    pub fn keep(&self, key: &[u8], entry: Arc<Entry<ResponseHead>>) -> bool {
        let is_kept = self.memory.keep(key, entry);
        if is_kept {
            self.pass_on(key);
        }
        is_kept
    }

    /// Replaces `old`, which was validated, by `new`. False if `old` is no longer stored.
    pub fn exchange(
        &self,
        key: &[u8],
        old: &Arc<Entry<ResponseHead>>,
        new: Arc<Entry<ResponseHead>>,
    ) -> bool {
        let is_for_others = helps_others(old, &new);
        let is_kept = self.memory.exchange(key, old, new);
        if is_kept && is_for_others {
            self.pass_on(key);
        }
        is_kept
    }

    /// Removes all entries of this key, as an unsafe method requires.
    pub fn forget(&self, key: &[u8]) {
        // First memcached: a read of its item that begins after memory has forgotten the key must find the item void. Otherwise the old
        // answer could come back into memory and stay there.
        if let Some(tier) = &*self.tier.load() {
            tier.forget(key);
        }
        self.forget_in_memory(key);
    }

    /// The same for a route that stores nothing: its requests join no fetch that began before.
    pub fn forget_in_memory(&self, key: &[u8]) {
        self.memory.forget(key, Tick::now());
        self.untold.load().iter().for_each(|untold| untold.add([Purge::of_key(key)]));
    }

    /// Marks the start of a fetch for this key, so that a purge during the fetch takes effect.
    pub fn mark_fetch(&self, key: &[u8]) -> FetchMark {
        self.tier.load().as_ref().map_or_else(|| FetchMark::now(None), |tier| tier.mark_fetch(key))
    }

    /// Removes one entry that cannot be used.
    pub fn remove(&self, key: &[u8], entry: &Arc<Entry<ResponseHead>>) {
        self.memory.remove(key, entry);
        if let Some(tier) = &*self.tier.load() {
            tier.delete(key);
        }
    }

    /// Reads the key from memcached. True if that has added an entry to memory. Waits for `cache.timeout` at most.
    pub async fn fetch(&self, key: &[u8]) -> bool {
        let Some(tier) = self.tier.load_full() else { return false };
        tier.fetch(key).await
    }

    /// Purges memory and memcached.
    pub async fn purge(&self, purges: Vec<Purge>) -> Purged {
        match self.tier.load_full() {
            Some(tier) => tier.purge(purges).await,
            None => Purged { entries: self.purge_memory(purges).await, told: 0, servers: 0 },
        }
    }

    /// Purges memory only. Returns how many entries that has removed.
    pub async fn purge_memory(&self, purges: Vec<Purge>) -> u64 {
        let (now, memory) = (Tick::now(), self.memory.clone());
        // On a blocking thread: a purge may look at every key.
        let purge = move || purges.iter().map(|purge| memory.purge(purge, now)).sum();
        tokio::task::spawn_blocking(purge).await.unwrap_or(0)
    }

    fn pass_on(&self, key: &[u8]) {
        if let Some(tier) = &*self.tier.load()
            && let Some(variants) = self.memory.look(key)
        {
            tier.put(key, variants);
        }
    }
}

/// Whether other Hostlers need the validated response. One that is never fresh is validated for each request, and each write to memcached is the
/// whole body. Other Hostlers validate it themselves, and the item that they find is good enough for that.
fn helps_others(old: &Entry<ResponseHead>, new: &Entry<ResponseHead>) -> bool {
    let (before, after) = (old.freshness, new.freshness);
    let is_fresh = Freshness { stale_while_revalidate: 0, ..after }.is_servable(after.received);
    let before_now = Freshness { received: after.received, initial_age: after.initial_age, ..before };
    let is_other = before_now != after || old.vary != new.vary || old.tags != new.tags;
    is_fresh || is_other || before.received.0 / VALIDATED_MS != after.received.0 / VALIDATED_MS
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::journal::{Journal, LogFormat};

    #[tokio::test(start_paused = true)]
    async fn a_change_that_is_noted_at_the_old_servers_reaches_the_new_ones() {
        let journal =
            Journal::new(LogFormat::Json, false, std::fs::File::create("/dev/null").unwrap()).unwrap();
        let cache = Arc::new(SharedCache::new(1 << 20, 1 << 16, journal));
        let folder = tempfile::tempdir().unwrap();
        // Nothing listens there, so no server takes a purge.
        let server = format!("unix:{}", folder.path().join("memcached").display());
        let settings = |seconds| TierSettings {
            servers: vec![server.as_str().into()],
            namespace: "".into(),
            timeout: Duration::from_secs(seconds),
            max_item: 1 << 20,
        };
        cache.share(Some(&settings(1)), |_| ());
        let taken = cache.tier.load_full().unwrap();
        cache.share(Some(&settings(2)), |_| ());
        taken.forget(b"a.test/changed");
        drop(taken);
        let told = async {
            while cache.undelivered().is_empty() {
                advance(POLL_INTERVAL).await;
            }
        };
        timeout(Duration::from_secs(60), told).await.expect("the change is lost");
        assert_eq!(cache.undelivered(), [Purge::Url("a.test/changed".into())]);
    }
}
