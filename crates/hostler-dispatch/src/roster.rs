//! The members of a pool and the state of their slots. Knows nothing of the waiting requests.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slab::Slab;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::claim::{LongLived, MemberId, MemberPreference};
use super::event_loop::{EventLoop, LoopState};
use super::free_index::{FreeIndex, SeatOrder};
use super::kinds::WorkKind;
use super::member::{Grant, HeldSlot, LongLivedCount, Member, MemberState};
use super::settings::PoolSettings;
use super::totals::Totals;

/// Ordered by id, because ids only grow. Each change of a member goes through [`Roster::edit`], which keeps the sums and the index of free
/// slots up to date. So the cost of a request does not depend on the number of members.
pub(super) struct Roster<E> {
    states: Vec<MemberState<E>>,
    settings: PoolSettings,
    totals: Totals,
    free: FreeIndex,
    turns: u64,
    next_id: NonZeroU64,
}

impl<E> Roster<E> {
    pub fn new(settings: PoolSettings) -> Self {
        let (totals, mut free) = (Totals::default(), FreeIndex::new(settings.choice));
        free.prepare::<E>(SeatOrder::default(), &mut []);
        Self { states: Vec::new(), settings, totals, free, turns: 0, next_id: NonZeroU64::MIN }
    }

    /// The pool has new settings.
    pub fn update(&mut self, settings: PoolSettings) {
        self.settings = settings;
        self.totals = Totals::default();
        for state in &self.states {
            self.totals.replace(Totals::default(), Totals::of(state, &settings));
        }
        self.free.rebuild(settings.choice, &mut self.states);
    }

    /// The settings of the pool.
    pub fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    pub fn states(&self) -> &[MemberState<E>] {
        &self.states
    }

    /// A member has joined, even if it is gone by now.
    pub fn has_had_members(&self) -> bool {
        self.next_id > NonZeroU64::MIN
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// How many requests the members work on at the same time, without the members that get no requests now. Looks at each member only if
    /// one may get none.
    pub fn working_slots(&self, now: Instant) -> usize {
        match self.totals.out {
            0 => self.totals.parallel,
            _ => self.present().filter(|state| !state.is_out(now)).map(MemberState::parallel).sum(),
        }
    }

    /// Changes a member. `None`: it is not there any more.
    pub fn edit<T>(&mut self, id: MemberId, change: impl FnOnce(&mut MemberState<E>) -> T) -> Option<T> {
        let index = self.index_of(id)?;
        Some(self.edit_at(index, change))
    }

    fn edit_at<T>(&mut self, index: usize, change: impl FnOnce(&mut MemberState<E>) -> T) -> T {
        self.edit_slot(index, true, change)
    }

    /// As [`Self::edit_at`]. Mostly the sums do not depend on one slot, and then they are not computed.
    fn edit_slot<T>(&mut self, index: usize, sums: bool, change: impl FnOnce(&mut MemberState<E>) -> T) -> T {
        let state = &mut self.states[index];
        let before = (sums || cfg!(debug_assertions)).then(|| Totals::of(state, &self.settings));
        let value = change(state);
        if let Some(before) = before {
            let after = Totals::of(state, &self.settings);
            debug_assert!(sums || after == before, "the sums depend on this change");
            self.totals.replace(before, after);
        }
        self.free.update(index, state);
        value
    }

    /// Puts members into the index of free slots again: those whose ejection ends by `now`, or whose loop may be observed again.
    pub fn advance(&mut self, now: Instant) {
        while let Some((_, id)) = self.free.returned(now) {
            if let Some(index) = self.index_of(id) {
                self.free.update(index, &mut self.states[index]);
            }
        }
    }

    /// See [`FreeIndex::opens_at`].
    pub fn opens_at(&self) -> Option<Instant> {
        self.free.opens_at()
    }

    /// Call it before [`Self::first`] with this order.
    pub fn prepare(&mut self, order: SeatOrder) {
        self.free.prepare(order, &mut self.states);
    }

    /// The index of the first member that fits, among those that may have a free slot. `last` was chosen before.
    pub fn first(
        &self,
        order: SeatOrder,
        last: Option<MemberId>,
        fits: impl Fn(&MemberState<E>) -> bool,
    ) -> Option<usize> {
        self.free.first(order, || self.place_after(last), |index| fits(&self.states[index]))
    }

    /// See [`MemberState::can_begin`].
    pub fn can_begin(&mut self, index: usize, waited: impl FnOnce() -> Duration, now: Instant) -> bool {
        let state = &mut self.states[index];
        let can_begin = state.can_begin(waited, now);
        if !can_begin {
            self.free.update(index, state);
        }
        can_begin
    }

    pub fn state(&self, id: MemberId) -> Option<&MemberState<E>> {
        self.index_of(id).map(|index| &self.states[index])
    }

    pub fn index_of(&self, id: MemberId) -> Option<usize> {
        self.states.binary_search_by_key(&id, |state| state.member.id).ok()
    }

    /// At most this many members, from the one after `last` on, also those that have left.
    pub fn some_after(&self, last: Option<MemberId>, most: usize) -> Vec<Arc<Member<E>>> {
        let start = self.place_after(last);
        self.states[start..].iter().take(most).map(|state| Arc::clone(&state.member)).collect()
    }

    fn place_after(&self, last: Option<MemberId>) -> usize {
        self.states.partition_point(|state| Some(state.member.id) <= last)
    }

    /// The members that have not left.
    pub fn present(&self) -> impl DoubleEndedIterator<Item = &MemberState<E>> {
        self.states.iter().filter(|state| !state.left)
    }

    /// No member can serve a claim with this preference, and the claim does not wait for one to join.
    pub fn lacks(&self, preference: &MemberPreference) -> bool {
        match preference.only {
            Some(only) => self.state(only).is_none_or(|state| state.left),
            None => preference.present && self.totals.members == 0,
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
        let (failures, suspected, unsent, answered, cpu, end_order, hang_ups) = Default::default();
        let (dismissed, marked_down) = (watch::Sender::new(false), watch::Sender::new(false));
        let member = Arc::new(Member {
            id,
            endpoint,
            failures,
            suspected,
            unsent,
            answered,
            dismissed,
            marked_down,
            cpu,
            _held: held,
        });
        let now = Instant::now();
        let mut state = MemberState {
            member: Arc::clone(&member),
            slots,
            event_loop: None,
            near,
            in_use: 0,
            held: Slab::new(),
            tunnels: LongLivedCount::default(),
            streams: LongLivedCount::default(),
            granted: 0,
            end_order,
            last_used: 0,
            ejected_until: None,
            out_of_reach: None,
            on_trial: false,
            left: false,
            bound_until: None,
            held_back: false,
            exclusive: None,
            shared_until: None,
            late: 0,
            hang_ups,
            ejections: 0,
            ejected_for: Duration::ZERO,
            unhealthy: false,
            blocked: false,
            lease_time: Duration::ZERO,
            joined: now,
            counted: now,
            returns_at: None,
        };
        self.totals.replace(Totals::default(), Totals::of(&state, &self.settings));
        self.free.push(&mut state);
        self.states.push(state);
        member
    }

    /// Gives away a slot of the member at `index`.
    pub fn grant(
        &mut self,
        index: usize,
        long_lived: Option<LongLived>,
        wanted: &MemberPreference,
        kind: Option<WorkKind>,
        now: Instant,
    ) -> Grant<E> {
        self.turns += 1;
        let (turns, alone) = (self.turns, wanted.alone && self.totals.members > 1);
        let is_in_sums = long_lived.is_some() || self.states[index].event_loop.is_some();
        self.edit_slot(index, is_in_sums, |state| {
            debug_assert!(state.left || state.may_have_free_slot(now), "only a free slot is granted");
            state.lease_time(now);
            let beside = state.end_order.begin(state.in_use);
            state.in_use += 1;
            let held = u32::try_from(state.held.insert(HeldSlot { since: now, kind })).unwrap_or(u32::MAX);
            if let Some(long_lived) = long_lived {
                state.count(long_lived).reserved += 1;
            }
            state.last_used = turns;
            let trial = state.member.is_doubted();
            state.on_trial |= trial;
            state.exclusive = alone.then_some(now).or(state.exclusive);
            let was_ejected = state.ejections > 0;
            if let Some(event_loop) = &state.event_loop {
                event_loop.note_answered(state.member.answered.load(Ordering::Acquire));
                event_loop.give(state.in_use - 1, now);
                state.member.unsent.fetch_add(1, Ordering::Relaxed);
            }
            let is_observed = state.event_loop.is_some();
            let (unsent, unanswered) = (AtomicBool::new(is_observed), AtomicBool::new(is_observed));
            let (member, place) = (Arc::clone(&state.member), u32::try_from(index).unwrap_or(u32::MAX));
            Grant {
                member,
                since: now,
                trial,
                was_ejected,
                alone,
                long_lived,
                beside,
                unsent,
                unanswered,
                place,
                held,
                charge: None,
            }
        })
    }

    /// Returns a slot. The caller holds the member, so no endpoint is dropped under the lock.
    pub fn release(&mut self, grant: &Grant<E>, now: Instant) {
        let was_not_sent = grant.sent();
        self.turns += 1;
        let turns = self.turns;
        let Some(index) = self.index_of_grant(grant) else { return };
        let is_observed = self.states[index].event_loop.is_some();
        let is_in_sums = is_observed || grant.trial || grant.long_lived.is_some();
        self.edit_slot(index, is_in_sums, |state| {
            state.lease_time(now);
            if state.in_use > 1 {
                state.shared_until = Some(now);
            }
            state.in_use -= if planted!(SlotGivenTwice) { 2.min(state.in_use) } else { 1 };
            state.held.try_remove(grant.held as usize);
            state.end_order.end(grant.beside, grant.is_answered());
            state.exclusive = state.exclusive.filter(|since| !grant.alone || *since != grant.since);
            if let Some(kind) = grant.long_lived {
                state.count(kind).reserved -= 1;
            }
            state.last_used = turns;
            state.on_trial &= !grant.trial;
            if let Some(event_loop) = state.event_loop.as_ref().filter(|_| was_not_sent) {
                event_loop.take_back();
            }
        });
        self.forget_if_gone(index);
    }

    /// A request has really taken the slot.
    pub fn taken(&mut self, grant: &Grant<E>) {
        if let Some(index) = self.index_of_grant(grant) {
            // Neither the sums nor the index depend on this.
            self.states[index].granted += 1;
        }
    }

    /// The kind of the request that has a grant.
    pub fn kind(&self, grant: &Grant<E>) -> Option<WorkKind> {
        self.states[self.index_of_grant(grant)?].held.get(grant.held as usize)?.kind
    }

    /// Whether the member of a grant has not left.
    pub fn is_present(&self, grant: &Grant<E>) -> bool {
        self.index_of_grant(grant).is_some_and(|index| !self.states[index].left)
    }

    /// The index of the member of a grant. It is the same as at the grant, unless a member before it was forgotten.
    fn index_of_grant(&self, grant: &Grant<E>) -> Option<usize> {
        let is_there =
            self.states.get(grant.place as usize).is_some_and(|state| state.member.id == grant.member.id);
        if is_there { Some(grant.place as usize) } else { self.index_of(grant.member.id) }
    }

    /// Counts a tunnel or a stream at the member. Call it while the request still has its slot.
    pub fn begin_long_lived(&mut self, id: MemberId, kind: LongLived) {
        self.edit(id, |state| state.count(kind).open += 1);
    }

    /// A tunnel or a stream has ended. The caller holds the member, as in [`Self::release`].
    pub fn end_long_lived(&mut self, id: MemberId, kind: LongLived) {
        let Some(index) = self.index_of(id) else { return };
        self.edit_at(index, |state| state.count(kind).open -= 1);
        self.forget_if_gone(index);
    }

    /// Whether no member has room for another tunnel or stream, with or without a free slot.
    pub fn is_full_of(&self, kind: LongLived) -> bool {
        self.totals.members > 0 && self.totals.with_room(kind) == 0
    }

    /// The member leaves and gets no new leases, except for requests that are bound to it until `bound_until`. The caller
    /// holds the member, as in [`Self::release`].
    pub fn leave(&mut self, id: MemberId, bound_until: Option<Instant>) {
        let Some(index) = self.index_of(id) else { return };
        self.edit_at(index, |state| (state.left, state.bound_until) = (true, bound_until));
        self.forget_if_gone(index);
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

    pub fn set_slots(&mut self, id: MemberId, slots: usize) {
        self.edit(id, |state| {
            state.slots = slots;
            state.event_loop = None;
        });
    }

    /// Observes the event loop of the member from now on. The member gets at most this many requests at once.
    pub fn observe(&mut self, id: MemberId, most: usize, event_loop: Arc<dyn EventLoop>) {
        self.edit(id, |state| {
            state.slots = most;
            state.event_loop.get_or_insert_with(|| LoopState::new(event_loop));
        });
    }

    /// Whether the event loop of any member is observed, and decides whether it gets a request.
    pub fn is_observed(&self) -> bool {
        self.totals.observed > 0
    }

    fn forget_if_gone(&mut self, index: usize) {
        let state = &self.states[index];
        if state.left && state.in_use == 0 && !state.has_long_lived() {
            if !planted!(WrongTotals) {
                self.totals.replace(Totals::of(state, &self.settings), Totals::default());
            }
            self.states.remove(index);
            self.free.rebuild(self.settings.choice, &mut self.states);
        }
    }
}
