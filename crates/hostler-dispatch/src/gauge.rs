//! A look at one member from aside: how busy it is; and what may be done to its slots. It neither keeps the member in
//! the pool nor takes it out.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::roster::{MemberId, MemberState};
use super::shared::PoolInner;

/// Reads the load of one member.
pub struct Gauge<E> {
    shared: Arc<PoolInner<E>>,
    id: MemberId,
}

/// How busy a member, and its pool's queue, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Requests that it may have at once.
    pub slots: usize,
    /// Requests that it has.
    pub in_use: usize,
    /// Tunnels that it has.
    pub tunnels: usize,
    /// Requests that it has had.
    pub granted: u64,
    /// The time that all its leases have taken, running ones included; over any span of time, what it grew by divided
    /// by the span is how many it had on average.
    pub lease_time: Duration,
    /// How often a request has had to wait in the pool's queue.
    pub queued: u64,
    /// How many wait there.
    pub waiting: usize,
}

/// Who waits in the pool's queue, now and ever.
#[derive(Clone, Copy)]
pub(super) struct WaitingGauge {
    pub now: usize,
    pub ever: u64,
}

impl Load {
    /// Somebody waits for what it does, or may at any moment.
    pub fn is_wanted(&self) -> bool {
        self.in_use > 0 || self.tunnels > 0
    }
}

impl<E> Gauge<E> {
    pub(super) fn new(shared: Arc<PoolInner<E>>, id: MemberId) -> Self {
        Self { shared, id }
    }

    /// The load of this moment; None once the member has left and its last lease has ended.
    pub fn load(&self) -> Option<Load> {
        self.shared.with_roster(|roster, waiting| {
            let member_state = roster.state_mut(self.id)?;
            let lease_time = member_state.lease_time(Instant::now());
            Some(Load {
                slots: member_state.slots,
                in_use: member_state.in_use,
                tunnels: member_state.tunnels,
                granted: member_state.granted,
                lease_time,
                queued: waiting.ever,
                waiting: waiting.now,
            })
        })
    }

    /// Another number of slots, from now on; leases beyond it end by themselves.
    pub fn set_slots(&self, slots: usize) {
        self.shared.set_slots(self.id, slots);
    }

    /// Says how the member is, for whoever checks it: one that is not fit gets nothing, and those who wait for its answers are told.
    /// True if that is news.
    pub fn set_health(&self, healthy: bool) -> bool {
        self.shared.set_health(self.id, healthy)
    }

    /// Keeps requests from the member until the hold is dropped. Only if it has none, no tunnel either, and nobody waits for
    /// one: a hold overtakes nobody.
    pub fn hold(&self) -> Option<Hold<E>> {
        let is_held = self.shared.with_roster(|roster, waiting| {
            let is_idle = |member_state: &&mut MemberState<E>| {
                member_state.in_use == 0 && member_state.tunnels == 0 && !member_state.held_back
            };
            let member_state = roster.state_mut(self.id).filter(is_idle);
            member_state.filter(|_| waiting.now == 0).map(|member_state| member_state.held_back = true)
        });
        is_held.map(|()| Hold { shared: Arc::clone(&self.shared), id: self.id })
    }
}

/// As long as this is kept, the member gets no requests.
#[must_use = "dropping a hold ends it"]
pub struct Hold<E> {
    shared: Arc<PoolInner<E>>,
    id: MemberId,
}

impl<E> Drop for Hold<E> {
    fn drop(&mut self) {
        self.shared.with_roster(|roster, _| {
            if let Some(member_state) = roster.state_mut(self.id) {
                member_state.held_back = false;
            }
        });
    }
}
