//! What `[cache]` means: plain data in which everything has been checked.

use hostler_cache::TierSettings;

/// The `[cache]` section. Each field is described at its key: [`crate::file::Cache`].
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Bytes.
    pub memory: u64,
    /// Bytes, no more than `memory`.
    pub max_entry: usize,
    /// Servers that are shared with others; none: there are not any.
    pub tier: Option<TierSettings>,
}
