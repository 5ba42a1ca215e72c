//! The members of a pool: how an endpoint joins it and leaves it, and which members there are. Knows nothing of the leases.

use std::sync::{Arc, Weak};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::claim::MemberId;
use super::cost::IdlePayer;
use super::cpu::{CpuAccount, CpuClock};
use super::event_loop::EventLoop;
use super::gauge::Gauge;
use super::lease::redispatch_at;
use super::member::{Member, MemberState};
use super::pool::Pool;
use super::shared::PoolInner;

/// [`Pool::each_endpoint`] takes this many members at a time.
const MEMBERS_AT_ONCE: usize = 64;

/// Keeps the member in the pool. When it is dropped, the member gets no new leases, running leases end normally, and
/// tunnels and streams are told to end.
#[must_use = "dropping a membership takes the member out of the pool"]
pub struct Membership<E> {
    shared: Arc<PoolInner<E>>,
    member: Arc<Member<E>>,
    /// Closes when the last lease of the member has ended, and its last tunnel and stream.
    gone: Option<oneshot::Receiver<()>>,
    /// The tunnels and streams are not told to end when the member leaves.
    keeps_tunnels: bool,
    /// Requests that are bound to the member still reach it for a while after it has left.
    serves_bound: bool,
}

impl<E: Send + Sync + 'static> Pool<E> {
    /// Adds a member with this many slots. It stays as long as the returned membership is kept.
    pub fn join(&self, endpoint: E, slots: usize) -> Membership<E> {
        self.join_as(endpoint, slots, false, None)
    }

    /// Adds a member as in [`Self::join`]. Claims that prefer near members choose it first.
    pub fn join_near(&self, endpoint: E, slots: usize) -> Membership<E> {
        self.join_as(endpoint, slots, true, None)
    }

    /// Adds a member whose event loop is observed: it gets one more request only if its loop can begin it at once, and at
    /// most this many.
    pub fn join_observed(&self, endpoint: E, most: usize, event_loop: Arc<dyn EventLoop>) -> Membership<E> {
        self.join_as(endpoint, most, false, Some(event_loop))
    }

    fn join_as(
        &self,
        endpoint: E,
        slots: usize,
        near: bool,
        event_loop: Option<Arc<dyn EventLoop>>,
    ) -> Membership<E> {
        let (held, gone) = oneshot::channel();
        let member = self.shared.change(|state, _| {
            let member = state.roster.add(endpoint, slots, near, held);
            if let Some(event_loop) = event_loop {
                state.roster.observe(member.id, slots, event_loop);
            }
            member
        });
        Membership::new(Arc::clone(&self.shared), member, gone)
    }

    /// The number of members in any state.
    pub fn members(&self) -> usize {
        self.shared.lock().roster.totals().members
    }

    /// The number of members, for a caller that knows which are blocked: a blocked one that has left counts, too. A single member stands for
    /// itself, because it may have replaced that one.
    pub fn members_and_blocked(&self) -> usize {
        let state = self.shared.lock();
        let members = state.roster.totals().members;
        let has_left = |member_state: &&MemberState<E>| member_state.left && member_state.blocked;
        match members {
            0 | 1 => members,
            _ => members + state.roster.states().iter().filter(has_left).count(),
        }
    }

    /// Whether a member is healthy, as far as its health checks tell. An ejected one counts: it may serve the next request.
    pub fn has_healthy_member(&self) -> bool {
        self.shared.lock().roster.present().any(|member_state| !member_state.unhealthy)
    }

    /// The number of members that are healthy and not ejected. One that has just ended a request without an answer counts, too: it gets no
    /// requests only for a moment, and clients could repeat such requests so that it would hardly ever count.
    pub fn reachable_members(&self) -> usize {
        let now = Instant::now();
        self.shared.lock().roster.present().filter(|member_state| !member_state.is_lost(now)).count()
    }

    /// The member for which `is_it` returns true; of several, the one that joined last. `is_it` runs under the pool's
    /// lock and may only look at the endpoint.
    pub fn find(&self, is_it: impl Fn(&E) -> bool) -> Option<MemberId> {
        let state = self.shared.lock();
        state
            .roster
            .present()
            .rev()
            .find(|member_state| is_it(&member_state.member.endpoint))
            .map(|member_state| member_state.member.id)
    }

    /// Calls `act` for each endpoint, without the lock. The lock is held for a few members at a time, so that no request waits
    /// for it while there are many.
    pub fn each_endpoint(&self, act: impl Fn(&E)) {
        self.each_member(|member| act(&member.endpoint));
    }

    /// Sets who gets the CPU time that members use without a request. This holds for each member whose clock is set later (see
    /// [`Membership::measure`]). Only the first call has an effect.
    pub fn charge_idle_to(&self, payer: Arc<dyn IdlePayer>) {
        // An error means that there is a payer already.
        let _ = self.shared.idle_payer.set(payer);
    }

    /// Charges the CPU time that the members have used without a request so far.
    pub fn settle_idle(&self) {
        self.each_member(Member::settle_idle);
    }

    fn each_member(&self, act: impl Fn(&Member<E>)) {
        let mut last = None;
        loop {
            let some = self.shared.lock().roster.some_after(last, MEMBERS_AT_ONCE);
            let Some(newest) = some.last() else { return };
            last = Some(newest.id);
            some.iter().for_each(|member| act(member));
        }
    }

    /// All members for which `is_it` returns true. `is_it` runs as in [`Self::find`].
    pub fn find_all(&self, is_it: impl Fn(&E) -> bool) -> Vec<MemberId> {
        let state = self.shared.lock();
        let found = state.roster.present().filter(|member_state| is_it(&member_state.member.endpoint));
        found.map(|member_state| member_state.member.id).collect()
    }
}

impl<E> Membership<E> {
    fn new(shared: Arc<PoolInner<E>>, member: Arc<Member<E>>, gone: oneshot::Receiver<()>) -> Self {
        Self { shared, member, gone: Some(gone), keeps_tunnels: false, serves_bound: false }
    }

    /// The member's number.
    pub fn id(&self) -> MemberId {
        self.member.id
    }

    /// The endpoint that a lease of this member gives access to.
    pub fn endpoint(&self) -> &E {
        &self.member.endpoint
    }

    /// A handle that reads the load of the member.
    pub fn gauge(&self) -> Gauge<E> {
        Gauge::new(Arc::clone(&self.shared), &self.member)
    }

    /// Measures the CPU time of requests by this clock from now on. Only the first call has an effect.
    pub fn measure(&self, clock: Arc<dyn CpuClock>) {
        let idle = self.shared.idle_payer.get().cloned();
        if let Some(account) = CpuAccount::new(clock, idle, Instant::now()) {
            // An error means that the member has a clock already.
            let _ = self.member.cpu.set(account);
        }
    }

    /// Sets the number of slots from now on. Leases above the new number end normally.
    pub fn set_slots(&self, slots: usize) {
        self.shared.set_slots(self.member.id, slots);
    }
}

impl<E: Send + Sync + 'static> Membership<E> {
    /// Removes the member from the pool: it gets no new leases, and its tunnels and streams are told to end. While it has
    /// leases, tunnels or streams, requests that are bound to it still reach it, for `PoolSettings::bound_drain` at most.
    /// The returned future resolves when the last of these has ended. Dropping that future changes nothing.
    pub fn leave(mut self) -> impl Future<Output = ()> + Send + use<E> {
        self.serves_bound = true;
        let (gone, shared) = (self.gone.take(), Arc::clone(&self.shared));
        drop(self);
        // After this time, requests that still wait for the member go to other members. No event tells that the time is over.
        let bound_drain = shared.lock().roster.settings().bound_drain;
        if !bound_drain.is_zero() {
            redispatch_at(&shared, Instant::now() + bound_drain);
        }
        async move {
            if let Some(gone) = gone {
                // Nothing is ever sent. The sender is dropped with the member, and leases and tunnels keep the member
                // alive.
                let _ = gone.await;
            }
        }
    }
}

impl<E> Membership<E> {
    /// Sets the health of the member, as its health check reports it. An unhealthy member gets no requests, and requests
    /// that wait for its answer are told. Returns true if the health changed.
    pub fn set_health(&self, healthy: bool) -> bool {
        self.shared.set_health(self.member.id, healthy)
    }

    /// Removes a member that seems lost, as [`Self::leave_tunnels`] does, and requests that wait for its answer are told. The endpoint may
    /// still serve its tunnels.
    pub fn give_up(self) -> LeftTunnels<E> {
        let member = Arc::clone(&self.member);
        let tunnels = self.leave_tunnels();
        member.set_marked_down(true);
        tunnels
    }

    /// Removes the member from the pool: it gets no new leases. Its leases and tunnels end normally, unless the tunnels are told to end by
    /// what this returns.
    pub fn leave_tunnels(mut self) -> LeftTunnels<E> {
        self.keeps_tunnels = true;
        LeftTunnels(Arc::downgrade(&self.member))
    }
}

/// The tunnels and streams of a member that has left its pool without them. Dropping this changes nothing.
pub struct LeftTunnels<E>(Weak<Member<E>>);

impl<E> LeftTunnels<E> {
    /// Whether there are any, or leases.
    pub fn are_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Tells them to end.
    pub fn dismiss(&self) {
        if let Some(member) = self.0.upgrade() {
            member.dismiss_tunnels();
        }
    }
}

impl<E> Drop for Membership<E> {
    fn drop(&mut self) {
        self.member.settle_idle();
        self.shared.leave(self.member.id, self.serves_bound);
        if !self.keeps_tunnels {
            self.member.dismiss_tunnels();
        }
    }
}
