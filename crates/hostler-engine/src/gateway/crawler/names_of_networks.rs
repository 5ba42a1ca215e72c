//! Which crawler a network says it is: the first name that came from it counts. Knows no requests and no `User-Agent`s.
//!
//! A client can send another name with each request. If each name counted, each would be a key of its own. The memory is fixed, and no
//! lock is taken: a network that another one has pushed out of its place may begin with a new name.

use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;

/// How many networks are remembered: 32 KB. A power of two.
const PLACES: usize = 4096;
/// The part of an entry that is the hash of the network. The rest is that of the name.
const NETWORK: u64 = !0 << 32;
/// No hash of a name is 0, so an entry of 0 is an empty place.
const NAMED: u64 = 1;

/// The first name of each network.
#[derive(Debug)]
pub(in crate::gateway) struct NamesOfNetworks {
    /// A random one, so that clients cannot choose networks that push out each other.
    hasher: RandomState,
    entries: Box<[AtomicU64]>,
}

impl NamesOfNetworks {
    pub fn new() -> Self {
        Self { hasher: RandomState::default(), entries: (0..PLACES).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Whether the name is the first one of this network. If the network has none yet, it is from now on.
    pub fn is_first(&self, network: IpAddr, name: impl Hash) -> bool {
        let hash = self.hasher.hash_one(network);
        let entry = hash & NETWORK | self.hasher.hash_one(name) & !NETWORK | NAMED;
        let place = &self.entries[hash as usize % PLACES];
        let is_other = |seen: u64| seen & NETWORK != hash & NETWORK || seen == 0;
        let replace = |seen: u64| is_other(seen).then_some(entry);
        match place.fetch_update(Ordering::Relaxed, Ordering::Relaxed, replace) {
            Ok(_) => true,
            Err(seen) => seen == entry,
        }
    }
}
