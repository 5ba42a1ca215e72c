//! The meaning of `[cache]`: plain data that has been checked.

use hostler_cache::TierSettings;

/// The `[cache]` section. [`crate::file::Cache`] describes each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Bytes.
    pub memory: u64,
    /// Bytes, no more than `memory`.
    pub max_entry: usize,
    /// The memcached servers, if there are any.
    pub tier: Option<TierSettings>,
}
