//! The life of one worker as a pure machine: what happened goes in, what is to be done comes out.
//! It knows no process, no clock and no pool.
//!
//! ```text
//! Queued -> Booting -> Warming -> Ready -> Retiring -> Stopping -> Stopped     (a spare: Standby <-> Ready)
//!   ^          |          |         |          |           |
//!   |          |          |         +----------+--> Diagnosing (a hung one)
//!   |          |          |         |          |           |
//!   |          +----------+---------+----------+-----------+--> Killed (the exit is awaited)
//!   +---- BackingOff <--- exit                                     |
//!              ^---------------------------------------------------+
//! ```
//!
//! A successor is on probation until it has been in the pool for a moment. One that does not boot, or dies without a
//! request, before that stops for good, and its predecessor stays. One that dies over a request is booted again.
//!
//! A worker that dies after it was ready boots again at once. Only failed boots are followed by rests.

mod ends;
mod rest;
mod words;

use std::time::Duration;

use tokio::time::Instant;

pub(super) use rest::SETTLED_AFTER;
pub(super) use words::{Action, Death, Event, Standing, Why};

/// How long the exit of a killed process is awaited; one stuck in the kernel must not hold up the rest.
const BURIAL: Duration = Duration::from_secs(5);
/// How long a hung worker lives to say where it hangs; whoever asks has given up before.
const DIAGNOSIS: Duration = Duration::from_millis(700);
/// A boot that takes longer lets others boot beside it: it may never end.
const TURN: Duration = Duration::from_secs(10);
/// How long a successor must stay in the pool before its predecessor goes: many apps listen first and find out
/// then that there is no database.
const PROBATION: Duration = Duration::from_millis(500);
/// How many times a successor whose boot has failed is booted again: a single failure may be an accident.
const SECOND_CHANCES: u32 = 1;

/// What of a worker's settings decides about its life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub start_timeout: Duration,
    pub stop_timeout: Duration,
    pub hang_timeout: Duration,
    pub checks_health: bool,
    pub warms_up: bool,
}

/// Where a worker is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Booting {
        until: Instant,
    },
    Warming {
        until: Instant,
    },
    Ready,
    /// A spare, ready and not in the pool.
    Standby,
    /// A spare that has left the pool and finishes its requests, to stand by again.
    SteppingBack,
    Retiring {
        until: Instant,
    },
    Diagnosing {
        until: Instant,
    },
    Stopping {
        term_at: Option<Instant>,
        kill_at: Instant,
    },
    Killed {
        bury_at: Instant,
        for_good: bool,
    },
    BackingOff {
        until: Instant,
    },
    Stopped,
}

/// One worker's life.
#[derive(Clone, Debug)]
pub(super) struct Lifecycle {
    rules: Rules,
    state: State,
    standing: Standing,
    /// When a boot lets others boot beside it.
    turn_ends: Option<Instant>,
    hears: bool,
    listening: bool,
    ready_since: Option<Instant>,
    crashes: u32,
    /// Boots in a row that have failed.
    failed_boots: u32,
    /// All deaths that nobody has asked for.
    deaths: u64,
    /// A spare that the pool needs.
    needed: bool,
    /// It is killed because its app has ended behind its parents.
    orphaned: bool,
    chance: fastrand::Rng,
}

impl Lifecycle {
    /// A worker that has never run. The first thing to do about it is [`Action::AskTurn`].
    pub fn new(rules: Rules, standing: Standing, chance: fastrand::Rng) -> Self {
        Self {
            rules,
            state: State::Queued,
            standing,
            turn_ends: None,
            hears: false,
            listening: false,
            ready_since: None,
            crashes: 0,
            failed_boots: 0,
            deaths: 0,
            needed: false,
            orphaned: false,
            chance,
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Other rules from now on; a deadline that runs stays as it is.
    pub fn adopt(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Crashes in a row.
    pub fn crashes(&self) -> u32 {
        self.crashes
    }

    /// Boots in a row that have failed.
    pub fn failed_boots(&self) -> u32 {
        self.failed_boots
    }

    /// All deaths that nobody has asked for.
    pub fn deaths(&self) -> u64 {
        self.deaths
    }

    /// When [`Event::Tick`] is due, unless something else happens before.
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Booting { until } | State::Warming { until } => {
                Some(self.turn_ends.map_or(until, |ends| ends.min(until)))
            }
            State::Retiring { until } | State::Diagnosing { until } | State::BackingOff { until } => {
                Some(until)
            }
            State::Stopping { term_at, kill_at } => Some(term_at.unwrap_or(kill_at)),
            State::Killed { bury_at, .. } => Some(bury_at),
            State::Ready if self.standing == Standing::Successor => {
                self.ready_since.map(|since| since + PROBATION)
            }
            State::Queued | State::Ready | State::Standby | State::SteppingBack | State::Stopped => None,
        }
    }

    /// How long the warm-up paths may take.
    pub fn warm_by(&self) -> Option<Instant> {
        if let State::Warming { until } = self.state { Some(until) } else { None }
    }

    /// What happened at `now`, and what it means. An event that means nothing in this state changes nothing.
    pub fn step(mut self, event: Event, now: Instant) -> (Self, Vec<Action>) {
        let due = self.deadline().is_some_and(|deadline| deadline <= now);
        let actions = match event {
            Event::Stop => self.stop(now),
            Event::Retire => self.retire(now),
            Event::Finished if matches!(self.state, State::Retiring { .. }) => self.stop(now),
            Event::Finished if self.state == State::SteppingBack => self.joins_if_needed(),
            Event::StepIn | Event::StepBack => self.steps(event == Event::StepIn),
            Event::Kill => self.kill_for_good(now),
            Event::Exited(death) => self.exited(death, now),
            Event::Tick if due => self.tick(now),
            Event::Tick => vec![],
            Event::Hears => {
                self.hears = true;
                vec![]
            }
            Event::Turn if self.state == State::Queued => self.boot(now),
            Event::Hung if self.is_at_work() => self.diagnose(now),
            Event::Diagnosed if self.is_diagnosed() => self.kill(Why::Hung, now),
            Event::Orphaned if self.is_alive() => self.kill(Why::Orphaned, now),
            Event::Turn | Event::Finished | Event::Hung | Event::Diagnosed | Event::Orphaned => vec![],
            Event::SpawnFailed { .. } | Event::Listening | Event::Healthy | Event::Warmed => {
                self.boots(event, now)
            }
        };
        (self, actions)
    }

    fn is_alive(&self) -> bool {
        matches!(self.state, State::Booting { .. } | State::Warming { .. } | State::Standby)
            || self.is_at_work()
            || self.is_diagnosed()
    }

    fn is_diagnosed(&self) -> bool {
        matches!(self.state, State::Diagnosing { .. })
    }

    fn is_at_work(&self) -> bool {
        matches!(self.state, State::Ready | State::SteppingBack | State::Retiring { .. })
    }

    fn boot(&mut self, now: Instant) -> Vec<Action> {
        self.hears = false;
        self.listening = false;
        self.turn_ends = Some(now + TURN);
        self.state = State::Booting { until: now + self.rules.start_timeout };
        vec![Action::Spawn]
    }

    /// The steps between the spawn and the pool.
    fn boots(&mut self, event: Event, now: Instant) -> Vec<Action> {
        match (self.state, event) {
            (State::Booting { .. }, Event::SpawnFailed { proven }) => {
                self.crashed(Death { proven, ..Death::default() }, now)
            }
            (State::Booting { .. }, Event::Listening) if !self.listening => {
                self.listening = true;
                if self.rules.checks_health { vec![Action::CheckHealth] } else { self.healthy(now) }
            }
            (State::Booting { .. }, Event::Healthy) => self.healthy(now),
            (State::Warming { .. }, Event::Warmed) => self.ready(now),
            _ => vec![],
        }
    }

    fn healthy(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            State::Booting { until } if self.rules.warms_up => {
                self.state = State::Warming { until };
                vec![Action::WarmUp]
            }
            _ => self.ready(now),
        }
    }

    fn ready(&mut self, now: Instant) -> Vec<Action> {
        self.ready_since = Some(now);
        if self.standing == Standing::Spare {
            return self.joins_if_needed();
        }
        self.state = State::Ready;
        vec![Action::Join]
    }

    /// What a spare does that could do either.
    fn joins_if_needed(&mut self) -> Vec<Action> {
        self.state = if self.needed { State::Ready } else { State::Standby };
        if self.needed { vec![Action::Join] } else { vec![] }
    }

    /// A spare takes the place of a worker that is missing, or leaves it. One that is not ready cannot, and is told again.
    fn steps(&mut self, needed: bool) -> Vec<Action> {
        match self.state {
            State::Standby if needed => {
                self.needed = true;
                self.joins_if_needed()
            }
            State::Ready if self.standing == Standing::Spare && !needed => {
                self.needed = false;
                self.state = State::SteppingBack;
                vec![Action::Withdraw]
            }
            State::SteppingBack => {
                self.needed = needed;
                vec![]
            }
            _ => vec![],
        }
    }

    fn tick(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            State::Booting { until } | State::Warming { until } if now < until => {
                self.turn_ends = None;
                vec![Action::YieldTurn]
            }
            State::Booting { .. } => self.kill(Why::StartTimeout, now),
            // Cold pages are no reason to do without a worker that answered its health path.
            State::Warming { .. } => self.ready(now),
            State::BackingOff { .. } => {
                self.state = State::Queued;
                vec![Action::AskTurn]
            }
            State::Stopping { term_at: Some(_), kill_at } => {
                self.state = State::Stopping { term_at: None, kill_at };
                vec![Action::Terminate]
            }
            State::Stopping { term_at: None, .. } => {
                self.state = State::Killed { bury_at: now + BURIAL, for_good: true };
                vec![Action::Kill(Why::StopTimeout)]
            }
            State::Killed { .. } => self.exited(Death::default(), now),
            State::Diagnosing { .. } => self.kill(Why::Hung, now),
            // A request that ends later than this would have been taken for hung, or is a stream without end.
            State::Retiring { .. } => self.stop(now),
            State::Ready if self.standing == Standing::Successor => {
                self.standing = Standing::Regular;
                vec![Action::TakeOver]
            }
            State::Queued | State::Ready | State::Standby | State::SteppingBack | State::Stopped => vec![],
        }
    }
}

#[cfg(test)]
mod tests;
