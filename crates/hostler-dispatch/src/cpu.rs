//! Divides the CPU time of one member among its requests. Knows neither queue nor processes.
//!
//! The member's clock is read when a request begins and when one ends, but not more often than each [`READ_EVERY`]. What the
//! member has used between two readings is divided among the requests that were under way, by the time for which they were.
//! So the sum of all shares is what the clock shows, and the share of a request that was alone is exact. While the member has no
//! request, others ask for a reading now and then ([`CpuAccount::settle_idle`]).
//!
//! A kernel adds to the CPU time of a thread at each tick, and when the thread stops running. So a clock that is read while the thread runs
//! shows up to a tick (1 to 10 ms) too little. The missing time is charged to the request at once under three conditions: it is less than a
//! tick, the thread was put on a CPU at most once since the last reading, and the thread has not stopped. Then the thread has run all the
//! time. The next readings are reduced by what was charged ahead ([`CpuShares::ahead`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slab::Slab;
use tokio::time::Instant;

use super::cost::{IdlePayer, Payment, SlotCost};

/// The CPU time of a member.
pub trait CpuClock: Send + Sync {
    /// What the member has used so far. `None`: it is gone.
    fn read(&self) -> Option<CpuReading>;

    /// Whether its main thread waits for events, so that the last reading was complete.
    fn waits(&self) -> bool;
}

/// What the clock of a member shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuReading {
    /// The CPU time of all its threads.
    pub all: Duration,
    /// The CPU time of its main thread.
    pub main: Duration,
    /// How long its main thread has waited for a CPU.
    pub delayed: Duration,
    /// How many times its main thread was put on a CPU.
    pub turns: u64,
}

/// The clock is read at most this often: a reading takes a microsecond or two.
const READ_EVERY: Duration = Duration::from_micros(500);
/// CPU time that the member uses without a request is charged to the last request, if it is read within this time after the end of that
/// request ...
const AFTER_ANSWER: Duration = Duration::from_millis(20);
/// ... and if it is read later, at most this much of it.
const MOST_AFTERWORK: Duration = Duration::from_millis(1);
/// If less than this is missing from the clock, nothing is charged ahead, and [`CpuClock::waits`] is not asked.
const LEAST_AHEAD: Duration = Duration::from_micros(100);
/// A thread that runs is not further ahead of its clock than this: the tick of a kernel with `CONFIG_HZ=100`. If more is missing, the
/// thread was running at the last reading and has slept since.
const MOST_AHEAD: Duration = Duration::from_millis(10);
/// The weight of the newest reading in the running average [`CpuShares::rate`].
const NEWEST: f64 = 0.125;

/// The CPU time of one member, and the requests that share it.
pub(super) struct CpuAccount {
    clock: Arc<dyn CpuClock>,
    /// Receives the CPU time that belongs to no request. `None`: that time is not charged.
    idle: Option<Arc<dyn IdlePayer>>,
    shares: Mutex<CpuShares>,
}

struct CpuShares {
    /// When the clock was last read.
    at: Instant,
    /// What it showed. `None`: the member is gone.
    last: Option<CpuReading>,
    /// What was paid beyond the last reading.
    ahead: Duration,
    /// A running average: CPU seconds for each second in which a request was under way. At most 1.
    rate: f64,
    under_way: Slab<UnderWay>,
    /// Whose request ended last, and when.
    ended: Option<(Payment, Instant)>,
}

#[derive(Clone, Copy)]
struct UnderWay {
    since: Instant,
    share: Duration,
}

/// CPU time that was used while no request was under way.
#[derive(Default)]
struct Between {
    /// The part that belongs to the last request, and the payer of that request.
    after: Option<(Payment, Duration)>,
    unowned: Duration,
}

impl CpuAccount {
    /// An account that begins with the present reading. `None`: the clock shows nothing, because the member is gone. `idle` receives the
    /// CPU time that belongs to no request.
    pub fn new(clock: Arc<dyn CpuClock>, idle: Option<Arc<dyn IdlePayer>>, now: Instant) -> Option<Self> {
        let reading = clock.read()?;
        Some(Self { clock, idle, shares: Mutex::new(CpuShares::new(reading, now)) })
    }

    /// A request begins. Returns its key for [`Self::end`].
    pub fn begin(&self, since: Instant) -> usize {
        let mut shares = self.lock();
        let between = self.between(&mut shares, since);
        let key = shares.under_way.insert(UnderWay { since, share: Duration::ZERO });
        drop(shares);
        self.pay(between);
        key
    }

    /// Settles what the member has used so far without a request. Otherwise all of that would show at its next request, or never.
    pub fn settle_idle(&self, now: Instant) {
        let between = self.between(&mut self.lock(), now);
        self.pay(between);
    }

    /// What the member has used while no request was under way. The clock is read for that.
    fn between(&self, shares: &mut CpuShares, now: Instant) -> Between {
        if shares.under_way.is_empty() && shares.is_due(now) {
            shares.rested(now, self.clock.read())
        } else {
            Between::default()
        }
    }

    fn pay(&self, between: Between) {
        if let Some((last, cpu)) = between.after {
            last.pay(SlotCost { hold: Duration::ZERO, cpu: Some(cpu) });
        }
        if let Some(idle) = self.idle.as_ref().filter(|_| !between.unowned.is_zero()) {
            idle.pay_unowned(between.unowned);
        }
    }

    /// A request ends. Returns its CPU time.
    pub fn end(&self, key: usize, now: Instant, payment: &Payment) -> Duration {
        let mut shares = self.lock();
        if shares.is_due(now) {
            let reading = self.clock.read();
            shares.worked(key, now, reading, || self.clock.waits());
        } else {
            shares.estimate(key, now);
        }
        let ended = shares.under_way.try_remove(key);
        if shares.under_way.is_empty() {
            match &mut shares.ended {
                // Mostly requests of one payer follow each other. All threads count the references to it, so it is not cloned for each.
                Some((last, at)) if last.is_same(payment) => *at = now,
                other => *other = Some((payment.clone(), now)),
            }
        }
        ended.map_or(Duration::ZERO, |ended| ended.share)
    }

    /// The clock of the member.
    pub fn clock(&self) -> &Arc<dyn CpuClock> {
        &self.clock
    }

    fn lock(&self) -> MutexGuard<'_, CpuShares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CpuShares {
    fn new(reading: CpuReading, now: Instant) -> Self {
        let (under_way, ended) = (Slab::new(), None);
        Self { at: now, last: Some(reading), ahead: Duration::ZERO, rate: 1.0, under_way, ended }
    }

    fn is_due(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= READ_EVERY
    }

    /// The clock was read while no request was under way.
    fn rested(&mut self, now: Instant, reading: Option<CpuReading>) -> Between {
        let (before, new) = (std::mem::replace(&mut self.last, reading), reading);
        self.at = now;
        let (Some(before), Some(new)) = (before, new) else { return Between::default() };
        let used = self.pay_back(new.all.saturating_sub(before.all));
        let is_soon = |ended: &Instant| now.saturating_duration_since(*ended) <= AFTER_ANSWER;
        let (after, last) = match &self.ended {
            Some((last, ended)) if is_soon(ended) => (used, Some(last.clone())),
            Some(_) => (used.min(MOST_AFTERWORK), self.ended.take().map(|(last, _)| last)),
            None => (Duration::ZERO, None),
        };
        Between { after: last.filter(|_| !after.is_zero()).map(|last| (last, after)), unowned: used - after }
    }

    /// The clock was read at the end of a request. `waits`: the main thread waits for events.
    fn worked(
        &mut self,
        key: usize,
        now: Instant,
        reading: Option<CpuReading>,
        waits: impl FnOnce() -> bool,
    ) {
        let began = self.at;
        let under_way = |request: &UnderWay| now.saturating_duration_since(request.since.max(began));
        let held: Duration = self.under_way.iter().map(|(_, request)| under_way(request)).sum();
        let owed = self.ahead;
        let used = match (self.last, reading) {
            (Some(before), Some(new)) => self.pay_back(new.all.saturating_sub(before.all)),
            // A member that is gone shows nothing any more. It counts as having computed until its end.
            _ => {
                self.ahead = Duration::ZERO;
                now.saturating_duration_since(began)
            }
        };
        if !held.is_zero() {
            let rate = used.as_secs_f64() / held.as_secs_f64();
            self.under_way.iter_mut().for_each(|(_, request)| {
                request.share += under_way(request).mul_f64(rate);
            });
            self.rate += NEWEST * (rate.min(1.0) - self.rate);
        }
        if let (Some(before), Some(new), 1) = (self.last, reading, self.under_way.len()) {
            self.run_ahead(key, (began, now), (before, new), owed, waits);
        }
        (self.at, self.last) = (now, reading);
    }

    /// Charges the only request of the member for what the clock does not show yet, if the main thread has run since the last reading.
    fn run_ahead(
        &mut self,
        key: usize,
        (began, now): (Instant, Instant),
        (before, new): (CpuReading, CpuReading),
        owed: Duration,
        waits: impl FnOnce() -> bool,
    ) {
        let Some(request) = self.under_way.get_mut(key) else { return };
        let ran = now
            .saturating_duration_since(request.since.max(began))
            .saturating_sub(new.delayed.saturating_sub(before.delayed));
        let shown = new.main.saturating_sub(before.main).saturating_sub(owed);
        let missing = ran.saturating_sub(shown);
        let may_be_a_tick = (LEAST_AHEAD..=MOST_AHEAD).contains(&missing);
        let turns = new.turns.saturating_sub(before.turns);
        if may_be_a_tick && turns <= 1 && !waits() {
            // If the thread was put on a CPU, it was off the CPU before, and its clock was complete then. So time that is still charged
            // ahead was never used, and is taken off the missing time.
            let most = if turns == 0 { MOST_AHEAD } else { missing };
            let missing = missing.min(most.saturating_sub(self.ahead));
            request.share += missing;
            self.ahead += missing;
        }
    }

    /// A request ends so soon after a reading that the clock is not read again: the request is charged by the usual rate. In all, no more
    /// is charged ahead than the time since the reading. Otherwise many requests that use less than usual would be charged for more and
    /// more time that the member has not used.
    fn estimate(&mut self, key: usize, now: Instant) {
        let (at, rate) = (self.at, self.rate);
        let most = now.saturating_duration_since(at).saturating_sub(self.ahead);
        let Some(request) = self.under_way.get_mut(key) else { return };
        let held = now.saturating_duration_since(request.since.max(at));
        let cost = held.mul_f64(rate).min(most);
        request.share += cost;
        self.ahead += cost;
    }

    /// Takes what was charged ahead off this CPU time. Returns the rest.
    fn pay_back(&mut self, used: Duration) -> Duration {
        let left = used.saturating_sub(self.ahead);
        self.ahead = self.ahead.saturating_sub(used);
        left
    }
}

#[cfg(test)]
mod tests;
