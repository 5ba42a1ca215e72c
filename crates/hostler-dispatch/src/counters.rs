//! The counters of a pool. Knows no requests.

use serde::Serialize;

/// Counted since the pool was made; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolCounters {
    /// Leases taken.
    pub granted: u64,
    /// Times a request had to wait.
    pub queued: u64,
    /// Times a request was refused because the queue was full.
    pub refused_full: u64,
    /// Times a request was refused on arrival because it would not have been served in time.
    pub refused_overload: u64,
    /// Times a request that waited was refused under overload.
    pub shed: u64,
    /// Times a request was refused because no member takes another tunnel.
    pub refused_tunnels: u64,
    /// For members that were not there, or for one that had no free slot.
    pub refused_aim: u64,
    /// Tunnels begun.
    pub tunnels: u64,
    /// Times a deadline passed before there was a slot, as far as the pool was the first to notice.
    pub expired: u64,
    /// Times a request left the queue unserved, by its own will.
    pub left_queue: u64,
    /// Times a member could not be reached.
    pub member_failures: u64,
    /// Times a request waited in vain for a member's answer, or for a connection to it.
    pub member_timeouts: u64,
    /// Times a member was ejected for that.
    pub ejections: u64,
    /// Times a member was found to be unhealthy.
    pub unhealthy: u64,
}
