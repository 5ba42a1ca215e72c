//! How many requests at once keep an event loop busy without queueing inside Node; knows neither workers nor the pool.
//!
//! A lease that keeps the loop busy for a share b of its time leaves room for 1 / b of them. With u, the share of time that
//! the loop is at work, and c, how many leases it has on average, b = u / c. Two things bend that figure, and the rules
//! below make up for them: a loop that is always at work says nothing of b, because leases queue inside Node and c is
//! whatever we allow; and a loop with little to do is kept busy by other things than requests.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::heartbeat::BEAT;

/// The bounds of what is tried.
const MOST: usize = 64;
/// A loop less busy than this can do much more, at once; nothing is lost if it turns out to be less.
const PLENTY: f64 = 0.5;
/// A loop less busy than this can do more ...
const ROOM: f64 = 0.8;
/// ... and one more busy than this has leases that wait inside Node.
const FULL: f64 = 0.95;
/// Fewer slots only if so much fewer are wanted ...
const MARGIN: f64 = 0.75;
/// ... and fewer leases than this on average say nothing of one.
const TELLING: f64 = 0.2;
/// A round is a small sample, and there is garbage to collect: so many in a row must agree.
const AGREE: i32 = 4;
/// What they agree on is done by such a step.
const STEP: f64 = 1.25;

/// The slots of a pool's workers, from what all of them report.
#[derive(Debug, Default)]
pub(super) struct ConcurrencyTuner(Mutex<Gathering>);

/// The reports of a round that is not over yet.
#[derive(Debug, Default)]
struct Gathering {
    controller: Controller,
    began: Option<Instant>,
    reports: Vec<Round>,
    /// Why there are no reports, if there never will be.
    blind: Option<&'static str>,
}

impl ConcurrencyTuner {
    /// For each worker.
    pub fn slots(&self) -> usize {
        self.lock().controller.slots
    }

    /// Why there are so many.
    pub fn reason(&self) -> String {
        let gathering = self.lock();
        match gathering.blind {
            Some(why) => format!("{why}: {}", in_words(gathering.controller.slots)),
            None => gathering.controller.to_string(),
        }
    }

    /// There will be no reports.
    pub fn is_blind(&self, why: &'static str) {
        self.lock().blind = Some(why);
    }

    /// A worker has reported. When all had the time to, the round is over.
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

/// What all workers of a pool have done in one round, on average of those that had requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    /// The share of time that the event loop was at work.
    pub utilisation: f64,
    /// Leases in use.
    pub leases: f64,
    /// Somebody had to wait for a slot.
    pub short: bool,
}

/// Slots per worker of one pool.
#[derive(Clone, Debug)]
struct Controller {
    slots: usize,
    /// Rounds in a row that wanted more; below zero, fewer.
    trend: i32,
    last: Option<Round>,
}

impl Default for Controller {
    fn default() -> Self {
        Self { slots: 1, trend: 0, last: None }
    }
}

impl Controller {
    /// What a round means for the next one.
    fn observe(&mut self, round: Round) {
        self.last = Some(round);
        let (now, wanted) = (self.slots as f64, round.wanted());
        let is_too_few = round.short && round.utilisation < ROOM && wanted > now;
        let is_too_many = round.utilisation > FULL || (round.leases >= TELLING && wanted < now * MARGIN);
        self.trend = match (is_too_few, is_too_many) {
            (true, _) => self.trend.max(0) + 1,
            (_, true) => self.trend.min(0) - 1,
            _ => 0,
        };
        let next = if is_too_few && round.utilisation < PLENTY {
            wanted.min(2.0 * now)
        } else if self.trend >= AGREE {
            wanted.min((STEP * now).max(now + 1.0))
        } else if self.trend <= -AGREE {
            // A loop that is full wants as many as it has.
            let wanted = if round.utilisation > FULL { 0.0 } else { wanted };
            wanted.max(now / STEP).min(now - 1.0)
        } else {
            return;
        };
        self.slots = (next as usize).clamp(1, MOST);
        // What is far too many takes many steps: the next one needs fewer witnesses.
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

    /// 1 / b.
    fn wanted(self) -> f64 {
        (self.leases / self.utilisation.max(f64::EPSILON)).min(MOST as f64)
    }
}

/// Why there are so many.
impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = in_words(self.slots);
        match self.last {
            None => write!(f, "no reports yet: {slots}"),
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
