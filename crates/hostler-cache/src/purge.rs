//! What to purge, and the latest purges: a response that was requested before a purge must not be stored after it. Knows
//! no store.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::{Entry, Tick};

/// How many purges are remembered one by one. Of older ones, only the time is remembered.
pub(crate) const MOST_REMEMBERED: usize = 512;

/// The number of places for the times of forgotten keys.
const KEY_PLACES: usize = 8192;

/// What to purge.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purge {
    /// All entries of this key: host, path and query.
    Url(String),
    /// All entries whose key begins with this text.
    Prefix(String),
    /// All entries with this tag.
    Tag(String),
    /// Everything.
    All,
}

impl Purge {
    /// All entries of this key. A purge is text: of a key that is not UTF-8 it has the part before the first other byte, as a prefix.
    pub fn of_key(key: &[u8]) -> Self {
        match std::str::from_utf8(key) {
            Ok(key) => Self::Url(key.to_owned()),
            Err(error) => Self::Prefix(String::from_utf8_lossy(&key[..error.valid_up_to()]).into_owned()),
        }
    }

    /// Whether the purge matches this entry.
    pub fn matches<H>(&self, key: &[u8], entry: &Entry<H>) -> bool {
        match self {
            Self::Tag(tag) => entry.tags.iter().any(|own| **own == **tag),
            whole_key => whole_key.matches_key(key),
        }
    }

    /// The bytes of its text.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Url(text) | Self::Prefix(text) | Self::Tag(text) => text.len(),
            Self::All => 0,
        }
    }

    /// Whether the purge matches every entry under this key, with any tags.
    pub(crate) fn matches_key(&self, key: &[u8]) -> bool {
        match self {
            Self::Url(url) => key == url.as_bytes(),
            Self::Prefix(prefix) => key.starts_with(prefix.as_bytes()),
            Self::Tag(_) => false,
            Self::All => true,
        }
    }
}

/// The latest purges, for responses that were requested before one of them and come after it.
#[derive(Debug)]
pub(crate) struct RecentPurges {
    /// For each place: the [`Tick`] at which a key with this hash was last forgotten, or 0. Unsafe methods forget keys,
    /// perhaps thousands per second. If two keys share a place, at worst a response is not stored.
    keys: Box<[AtomicU64]>,
    hasher: foldhash::quality::RandomState,
    /// Purges that match more than one key.
    wide: RwLock<WidePurges>,
}

#[derive(Debug, Default)]
struct WidePurges {
    /// In the order in which they were noted. Their times may have another order.
    noted: VecDeque<(Tick, Purge)>,
    /// The latest time of a purge that is not remembered any more.
    forgotten: Option<Tick>,
}

impl RecentPurges {
    pub(crate) fn new() -> Self {
        let keys = (0..KEY_PLACES).map(|_| AtomicU64::new(0)).collect();
        Self { keys, hasher: foldhash::quality::RandomState::default(), wide: RwLock::default() }
    }

    /// Notes that this key is forgotten now.
    pub(crate) fn note_key(&self, key: &[u8], now: Tick) {
        self.place(key).fetch_max(now.0, Ordering::AcqRel);
    }

    /// Notes a purge. It takes effect now.
    pub(crate) fn note(&self, purge: &Purge, now: Tick) {
        if let Purge::Url(key) = purge {
            return self.note_key(key.as_bytes(), now);
        }
        let mut wide = self.wide.write().unwrap_or_else(PoisonError::into_inner);
        wide.noted.push_back((now, purge.clone()));
        if wide.noted.len() > MOST_REMEMBERED {
            let oldest = wide.noted.pop_front().map(|(when, _)| when);
            wide.forgotten = wide.forgotten.max(oldest);
        }
    }

    /// Whether a purge in or after `since` matches this entry. Also true if so many came that not all are remembered.
    pub(crate) fn voids<H>(&self, key: &[u8], entry: &Entry<H>, since: Tick) -> bool {
        self.has_voided(key, since, |purge| purge.matches(key, entry))
    }

    /// Whether a purge in or after `since` may have matched a response under this key whose tags are not known yet.
    pub(crate) fn may_void(&self, key: &[u8], since: Tick) -> bool {
        self.has_voided(key, since, |purge| matches!(purge, Purge::Tag(_)) || purge.matches_key(key))
    }

    fn has_voided(&self, key: &[u8], since: Tick, matches: impl Fn(&Purge) -> bool) -> bool {
        if self.place(key).load(Ordering::Acquire) >= since.0 {
            return true;
        }
        let wide = self.wide.read().unwrap_or_else(PoisonError::into_inner);
        wide.forgotten.is_some_and(|forgotten| forgotten >= since)
            || wide.noted.iter().any(|(when, purge)| *when >= since && matches(purge))
    }

    fn place(&self, key: &[u8]) -> &AtomicU64 {
        &self.keys[self.hasher.hash_one(key) as usize % KEY_PLACES]
    }
}
