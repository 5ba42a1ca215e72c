//! What a pool's mutex guards, and the changes under it, but for the arrival of a request. Wakes no task and drops no endpoint.

use std::time::Duration;

use tokio::time::Instant;

use super::admission::{AdmissionControl, PoolView};
use super::bound;
use super::chooser::Chooser;
use super::claim::{Claim, LongLived, MemberId, MemberPreference};
use super::counters::PoolCounters;
use super::fair::Charge;
use super::free_index::SeatOrder;
use super::kinds::WorkKind;
use super::member::Grant;
use super::pause::{Now, Pause};
use super::place::QueuePosition;
use super::queue::{AcquireError, Queue, WaitFailure, WaitOutcome};
use super::roster::Roster;
use super::settings::PoolSettings;
use super::span::{QueueSpan, Work};
use super::wakers::Wakers;

pub(super) struct PoolState<E> {
    pub queue: Queue<Grant<E>>,
    pub roster: Roster<E>,
    pub counters: PoolCounters,
    pub pause: Pause,
    pub admission: AdmissionControl,
    pub closed: bool,
    /// The thread of `recheck` asks this pool.
    pub rechecked: bool,
    last_chosen: Option<MemberId>,
}

impl<E> PoolState<E> {
    pub fn new(settings: PoolSettings) -> Self {
        let mut queue = Queue::new();
        queue.serve_by(&settings, Instant::now());
        Self {
            queue,
            roster: Roster::new(settings),
            counters: PoolCounters::default(),
            pause: Pause::default(),
            admission: AdmissionControl::default(),
            closed: false,
            rechecked: false,
            last_chosen: None,
        }
    }

    /// Hands free slots to waiting requests. The caller wakes them after unlocking.
    pub fn dispatch(&mut self, now: Instant, woken: &mut Wakers) {
        let now = self.at(now);
        self.queue.set_slots(|| self.roster.working_slots(now.real));
        if self.queue.has_bound() {
            bound::unbind_lost(&self.roster, &mut self.queue, now.real);
        }
        while !self.queue.is_empty()
            && let Some((place, span, chosen)) = self.next(now, woken)
            && let Some(index) = chosen.or_else(|| self.choose(now, span.long_lived, &span.preference))
        {
            let mut grant = self.grant(now, index, span.long_lived, &span.preference, span.work.kind);
            grant.charge = self.queue.charge(place, span);
            self.queue.begin_turn(place, span, grant.slot());
            woken.extend(self.queue.hand(place, grant.member.id, grant));
            let (admission, counters, pool) = self.judged();
            counters.overloads += u64::from(admission.served(&pool, place, span, now.served));
        }
    }

    /// The request that gets the next slot, and the index of its member if any may serve it. On the way it refuses requests that are too late.
    /// Claims for a tunnel or a stream that no free member has room for wait for a member that has, and are refused if there is none.
    fn next(&mut self, now: Now, woken: &mut Wakers) -> Option<(QueuePosition, QueueSpan, Option<usize>)> {
        if self.pause.is_on() {
            return None;
        }
        self.look_for_room(now);
        let mut any = self.choose(now, None, &MemberPreference::default());
        let free = bound::free_slots(&self.roster, &self.queue, any.is_some(), now.real);
        while let Some(priority) = self.queue.next_class(&free) {
            // Choosing for the next request may show that this member cannot begin one any more.
            let chosen = any.take();
            let (place, span) = self.queue.next_free_of(priority, &free)?;
            let error = if span.until.is_some_and(|until| until <= now.served) && !planted!(LateSlot) {
                self.counters.expired += 1;
                AcquireError::Expired
            } else if span.preference.only.is_some()
                && self.choose(now, span.long_lived, &span.preference).is_none()
            {
                self.counters.refuse_aim(AcquireError::MemberBusy)
            } else if let Some(kind) = span.long_lived
                && self.choose(now, span.long_lived, &span.preference).is_none()
            {
                if span.preference.bound.is_some() {
                    // Its member has the most tunnels or streams allowed, and another one may have room.
                    self.queue.unbind(place);
                    continue;
                }
                if let Some(id) = bound::with_room(&self.roster, kind, now.real) {
                    self.queue.bind(place, id);
                    continue;
                }
                self.counters.refuse(kind)
            } else {
                let is_for_any = span.long_lived.is_none() && span.preference.is_for_any();
                return Some((place, span, chosen.filter(|_| is_for_any)));
            };
            woken.extend(self.queue.refuse(place, error));
        }
        None
    }

    /// Unbinds the oldest requests that wait for one member only because no other had room for their tunnel or stream, if a member has a
    /// free slot and room now.
    fn look_for_room(&mut self, now: Now) {
        for (place, kind) in bound::first_for_room(&self.queue) {
            if self.choose(now, Some(kind), &MemberPreference::default()).is_some() {
                self.queue.unbind(place);
            }
        }
    }

    /// A slot comes back normally.
    pub fn release(&mut self, grant: &Grant<E>, now: Instant) {
        let hold = now.saturating_duration_since(grant.since);
        self.settle(grant, hold);
        // A member that has left may have been stuck and killed. Its last holdings say nothing about the speed.
        if self.roster.is_present(grant) {
            self.admission.observe(self.roster.kind(grant), hold);
        }
        self.roster.release(grant, now);
    }

    /// A slot comes back because the client of its request has left. The member may still work for the request, so in a fair pool that costs at least
    /// what it was charged at first. A shorter holding does not show what such requests cost.
    pub fn release_early(&mut self, grant: &Grant<E>, now: Instant) {
        let hold = now.saturating_duration_since(grant.since);
        let charged = grant.charge.map_or(Duration::ZERO, Charge::cost);
        if hold >= charged {
            return self.release(grant, now);
        }
        self.settle(grant, if planted!(FreeReset) { hold } else { charged });
        // The mean of the pool stays as it is, too. If such ends lowered it, they would cost ever less until their kind is known.
        if self.roster.is_present(grant) {
            self.admission.observe(None, if planted!(CheapReset) { hold } else { charged });
        }
        if !planted!(AbandonedSlot) {
            self.roster.release(grant, now);
        }
    }

    /// Takes back slots of this member that were handed over and not taken yet. Their requests return to their positions.
    /// The caller drops the grants after unlocking.
    pub fn take_back(&mut self, id: MemberId, now: Instant) -> Vec<Grant<E>> {
        let untaken = self.queue.take_back(|grant| grant.member.id == id);
        for grant in &untaken {
            self.take_unused(grant, now);
        }
        if self.closed {
            drop(self.queue.drain());
        }
        untaken
    }

    /// Takes back a slot that no request has used.
    pub fn take_unused(&mut self, grant: &Grant<E>, now: Instant) {
        self.settle(grant, Duration::ZERO);
        self.roster.release(grant, now);
    }

    /// The request of a grant has cost this much.
    pub fn settle(&mut self, grant: &Grant<E>, cost: Duration) {
        if let (Some(fair), Some(charge)) = (&mut self.queue.fair, grant.charge) {
            fair.settle(charge, cost);
        }
        self.queue.end_turn(grant.slot(), cost);
    }

    /// Lets debts shrink in a fair pool (see [`FairShares::rest`](super::fair::FairShares::rest)). To be called before the queue may
    /// change.
    pub fn rest(&mut self, now: Instant) {
        let now = self.pause.at(now);
        if let Some(fair) = &mut self.queue.fair {
            fair.rest(now.served, self.roster.totals().parallel);
        }
    }

    pub fn work_of(&self, claim: &Claim) -> Work {
        Work::of(claim, self.admission.time_of(claim.kind))
    }

    /// How the wait at this position has ended, if it has. The caller releases a slot that comes too late.
    pub fn outcome(
        &mut self,
        place: QueuePosition,
        now: Instant,
    ) -> Option<Result<Grant<E>, WaitFailure<Grant<E>>>> {
        match self.queue.take_outcome(place)? {
            WaitOutcome::Handed(grant, span)
                if span.until.is_some_and(|until| until <= self.at(now).served) && !planted!(LateSlot) =>
            {
                self.counters.expired += 1;
                Some(Err(WaitFailure { error: AcquireError::Expired, grant: Some(grant) }))
            }
            WaitOutcome::Handed(grant, _) => Some(Ok(self.taken(grant))),
            WaitOutcome::Refused(error) => Some(Err(WaitFailure { error, grant: None })),
        }
    }

    /// Counts a request that has left the queue without a slot: its time was over, or its client has left.
    pub fn note_left(&mut self, span: QueueSpan, now: Instant) {
        if span.until.is_some_and(|until| until <= self.at(now).served) {
            self.counters.expired += 1;
        } else {
            self.counters.left_queue += 1;
        }
    }

    /// Gives no slots from now on.
    pub fn pause(&mut self, now: Instant) {
        self.pause.begin(now);
        self.admission.interrupt(self.at(now).served);
    }

    /// Sets new settings. If the policy changes, an overload must be shown again.
    pub fn update(&mut self, settings: PoolSettings, now: Instant) {
        if !settings.serves_like(self.roster.settings()) {
            self.admission.forget_overload();
        }
        self.queue.serve_by(&settings, self.at(now).served);
        self.roster.update(settings);
    }

    /// Whether any class is overloaded. A paused pool refuses nothing because of that.
    pub fn has_overload(&self, now: Instant) -> bool {
        !self.pause.is_on() && self.admission.has_overload(&self.queue, self.at(now).served)
    }

    /// The parts that decide whether a new request may wait: the judge, the counters, and the view of the pool that it judges by.
    pub fn judged(&mut self) -> (&mut AdmissionControl, &mut PoolCounters, PoolView<'_, E>) {
        let Self { admission, counters, queue, roster, pause, .. } = self;
        (admission, counters, PoolView { queue, roster, is_paused: pause.is_on() })
    }

    pub fn at(&self, now: Instant) -> Now {
        self.pause.at(now)
    }

    pub fn has_free_slot(&mut self, now: Now) -> bool {
        self.choose(now, None, &MemberPreference::default()).is_some()
    }

    /// The index of the member that would get a request now. `None` while the pool is paused.
    pub fn choose(&mut self, now: Now, kind: Option<LongLived>, wanted: &MemberPreference) -> Option<usize> {
        if self.pause.is_on() {
            return None;
        }
        let Self { roster, last_chosen, queue, .. } = self;
        let now = now.real;
        if let Some(id) = wanted.bound {
            return bound::free_index(roster, id, kind, now);
        }
        roster.advance(now);
        let order = SeatOrder { spreads: kind.is_some() || wanted.spread, near: wanted.near };
        if order != SeatOrder::default() {
            roster.prepare(SeatOrder { near: false, ..order });
            roster.prepare(order);
        }
        let longest_wait = || queue.wait_in_order(now);
        // Only a member that would be chosen is observed. If it cannot begin the request, it is not free from then on.
        loop {
            let place = Chooser { roster, last: *last_chosen, kind, now }.place(wanted)?;
            if roster.can_begin(place, longest_wait, now) {
                return Some(place);
            }
        }
    }

    /// The request gets a slot of the chosen member and has not waited.
    pub fn grant_at_once(
        &mut self,
        index: usize,
        claim: &Claim,
        wanted: &MemberPreference,
        now: Now,
    ) -> Grant<E> {
        let mut grant = self.grant(now, index, claim.long_lived, wanted, claim.kind);
        let work = self.queue.fair.is_some().then(|| self.work_of(claim));
        grant.charge =
            self.queue.fair.as_mut().zip(work).map(|(fair, work)| fair.charge(work.key(), work.time));
        grant
    }

    /// The request gets a slot of the chosen member.
    fn grant(
        &mut self,
        now: Now,
        index: usize,
        kind: Option<LongLived>,
        preference: &MemberPreference,
        work: Option<WorkKind>,
    ) -> Grant<E> {
        let grant = self.roster.grant(index, kind, preference, work, now.real);
        self.last_chosen = Some(grant.member.id);
        self.admission.granted(now.served);
        grant
    }

    /// Counts a grant when a request really takes the slot, not when the slot is handed over.
    pub fn taken(&mut self, grant: Grant<E>) -> Grant<E> {
        self.counters.granted += 1;
        self.roster.taken(&grant);
        grant
    }
}
