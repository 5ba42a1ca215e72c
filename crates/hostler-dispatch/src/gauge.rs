//! Reads the load of one member, changes its slots and its health, and keeps requests from it for a while. It neither keeps the member in
//! the pool nor removes it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::claim::MemberId;
use super::event_loop::EventLoop;
use super::member::{Member, MemberState};
use super::shared::PoolInner;

/// Reads the load of one member, changes its slots and its health, and keeps requests from it for a while.
pub struct Gauge<E> {
    shared: Arc<PoolInner<E>>,
    id: MemberId,
    /// Weak, because the member is gone when nothing else has it.
    member: Weak<Member<E>>,
}

/// The load of a member and of its pool's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// How many requests it may have at the same time.
    pub slots: usize,
    /// How many requests it has now.
    pub in_use: usize,
    /// How many tunnels it has now.
    pub tunnels: usize,
    /// How many streams it has now.
    pub streams: usize,
    /// How many requests it has had in all.
    pub granted: u64,
    /// The sum of the times of all its leases, the running ones included. Its growth over a span, divided by that span,
    /// is the average number of requests in the span.
    pub lease_time: Duration,
    /// How many requests have ever had to wait in the pool's queue.
    pub queued: u64,
    /// How many requests wait there now.
    pub waiting: usize,
}

impl Load {
    /// The member has a request, a tunnel or a stream.
    pub fn is_in_use(&self) -> bool {
        self.in_use > 0 || self.tunnels > 0 || self.streams > 0
    }

    /// Whether requests wait for a slot, or have had to since this earlier load. Requests that wait for ever show only in the first.
    pub fn is_short_since(&self, earlier: &Self) -> bool {
        self.waiting > 0 || self.queued > earlier.queued
    }
}

impl<E> Gauge<E> {
    pub(super) fn new(shared: Arc<PoolInner<E>>, member: &Arc<Member<E>>) -> Self {
        Self { shared, id: member.id, member: Arc::downgrade(member) }
    }

    /// Charges the CPU time that the member has used without a request so far.
    pub fn settle_idle(&self) {
        if let Some(member) = self.member.upgrade() {
            member.settle_idle();
        }
    }

    /// The load at this moment. `None` after the member has left and its last lease has ended.
    pub fn load(&self) -> Option<Load> {
        self.shared.with_roster(|roster, waiting| {
            roster.edit(self.id, |member_state| Load {
                slots: member_state.slots,
                in_use: member_state.in_use,
                tunnels: member_state.tunnels.open,
                streams: member_state.streams.open,
                granted: member_state.granted,
                lease_time: member_state.lease_time(Instant::now()),
                queued: waiting.ever,
                waiting: waiting.now,
            })
        })
    }

    /// The most requests that one request has passed since the last call: they came to the member before it, and were still there when it ended.
    /// Only a request that was answered, and that has passed a quarter of those before it or more, counts.
    pub fn take_most_passed(&self) -> usize {
        let taken = self.shared.with_roster(|roster, _| {
            roster.edit(self.id, |member_state| member_state.end_order.take_most_passed())
        });
        taken.unwrap_or_default()
    }

    /// Whether the pool shares its slots fairly among keys.
    pub fn pool_is_fair(&self) -> bool {
        self.shared.lock().queue.fair.is_some()
    }

    /// Whether the last connection to the member has failed. `None`: it has left the pool, whether its last lease has ended or not.
    pub fn is_out_of_reach(&self) -> Option<bool> {
        let state = self.shared.lock();
        state.roster.state(self.id).filter(|member| !member.left).map(|member| member.out_of_reach.is_some())
    }

    /// Sets the number of slots, which alone decides from now on. Leases above the new number end normally.
    pub fn set_slots(&self, slots: usize) {
        self.shared.set_slots(self.id, slots);
    }

    /// From now on the event loop of the member decides whether it gets one more request, up to this many at once. If an
    /// event loop is observed already, only the limit changes.
    pub fn observe(&self, most: usize, event_loop: Arc<dyn EventLoop>) {
        self.shared.observe(self.id, most, event_loop);
    }

    /// Sets the health of the member, as its health check reports it. An unhealthy member gets no requests, and requests
    /// that wait for its answer are told. Returns true if the health changed.
    pub fn set_health(&self, healthy: bool) -> bool {
        self.shared.set_health(self.id, healthy)
    }

    /// Tells whether the event loop of the member does not turn although it has requests. As long as that of another member turns, a blocked
    /// one gets no requests but those that are bound to it.
    pub fn set_blocked(&self, blocked: bool) {
        self.shared.with_roster(|roster, _| {
            roster.edit(self.id, |member_state| member_state.blocked = blocked);
        });
    }

    /// Keeps requests from the member until the hold is dropped. `None` if the member has a request, a tunnel or a stream, or if a
    /// request waits for it: a hold never delays a request that is already there.
    pub fn hold(&self) -> Option<Hold<E>> {
        let is_held = self.shared.with_roster(|roster, waiting| {
            let hold = |member_state: &mut MemberState<E>| {
                let is_idle =
                    member_state.in_use == 0 && !member_state.has_long_lived() && !member_state.held_back;
                member_state.held_back |= is_idle && waiting.now == 0;
                is_idle && waiting.now == 0
            };
            roster.edit(self.id, hold).unwrap_or(false)
        });
        is_held.then(|| Hold { shared: Arc::clone(&self.shared), id: self.id })
    }
}

/// While this value exists, the member gets no requests.
#[must_use = "dropping a hold ends it"]
pub struct Hold<E> {
    shared: Arc<PoolInner<E>>,
    id: MemberId,
}

impl<E> Drop for Hold<E> {
    fn drop(&mut self) {
        self.shared.with_roster(|roster, _| {
            roster.edit(self.id, |member_state| member_state.held_back = false);
        });
    }
}
