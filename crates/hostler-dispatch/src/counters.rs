//! The counters of a pool. Knows no requests.

use serde::Serialize;

use super::claim::LongLived;
use super::queue::AcquireError;

/// The counters since the pool was made. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolCounters {
    /// Leases taken.
    pub granted: u64,
    /// Times a request had to wait.
    pub queued: u64,
    /// Times a request was refused because the queue was full.
    pub refused_full: u64,
    /// Times a request was refused on arrival because it would have waited too long.
    pub refused_overload: u64,
    /// Times an overload began.
    pub overloads: u64,
    /// Times a request was refused because no member takes another tunnel.
    pub refused_tunnels: u64,
    /// Times a request was refused because no member takes another stream, or because its own member does not.
    pub refused_streams: u64,
    /// Times a request was refused because its members were missing or its only member had no free slot.
    pub refused_aim: u64,
    /// Tunnels that were opened.
    pub tunnels: u64,
    /// Answers that became streams.
    pub streams: u64,
    /// Times a deadline passed before the request got a slot, whether the pool or the request noticed it first.
    pub expired: u64,
    /// Times a request left the queue before it got a slot and before its deadline.
    pub left_queue: u64,
    /// Times a member could not be reached.
    pub member_failures: u64,
    /// Times a request timed out on a member: it waited for the answer, or for a connection.
    pub member_timeouts: u64,
    /// Times a member was ejected because of such timeouts.
    pub ejections: u64,
    /// Times a member was found to be unhealthy.
    pub unhealthy: u64,
}

impl PoolCounters {
    /// Counts a request whose members are missing or busy, and returns the refusal.
    pub(super) fn refuse_aim(&mut self, error: AcquireError) -> AcquireError {
        self.refused_aim += 1;
        error
    }

    /// Counts a refused tunnel or stream, and returns the refusal.
    pub(super) fn refuse(&mut self, kind: LongLived) -> AcquireError {
        match kind {
            LongLived::Tunnel => {
                self.refused_tunnels += 1;
                AcquireError::TooManyTunnels
            }
            LongLived::Stream => {
                self.refused_streams += 1;
                AcquireError::TooManyStreams
            }
        }
    }
}
