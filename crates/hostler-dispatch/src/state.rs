//! What a pool's mutex guards, and the changes under it. Wakes no task and drops no endpoint.

use std::task::{Poll, Waker};
use tokio::time::Instant;

use super::bound;
use super::chooser::Chooser;
use super::claim::{Claim, LongLived, MemberId, MemberPreference, Policy, Priority};
use super::counters::PoolCounters;
use super::free_index::SeatOrder;
use super::member::Grant;
use super::overload::{OverloadDetector, ServedWaits};
use super::pause::Pause;
use super::place::QueuePosition;
use super::queue::{AcquireError, Late, Queue, QueueSpan, WaitOutcome};
use super::roster::Roster;
use super::service::{Pace, Service};
use super::settings::PoolSettings;
use super::wakers::Wakers;

/// A pool whose slots have not moved for this many mean holding times is stuck.
const STUCK_HOLDINGS: u32 = 16;

pub(super) struct PoolState<E> {
    pub settings: PoolSettings,
    pub queue: Queue<Grant<E>>,
    pub roster: Roster<E>,
    pub counters: PoolCounters,
    pub pause: Pause,
    pub service: Service,
    pub closed: bool,
    /// The thread of `recheck` asks this pool.
    pub rechecked: bool,
    detectors: [OverloadDetector; Priority::COUNT],
    last_chosen: Option<MemberId>,
    last_grant: Option<Instant>,
}

/// One moment on two clocks.
#[derive(Clone, Copy)]
struct Now {
    /// Real time. Ejections end by it.
    real: Instant,
    /// The pool's time, which stops during pauses. Time limits of requests end by it.
    served: Instant,
}

impl<E> PoolState<E> {
    pub fn new(settings: PoolSettings) -> Self {
        Self {
            settings,
            queue: Queue::new(),
            roster: Roster::new(settings),
            counters: PoolCounters::default(),
            pause: Pause::default(),
            service: Service::default(),
            closed: false,
            rechecked: false,
            detectors: Default::default(),
            last_chosen: None,
            last_grant: None,
        }
    }

    /// A request that is not in the queue asks for a slot: it gets one at once, joins the queue, or is refused.
    pub fn enter(
        &mut self,
        place: QueuePosition,
        claim: &Claim,
        waker: &Waker,
        now: Instant,
        woken: &mut Wakers,
    ) -> Poll<Result<Grant<E>, AcquireError>> {
        if self.closed {
            return Poll::Ready(Err(AcquireError::Closed));
        }
        if claim.deadline.is_some_and(|deadline| deadline <= now) {
            self.counters.expired += 1;
            return Poll::Ready(Err(AcquireError::Expired));
        }
        let mut preference = claim.preference;
        let takes = |id: &MemberId| bound::takes(&self.roster, *id, claim, &self.settings, now);
        preference.bound = preference.bound.filter(takes);
        if self.roster.lacks(&preference) {
            return Poll::Ready(Err(self.refuse_aim(AcquireError::NoMember)));
        }
        if let Some(kind) = claim.long_lived.filter(|kind| self.roster.is_full_of(*kind)) {
            return Poll::Ready(Err(self.counters.refuse(kind)));
        }
        if preference.forgiving && !self.has_free_slot(self.at(now)) {
            self.roster.forgive();
        }
        // A slot is free for waiting requests here only if an ejection has ended and its timer has not fired yet.
        // Requests that wait after this call wait because no slot is free, so the code below overtakes none of them.
        if !self.queue.is_empty() {
            self.dispatch(now, woken);
        }
        let now = self.at(now);
        if self.queue.len_of(place.priority) == 0 {
            self.detectors[place.priority.index()].found_empty(now.served);
        }
        if self.queue.is_empty_for(&preference)
            && let Some(grant) = self.grant(now, claim.long_lived, &preference)
        {
            return Poll::Ready(Ok(self.taken(grant)));
        }
        if preference.only.is_some() && !self.pause.is_on() {
            return Poll::Ready(Err(self.refuse_aim(AcquireError::MemberBusy)));
        }
        // If the limit of tunnels or streams is the reason, waiting for a slot would not help, and would hold up the
        // requests behind.
        if let Some(kind) = claim.long_lived
            && self.queue.is_empty_for(&preference)
            && bound::has_free_slot(&self.roster, &preference, now.real)
                .unwrap_or_else(|| self.has_free_slot(now))
        {
            return Poll::Ready(Err(self.counters.refuse(kind)));
        }
        let until = claim.deadline.map(|deadline| deadline - now.real.duration_since(now.served));
        let span = QueueSpan { since: now.served, until, long_lived: claim.long_lived, preference };
        if !place.returns() {
            self.admit(place.priority, span)?;
        }
        self.counters.queued += 1;
        self.queue.push(place, span, waker.clone());
        Poll::Pending
    }

    /// Whether one more request may wait.
    fn admit(&mut self, priority: Priority, span: QueueSpan) -> Result<(), AcquireError> {
        let pace = self.pace();
        let overload = &mut self.detectors[priority.index()];
        if pace.is_some() {
            overload.arrived()
        } else {
            overload.interrupt()
        }
        let limit = self.settings.queue_limit;
        if self.queue.newcomers() >= limit {
            self.counters.refused_full += 1;
            return Err(AcquireError::QueueFull { limit });
        }
        if self.settings.policy == Policy::Adaptive
            && let Some(pace) = pace
            && (self.is_hopeless(priority, span, &pace) || self.is_stuck(span, &pace))
        {
            self.counters.refused_overload += 1;
            self.detectors[priority.index()].refused(span.since);
            return Err(AcquireError::Overloaded);
        }
        Ok(())
    }

    /// Whether a request that arrives under overload would be too late, even as the next one after those that returned.
    fn is_hopeless(&self, priority: Priority, span: QueueSpan, pace: &Pace) -> bool {
        let ahead = pace.turns(self.queue.returned(priority) as f64);
        self.is_overloaded(priority, span.since)
            && span.until.is_some_and(|until| until < span.since + ahead + pace.hold())
    }

    /// Whether no slot has moved for longer than this request can wait, and for much longer than normal. Enough requests
    /// still wait to use every slot when that ends.
    fn is_stuck(&self, span: QueueSpan, pace: &Pace) -> bool {
        let stood = self.last_grant.map(|last| span.since.saturating_duration_since(last));
        let (Some(stood), Some(until)) = (stood, span.until) else { return false };
        stood >= until.saturating_duration_since(span.since)
            && stood >= pace.hold() * STUCK_HOLDINGS
            && self.queue.newcomers() >= self.slots()
    }

    /// Hands free slots to waiting requests. The caller wakes them after unlocking.
    pub fn dispatch(&mut self, now: Instant, woken: &mut Wakers) {
        let now = self.at(now);
        if self.queue.has_bound() {
            bound::unbind_lost(&self.roster, &mut self.queue, now.real);
        }
        self.shed(now, woken);
        while !self.queue.is_empty()
            && let Some((place, span)) = self.next(now, woken)
            && let Some(grant) = self.grant(now, span.long_lived, &span.preference)
        {
            woken.extend(self.queue.hand(place, grant));
            self.observe(place, span, now);
            self.shed(now, woken);
        }
    }

    /// The request that gets the next slot. On the way it refuses requests that are too late, and claims for a
    /// tunnel or a stream if no free member has room for it.
    fn next(&mut self, now: Now, woken: &mut Wakers) -> Option<(QueuePosition, QueueSpan)> {
        if self.pause.is_on() {
            return None;
        }
        let any = self.has_free_slot(now);
        let free = bound::free_slots(&self.roster, &self.queue, any, now.real);
        while let Some(priority) = self.queue.next_class(&free) {
            let newest_first = self.is_overloaded(priority, now.served);
            let (place, span) = self.queue.next_free_of(priority, newest_first, &free)?;
            let error = if span.until.is_some_and(|until| until <= now.served) {
                self.counters.expired += 1;
                AcquireError::Expired
            } else if span.preference.only.is_some() && !self.can_serve(&span, now) {
                self.refuse_aim(AcquireError::MemberBusy)
            } else if let Some(kind) = span.long_lived
                && !self.can_serve(&span, now)
            {
                if span.preference.bound.is_some() {
                    // Its member has the most tunnels or streams allowed, and another one may have room.
                    self.queue.unbind(place);
                    continue;
                }
                self.counters.refuse(kind)
            } else {
                return Some((place, span));
            };
            woken.extend(self.queue.refuse(place, error));
        }
        None
    }

    /// A waiting request got a slot: records its wait for its class.
    fn observe(&mut self, place: QueuePosition, span: QueueSpan, now: Now) {
        if place.returns() || self.settings.policy == Policy::Fifo {
            return;
        }
        let Some(pace) = self.pace() else { return };
        let served = ServedWaits {
            waited: now.served.saturating_duration_since(span.since),
            time_limit: span.time_limit(),
            behind: self.queue.len_of(place.priority),
        };
        self.detectors[place.priority.index()].served(served, &pace, now.served);
    }

    /// Under overload, refuses requests that have waited too long or cannot be served in time.
    fn shed(&mut self, now: Now, woken: &mut Wakers) {
        for priority in Priority::ALL {
            if !self.is_overloaded(priority, now.served) {
                continue;
            }
            let Some(pace) = self.pace() else { return };
            while let Some((place, span)) = self.queue.oldest_newcomer(priority)
                && let Some(error) = span.overdue(&pace, now.served)
            {
                self.counters.shed += u64::from(error == AcquireError::Overloaded);
                self.counters.expired += u64::from(error == AcquireError::Expired);
                woken.extend(self.queue.refuse(place, error));
                self.detectors[priority.index()].refused(now.served);
            }
            self.detectors[priority.index()].doubt(&pace, now.served);
        }
    }

    /// A slot comes back normally.
    pub fn release(&mut self, grant: &Grant<E>, now: Instant) {
        // A member that has left may have been stuck and killed. Its last holdings say nothing about the speed.
        if self.roster.is_present(grant) {
            self.service.observe(now.saturating_duration_since(grant.since));
        }
        self.roster.release(grant, now);
    }

    /// Takes back slots of this member that were handed over and not taken yet. Their requests return to their positions.
    /// The caller drops the grants after unlocking.
    pub fn take_back(&mut self, id: MemberId, now: Instant) -> Vec<Grant<E>> {
        // The waiting requests wait longer now for a reason that is not load.
        self.detectors.iter_mut().for_each(OverloadDetector::interrupt);
        let untaken = self.queue.take_back(|grant| grant.member.id == id);
        for grant in &untaken {
            self.roster.release(grant, now);
        }
        untaken
    }

    /// Whether requests wait that an event loop may be able to begin later, without an event that tells so.
    pub fn needs_recheck(&self) -> bool {
        !self.queue.is_empty() && !self.pause.is_on() && !self.closed && self.roster.is_observed()
    }

    /// How the wait at this position has ended, if it has. The caller releases a slot that comes too late.
    pub fn outcome(
        &mut self,
        place: QueuePosition,
        now: Instant,
    ) -> Option<Result<Grant<E>, Late<Grant<E>>>> {
        match self.queue.take_outcome(place)? {
            WaitOutcome::Handed(grant, span)
                if span.until.is_some_and(|until| until <= self.at(now).served) =>
            {
                self.counters.expired += 1;
                Some(Err(Late { error: AcquireError::Expired, grant: Some(grant) }))
            }
            WaitOutcome::Handed(grant, _) => Some(Ok(self.taken(grant))),
            WaitOutcome::Refused(error) => Some(Err(Late { error, grant: None })),
        }
    }

    /// Whether the newest request is served first in this class.
    fn is_overloaded(&self, priority: Priority, now: Instant) -> bool {
        let empty = self.queue.len_of(priority) == 0;
        self.detectors[priority.index()].is_overload(empty, now)
    }

    /// Whether any class is overloaded.
    pub fn has_overload(&self, now: Instant) -> bool {
        let now = self.at(now).served;
        Priority::ALL.into_iter().any(|priority| self.is_overloaded(priority, now))
    }

    /// Gives no slots from now on.
    pub fn pause(&mut self, now: Instant) {
        self.pause.begin(now);
        self.detectors.iter_mut().for_each(OverloadDetector::interrupt);
    }

    /// Sets new settings. If the policy changes, an overload must be shown again.
    pub fn update(&mut self, settings: PoolSettings) {
        if settings.policy != self.settings.policy {
            self.detectors = Default::default();
        }
        self.roster.update(settings);
        self.settings = settings;
    }

    fn pace(&self) -> Option<Pace> {
        self.service.pace(self.slots())
    }

    fn slots(&self) -> usize {
        self.roster.totals().parallel
    }

    fn at(&self, now: Instant) -> Now {
        Now { real: now, served: now - self.pause.total(now) }
    }

    fn has_free_slot(&mut self, now: Now) -> bool {
        !self.pause.is_on() && self.choose(now, None, &MemberPreference::default()).is_some()
    }

    fn refuse_aim(&mut self, error: AcquireError) -> AcquireError {
        self.counters.refused_aim += 1;
        error
    }

    fn can_serve(&mut self, span: &QueueSpan, now: Now) -> bool {
        self.choose(now, span.long_lived, &span.preference).is_some()
    }

    fn choose(&mut self, now: Now, kind: Option<LongLived>, preference: &MemberPreference) -> Option<usize> {
        let Self { settings, roster, last_chosen, .. } = self;
        let now = now.real;
        if let Some(id) = preference.bound {
            return bound::free_index(roster, id, kind, settings, now);
        }
        roster.advance(now);
        let order = SeatOrder { spreads: kind.is_some() || preference.spread, near: preference.near };
        if order != SeatOrder::default() {
            roster.prepare(SeatOrder { near: false, ..order });
            roster.prepare(order);
        }
        // Only a member that would be chosen is observed. If it cannot begin the request, it is not free from then on.
        loop {
            let place = Chooser { roster, settings, last: *last_chosen, kind, now }.place(preference)?;
            if roster.can_begin(place, now) {
                return Some(place);
            }
        }
    }

    fn grant(
        &mut self,
        now: Now,
        kind: Option<LongLived>,
        preference: &MemberPreference,
    ) -> Option<Grant<E>> {
        if self.pause.is_on() {
            return None;
        }
        let index = self.choose(now, kind, preference)?;
        let grant = self.roster.grant(index, kind, preference, now.real);
        self.last_chosen = Some(grant.member.id);
        self.last_grant = Some(now.served);
        Some(grant)
    }

    /// Counts a grant when a request really takes the slot, not when the slot is handed over.
    fn taken(&mut self, grant: Grant<E>) -> Grant<E> {
        self.counters.granted += 1;
        self.roster.taken(&grant);
        grant
    }
}
