//! The members of a pool and the state of their slots. Knows nothing of the waiting requests.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::claim::{MemberId, MemberPreference};
use super::eject::{BackoffSettings, EjectSettings};
use super::event_loop::{EventLoop, LoopState};

/// What leases, the membership and the pool share about one member.
pub(super) struct Member<E> {
    pub id: MemberId,
    pub endpoint: E,
    /// Failures in a row. Written under the pool's lock only. Read without it, so that an answer of a healthy member
    /// needs no lock.
    failures: AtomicU32,
    /// The member ended a request without an answer and has not answered any since. Written and read like `failures`.
    suspected: AtomicBool,
    /// Granted requests that have not been sent to the member yet. Counted only if its event loop is observed.
    unsent: AtomicUsize,
    /// The tunnels are to end, because the member or the pool has left.
    dismissed: watch::Sender<bool>,
    /// The member is given up. Requests that wait for its answer should try another member.
    forsaken: watch::Sender<bool>,
    /// Tells that the last lease has ended. Dropped with the member, never under the pool's lock.
    _held: oneshot::Sender<()>,
}

impl<E> Member<E> {
    /// Granted requests that have not been sent yet.
    fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Acquire)
    }

    /// A granted request has been sent.
    pub fn sent(&self) {
        self.unsent.fetch_sub(1, Ordering::Release);
    }

    pub fn is_doubted(&self) -> bool {
        self.failures.load(Ordering::Relaxed) > 0
    }

    /// Tells the tunnels of the member to end. Wakes foreign tasks: never call it under the pool's lock.
    pub fn dismiss_tunnels(&self) {
        self.dismissed.send_replace(true);
    }

    /// Becomes true when the tunnels are to end.
    pub fn dismissed(&self) -> watch::Receiver<bool> {
        self.dismissed.subscribe()
    }

    /// Tells requests that wait for the member's answer whether the member is given up. Wakes foreign tasks: never call
    /// it under the pool's lock.
    pub fn forsake(&self, forsaken: bool) {
        self.forsaken.send_if_modified(|before| std::mem::replace(before, forsaken) != forsaken);
    }

    /// True while the member is given up.
    pub fn forsaken(&self) -> watch::Receiver<bool> {
        self.forsaken.subscribe()
    }

    /// Whether an answer of the member would change its state.
    pub fn is_under_watch(&self) -> bool {
        self.is_doubted() || self.suspected.load(Ordering::Relaxed)
    }
}

/// A slot that was given away, as a plain value. Its holder must pass it to [`Roster::release`].
pub(super) struct Grant<E> {
    pub member: Arc<Member<E>>,
    pub since: Instant,
    pub trial: bool,
    /// The member was ejected and has not answered since.
    pub wary: bool,
    /// The member gets no other request meanwhile.
    pub alone: bool,
    /// A tunnel guard may follow.
    pub tunnel: bool,
    /// How many other slots of the member were in use at the grant.
    pub beside: usize,
    /// The pool waits to hear that the request has been sent.
    pub unsent: AtomicBool,
}

impl<E> Grant<E> {
    /// The request has been sent to the member, or will not be.
    pub fn sent(&self) {
        if self.unsent.load(Ordering::Relaxed) && self.unsent.swap(false, Ordering::Relaxed) {
            self.member.sent();
        }
    }
}

pub(super) struct MemberState<E> {
    pub member: Arc<Member<E>>,
    /// The most requests that it gets at the same time.
    pub slots: usize,
    /// Decides below that number whether it gets one more.
    pub event_loop: Option<LoopState>,
    /// Preferred by claims that ask for a near member.
    pub near: bool,
    pub in_use: usize,
    /// Tunnels, and leases that may become tunnels.
    pub tunnels: usize,
    pub reserved: usize,
    /// Leases that requests have really taken.
    pub granted: u64,
    /// The value of the pool's turn counter when a slot was last given or returned.
    pub last_used: u64,
    pub ejected_until: Option<Instant>,
    /// A member that is in doubt gets one request at a time, not all that wait.
    pub on_trial: bool,
    /// Its membership is gone. The state stays until the last lease has ended, so that the figures stay correct.
    pub left: bool,
    /// It has no lease and gets none for a moment (see `Hold`).
    pub held_back: bool,
    /// One lease has the member alone.
    pub exclusive: bool,
    /// When it last had more than one lease.
    pub shared_until: Option<Instant>,
    /// Requests in a row that timed out on it.
    pub late: u32,
    /// Ejections in a row.
    pub ejections: u32,
    /// How long the last ejection lasts.
    pub ejected_for: Duration,
    /// Its health check reports that it is not healthy.
    pub unhealthy: bool,
    /// The sum of the times of all its leases, up to `counted`.
    pub lease_time: Duration,
    pub counted: Instant,
}

impl<E> MemberState<E> {
    pub fn is_ejected(&self, now: Instant) -> bool {
        self.ejected_until.is_some_and(|until| now < until)
    }

    /// Whether it can begin a request now.
    pub fn has_free_slot(&self, now: Instant) -> bool {
        self.has_room(now) && self.can_begin(now)
    }

    /// As [`Self::has_free_slot`], but does not observe the event loop. After a `true`, ask [`Self::can_begin`].
    pub fn may_have_free_slot(&self, now: Instant) -> bool {
        let may_begin = |event_loop: &LoopState| event_loop.may_begin(self.in_use, self.member.unsent(), now);
        self.has_room(now) && self.event_loop.as_ref().is_none_or(may_begin)
    }

    /// Whether its event loop, if that is observed, can begin one more request.
    pub fn can_begin(&self, now: Instant) -> bool {
        let can_begin = |event_loop: &LoopState| event_loop.can_begin(self.in_use, self.member.unsent(), now);
        self.event_loop.as_ref().is_none_or(can_begin)
    }

    /// Whether its number of slots and its state allow one more request.
    fn has_room(&self, now: Instant) -> bool {
        let is_tried = self.on_trial && self.member.is_doubted();
        let is_shut = self.left || self.held_back || self.exclusive || self.unhealthy;
        self.in_use < self.slots && !is_shut && !is_tried && !self.is_ejected(now)
    }

    /// It was ejected and has not answered since. It gets only retryable requests at first, and any after as long again.
    pub fn is_wary(&self, now: Instant) -> bool {
        let proves_until = self.ejected_until.map(|until| until + self.ejected_for);
        self.ejections > 0 && proves_until.is_some_and(|until| now < until)
    }

    /// It gets no requests at the moment, for any reason.
    pub fn is_out(&self, now: Instant) -> bool {
        self.unhealthy || self.is_ejected(now)
    }

    /// The requests that it works on at the same time, for estimates of the pool's speed. While requests wait, a member
    /// with an observed event loop has as many as it can take.
    pub fn parallel(&self) -> usize {
        if self.event_loop.is_some() { self.in_use.max(1) } else { self.slots }
    }

    /// Whether it may have one more tunnel.
    pub fn has_room_for_tunnel(&self, most: usize) -> bool {
        self.all_tunnels() < most
    }

    /// Ends ejections and doubts.
    fn forgive(&mut self) {
        self.member.failures.store(0, Ordering::Relaxed);
        self.member.suspected.store(false, Ordering::Relaxed);
        self.ejected_until = None;
        self.on_trial = false;
        (self.late, self.ejections) = (0, 0);
    }

    /// Its tunnels, and its leases that may become tunnels.
    pub fn all_tunnels(&self) -> usize {
        self.tunnels + self.reserved
    }

    /// The sum of the times of all its leases up to now. Call it before each change of their number.
    pub fn lease_time(&mut self, now: Instant) -> Duration {
        let leases = u32::try_from(self.in_use).unwrap_or(u32::MAX);
        self.lease_time += now.saturating_duration_since(self.counted) * leases;
        self.counted = now;
        self.lease_time
    }
}

/// Ordered by id, because ids only grow.
pub(super) struct Roster<E> {
    states: Vec<MemberState<E>>,
    turns: u64,
    next_id: NonZeroU64,
}

impl<E> Roster<E> {
    pub fn new() -> Self {
        Self { states: Vec::new(), turns: 0, next_id: NonZeroU64::MIN }
    }

    pub fn states(&self) -> &[MemberState<E>] {
        &self.states
    }

    pub fn state_mut(&mut self, id: MemberId) -> Option<&mut MemberState<E>> {
        let index = self.index_of(id)?;
        self.states.get_mut(index)
    }

    pub fn index_of(&self, id: MemberId) -> Option<usize> {
        self.states.binary_search_by_key(&id, |state| state.member.id).ok()
    }

    /// The members that have not left.
    pub fn present(&self) -> impl DoubleEndedIterator<Item = &MemberState<E>> {
        self.states.iter().filter(|state| !state.left)
    }

    pub fn add(
        &mut self,
        endpoint: E,
        slots: usize,
        near: bool,
        held: oneshot::Sender<()>,
    ) -> Arc<Member<E>> {
        let id = MemberId(self.next_id);
        self.next_id = self.next_id.saturating_add(1);
        let (failures, suspected, unsent) = Default::default();
        let (dismissed, forsaken) = (watch::Sender::new(false), watch::Sender::new(false));
        let member =
            Arc::new(Member { id, endpoint, failures, suspected, unsent, dismissed, forsaken, _held: held });
        self.states.push(MemberState {
            member: Arc::clone(&member),
            slots,
            event_loop: None,
            near,
            in_use: 0,
            tunnels: 0,
            reserved: 0,
            granted: 0,
            last_used: 0,
            ejected_until: None,
            on_trial: false,
            left: false,
            held_back: false,
            exclusive: false,
            shared_until: None,
            late: 0,
            ejections: 0,
            ejected_for: Duration::ZERO,
            unhealthy: false,
            lease_time: Duration::ZERO,
            counted: Instant::now(),
        });
        member
    }

    /// Gives away a slot of the member at `index`.
    pub fn grant(&mut self, index: usize, tunnel: bool, wanted: &MemberPreference, now: Instant) -> Grant<E> {
        self.turns += 1;
        let alone = wanted.alone && self.present().nth(1).is_some();
        let state = &mut self.states[index];
        debug_assert!(state.may_have_free_slot(now), "only a free slot is granted");
        state.lease_time(now);
        let beside = state.in_use;
        state.in_use += 1;
        state.reserved += usize::from(tunnel);
        state.last_used = self.turns;
        let trial = state.member.is_doubted();
        state.on_trial |= trial;
        state.exclusive |= alone;
        let wary = state.ejections > 0;
        if let Some(event_loop) = &state.event_loop {
            event_loop.give(now);
            state.member.unsent.fetch_add(1, Ordering::Relaxed);
        }
        let unsent = AtomicBool::new(state.event_loop.is_some());
        Grant { member: Arc::clone(&state.member), since: now, trial, wary, alone, tunnel, beside, unsent }
    }

    /// Returns a slot. The caller holds the member, so no endpoint is dropped under the lock.
    pub fn release(&mut self, grant: &Grant<E>, now: Instant) {
        grant.sent();
        self.turns += 1;
        let (id, turns) = (grant.member.id, self.turns);
        let Some(state) = self.state_mut(id) else { return };
        state.lease_time(now);
        if state.in_use > 1 {
            state.shared_until = Some(now);
        }
        state.in_use -= 1;
        state.exclusive &= !grant.alone;
        state.reserved -= usize::from(grant.tunnel);
        state.last_used = turns;
        state.on_trial &= !grant.trial;
        self.forget_if_gone(id);
    }

    /// Counts a tunnel at the member. Call it while the request still has its slot.
    pub fn begin_tunnel(&mut self, id: MemberId) {
        if let Some(state) = self.state_mut(id) {
            state.tunnels += 1;
        }
    }

    /// A tunnel has ended. The caller holds the member, as in [`Self::release`].
    pub fn end_tunnel(&mut self, id: MemberId) {
        if let Some(state) = self.state_mut(id) {
            state.tunnels -= 1;
        }
        self.forget_if_gone(id);
    }

    /// The member leaves and gets no new leases. The caller holds the member, as in [`Self::release`].
    pub fn leave(&mut self, id: MemberId) {
        if let Some(state) = self.state_mut(id) {
            state.left = true;
        }
        self.forget_if_gone(id);
    }

    /// The member could not be reached. Returns the end of its ejection if this failure is new. A slot granted before the
    /// last ejection ended says nothing new.
    pub fn back_off(&mut self, grant: &Grant<E>, settings: BackoffSettings, now: Instant) -> Option<Instant> {
        let state = self.state_mut(grant.member.id)?;
        if state.left || state.ejected_until.is_some_and(|until| grant.since < until) {
            return None;
        }
        let failures = state.member.failures.load(Ordering::Relaxed).saturating_add(1);
        state.member.failures.store(failures, Ordering::Relaxed);
        let until = now + settings.after(failures);
        state.ejected_until = Some(until);
        Some(until)
    }

    /// A request timed out on the member (waiting for an answer or for a connection). Returns the end of the ejection, if
    /// this timeout ejects the member. A slot granted before the last ejection ended says nothing new.
    pub fn strike(&mut self, grant: &Grant<E>, settings: EjectSettings, now: Instant) -> Option<Instant> {
        let members = self.present().count();
        let others =
            self.present().filter(|state| state.member.id != grant.member.id && state.is_out(now)).count();
        let state = self.state_mut(grant.member.id)?;
        if state.left || state.ejected_until.is_some_and(|until| grant.since < until) {
            return None;
        }
        state.late += 1;
        state.member.suspected.store(true, Ordering::Relaxed);
        let most = usize::try_from(settings.failures).unwrap_or(usize::MAX).min(state.parallel().max(1));
        let is_enough = state.late as usize >= most || state.ejections > 0;
        if settings.failures == 0 || !is_enough || !settings.allows(members, others) {
            return None;
        }
        state.ejections += 1;
        state.ejected_for = settings.after(state.ejections);
        let failures = state.member.failures.load(Ordering::Relaxed).saturating_add(1);
        state.member.failures.store(failures, Ordering::Relaxed);
        let until = state.ejected_until.max(Some(now + state.ejected_for));
        state.ejected_until = until;
        until
    }

    /// Sets the health of a member. Returns the member if its health changed.
    pub fn set_health(&mut self, id: MemberId, healthy: bool) -> Option<Arc<Member<E>>> {
        let state = self.state_mut(id)?;
        let was = std::mem::replace(&mut state.unhealthy, !healthy);
        if was && healthy {
            // The health check has just seen it answer.
            state.forgive();
        }
        (was == healthy).then(|| Arc::clone(&state.member))
    }

    /// Whether the lease of this grant is the only one of its member, and has been so for this long.
    pub fn is_alone(&self, id: MemberId, now: Instant, long: Duration) -> bool {
        let Some(index) = self.index_of(id) else { return true };
        let state = &self.states[index];
        let shared = state.shared_until.is_some_and(|until| now.saturating_duration_since(until) < long);
        state.in_use <= 1 && !shared
    }

    /// The member gets no requests until this time, unless it answers another request before. This does not count as a
    /// failure.
    pub fn suspend(&mut self, id: MemberId, until: Instant) {
        if let Some(state) = self.state_mut(id) {
            state.member.suspected.store(true, Ordering::Relaxed);
            state.ejected_until = state.ejected_until.max(Some(until));
        }
    }

    /// Ends the ejections and doubts of all members, as if all had answered.
    pub fn forgive(&mut self) {
        for state in &mut self.states {
            state.forgive();
        }
    }

    pub fn set_slots(&mut self, id: MemberId, slots: usize) {
        if let Some(state) = self.state_mut(id) {
            state.slots = slots;
            state.event_loop = None;
        }
    }

    /// Observes the event loop of the member from now on. The member gets at most this many requests at once.
    pub fn observe(&mut self, id: MemberId, most: usize, event_loop: Arc<dyn EventLoop>) {
        if let Some(state) = self.state_mut(id) {
            state.slots = most;
            state.event_loop.get_or_insert_with(|| LoopState::new(event_loop));
        }
    }

    /// Whether the event loop of any member is observed, and decides whether it gets a request.
    pub fn is_observed(&self) -> bool {
        self.states.iter().any(|state| !state.left && state.event_loop.is_some())
    }

    /// The member answered, so it is not in doubt any more. Returns true if this ends an ejection.
    pub fn reached(&mut self, id: MemberId) -> bool {
        let Some(state) = self.state_mut(id) else { return false };
        let was_ejected = state.ejections > 0;
        state.forgive();
        was_ejected
    }

    fn forget_if_gone(&mut self, id: MemberId) {
        if let Some(index) = self.index_of(id)
            && self.states[index].left
            && self.states[index].in_use == 0
            && self.states[index].tunnels == 0
        {
            self.states.remove(index);
        }
    }
}
