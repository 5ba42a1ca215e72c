//! A request asks a pool for a slot: it gets one at once, waits, or is refused, also later, when the last member leaves. Wakes no task.

use std::task::{Poll, Waker};

use tokio::time::Instant;

use super::bound;
use super::claim::{Claim, MemberId, Priority};
use super::fair_key::FairKey;
use super::line::Line;
use super::member::Grant;
use super::place::QueuePosition;
use super::queue::AcquireError;
use super::settings::PoolSettings;
use super::span::{QueueSpan, Work};
use super::state::PoolState;
use super::wakers::Wakers;

/// `PoolSettings::burst` raises the queue limit to at most this many times `queue_limit`. Two reasons: the speed of the pool is only
/// measured, and each waiting request takes memory.
const MOST_STRETCHED: usize = 10;

impl<E> PoolState<E> {
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
        let takes = |id: &MemberId| bound::takes(&self.roster, *id, claim, now);
        preference.bound = preference.bound.filter(takes);
        if self.roster.lacks(&preference) {
            return Poll::Ready(Err(self.counters.refuse_aim(AcquireError::NoMember)));
        }
        if let Some(kind) = claim.long_lived.filter(|kind| self.roster.is_full_of(*kind)) {
            return Poll::Ready(Err(self.counters.refuse(kind)));
        }
        if preference.forgiving && !self.has_free_slot(self.at(now)) {
            self.roster.forgive();
        }
        self.rest(now);
        // A slot is free for waiting requests here only if an ejection has ended and its timer has not fired yet.
        // Requests that wait after this call wait because no slot is free, so the code below overtakes none of them.
        if !self.queue.is_empty() {
            self.dispatch(now, woken);
        }
        let now = self.at(now);
        self.admission.arrives(&self.queue, place.priority, &preference, now.served);
        if self.queue.is_empty_for(&preference)
            && let Some(index) = self.choose(now, claim.long_lived, &preference)
        {
            let grant = self.grant_at_once(index, claim, &preference, now);
            return Poll::Ready(Ok(self.taken(grant)));
        }
        if preference.only.is_some() && !self.pause.is_on() {
            return Poll::Ready(Err(self.counters.refuse_aim(AcquireError::MemberBusy)));
        }
        // A slot is free, but no member with a free slot has room for another tunnel or stream. So the request waits beside the queue,
        // bound to a member that has room. In the queue it would hold up the requests behind it.
        let mut for_room = false;
        if let Some(kind) = claim.long_lived
            && !self.pause.is_on()
            && self.queue.is_empty_for(&preference)
            && bound::has_free_slot(&self.roster, &preference, now.real)
                .unwrap_or_else(|| self.has_free_slot(now))
        {
            preference.bound = bound::with_room(&self.roster, kind, now.real);
            if preference.bound.is_none() {
                return Poll::Ready(Err(self.counters.refuse(kind)));
            }
            self.admission.arrives(&self.queue, place.priority, &preference, now.served);
            for_room = true;
        }
        let until = claim.deadline.map(|deadline| deadline - now.real.duration_since(now.served));
        let work = self.work_of(claim);
        let span =
            QueueSpan { since: now.served, until, long_lived: claim.long_lived, preference, for_room, work };
        if !place.returns() {
            self.admit(place, span, woken)?;
        }
        self.counters.queued += 1;
        self.queue.push(place, span, waker.clone());
        Poll::Pending
    }

    /// If no member is left: refuses the waiting requests that do not wait for one to join, as [`Self::enter`] does. The caller wakes them
    /// after unlocking.
    pub fn refuse_without_member(&mut self) -> Wakers {
        let mut woken = Wakers::default();
        if self.roster.totals().members > 0 {
            return woken;
        }
        let waiting = self.queue.lines.iter().flat_map(Line::waiting);
        let lacking = waiting.filter(|(_, waiter)| self.roster.lacks(&waiter.span.preference));
        let lacking: Vec<_> = lacking.map(|(place, _)| place).collect();
        for place in lacking {
            let error = self.counters.refuse_aim(AcquireError::NoMember);
            woken.extend(self.queue.refuse(place, error));
        }
        woken
    }

    /// Whether one more request may wait.
    fn admit(
        &mut self,
        place: QueuePosition,
        span: QueueSpan,
        woken: &mut Wakers,
    ) -> Result<(), AcquireError> {
        let (admission, counters, pool) = self.judged();
        let judgement = admission.judge(&pool, place, span);
        counters.overloads += u64::from(judgement.overload_begins);
        let is_full = self.is_full();
        let other = if is_full { self.gives_way(place.priority, span.work) } else { None };
        if is_full && other.is_none() {
            self.counters.refused_full += 1;
            return Err(AcquireError::QueueFull { limit: self.queue_limit() });
        }
        if judgement.is_refused {
            self.counters.refused_overload += 1;
            return Err(AcquireError::Overloaded);
        }
        if let Some(other) = other {
            let limit = self.queue_limit();
            self.counters.refused_full += 1;
            woken.extend(self.queue.refuse(other, AcquireError::QueueFull { limit }));
        }
        Ok(())
    }

    /// The waiting request that is refused if a new one finds the queue full: the newest one of the lowest class below that of the new
    /// request. If there is none, in a fair pool: the last request of the key that would be served last. `None`: the new request is
    /// refused.
    fn gives_way(&mut self, priority: Priority, work: Work) -> Option<QueuePosition> {
        let lower = self.queue.newest_below(priority).filter(|_| !planted!(LowerStays));
        lower.or_else(|| self.queue.dearest(priority, work))
    }

    fn is_full(&self) -> bool {
        let waiting = self.queue.newcomers();
        waiting >= self.roster.settings().queue_limit && waiting >= self.queue_limit()
    }

    /// How many requests may wait at present: `queue_limit`, or in a fast pool as many as it serves in `burst`, up to [`MOST_STRETCHED`]
    /// times `queue_limit`.
    pub fn queue_limit(&self) -> usize {
        let PoolSettings { queue_limit, burst, .. } = *self.roster.settings();
        let served = self.admission.served_in(&self.roster, burst);
        queue_limit.max(served.min(queue_limit.saturating_mul(MOST_STRETCHED)))
    }

    /// Whether a new request would find the queue full.
    pub fn is_full_for(&mut self, priority: Priority, key: Option<FairKey>) -> bool {
        let work = Work { fair: key, ..Work::default() };
        self.is_full() && self.gives_way(priority, work).is_none()
    }
}
