//! Who gets which slot, in which order; knows neither what an endpoint is nor who keeps the members alive.
//!
//! ```text
//! membership   join(endpoint, slots) -> Membership     dropped: the member has left
//! request      acquire(claim) -> Acquire -> Lease     dropped: out of the queue / slot returned
//! ```
//!
//! One mutex per pool guards everything (`pool::State`). Two rules keep it safe from several runtimes at once:
//! no foreign code runs under the lock (wakers are woken and dropped, endpoints dropped after unlocking), and
//! at the end of each critical section nobody waits while a slot is free.

mod acquire;
mod bench;
mod choice;
mod claim;
mod gauge;
mod lease;
mod membership;
mod pause;
mod pool;
mod queue;
mod roster;
mod snapshot;
#[cfg(test)]
mod tests;

pub use acquire::{Acquire, AcquireError};
pub use bench::BenchSettings;
pub use choice::{Choice, UnknownChoice};
pub use claim::{Claim, Policy, Priority, UnknownPolicy};
pub use gauge::{Gauge, Hold, Load};
pub use lease::Lease;
pub use membership::Membership;
pub use pool::{Pool, PoolSettings};
pub use queue::Ticket;
pub use roster::MemberId;
pub use snapshot::{MemberSnapshot, PoolCounters, PoolSnapshot};
