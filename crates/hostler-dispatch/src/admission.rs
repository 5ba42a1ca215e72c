//! Which requests of a pool may wait: by the queue limit, and by the work that waits already. Changes no order, and hands out no
//! slot.

use std::time::Duration;

use tokio::time::Instant;

use super::claim::{Policy, Priority};
use super::kinds::WorkKind;
use super::overload::{Judgement, NewWait, ServedWait};
use super::place::QueuePosition;
use super::queue::{AcquireError, QueueSpan};
use super::service::Pace;
use super::state::PoolState;

/// A pool whose slots have not moved for this many mean holding times is stuck.
const STUCK_HOLDINGS: u32 = 16;

impl<E> PoolState<E> {
    /// Whether one more request may wait.
    pub fn admit(&mut self, priority: Priority, span: QueueSpan) -> Result<(), AcquireError> {
        let judgement = self.judge(priority, span);
        let limit = self.settings.queue_limit;
        if self.queue.newcomers() >= limit {
            self.counters.refused_full += 1;
            return Err(AcquireError::QueueFull { limit });
        }
        if judgement != Judgement::Waits {
            self.counters.refused_overload += 1;
            return Err(AcquireError::Overloaded);
        }
        Ok(())
    }

    /// Whether this request can wait for its slot, by what it costs and what waits before it.
    fn judge(&mut self, priority: Priority, span: QueueSpan) -> Judgement {
        if self.settings.policy == Policy::Fifo || self.pause.is_on() {
            return Judgement::Waits;
        }
        self.note_joins(span.since);
        let (Some(time_limit), Some(pace)) = (span.time_limit(), self.pace()) else {
            return Judgement::Waits;
        };
        let (detector, now) = (&mut self.detectors[priority.index()], span.since);
        let wait = match span.preference.bound {
            None => detector.expected_wait(self.queue.work_of(priority), &pace, now),
            Some(id) => {
                let waiting = self.queue.len_bound_to(priority, id);
                let slots = self.roster.state(id).map_or(1, |state| state.parallel().max(1));
                pace.hold().mul_f64(waiting as f64 / slots as f64)
            }
        };
        let judgement = detector.arrives(NewWait { work: span.work.time, wait, time_limit }, &pace, now);
        self.counters.overloads += u64::from(judgement == Judgement::OverloadBegins);
        if self.is_stuck(span, &pace) { Judgement::Refused } else { judgement }
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

    /// A waiting request got a slot: records its wait for its class.
    pub fn served(&mut self, place: QueuePosition, span: QueueSpan, now: Instant) {
        if place.returns() || self.settings.policy == Policy::Fifo {
            return;
        }
        let Some(pace) = self.pace() else { return };
        // Its time was perhaps not known when it came.
        let time = if span.work.time.is_zero() { self.time_of(span.work.kind) } else { span.work.time };
        let served = ServedWait {
            work: time,
            waited: now.saturating_duration_since(span.since),
            time_limit: span.time_limit(),
        };
        let begins = self.detectors[place.priority.index()].served(served, &pace, now);
        self.counters.overloads += u64::from(begins);
    }

    /// How long a request of this kind is expected to hold its slot.
    pub fn time_of(&self, kind: Option<WorkKind>) -> Duration {
        kind.and_then(|kind| self.kinds.mean(kind)).or_else(|| self.service.mean()).unwrap_or_default()
    }

    /// Whether requests of this class that would wait long are refused.
    fn is_overloaded(&self, priority: Priority, now: Instant) -> bool {
        let empty = self.queue.len_of(priority) == 0;
        self.detectors[priority.index()].is_overload(empty, now)
    }

    /// Whether any class is overloaded.
    pub fn has_overload(&self, now: Instant) -> bool {
        let now = self.at(now).served;
        Priority::ALL.into_iter().any(|priority| self.is_overloaded(priority, now))
    }

    /// A member has joined or left since: what was measured holds no more.
    fn note_joins(&mut self, now: Instant) {
        let members = self.roster.states().len();
        if std::mem::replace(&mut self.members_judged, members) != members {
            self.interrupt(now);
        }
    }

    /// Slots do not come free, or will soon, for a reason other than load.
    pub fn interrupt(&mut self, now: Instant) {
        self.detectors.iter_mut().for_each(|detector| detector.interrupt(now));
    }

    fn pace(&self) -> Option<Pace> {
        self.service.pace(self.slots())
    }

    fn slots(&self) -> usize {
        self.roster.totals().parallel
    }
}
