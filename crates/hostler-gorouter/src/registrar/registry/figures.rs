//! What the registry says of itself, mostly for the status. Changes nothing.

use super::Registry;

impl Registry {
    /// The memory of all routes and members, in bytes (an estimate).
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// Whether all members stay while there is no connection.
    pub fn suspends_pruning(&self) -> bool {
        self.rules.suspend_pruning
    }

    /// How many members have become stale so far.
    pub fn pruned(&self) -> u64 {
        self.pruned
    }
}
