//! Computes how many concurrent requests keep an event loop busy without a queue inside Node. Knows neither workers nor
//! the pool.
//!
//! If one lease keeps the loop busy for a share b of its time, there is room for 1 / b leases. With u, the share of time
//! that the loop works, and c, the average number of leases, b = u / c. Two effects distort this figure, and the rules
//! below correct for them. A loop that always works says nothing about b, because leases queue inside Node and c is
//! whatever we allow. A loop with little work is busy with other things than requests.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often a worker is asked for the load of its event loop.
pub(super) const BEAT: Duration = Duration::from_millis(500);

/// The number of slots before the first reports. They need a second or two. With one slot, an app that waits for a database would serve a few
/// requests in that time. With these, one that computes has as many requests at once as behind another proxy, until the reports show it.
const FIRST: usize = 8;
/// The most slots that are tried.
const MOST: usize = 1000;
/// A loop less busy than this can do much more, so the slots grow at once. Too many slots do no harm here.
const PLENTY: f64 = 0.5;
/// The factor by which they grow then, at most.
const LEAP: f64 = 4.0;
/// A loop less busy than this can do more ...
const ROOM: f64 = 0.8;
/// ... and in a loop busier than this, leases wait inside Node.
const FULL: f64 = 0.95;
/// The slots shrink only if the wanted number is below this share of the current one ...
const MARGIN: f64 = 0.75;
/// ... and fewer leases than this on average say nothing about one lease.
const LEAST_LEASES: f64 = 0.2;
/// The slots of a worker that nothing measures: as many as those of a member that another program serves.
const UNMEASURED: usize = 64;
/// One round is a small sample and may contain a garbage collection. So this many rounds in a row must agree.
const AGREE: i32 = 4;
/// The factor by which the slots then change.
const STEP: f64 = 1.25;

/// The number of slots of a pool's workers, computed from the reports of all of them.
#[derive(Debug, Default)]
pub(super) struct ConcurrencyTuner(Mutex<Gathering>);

/// The reports of the current round.
#[derive(Debug, Default)]
struct Gathering {
    controller: Controller,
    began: Option<Instant>,
    reports: Vec<Round>,
    /// Why there will never be reports, if so.
    blind: Option<&'static str>,
}

impl ConcurrencyTuner {
    /// The number of slots for each worker.
    pub fn slots(&self) -> usize {
        let gathering = self.lock();
        if gathering.blind.is_some() { UNMEASURED } else { gathering.controller.slots }
    }

    /// Why there are this many slots, or `most`, as text for the status.
    pub fn reason(&self, most: usize) -> String {
        let gathering = self.lock();
        match gathering.blind {
            Some(why) => format!("{why}: {}", in_words(UNMEASURED.min(most))),
            None => gathering.controller.to_string(),
        }
    }

    /// Whether at least one round of reports is complete.
    pub fn has_reports(&self) -> bool {
        self.lock().controller.last.is_some()
    }

    /// Why there are no reports, if so.
    pub fn blind(&self) -> Option<&'static str> {
        self.lock().blind
    }

    /// Notes that there will be no reports, and why.
    pub fn is_blind(&self, why: &'static str) {
        self.lock().blind = Some(why);
    }

    /// Notes that the event loops can be measured after all.
    pub fn sees(&self) {
        self.lock().blind = None;
    }

    /// Adds the report of one worker. When all workers have had the time to report, the round is over.
    pub fn report(&self, round: Round, now: Instant) {
        let mut gathering = self.lock();
        gathering.reports.push(round);
        gathering.blind = None;
        let began = *gathering.began.get_or_insert(now);
        if now.saturating_duration_since(began) >= BEAT
            && let Some(round) = Round::mean(&gathering.reports)
        {
            gathering.controller.observe(round);
            gathering.reports.clear();
            gathering.began = Some(now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Gathering> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all workers of a pool did in one round, as the average of those that had requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    /// The share of time that the event loop worked.
    pub utilisation: f64,
    /// The number of leases in use.
    pub leases: f64,
    /// A request had to wait for a slot.
    pub short: bool,
}

/// Computes the slots per worker of one pool.
#[derive(Clone, Debug)]
struct Controller {
    slots: usize,
    /// How many rounds in a row wanted more slots. Negative: how many wanted fewer.
    trend: i32,
    last: Option<Round>,
}

impl Default for Controller {
    fn default() -> Self {
        Self { slots: FIRST, trend: 0, last: None }
    }
}

impl Controller {
    /// Takes in one round.
    fn observe(&mut self, round: Round) {
        self.last = Some(round);
        let (now, wanted) = (self.slots as f64, round.wanted());
        let is_too_few = round.short && round.utilisation < ROOM && wanted > now;
        let is_too_many = round.utilisation > FULL || (round.leases >= LEAST_LEASES && wanted < now * MARGIN);
        self.trend = match (is_too_few, is_too_many) {
            (true, _) => self.trend.max(0) + 1,
            (_, true) => self.trend.min(0) - 1,
            _ => 0,
        };
        let next = if is_too_few && round.utilisation < PLENTY {
            wanted.min(LEAP * now)
        } else if self.trend >= AGREE {
            wanted.min((STEP * now).max(now + 1.0))
        } else if self.trend <= -AGREE {
            // In a full loop, `wanted` is only the number of leases that it has, so it is no measure.
            let wanted = if round.utilisation > FULL { 0.0 } else { wanted };
            wanted.max(now / STEP).min(now - 1.0)
        } else {
            return;
        };
        self.slots = (next as usize).clamp(1, MOST);
        // Far too many slots need many steps down. After the first step, fewer rounds must agree.
        self.trend = self.trend.min(0) / 2;
    }
}

impl Round {
    fn mean(rounds: &[Self]) -> Option<Self> {
        let share = |figure: fn(&Self) -> f64| rounds.iter().map(figure).sum::<f64>() / rounds.len() as f64;
        (!rounds.is_empty()).then(|| Self {
            utilisation: share(|round| round.utilisation),
            leases: share(|round| round.leases),
            short: rounds.iter().any(|round| round.short),
        })
    }

    /// The wanted number of slots, 1 / b.
    fn wanted(self) -> f64 {
        (self.leases / self.utilisation.max(f64::EPSILON)).min(MOST as f64)
    }
}

/// Why there are this many slots.
impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = in_words(self.slots);
        match self.last {
            None => write!(f, "the worker has not reported yet: {slots}"),
            Some(Round { utilisation, leases, .. }) => {
                write!(f, "event loop {:.0} % busy at {leases:.1} requests: {slots}", utilisation * 100.0)
            }
        }
    }
}

fn in_words(slots: usize) -> String {
    if slots == 1 { "1 slot".to_owned() } else { format!("{slots} slots") }
}

#[cfg(test)]
mod tests;
