//! How many workers a pool should have, as a pure function of measurements: no clock, no process and no pool.
//!
//! ```text
//! grows    requests wait 100 ms, or the workers are 80 % busy, for half a second: half as many again, one at least
//!          not while the queue drains
//!          held: the CPU is full, memory is short, or the last growth did not help
//! shrinks  one worker less would be at most 40 % busy, for `shrink_after`: by one worker
//!          no request for `shrink_after`: to the least number
//! ```
//!
//! The two thresholds are so far apart that a pool which has just grown by one does not shrink under the same load.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// A pool whose oldest request has waited this long is short of workers ...
const LONG_WAIT: Duration = Duration::from_millis(100);
/// ... and so is one whose workers are busy for this share of the time ...
const BUSY: f64 = 0.8;
/// ... if this lasts for so long.
const GROW_AFTER: Duration = Duration::from_millis(500);
/// A queue that has become shorter by this factor drains, so the workers are enough.
const DRAINS: f64 = 0.9;
/// The effect of a new worker shows after this time.
const SETTLES: Duration = Duration::from_secs(2);
/// A growth has helped if the pool serves this share of the possible additional requests.
const LEAST_HELP: f64 = 0.25;
/// After a growth that did not help, the pool does not grow again for this time. If the pool was not short of workers for this time after a
/// growth, the growth has helped.
const HELD: Duration = Duration::from_secs(60);
/// With less free CPU than this, in cores, another worker would only take it from the others.
const LEAST_CPU: f64 = 0.25;
/// One worker less must not be busier than this.
const CALM: f64 = 0.4;
/// A pool whose boots fail sleeps only after this time without a request, so that requests do not cause a storm of boots.
const FAILED_SLEEPS_AFTER: Duration = Duration::from_secs(60);
/// The averages forget within about this many seconds.
const MEMORY_SECONDS: f64 = 1.0;

/// The limits that the operator has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalingLimits {
    pub least: usize,
    pub most: usize,
    pub shrink_after: Duration,
}

/// What was measured at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingLook {
    /// How many of the workers are ready.
    pub ready: usize,
    /// How many are out of rotation. An operator decides when they come back, so the pool must do without them.
    pub aside: usize,
    /// No worker is ready, and boots have failed.
    pub failing: bool,
    /// How many are not ready because their boots fail ...
    pub failed: usize,
    /// ... and how many of these have the highest numbers, so that they would go first.
    pub failed_last: usize,
    /// The pool restarts. Meanwhile its number of workers does not change.
    pub restarting: bool,
    /// How long the oldest of those requests has waited that another worker could serve.
    pub wait: Duration,
    /// There is a request or a tunnel, or there was one since the last look.
    pub used: bool,
    /// How many workers the load keeps busy. Example: 1.5 for two workers that are 75 % busy.
    pub load: f64,
    /// How many requests have got a slot so far.
    pub granted: u64,
    /// The worker that the pool would stop first has no request and no tunnel.
    pub last_is_idle: bool,
    /// How much CPU is free, in cores.
    pub free_cpu: f64,
    /// Processes wait for memory.
    pub memory_is_short: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalingVerdict {
    Stay,
    Grow { to: usize, why: ScalingReason },
    Shrink { to: usize, why: ScalingReason },
}

/// Why a pool grows, shrinks, or does not grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalingReason {
    /// A request came to a pool without workers.
    Woken,
    Waits(Duration),
    Busy(f64),
    Idle(Duration),
    Calm(f64),
    /// Another pool needs the memory.
    Evicted,
    /// The configuration has changed.
    Configured,
    CpuIsFull,
    MemoryIsShort,
    NoRoom,
    NoHelp,
}

/// The state of the decision.
#[derive(Clone, Debug)]
pub struct ScalingPolicy {
    load: f64,
    /// Requests a second that get a slot.
    rate: f64,
    last: Option<(Instant, u64)>,
    short: Option<Shortage>,
    calm_since: Option<Instant>,
    /// Since when all workers are ready, or out of rotation.
    complete_since: Option<Instant>,
    used_at: Instant,
    growth: Option<Growth>,
    held_until: Option<Instant>,
    held: Option<ScalingReason>,
}

/// The pool is short of workers, although none of them boots.
#[derive(Clone, Copy, Debug)]
struct Shortage {
    since: Instant,
    /// How long the oldest request had waited then.
    wait: Duration,
}

/// The last growth, until it is known whether it has helped.
#[derive(Clone, Copy, Debug)]
struct Growth {
    rate: f64,
    factor: f64,
}

impl ScalingPolicy {
    pub fn new(now: Instant) -> Self {
        Self {
            load: 0.0,
            rate: 0.0,
            last: None,
            short: None,
            calm_since: None,
            complete_since: None,
            used_at: now,
            growth: None,
            held_until: None,
            held: None,
        }
    }

    /// Takes a look at a pool that should have `count` workers, and decides how many it should have from now on.
    pub fn step(
        &mut self,
        limits: ScalingLimits,
        count: usize,
        look: ScalingLook,
        now: Instant,
    ) -> ScalingVerdict {
        self.watch(look, now);
        if look.restarting {
            return ScalingVerdict::Stay;
        }
        let is_complete = count > 0 && look.ready + look.aside >= count;
        self.complete_since = if is_complete { self.complete_since.or(Some(now)) } else { None };
        self.held = None;
        let shortage = self.lasting_shortage(look, now);
        if self.short.is_none() && self.complete_since.is_some_and(|since| now - since >= HELD) {
            self.growth = None;
        }
        let verdict = match shortage {
            Some(why) if count < limits.most => self.grow(limits, count, look, why, now),
            _ => self.shrink(limits, count, look, now),
        };
        if matches!(verdict, ScalingVerdict::Shrink { .. }) {
            // Fewer workers serve less, so the rate at the growth is no measure for the next one.
            self.growth = None;
        }
        verdict
    }

    /// Takes in one look, whatever it is for: a request that has come and gone since the look before shows only in this one.
    fn watch(&mut self, look: ScalingLook, now: Instant) {
        self.average(look, now);
        if look.used {
            self.used_at = now;
        }
    }

    /// Why all workers together have been too few for long enough.
    fn lasting_shortage(&mut self, look: ScalingLook, now: Instant) -> Option<ScalingReason> {
        let (Some(why), Some(complete_since)) = (self.shortage(look), self.complete_since) else {
            self.short = None;
            return None;
        };
        let short = *self.short.get_or_insert(Shortage { since: now, wait: look.wait });
        let settles = (complete_since + SETTLES).max(short.since + GROW_AFTER);
        if now < settles {
            return None;
        }
        if look.wait < short.wait.mul_f64(DRAINS) {
            self.short = Some(Shortage { since: now, wait: look.wait });
            return None;
        }
        Some(why)
    }

    /// The pool wakes up because of a request.
    pub fn woken(&mut self, now: Instant) {
        *self = Self { held_until: self.held_until, ..Self::new(now) };
    }

    /// What to do when another pool needs the memory: shrink to the least number of workers if this pool has no request, otherwise stay.
    pub fn evicted(
        &mut self,
        limits: ScalingLimits,
        count: usize,
        look: ScalingLook,
        now: Instant,
    ) -> ScalingVerdict {
        self.watch(look, now);
        if self.idle_since(limits, count, look).is_none() {
            return ScalingVerdict::Stay;
        }
        self.growth = None;
        ScalingVerdict::Shrink { to: limits.least, why: ScalingReason::Evicted }
    }

    /// Since when the pool has had no request, if it has workers that it can give away.
    pub fn idle_since(&self, limits: ScalingLimits, count: usize, look: ScalingLook) -> Option<Instant> {
        // Of a pool with a drained worker, that one could be left alone, and so could one whose boots fail.
        let could_lose_all = look.aside > 0 || (limits.least > 0 && look.failed > look.failed_last);
        let needs_all = look.used || !look.last_is_idle || could_lose_all || look.restarting;
        (!needs_all && count > limits.least).then_some(self.used_at)
    }

    /// Why the pool does not grow although it is short of workers.
    pub fn held(&self) -> Option<ScalingReason> {
        self.held
    }

    /// The pool grows, perhaps by fewer workers than were wanted.
    pub fn grows(&mut self, count: usize, to: usize) {
        if let Some(growth) = &mut self.growth {
            growth.factor = to as f64 / count as f64;
        }
    }

    /// There is no room in memory for the growth.
    pub fn hold(&mut self, why: ScalingReason) {
        (self.held, self.growth) = (Some(why), None);
    }

    fn average(&mut self, look: ScalingLook, now: Instant) {
        if let Some((at, granted)) = self.last
            && now > at
        {
            let span = (now - at).as_secs_f64();
            let weight = 1.0 - (-span / MEMORY_SECONDS).exp();
            self.load += weight * (look.load - self.load);
            self.rate += weight * (look.granted.saturating_sub(granted) as f64 / span - self.rate);
        }
        self.last = Some((now, look.granted));
    }

    /// Why the pool is short of workers.
    fn shortage(&self, look: ScalingLook) -> Option<ScalingReason> {
        let busy = self.load / look.ready.max(1) as f64;
        if look.wait >= LONG_WAIT {
            Some(ScalingReason::Waits(look.wait))
        } else {
            (busy >= BUSY).then_some(ScalingReason::Busy(busy))
        }
    }

    fn grow(
        &mut self,
        limits: ScalingLimits,
        count: usize,
        look: ScalingLook,
        why: ScalingReason,
        now: Instant,
    ) -> ScalingVerdict {
        if let Some(growth) = self.growth.take()
            && self.rate < growth.rate * (1.0 + LEAST_HELP * (growth.factor - 1.0))
        {
            self.held_until = Some(now + HELD);
        }
        self.held = if look.memory_is_short {
            Some(ScalingReason::MemoryIsShort)
        } else if look.free_cpu < LEAST_CPU {
            Some(ScalingReason::CpuIsFull)
        } else {
            self.held_until.filter(|until| now < *until).map(|_| ScalingReason::NoHelp)
        };
        if self.held.is_some() {
            return ScalingVerdict::Stay;
        }
        let to = (count + (count / 2).max(1)).min(limits.most);
        self.growth = Some(Growth { rate: self.rate, factor: to as f64 / count as f64 });
        (self.calm_since, self.complete_since) = (None, None);
        self.short = None;
        ScalingVerdict::Grow { to, why }
    }

    fn shrink(
        &mut self,
        limits: ScalingLimits,
        count: usize,
        look: ScalingLook,
        now: Instant,
    ) -> ScalingVerdict {
        // One whose boots fail is not waited for: it may never get ready. But none that serves goes while such a worker stays.
        let failed = if limits.least == 0 { look.failed } else { look.failed_last };
        let is_booting = look.ready + failed < count && !look.failing;
        // An operator decides what becomes of a worker that is out of rotation, also in a pool whose others fail.
        let stays = is_booting || look.aside > 0;
        let idle = now - self.used_at;
        let fails = look.failing || look.failed > 0;
        let idle_limit =
            if fails { limits.shrink_after.max(FAILED_SLEEPS_AFTER) } else { limits.shrink_after };
        if count > limits.least && !stays && look.last_is_idle && idle >= idle_limit {
            self.calm_since = None;
            return ScalingVerdict::Shrink { to: limits.least, why: ScalingReason::Idle(idle) };
        }
        let busy_after = self.load / (count.max(2) - 1) as f64;
        let is_calm =
            count > limits.least.max(1) && look.ready + look.failed_last >= count && busy_after <= CALM;
        self.calm_since = if is_calm && look.wait < LONG_WAIT { self.calm_since.or(Some(now)) } else { None };
        let lasts = self.calm_since.is_some_and(|since| now - since >= limits.shrink_after);
        if lasts && look.last_is_idle {
            self.calm_since = Some(now);
            let why = ScalingReason::Calm(self.load / count as f64);
            return ScalingVerdict::Shrink { to: count - 1, why };
        }
        ScalingVerdict::Stay
    }
}

impl fmt::Display for ScalingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (share * 100.0).round();
        match self {
            Self::Woken => f.write_str("a request waits, and the pool is asleep"),
            Self::Waits(wait) => write!(f, "a request has waited {} ms for a slot", wait.as_millis()),
            Self::Busy(share) => write!(f, "the workers are {} % busy", percent(*share)),
            Self::Idle(idle) => write!(f, "no request for {} s", idle.as_secs_f64().round()),
            Self::Calm(share) => write!(f, "the workers are only {} % busy", percent(*share)),
            Self::Evicted => f.write_str("it has no request, and another pool needs the memory"),
            Self::Configured => f.write_str("the configuration has changed"),
            Self::CpuIsFull => f.write_str("no growth: no CPU is free for another worker"),
            Self::MemoryIsShort => f.write_str("no growth: the system is short of memory"),
            Self::NoRoom => f.write_str("no growth: server.worker_memory has no room for another worker"),
            Self::NoHelp => f.write_str("no growth: the last new worker did not raise the throughput"),
        }
    }
}

#[cfg(test)]
mod tests;
