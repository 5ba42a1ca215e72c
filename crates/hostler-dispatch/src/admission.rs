//! Which requests of a pool may wait: by the queue limit, and by the work that waits already. Changes no order, and hands out no
//! slot.

use std::time::Duration;

use tokio::time::Instant;

use super::claim::{MemberPreference, Policy, Priority};
use super::kinds::{KindTimes, WorkKind};
use super::member::Grant;
use super::overload::{ExpectedWait, Judgement, NewWait, OverloadDetector, ServedWait};
use super::place::QueuePosition;
use super::queue::Queue;
use super::roster::Roster;
use super::service::{Pace, Service};
use super::span::QueueSpan;

/// A pool whose slots have not moved for this many mean holding times is stuck.
const STUCK_HOLDINGS: f64 = 16.0;

/// What has been measured of a pool's work.
#[derive(Debug, Default)]
pub(super) struct AdmissionControl {
    service: Service,
    kinds: KindTimes,
    /// One detector for each class: for the requests that any member may serve.
    detectors: [OverloadDetector; Priority::COUNT],
    /// The same for the requests that are bound to a member. They wait beside the queue, so neither kind of wait says anything about the
    /// other.
    bound: [OverloadDetector; Priority::COUNT],
    /// How many members there were when the detectors last judged.
    members_judged: usize,
    last_grant: Option<Instant>,
}

/// The parts of the pool that decide whether a request may wait.
pub(super) struct PoolView<'a, E> {
    pub queue: &'a Queue<Grant<E>>,
    pub roster: &'a Roster<E>,
    pub is_paused: bool,
}

impl AdmissionControl {
    /// Whether this request can wait for its slot, by what it costs and what waits before it.
    pub fn judge<E>(&mut self, pool: &PoolView<E>, place: QueuePosition, span: QueueSpan) -> Judgement {
        let priority = place.priority;
        if pool.roster.settings().policy == Policy::Fifo || pool.is_paused {
            return Judgement::default();
        }
        self.note_joins(pool.roster, span.since);
        let (Some(time_limit), Some(pace)) = (span.time_limit(), self.pace(pool.roster)) else {
            return Judgement::default();
        };
        let (detector, now) = (self.detector(priority, &span.preference), span.since);
        let wait = match span.preference.bound {
            None => expected_wait(detector, pool.queue, place, span, &pace),
            Some(id) => {
                let waiting = pool.queue.len_bound_to(priority, id);
                let share = pace.slots() / pool.roster.totals().members.max(1) as f64;
                let fixed =
                    pool.roster.state(id).filter(|_| pace.is_certain()).map(|state| state.parallel() as f64);
                let wait = pace.hold() * waiting as f64 / fixed.unwrap_or(share).max(1.0);
                ExpectedWait { of_request: wait, of_first: wait, of_all: wait }
            }
        };
        let judgement = detector.arrives(NewWait { work: span.work.time, wait, time_limit }, &pace, now);
        Judgement { is_refused: judgement.is_refused || self.is_stuck(pool, span, &pace), ..judgement }
    }

    /// Whether no slot has moved for longer than this request can wait, and for much longer than normal. Enough requests
    /// still wait to use every slot when that ends. A member that is on hold is not stuck: it gets requests again in a moment.
    fn is_stuck<E>(&self, pool: &PoolView<E>, span: QueueSpan, pace: &Pace) -> bool {
        let stood = self.last_grant.map(|last| span.since.saturating_duration_since(last));
        let (Some(stood), Some(until)) = (stood, span.until) else { return false };
        stood >= until.saturating_duration_since(span.since)
            && stood.as_secs_f64() >= pace.hold() * STUCK_HOLDINGS
            && pool.queue.newcomers() >= slots(pool.roster)
            && !pool.roster.present().any(|state| state.held_back)
    }

    /// A request is about to wait.
    pub fn arrives<G>(
        &mut self,
        queue: &Queue<G>,
        priority: Priority,
        preference: &MemberPreference,
        now: Instant,
    ) {
        let is_bound = preference.bound.is_some();
        let waiting = if is_bound { queue.bound_of(priority) } else { queue.len_of(priority) };
        if waiting > 0 {
            return;
        }
        self.detector(priority, preference).found_empty(now);
        // The time between two slots goes on if requests of another class wait.
        let none_waits = if is_bound { queue.is_empty() } else { queue.is_empty_for(preference) };
        if none_waits {
            self.service.begins_to_wait(now);
        }
    }

    fn detector(&mut self, priority: Priority, preference: &MemberPreference) -> &mut OverloadDetector {
        let detectors = if preference.bound.is_some() { &mut self.bound } else { &mut self.detectors };
        &mut detectors[priority.index()]
    }

    /// A request got a slot.
    pub fn granted(&mut self, now: Instant) {
        self.last_grant = Some(now);
    }

    /// A waiting request got a slot: records its wait for its class. Returns whether an overload begins.
    pub fn served<E>(
        &mut self,
        pool: &PoolView<E>,
        place: QueuePosition,
        span: QueueSpan,
        now: Instant,
    ) -> bool {
        self.service.takes_turn(now);
        if place.returns() || pool.roster.settings().policy == Policy::Fifo {
            return false;
        }
        let Some(pace) = self.pace(pool.roster) else { return false };
        // Zero: the time was not known yet when the request arrived.
        let time = if span.work.time.is_zero() { self.time_of(span.work.kind) } else { span.work.time };
        let served = ServedWait {
            work: time,
            waited: now.saturating_duration_since(span.since),
            time_limit: span.time_limit(),
        };
        self.detector(place.priority, &span.preference).served(served, &pace, now)
    }

    /// A request of this kind held its slot for this time.
    pub fn observe(&mut self, kind: Option<WorkKind>, hold: Duration) {
        self.service.observe(hold);
        if let Some(kind) = kind {
            self.kinds.observe(kind, hold);
        }
    }

    /// How long a request of this kind is expected to hold its slot.
    pub fn time_of(&self, kind: Option<WorkKind>) -> Duration {
        kind.and_then(|kind| self.kinds.mean(kind)).or_else(|| self.mean_time()).unwrap_or_default()
    }

    /// How long requests hold their slots on average. `None`: too few are known.
    pub fn mean_time(&self) -> Option<Duration> {
        self.service.mean()
    }

    /// How many requests the pool serves in this time, as measured. 0: nothing is known yet.
    pub fn served_in<E>(&self, roster: &Roster<E>, time: Duration) -> usize {
        self.pace(roster).map_or(0, |pace| pace.served_in(time))
    }

    /// Whether any class is overloaded.
    pub fn has_overload<E>(&self, queue: &Queue<Grant<E>>, now: Instant) -> bool {
        Priority::ALL.into_iter().any(|priority| {
            let class = priority.index();
            self.detectors[class].is_overload(queue.len_of(priority) == 0, now)
                || self.bound[class].is_overload(queue.bound_of(priority) == 0, now)
        })
    }

    /// Starts the measurement of overload again if members have joined or left since the last call: the old figures are those of other
    /// slots.
    fn note_joins<E>(&mut self, roster: &Roster<E>, now: Instant) {
        let members = roster.states().len();
        if std::mem::replace(&mut self.members_judged, members) != members {
            self.interrupt(now);
        }
    }

    /// Starts the measurement of overload again. To be called when slots come free, or soon will, at another rate for a reason other than
    /// load. Examples: the pool is paused, or a member is ejected.
    pub fn interrupt(&mut self, now: Instant) {
        self.detectors.iter_mut().chain(&mut self.bound).for_each(|detector| detector.interrupt(now));
    }

    /// Forgets what the detectors know. To be called when the order of the queue or the rules of refusal change.
    pub fn forget_overload(&mut self) {
        (self.detectors, self.bound) = Default::default();
    }

    fn pace<E>(&self, roster: &Roster<E>) -> Option<Pace> {
        let totals = roster.totals();
        match totals.observed {
            0 => self.service.pace(totals.healthy_slots()),
            _ => self.service.observed_pace(totals.parallel),
        }
    }
}

/// The expected wait of a new request that any member may serve.
fn expected_wait<G>(
    detector: &OverloadDetector,
    queue: &Queue<G>,
    place: QueuePosition,
    span: QueueSpan,
    pace: &Pace,
) -> ExpectedWait {
    let speed = detector.speed(pace, span.since);
    let behind = |work: Duration| work.as_secs_f64() / speed;
    let ahead = queue.work_before(place, span);
    ExpectedWait {
        of_request: behind(ahead.of_request),
        of_first: behind(ahead.of_first),
        of_all: behind(queue.work_of(place.priority)),
    }
}

fn slots<E>(roster: &Roster<E>) -> usize {
    roster.totals().parallel
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::super::claim::Ticket;
    use super::super::span::Work;
    use super::*;

    #[test]
    fn a_request_of_another_class_makes_the_time_between_two_slots_no_shorter() {
        let (mut admission, mut queue) = (AdmissionControl::default(), Queue::<()>::new());
        (0..16).for_each(|_| admission.observe(None, Duration::from_millis(100)));
        let (began, preference) = (Instant::now(), MemberPreference::default());
        admission.arrives(&queue, Priority::Low, &preference, began);
        let ticket = Ticket { number: 1, arrived: began };
        let place = QueuePosition { priority: Priority::Low, ticket, serial: 1 };
        let span = QueueSpan {
            since: began,
            until: None,
            long_lived: None,
            preference,
            for_room: false,
            work: Work::default(),
        };
        queue.push(place, span, Waker::noop().clone());
        for turn in 1..=16 {
            let slot_at = began + turn * Duration::from_millis(10);
            admission.arrives(&queue, Priority::Normal, &preference, slot_at - Duration::from_millis(5));
            admission.service.takes_turn(slot_at);
        }
        let slots = admission.service.observed_pace(1).unwrap().slots().round();
        assert_eq!(slots, 10.0, "one in 10 ms, each held for 100 ms");
    }
}
