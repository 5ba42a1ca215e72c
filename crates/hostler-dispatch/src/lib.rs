//! Which request gets which slot, and in which order. Knows neither what an endpoint is nor what keeps the members alive.
//!
//! ```text
//! membership   join(endpoint, slots) -> Membership     dropped: the member has left
//! request      acquire(claim) -> Acquire -> Lease      dropped: out of the queue / slot returned
//! second try   acquire_elsewhere(claim) -> Lease       none if no other member is free, or requests wait
//! tunnel       lease.tunnel_guard() -> TunnelGuard     slot returned; dropped: the tunnel has ended
//! stream       lease.begin_stream() -> bool            slot returned, if there is room; dropped: the stream has ended
//! ```
//!
//! One mutex per pool guards everything (`state::PoolState`). Two rules make it safe to use from several runtimes:
//!
//! * No foreign code runs under the lock. Wakers are woken and dropped, and endpoints are dropped, after unlocking. Only
//!   `Pool::find` lets its caller look at an endpoint, and an [`EventLoop`] says whether it waits for events.
//! * At the end of each critical section no request waits while a slot is free, unless the pool is paused. A slot of a
//!   member whose event loop is observed becomes free without an event: `recheck` asks the pool again.
//!
//! The order: a higher class is served before a lower one, but a waiting class is passed over eight times at most, or nine
//! times while both other classes wait (`queue`). Within a class the oldest request is served first; in a fair pool, that of the key whose requests have cost
//! the least (`fair`); in a pool that serves short requests first, that with the earliest turn (`short_first`). Under overload (`overload`), a request that would wait long is
//! refused on arrival. Measured service times (`service`, `kinds`) tell how long it would wait. A wait ends in one of four ways, and each is
//! counted once: a lease, a refusal, a deadline, or a dropped future.

/// Whether a test of the simulation has planted this bug here. Outside tests: false. The tests of the crate that names the bug plant it.
#[doc(hidden)]
#[macro_export]
#[expect(clippy::crate_in_macro_def, reason = "each crate has its own bugs")]
macro_rules! planted {
    ($bug:ident) => {{
        #[cfg(test)]
        {
            crate::tests::is_planted(crate::tests::Bug::$bug)
        }
        #[cfg(not(test))]
        {
            false
        }
    }};
}

mod admission;
mod arrival;
mod bound;
mod bound_line;
mod bound_shares;
mod choice;
mod chooser;
mod claim;
mod cost;
mod cost_table;
mod counters;
mod cpu;
mod doubt;
mod eject;
mod elsewhere;
mod end_order;
mod event_loop;
mod fair;
mod fair_key;
mod free_index;
mod gauge;
pub mod json;
mod key_line;
mod key_share;
mod kinds;
mod lease;
mod line;
mod long_lived;
mod member;
mod membership;
mod occupancy;
mod order;
mod overload;
mod pause;
mod place;
mod pool;
mod queue;
mod recheck;
mod reorder;
mod roster;
mod service;
mod settings;
mod shared;
mod short_first;
mod sleeping;
mod snapshot;
mod sorted_row;
mod span;
mod state;
#[cfg(test)]
mod tests;
mod totals;
mod tunnel_guard;
mod wait_list;
mod wakers;
mod winner_tree;
mod work_ahead;

pub use bound::Ranking;
pub use choice::{MemberChoice, UnknownChoice};
pub use claim::{Claim, LongLived, MemberId, MemberPreference, Policy, Priority, Ticket, Tried};
pub use cost::{IdlePayer, Payer, SlotCost};
pub use cost_table::{CostLabel, CostTable, LearntCost};
pub use counters::PoolCounters;
pub use cpu::{CpuClock, CpuReading};
pub use eject::{BackoffSettings, EjectSettings};
pub use event_loop::EventLoop;
pub use fair_key::FairKey;
pub use gauge::{Gauge, Hold, Load};
pub use kinds::WorkKind;
pub use lease::{Lease, LeaseEnding};
pub use member::HeldSlot;
pub use membership::{LeftTunnels, Membership};
pub use occupancy::{MemberOccupancy, Occupancy, OccupancyLimits, WaitingRequest};
pub use order::Order;
pub use pool::{Acquire, Pool};
pub use queue::AcquireError;
pub use settings::PoolSettings;
pub use snapshot::{MemberFigures, MemberSnapshot, PoolSnapshot, WaitingCounts};
pub use tunnel_guard::TunnelGuard;
