//! The purges that the servers of a site have to be told. Knows no servers, only their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};

use crate::Purge;

/// The purges that the servers have to be told.
pub(super) type Purges = BTreeMap<u64, PurgeTold>;

/// A purge, and which servers do not need it any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PurgeTold {
    pub purge: Purge,
    /// The servers that do not need it any more.
    pub over: BTreeSet<usize>,
    /// It was sent to a server, where a Hostler may have read it already. So an equal purge that comes later needs a record
    /// of its own.
    pub is_offered: bool,
}

impl PurgeTold {
    pub fn new(purge: Purge) -> Self {
        Self { purge, over: BTreeSet::new(), is_offered: false }
    }

    /// Whether the server needs it.
    pub fn is_for(&self, index: usize) -> bool {
        !self.over.contains(&index)
    }
}

/// A random number. The system seeds it for each process, and each call gives another one.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(())
}
