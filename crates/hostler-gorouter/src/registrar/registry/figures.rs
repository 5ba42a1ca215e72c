//! What the registry says of itself for the status. Changes nothing.

use super::Registry;

impl Registry {
    /// The memory of all routes and members, in bytes (an estimate).
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// How many members have become stale so far.
    pub fn pruned(&self) -> u64 {
        self.pruned
    }
}
