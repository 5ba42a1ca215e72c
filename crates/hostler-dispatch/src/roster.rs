//! The members of a pool and the state of their slots. Knows nothing of the waiting requests.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::claim::{LongLived, MemberId, MemberPreference};
use super::eject::{BackoffSettings, EjectSettings};
use super::event_loop::{EventLoop, LoopState};
use super::member::{Grant, LongLivedCount, Member, MemberState};
use super::settings::PoolSettings;

/// Ordered by id, because ids only grow.
pub(super) struct Roster<E> {
    states: Vec<MemberState<E>>,
    turns: u64,
    next_id: NonZeroU64,
    /// The event loop of some member is or was observed. Without that, a queue that stands costs no look at each member.
    observes: bool,
}

impl<E> Roster<E> {
    pub fn new() -> Self {
        Self { states: Vec::new(), turns: 0, next_id: NonZeroU64::MIN, observes: false }
    }

    pub fn states(&self) -> &[MemberState<E>] {
        &self.states
    }

    pub fn state_mut(&mut self, id: MemberId) -> Option<&mut MemberState<E>> {
        let index = self.index_of(id)?;
        self.states.get_mut(index)
    }

    pub fn state(&self, id: MemberId) -> Option<&MemberState<E>> {
        self.index_of(id).map(|index| &self.states[index])
    }

    pub fn index_of(&self, id: MemberId) -> Option<usize> {
        self.states.binary_search_by_key(&id, |state| state.member.id).ok()
    }

    /// The members that have not left.
    pub fn present(&self) -> impl DoubleEndedIterator<Item = &MemberState<E>> {
        self.states.iter().filter(|state| !state.left)
    }

    /// No member can serve a claim with this preference, and the claim does not wait for one to join.
    pub fn lacks(&self, preference: &MemberPreference) -> bool {
        match preference.only {
            Some(only) => self.present().all(|state| state.member.id != only),
            None => preference.present && self.present().next().is_none(),
        }
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
            tunnels: LongLivedCount::default(),
            streams: LongLivedCount::default(),
            granted: 0,
            last_used: 0,
            ejected_until: None,
            on_trial: false,
            left: false,
            bound_until: None,
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
    pub fn grant(
        &mut self,
        index: usize,
        long_lived: Option<LongLived>,
        wanted: &MemberPreference,
        now: Instant,
    ) -> Grant<E> {
        self.turns += 1;
        let alone = wanted.alone && self.present().nth(1).is_some();
        let state = &mut self.states[index];
        debug_assert!(state.left || state.may_have_free_slot(now), "only a free slot is granted");
        state.lease_time(now);
        let beside = state.in_use;
        state.in_use += 1;
        if let Some(kind) = long_lived {
            state.count(kind).reserved += 1;
        }
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
        Grant {
            member: Arc::clone(&state.member),
            since: now,
            trial,
            wary,
            alone,
            long_lived,
            kind: None,
            beside,
            unsent,
        }
    }

    /// Returns a slot. The caller holds the member, so no endpoint is dropped under the lock.
    pub fn release(&mut self, grant: &Grant<E>, now: Instant) {
        let was_not_sent = grant.sent();
        self.turns += 1;
        let (id, turns) = (grant.member.id, self.turns);
        let Some(state) = self.state_mut(id) else { return };
        state.lease_time(now);
        if state.in_use > 1 {
            state.shared_until = Some(now);
        }
        state.in_use -= 1;
        state.exclusive &= !grant.alone;
        if let Some(kind) = grant.long_lived {
            state.count(kind).reserved -= 1;
        }
        state.last_used = turns;
        state.on_trial &= !grant.trial;
        if let Some(event_loop) = state.event_loop.as_ref().filter(|_| was_not_sent) {
            event_loop.take_back();
        }
        self.forget_if_gone(id);
    }

    /// Counts a tunnel or a stream at the member. Call it while the request still has its slot.
    pub fn begin_long_lived(&mut self, id: MemberId, kind: LongLived) {
        if let Some(state) = self.state_mut(id) {
            state.count(kind).open += 1;
        }
    }

    /// A tunnel or a stream has ended. The caller holds the member, as in [`Self::release`].
    pub fn end_long_lived(&mut self, id: MemberId, kind: LongLived) {
        if let Some(state) = self.state_mut(id) {
            state.count(kind).open -= 1;
        }
        self.forget_if_gone(id);
    }

    /// Whether no member has room for another tunnel or stream, with or without a free slot.
    pub fn is_full_of(&self, kind: LongLived, settings: &PoolSettings) -> bool {
        let mut present = self.present().peekable();
        present.peek().is_some() && present.all(|state| !state.has_room_for(kind, settings))
    }

    /// The member leaves and gets no new leases, except for requests that are bound to it until `bound_until`. The caller
    /// holds the member, as in [`Self::release`].
    pub fn leave(&mut self, id: MemberId, bound_until: Option<Instant>) {
        if let Some(state) = self.state_mut(id) {
            (state.left, state.bound_until) = (true, bound_until);
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

    /// Whether a lease is the only one of its member, and has been so for this long. `is_stream`: it has become a stream.
    /// Then the member must have no other stream and no tunnel either.
    pub fn is_alone(&self, id: MemberId, is_stream: bool, now: Instant, long: Duration) -> bool {
        let Some(index) = self.index_of(id) else { return true };
        let state = &self.states[index];
        let shared = state.shared_until.is_some_and(|until| now.saturating_duration_since(until) < long);
        let others = if is_stream { state.in_use + state.all_long_lived() } else { state.in_use };
        others <= 1 && !shared
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
            self.observes = true;
        }
    }

    /// Whether the event loop of any member is observed, and decides whether it gets a request.
    pub fn is_observed(&self) -> bool {
        self.observes && self.present().any(|state| state.event_loop.is_some())
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
            && !self.states[index].has_long_lived()
        {
            self.states.remove(index);
        }
    }
}
