//! Who gets which slot, in which order; knows neither what an endpoint is nor who keeps the members alive.
//!
//! ```text
//! membership   join(endpoint, slots) -> Membership     dropped: the member has left
//! request      acquire(claim) -> Acquire -> Lease     dropped: out of the queue / slot returned
//! tunnel       lease.tunnel_guard() -> TunnelGuard          slot returned; dropped: the member is rid of it
//! ```
//!
//! One mutex per pool guards everything (`state::State`). Two rules keep it safe from several runtimes at once:
//! no foreign code runs under the lock (wakers are woken and dropped, endpoints dropped after unlocking; only `Pool::find` lets its
//! caller look at an endpoint), and
//! at the end of each critical section nobody waits while a slot is free, unless the pool is paused.
//!
//! Who comes first: the higher class, of which a lower one that waits is passed over eight times at most (`queue`); in a class who
//! came first, or under standing overload who came last (`overload`), by what is a long wait for this pool (`service`).
//! A wait ends in one of four ways, each counted once: a lease, a refusal, a deadline, or its owner's leaving.

mod acquire;
mod choice;
mod claim;
mod eject;
mod gauge;
pub mod json;
mod lease;
mod membership;
mod overload;
mod pause;
mod pool;
mod queue;
mod roster;
mod service;
mod shared;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod tunnel_guard;

pub use acquire::{Acquire, AcquireError};
pub use choice::{MemberChoice, UnknownChoice};
pub use claim::{Claim, MemberPreference, Policy, Priority, Tried};
pub use eject::{BackoffSettings, EjectSettings};
pub use gauge::{Gauge, Hold, Load};
pub use lease::{Lease, LeaseEnding};
pub use membership::Membership;
pub use pool::{Pool, PoolSettings};
pub use queue::Ticket;
pub use roster::MemberId;
pub use snapshot::{MemberFigures, MemberSnapshot, PoolCounters, PoolSnapshot, WaitingCounts};
pub use tunnel_guard::TunnelGuard;
