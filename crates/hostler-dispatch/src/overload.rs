//! Tells whether more work comes to one class than the pool can do, and which requests it then admits. Knows neither queue nor
//! members.
//!
//! Work is the time for which requests are expected to hold a slot. A pool is overloaded if requests cannot be served before
//! their deadlines. That is certain when the last request in line would get its slot too late. It is foreseen when more work comes
//! than the slots can do, for longer than a burst, and requests would soon be too late if that went on. The order of the requests
//! never changes.

use std::time::Duration;

use tokio::time::Instant;

use super::service::Pace;

/// More work must come than the slots can do, by this many standard deviations of what comes by chance.
const DEVIATIONS: f64 = 5.0;
/// A peak that is shorter than this part (1/5) of the time that a request can wait is a burst.
const SHARE_OF_BURST: f64 = 5.0;
/// An overload is foreseen if requests will be too late within this many time limits.
const FORESEEN_TIME_LIMITS: f64 = 2.0;
/// The growth of a queue is measured over at least this part (1/10) of the time that a request can wait, twice.
const SHARE_OF_MARK: f64 = 10.0;
/// A request that gets its slot after this part of its time limit or later was almost too late. If that goes on, the estimates of waits are
/// too low.
const SHARE_OF_LATE: f64 = 0.875;
/// An overload ends after this time without a refusal, when no request waits.
const CALM: Duration = Duration::from_millis(500);
/// An overload lasts for at most this many time limits. Then it must be detected again. Clients that come back as soon as they are refused
/// look like new ones. Without this limit they would be refused for ever, although all of them could wait for their turn.
const LONGEST_TIME_LIMITS: u32 = 16;
/// What was measured of the speed is halved when it is older than this many long waits (`Pace::long`).
const SPEED_TARGETS: f64 = 8.0;

/// What is known about the work of one class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OverloadDetector {
    done: Option<WorkDone>,
    standing: Option<StandingQueue>,
    overload: Option<Overload>,
    interrupted: Option<Interruptions>,
    /// How long the last request that came could wait.
    time_limit: Duration,
    /// Since when each request that got a slot was almost too late.
    late_since: Option<Instant>,
}

/// The times at which slots did not come free for a reason other than load: one, or several in short intervals.
#[derive(Clone, Copy, Debug)]
struct Interruptions {
    first: Instant,
    last: Instant,
}

/// The work for which slots were given since the class waits, in seconds.
#[derive(Clone, Copy, Debug)]
struct WorkDone {
    since: Instant,
    work: f64,
}

/// The time since which each request that came found a wait above the target.
#[derive(Clone, Copy, Debug)]
struct StandingQueue {
    since: Instant,
    work: WorkCount,
    /// What it was at three earlier times, the oldest first. Its growth is measured from the first to the second, and from the second to
    /// now. Requests that come at once make it grow in one of the two only.
    marks: [WorkMark; 3],
}

/// Seconds of work that have come, and for which slots were given, at the usual speed of the pool. A pool that is slow for a moment does
/// not get more work.
#[derive(Clone, Copy, Debug, Default)]
struct WorkCount {
    come: f64,
    given: f64,
}

#[derive(Clone, Copy, Debug)]
struct WorkMark {
    at: Instant,
    work: WorkCount,
}

/// By how much more work has come than the slots can do, in seconds of the pool, and in which time.
#[derive(Clone, Copy, Debug)]
struct QueueGrowth {
    excess: f64,
    time: f64,
}

#[derive(Clone, Copy, Debug)]
struct Overload {
    refused: Instant,
    until: Instant,
}

/// A request that is about to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewWait {
    /// How long it will hold its slot.
    pub work: Duration,
    pub wait: ExpectedWait,
    /// How long it can wait.
    pub time_limit: Duration,
}

/// How long a request will wait for its slot, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedWait {
    pub of_request: f64,
    /// The same if no other request of its key waited. In a pool without shares there is no difference.
    pub of_first: f64,
    /// The same behind all that wait. In a fair pool that is longer.
    pub of_all: f64,
}

/// A waiting request that got a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServedWait {
    pub work: Duration,
    pub waited: Duration,
    pub time_limit: Option<Duration>,
}

/// What becomes of a request that is about to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Judgement {
    pub is_refused: bool,
    pub overload_begins: bool,
}

impl OverloadDetector {
    /// Seconds of work that are done in a second. At first that is the number of slots.
    pub fn speed(&self, pace: &Pace, now: Instant) -> f64 {
        self.done.map_or(pace.slots(), |done| done.speed(pace, now))
    }

    pub fn arrives(&mut self, arrival: NewWait, pace: &Pace, now: Instant) -> Judgement {
        self.done.get_or_insert(WorkDone { since: now, work: 0.0 });
        let NewWait { work, wait, time_limit } = arrival;
        let limit = time_limit.as_secs_f64();
        let target = pace.target(limit);
        let is_long = wait.of_first > target || wait.of_request > pace.target_of_key(limit);
        self.time_limit = time_limit;
        if self.overload.is_some_and(|overload| overload.until <= now) {
            *self = Self { done: self.done, interrupted: self.interrupted, time_limit, ..Self::default() };
        }
        if let Some(overload) = &mut self.overload {
            if is_long {
                overload.refused = now;
            }
            return Judgement { is_refused: is_long, overload_begins: false };
        }
        if wait.of_all <= target {
            self.standing = None;
            return Judgement::default();
        }
        let standing = self.standing.get_or_insert_with(|| StandingQueue::new(now));
        standing.comes(pace.usual(work.as_secs_f64()), limit, now);
        // A measured speed may be that of other kinds of requests. So it proves only after the time of a burst that a request will be too
        // late.
        let is_sure = pace.is_certain() || standing.stood(now) >= limit / SHARE_OF_BURST;
        let is_too_late = wait.of_request > limit && is_sure;
        let is_overload = is_too_late || standing.is_overload(wait.of_all, limit, pace, now);
        let overload_begins = is_overload && self.begin(time_limit, now);
        Judgement { is_refused: overload_begins && is_long, overload_begins }
    }

    /// Returns true if this begins an overload.
    pub fn served(&mut self, served: ServedWait, pace: &Pace, now: Instant) -> bool {
        let work = served.work.as_secs_f64();
        if let Some(done) = &mut self.done {
            done.work += work;
            done.forget(pace, now);
        }
        if let Some(standing) = &mut self.standing {
            standing.work.given += pace.usual(work);
        }
        let is_late = |limit: &Duration| served.waited.as_secs_f64() >= limit.as_secs_f64() * SHARE_OF_LATE;
        let Some(time_limit) = served.time_limit.filter(is_late).filter(|_| self.overload.is_none()) else {
            self.late_since = None;
            return false;
        };
        let late_since = *self.late_since.get_or_insert(now);
        seconds(late_since, now) >= time_limit.as_secs_f64() / SHARE_OF_BURST && self.begin(time_limit, now)
    }

    fn begin(&mut self, time_limit: Duration, now: Instant) -> bool {
        if self.interrupted.is_some_and(|interrupted| interrupted.hold_back(time_limit, now)) {
            return false;
        }
        self.standing = None;
        self.overload = Some(Overload { refused: now, until: now + time_limit * LONGEST_TIME_LIMITS });
        true
    }

    /// Starts the measurement again, because slots come free, or soon will, at another rate for a reason other than load. An overload that
    /// has begun goes on.
    pub fn interrupt(&mut self, now: Instant) {
        let Self { overload, late_since, time_limit, .. } = *self;
        let series = self.interrupted.filter(|before| !before.are_over(time_limit, now));
        let first = series.map_or(now, |before| before.first);
        let interrupted = Some(Interruptions { first, last: now });
        *self = Self { overload, late_since, time_limit, interrupted, ..Self::default() };
    }

    /// A request arrives, and no other of this class waits.
    pub fn found_empty(&mut self, now: Instant) {
        (self.standing, self.done, self.late_since) = (None, None, None);
        // The requests that wait from now on have not waited during the earlier ones.
        self.interrupted = self.interrupted.map(|before| Interruptions { first: before.last, ..before });
        if !self.is_overload(true, now) {
            self.overload = None;
        }
    }

    /// Whether requests are refused that would wait longer than the target.
    pub fn is_overload(&self, empty: bool, now: Instant) -> bool {
        self.overload
            .filter(|overload| now < overload.until)
            .is_some_and(|overload| !empty || now.saturating_duration_since(overload.refused) < CALM)
    }
}

impl WorkDone {
    fn speed(&self, pace: &Pace, now: Instant) -> f64 {
        let (elapsed, known) = (seconds(self.since, now), pace.long());
        (self.work + pace.slots() * known) / (elapsed + known)
    }

    /// Halves what was measured if it is old.
    fn forget(&mut self, pace: &Pace, now: Instant) {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed.as_secs_f64() > pace.long() * SPEED_TARGETS {
            self.since = now - elapsed / 2;
            self.work /= 2.0;
        }
    }
}

impl Interruptions {
    /// Whether no overload can begin because of these interruptions. If they have gone on for longer than a request can wait, an overload
    /// can begin: more work comes than the pool can do with them. Otherwise members that die again and again would prevent every overload.
    fn hold_back(self, time_limit: Duration, now: Instant) -> bool {
        !self.are_over(time_limit, now) && now.saturating_duration_since(self.first) < time_limit
    }

    fn are_over(self, time_limit: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= time_limit.div_f64(SHARE_OF_BURST)
    }
}

impl StandingQueue {
    fn new(now: Instant) -> Self {
        let start = WorkMark { at: now, work: WorkCount::default() };
        Self { since: now, work: start.work, marks: [start; 3] }
    }

    fn comes(&mut self, work: f64, time_limit: f64, now: Instant) {
        self.work.come += work;
        let [_, second, third] = self.marks;
        let step = seconds(self.since, third.at).clamp(time_limit / SHARE_OF_MARK, time_limit);
        if seconds(third.at, now) >= step {
            self.marks = [second, third, WorkMark { at: now, work: self.work }];
        }
    }

    /// How long it has stood, in seconds.
    fn stood(&self, now: Instant) -> f64 {
        seconds(self.since, now)
    }

    /// Whether requests would be too late if the queue went on to grow. `wait` is that of a request behind all others.
    fn is_overload(&self, wait: f64, time_limit: f64, pace: &Pace, now: Instant) -> bool {
        let [first, second, _] = self.marks;
        if second.at == self.since {
            return false;
        }
        let now = WorkMark { at: now, work: self.work };
        let (earlier, lately) =
            (QueueGrowth::between(first, second, pace), QueueGrowth::between(second, now, pace));
        let growth = earlier.rate().min(lately.rate());
        wait + growth * time_limit * FORESEEN_TIME_LIMITS >= time_limit
            && QueueGrowth::between(first, now, pace).is_more_than_chance(pace)
    }
}

impl QueueGrowth {
    fn between(from: WorkMark, to: WorkMark, pace: &Pace) -> Self {
        let time = seconds(from.at, to.at);
        let possible = (to.work.given - from.work.given).max(time * pace.slots());
        Self { excess: (to.work.come - from.work.come - possible) / pace.slots(), time }
    }

    /// Seconds of wait for each second.
    fn rate(self) -> f64 {
        self.excess / self.time
    }

    fn is_more_than_chance(self, pace: &Pace) -> bool {
        self.excess >= DEVIATIONS * pace.deviation(self.time)
    }
}

fn seconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64()
}
