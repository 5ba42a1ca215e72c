//! What is to be forgotten, and what was lately: an answer that was under way meanwhile must not come back. Knows no store.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::{Entry, Moment};

/// How many purges are remembered one by one. Of older ones it is enough to say that there were some.
pub(crate) const MOST_REMEMBERED: usize = 512;

/// Places for keys that were forgotten.
const KEY_PLACES: usize = 8192;

/// What to forget.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purge {
    /// All entries of this key: host, path and query.
    Url(String),
    /// All entries whose key begins so.
    Prefix(String),
    /// All entries with this tag.
    Tag(String),
    /// Everything.
    All,
}

impl Purge {
    /// Whether this entry is meant.
    pub fn matches<H>(&self, key: &[u8], entry: &Entry<H>) -> bool {
        match self {
            Self::Tag(tag) => entry.tags.iter().any(|own| **own == **tag),
            whole_key => whole_key.matches_key(key),
        }
    }

    /// Whether everything under this key is meant, whatever its tags.
    pub(crate) fn matches_key(&self, key: &[u8]) -> bool {
        match self {
            Self::Url(url) => key == url.as_bytes(),
            Self::Prefix(prefix) => key.starts_with(prefix.as_bytes()),
            Self::Tag(_) => false,
            Self::All => true,
        }
    }
}

/// The latest purges, for answers that were asked for before one of them and come after it.
#[derive(Debug)]
pub(crate) struct Lately {
    /// When a key with this hash was last forgotten: an unsafe method forgets one, and there may be thousands in a second. Two
    /// keys that share a place cost at worst an answer that is not stored.
    keys: Box<[AtomicU64]>,
    hasher: foldhash::quality::RandomState,
    /// Whatever is meant by more than one key.
    wide: RwLock<VecDeque<(Moment, Purge)>>,
}

impl Lately {
    pub(crate) fn new() -> Self {
        let keys = (0..KEY_PLACES).map(|_| AtomicU64::new(0)).collect();
        Self { keys, hasher: foldhash::quality::RandomState::default(), wide: RwLock::default() }
    }

    /// This key is forgotten now.
    pub(crate) fn note_key(&self, key: &[u8], now: Moment) {
        self.place(key).fetch_max(now.0, Ordering::AcqRel);
    }

    /// It takes effect now.
    pub(crate) fn note(&self, purge: &Purge, now: Moment) {
        if let Purge::Url(key) = purge {
            return self.note_key(key.as_bytes(), now);
        }
        let mut wide = self.wide.write().unwrap_or_else(PoisonError::into_inner);
        wide.push_back((now, purge.clone()));
        if wide.len() > MOST_REMEMBERED {
            wide.pop_front();
        }
    }

    /// Whether a purge has come for this entry in or after `since`, or too many to remember.
    pub(crate) fn voids<H>(&self, key: &[u8], entry: &Entry<H>, since: Moment) -> bool {
        if self.place(key).load(Ordering::Acquire) >= since.0 {
            return true;
        }
        let wide = self.wide.read().unwrap_or_else(PoisonError::into_inner);
        let is_forgotten =
            wide.len() == MOST_REMEMBERED && wide.front().is_some_and(|(oldest, _)| since < *oldest);
        let mut lately = wide.iter().rev().take_while(|(when, _)| *when >= since);
        is_forgotten || lately.any(|(_, purge)| purge.matches(key, entry))
    }

    fn place(&self, key: &[u8]) -> &AtomicU64 {
        &self.keys[self.hasher.hash_one(key) as usize % KEY_PLACES]
    }
}
