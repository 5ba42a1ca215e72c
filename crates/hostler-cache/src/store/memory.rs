//! The entries in this process's memory, limited in bytes. Its eviction keeps popular entries when a crawler requests
//! every page once. Knows no HTTP.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use moka::notification::RemovalCause;

use crate::purge::RecentPurges;
use crate::{BodyMemory, BodyShare, Entry, Purge, StoredForm, Tick, Variants};

type StoreKey = Box<[u8]>;
type Memory<H> = moka::sync::Cache<StoreKey, Variants<H>, foldhash::quality::RandomState>;

/// The entries by key. All threads share it.
pub struct Cache<H> {
    memory: Memory<H>,
    /// The bodies of the entries, those that are arriving, and those of evicted entries that have readers.
    bodies: Arc<BodyMemory>,
    max_entry: usize,
    /// The most bytes of all entries under one key.
    most_of_key: usize,
    /// Locks for changes of the entries under a key. The method of moka for this counts each change as a lookup, so a key
    /// that is requested once would look popular.
    changing: Box<[Mutex<()>]>,
    hasher: foldhash::quality::RandomState,
    recent_purges: RecentPurges,
    counts: Arc<StoreCounters>,
}

/// What happens to the entries under a key.
enum SlotChange<H> {
    Nothing,
    Put(Variants<H>),
    Remove,
}

/// The entries under one key get at most this part (a quarter) of the memory, or room for one. Without this limit, further entries under a
/// stored key would displace other keys, however popular those are.
const KEY_PART: u64 = 4;

/// Keys are spread over this many locks, so changes of different keys rarely wait for each other.
const LOCKS: usize = 64;

/// The figures of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// How many keys it has.
    pub keys: u64,
    /// The memory of all entries, in bytes.
    pub bytes: u64,
    /// How many keys were evicted to make room.
    pub evicted: u64,
    /// How many entries were purged.
    pub purged: u64,
    /// It has stored something, though it may be empty now.
    pub has_stored: bool,
}

#[derive(Default)]
struct StoreCounters {
    evicted: AtomicU64,
    purged: AtomicU64,
    has_stored: AtomicBool,
}

impl<H: Send + Sync + 'static> Cache<H> {
    /// An empty store for this many bytes. No entry may be larger than `max_entry` bytes.
    pub fn new(bytes: u64, max_entry: usize) -> Self {
        let counts = Arc::new(StoreCounters::default());
        let evicted = Arc::clone(&counts);
        let hasher = foldhash::quality::RandomState::default();
        let memory = moka::sync::Cache::builder()
            .max_capacity(bytes)
            .weigher(|key: &StoreKey, variants: &Variants<H>| {
                u32::try_from(key.len() + variants.weight()).unwrap_or(u32::MAX)
            })
            .eviction_listener(move |_, _, cause| {
                if cause == RemovalCause::Size {
                    evicted.evicted.fetch_add(1, Ordering::Relaxed);
                }
            })
            .build_with_hasher(hasher.clone());
        let changing = (0..LOCKS).map(|_| Mutex::default()).collect();
        // What is arriving or still being read may use as much again. So slow readers of evicted entries cannot use up all
        // memory of the machine, and normal use needs far less.
        let bodies = BodyMemory::new(bytes.saturating_mul(2));
        let most_of_key = usize::try_from(bytes / KEY_PART).unwrap_or(usize::MAX).max(max_entry);
        let recent_purges = RecentPurges::new();
        Self { memory, bodies, max_entry, most_of_key, changing, hasher, recent_purges, counts }
    }

    /// All entries under this key. Takes no lock that a writer holds for long, and allocates nothing.
    pub fn look(&self, key: &[u8]) -> Option<Variants<H>> {
        self.memory.get(key)
    }

    /// The limit in bytes.
    pub fn capacity(&self) -> u64 {
        self.memory.policy().max_capacity().unwrap_or_default()
    }

    /// A share of the memory for a body of this length that is to be stored. `None`: too many bodies are still being read.
    pub fn share(&self, bytes: u64) -> Option<BodyShare> {
        self.bodies.share(bytes).or_else(|| {
            // Evictions may be due.
            self.memory.run_pending_tasks();
            self.bodies.share(bytes)
        })
    }

    /// What counts the bodies.
    pub fn bodies(&self) -> &Arc<BodyMemory> {
        &self.bodies
    }

    /// The largest size of an entry in bytes. A caller can stop when a body gets larger.
    pub fn max_entry(&self) -> usize {
        self.max_entry
    }

    /// Stores an entry. It replaces the entry under this key that matches the same requests. Returns false if it is too
    /// large or if a purge came meanwhile.
    pub fn keep(&self, key: &[u8], entry: Arc<Entry<H>>) -> bool {
        let since = entry.asked.tick;
        self.keep_unless(key, entry, since, |_| false)
    }

    /// Stores an entry that another Hostler stored in the tier, unless memory has a newer one, or a purge came after
    /// `since`.
    pub(crate) fn keep_found(&self, key: &[u8], entry: Arc<Entry<H>>, since: Tick) -> bool {
        let asked = entry.asked.at;
        self.keep_unless(key, entry, since, |known| known.asked.at >= asked)
    }

    fn keep_unless(
        &self,
        key: &[u8],
        entry: Arc<Entry<H>>,
        since: Tick,
        is_better: impl Fn(&Entry<H>) -> bool,
    ) -> bool {
        if entry.weight() > self.max_entry || self.recent_purges.voids(key, &entry, since) {
            return false;
        }
        self.change(key, |before| match before {
            None => SlotChange::Put(Variants::from(Arc::clone(&entry))),
            Some(before) => match before.iter().find(|known| known.vary == entry.vary) {
                Some(known) if is_better(known) => SlotChange::Nothing,
                _ => SlotChange::Put(before.with(Arc::clone(&entry), self.most_of_key)),
            },
        });
        // `purge` first notes the purge and then looks for keys. So a purge that came too early to find this key is noted by now.
        if self.recent_purges.voids(key, &entry, since) {
            self.drop_from(key, |stored| stored.is_same(&entry));
            return false;
        }
        true
    }

    /// Replaces `old` by `new`, which was validated, if `old` is still stored.
    pub fn exchange(&self, key: &[u8], old: &Arc<Entry<H>>, new: Arc<Entry<H>>) -> bool {
        self.exchange_if(key, old, &new, |_| true)
    }

    /// Adds the body in another coding to an entry. The forms may need more memory together than one entry may have, so that a large
    /// entry is not encoded for each request, but only in the part of the memory for their key.
    pub fn add_form(&self, key: &[u8], entry: &Arc<Entry<H>>, form: StoredForm<H>) -> bool {
        let new = Arc::new(entry.with(form));
        let is_small = new.weight() <= self.max_entry;
        self.exchange_if(key, entry, &new, |all| is_small || all.weight() <= self.most_of_key)
    }

    fn exchange_if(
        &self,
        key: &[u8],
        old: &Arc<Entry<H>>,
        new: &Arc<Entry<H>>,
        fits: impl FnOnce(&Variants<H>) -> bool,
    ) -> bool {
        if new.weight_without_forms() > self.max_entry {
            return false;
        }
        let mut done = false;
        self.change(key, |before| {
            let exchanged = before.and_then(|before| before.exchange(old, new)).filter(fits);
            done = exchanged.is_some();
            exchanged.map_or(SlotChange::Nothing, SlotChange::Put)
        });
        done
    }

    /// Forgets all entries under this key, including responses that are on their way. For unsafe methods.
    pub fn forget(&self, key: &[u8], now: Tick) {
        self.recent_purges.note_key(key, now);
        self.change(key, |_| SlotChange::Remove);
    }

    /// Whether a response under this key that was requested at `since`, and that has not come yet, may be void. Its tags are
    /// not known yet, so a purge by any tag counts.
    pub fn is_void(&self, key: &[u8], since: Tick) -> bool {
        self.recent_purges.may_void(key, since)
    }

    /// Forgets this entry, if it is still stored. A response that is on its way may still be stored.
    pub fn remove(&self, key: &[u8], entry: &Arc<Entry<H>>) {
        self.drop_from(key, |stored| stored.is_same(entry));
    }

    /// Forgets all entries that the purge matches, including responses that are on their way. Returns the number of
    /// entries. Looks at every key unless the purge is for one URL, so do not call it on a thread that serves requests.
    pub fn purge(&self, purge: &Purge, now: Tick) -> u64 {
        self.recent_purges.note(purge, now);
        let drop = |key: &[u8]| self.drop_from(key, |entry| purge.matches(key, entry));
        let purged = match purge {
            Purge::Url(key) => drop(key.as_bytes()),
            Purge::Prefix(_) | Purge::Tag(_) | Purge::All => {
                let matching = |(key, variants): (Arc<StoreKey>, Variants<H>)| {
                    variants.iter().any(|entry| purge.matches(&key, entry)).then_some(key)
                };
                let keys: Vec<_> = self.memory.iter().filter_map(matching).collect();
                keys.iter().map(|key| drop(key)).sum()
            }
        };
        self.counts.purged.fetch_add(purged, Ordering::Relaxed);
        purged
    }

    fn drop_from(&self, key: &[u8], meant: impl Fn(&Arc<Entry<H>>) -> bool) -> u64 {
        let mut dropped = 0;
        self.change(key, |before| {
            let Some(before) = before else { return SlotChange::Nothing };
            dropped = before.iter().filter(|entry| meant(entry)).count() as u64;
            match before.only(|entry| !meant(entry)) {
                Some(_) if dropped == 0 => SlotChange::Nothing,
                Some(rest) => SlotChange::Put(rest),
                None => SlotChange::Remove,
            }
        });
        dropped
    }

    fn change(&self, key: &[u8], how: impl FnOnce(Option<Variants<H>>) -> SlotChange<H>) {
        let at = self.hasher.hash_one(key) as usize % LOCKS;
        // The lock guards only the order of changes.
        let _turn = self.changing[at].lock().unwrap_or_else(PoisonError::into_inner);
        // `contains_key` first, because it does not count as a lookup.
        let before = if self.memory.contains_key(key) { self.memory.get(key) } else { None };
        match how(before) {
            SlotChange::Nothing => {}
            SlotChange::Put(variants) => {
                self.counts.has_stored.store(true, Ordering::Relaxed);
                self.memory.insert(key.into(), variants);
            }
            SlotChange::Remove => self.memory.invalidate(key),
        }
    }

    /// The current figures.
    pub fn counts(&self) -> Counts {
        self.memory.run_pending_tasks();
        Counts {
            keys: self.memory.entry_count(),
            bytes: self.memory.weighted_size(),
            evicted: self.counts.evicted.load(Ordering::Relaxed),
            purged: self.counts.purged.load(Ordering::Relaxed),
            has_stored: self.counts.has_stored.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests;
