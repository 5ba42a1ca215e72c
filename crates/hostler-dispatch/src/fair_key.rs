//! The key under which a request takes its share of a fair pool. Knows no requests.

use std::num::NonZeroU64;

/// The key under which a request takes its share, such as the network of its client. The pool only compares keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FairKey(NonZeroU64);

impl FairKey {
    /// The key with this hash. Two keys with one hash share.
    pub fn of(hash: u64) -> Self {
        Self(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MAX))
    }
}
