//! What several Hostlers share, beside this one's memory: every change to memory goes there too, and what memory lacks may come
//! from there. Knows no requests.

use std::sync::Arc;

use hostler_cache::{Entry, FetchMark, Moment, Notice, Packing, Purge, Purged, Tier, TierSettings};
use hostler_wire::ResponseHead;

use super::{Stock, head};

impl Stock {
    /// Shares with others from now on as this says, or with nobody. Where servers change, nothing is taken from one to the other.
    pub fn share(&self, settings: Option<&TierSettings>, tell: impl Fn(Notice<'_>) + Send + Sync + 'static) {
        let packing = Packing { write: head::pack, read: head::unpack, bytes: head::size };
        let tier = settings.map(|settings| Tier::start(settings.clone(), packing, self.memory.clone(), tell));
        self.tier.store(tier.map(Arc::new));
    }

    /// Stores it; what it is for others too, they get.
    pub fn keep(&self, key: &[u8], entry: Arc<Entry<ResponseHead>>) {
        if self.memory.keep(key, entry) {
            self.pass_on(key);
        }
    }

    /// Puts `new` in the place of `old`, which was validated.
    pub fn exchange(&self, key: &[u8], old: &Arc<Entry<ResponseHead>>, new: Arc<Entry<ResponseHead>>) {
        if self.memory.exchange(key, old, new) {
            self.pass_on(key);
        }
    }

    /// Forgets all under this key, as an unsafe method on it demands.
    pub fn forget(&self, key: &[u8]) {
        let now = Moment::now();
        self.memory.forget(key, now);
        if let Some(tier) = &*self.tier.load() {
            tier.forget(key);
        }
    }

    /// A member is asked now for what is to be stored under this key.
    pub fn mark_fetch(&self, key: &[u8]) -> FetchMark {
        self.tier.load().as_ref().map_or_else(|| Moment::now().into(), |tier| tier.mark_fetch(key))
    }

    /// Takes this one away: it has turned out to be no good.
    pub fn remove(&self, key: &[u8], entry: &Arc<Entry<ResponseHead>>) {
        self.memory.remove(key, entry);
        if let Some(tier) = &*self.tier.load() {
            tier.delete(key);
        }
    }

    /// Looks whether others have it; true if memory has something now that it had not. Never longer than a moment.
    pub async fn fetch(&self, key: &[u8]) -> bool {
        let Some(tier) = self.tier.load_full() else { return false };
        tier.fetch(key).await
    }

    /// Forgets what is meant, everywhere.
    pub async fn purge(&self, purges: Vec<Purge>) -> Purged {
        match self.tier.load_full() {
            Some(tier) => tier.purge(purges).await,
            None => {
                let now = Moment::now();
                let memory = self.memory.clone();
                // It may look at every key.
                let purge = move || purges.iter().map(|purge| memory.purge(purge, now)).sum();
                let purged = tokio::task::spawn_blocking(purge).await;
                Purged { entries: purged.unwrap_or(0), told: 0, servers: 0 }
            }
        }
    }

    fn pass_on(&self, key: &[u8]) {
        if let Some(tier) = &*self.tier.load()
            && let Some(variants) = self.memory.look(key)
        {
            tier.put(key, variants);
        }
    }
}
