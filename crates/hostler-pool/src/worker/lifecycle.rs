//! The life of one worker as a pure machine: what happened goes in, what is to be done comes out.
//! It knows no process, no clock and no pool.
//!
//! ```text
//! Queued -> Booting -> Warming -> Ready -> Retiring -> Stopping -> Stopped
//!   ^          |          |         |          |           |
//!   |          |          |         +----------+--> Diagnosing (a hung one)
//!   |          |          |         |          |           |
//!   |          +----------+---------+----------+-----------+--> Killed (the exit is awaited)
//!   +---- BackingOff <--- exit                                     |
//!              ^---------------------------------------------------+
//! ```
//!
//! A successor is on probation until it has been in the pool for a moment. One that fails before that stops for
//! good, and whoever it was to succeed stays.

mod rest;
mod words;

use std::time::Duration;

use tokio::time::Instant;

pub(super) use words::{Action, Event, Standing, Why};

/// How long the exit of a killed process is awaited; one stuck in the kernel must not hold up the rest.
const BURIAL: Duration = Duration::from_secs(5);
/// How long a hung worker lives to say where it hangs; whoever asks has given up before.
const DIAGNOSIS: Duration = Duration::from_millis(700);
/// A boot that takes longer lets others boot beside it: it may never end.
const TURN: Duration = Duration::from_secs(10);
/// How long a successor must stay in the pool before its predecessor goes: many apps listen first and find out
/// then that there is no database.
const PROBATION: Duration = Duration::from_millis(500);
/// How many times a successor that dies before it has stood the test is booted again: a single death may be the doing of a
/// request, or of an operator.
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
    Booting { until: Instant },
    Warming { until: Instant },
    Ready,
    Retiring { until: Instant },
    Diagnosing { until: Instant },
    Stopping { term_at: Option<Instant>, kill_at: Instant },
    Killed { bury_at: Instant, for_good: bool },
    BackingOff { until: Instant },
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
            State::Queued | State::Ready | State::Stopped => None,
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
            Event::Kill => self.kill_for_good(now),
            Event::Exited { killed } => self.exited(killed, now),
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
            Event::SpawnFailed | Event::Listening | Event::Healthy | Event::Warmed => self.boots(event, now),
        };
        (self, actions)
    }

    fn is_alive(&self) -> bool {
        matches!(self.state, State::Booting { .. } | State::Warming { .. })
            || self.is_at_work()
            || self.is_diagnosed()
    }

    fn is_diagnosed(&self) -> bool {
        matches!(self.state, State::Diagnosing { .. })
    }

    fn is_at_work(&self) -> bool {
        matches!(self.state, State::Ready | State::Retiring { .. })
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
            (State::Booting { .. }, Event::SpawnFailed) => self.crashed(false, now),
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
        self.state = State::Ready;
        self.ready_since = Some(now);
        vec![Action::Join]
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
            State::Killed { .. } => self.exited(false, now),
            State::Diagnosing { .. } => self.kill(Why::Hung, now),
            // A request that ends later than this would have been taken for hung, or is a stream without end.
            State::Retiring { .. } => self.stop(now),
            State::Ready if self.standing == Standing::Successor => {
                self.standing = Standing::Regular;
                vec![Action::TakeOver]
            }
            State::Queued | State::Ready | State::Stopped => vec![],
        }
    }

    fn exited(&mut self, killed: bool, now: Instant) -> Vec<Action> {
        match self.state {
            State::Booting { .. } | State::Warming { .. } | State::Ready | State::Diagnosing { .. } => {
                self.crashed(killed, now)
            }
            State::Killed { for_good: false, .. } => self.crashed(false, now),
            State::Killed { for_good: true, .. } | State::Retiring { .. } | State::Stopping { .. } => {
                self.state = State::Stopped;
                vec![]
            }
            State::Queued | State::BackingOff { .. } | State::Stopped => vec![],
        }
    }

    /// A death that nobody asked for: it comes back at once, or after a rest if that has happened before.
    fn crashed(&mut self, killed: bool, now: Instant) -> Vec<Action> {
        let was_in_pool = self.state == State::Ready;
        let served = self.ready_since.take().map(|since| now.saturating_duration_since(since));
        if rest::is_forgiven(served) {
            self.crashes = 0;
        }
        let rest = rest::after(self.crashes, served, killed, &mut self.chance);
        self.crashes = self.crashes.saturating_add(1);

        let mut actions = if was_in_pool { vec![Action::Leave] } else { vec![] };
        let is_the_last = match self.standing {
            Standing::Regular => false,
            Standing::Successor => self.crashes > SECOND_CHANCES,
            Standing::Retired => true,
        };
        if is_the_last {
            self.state = State::Stopped;
        } else if rest.is_zero() {
            self.state = State::Queued;
            actions.push(Action::AskTurn);
        } else {
            self.state = State::BackingOff { until: now + rest };
        }
        actions
    }

    /// It gets nothing new; its last service is to say where it hangs.
    fn diagnose(&mut self, now: Instant) -> Vec<Action> {
        let was_in_pool = self.state == State::Ready;
        self.state = State::Diagnosing { until: now + DIAGNOSIS };
        if was_in_pool { vec![Action::Leave, Action::Diagnose] } else { vec![Action::Diagnose] }
    }

    fn kill(&mut self, why: Why, now: Instant) -> Vec<Action> {
        let was_in_pool = self.state == State::Ready;
        // A successor that was not ready in time has had time enough; one that hung shall not succeed anybody.
        let for_good = why == Why::Ordered || self.standing != Standing::Regular;
        self.state = State::Killed { bury_at: now + BURIAL, for_good };
        if was_in_pool { vec![Action::Leave, Action::Kill(why)] } else { vec![Action::Kill(why)] }
    }

    fn kill_for_good(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            State::Booting { .. }
            | State::Warming { .. }
            | State::Ready
            | State::Retiring { .. }
            | State::Diagnosing { .. }
            | State::Stopping { .. } => self.kill(Why::Ordered, now),
            State::Queued | State::BackingOff { .. } | State::Killed { .. } | State::Stopped => {
                self.stop(now)
            }
        }
    }

    /// The pool goes on without it: what it has begun it finishes.
    fn retire(&mut self, now: Instant) -> Vec<Action> {
        self.standing = Standing::Retired;
        match self.state {
            State::Ready => {
                self.state = State::Retiring { until: now + self.rules.hang_timeout };
                vec![Action::Withdraw]
            }
            // One that is asked where it hangs will be killed anyway.
            State::Retiring { .. } | State::Diagnosing { .. } => vec![],
            _ => self.stop(now),
        }
    }

    fn stop(&mut self, now: Instant) -> Vec<Action> {
        let was_in_pool = self.state == State::Ready;
        match self.state {
            State::Queued | State::BackingOff { .. } | State::Stopped => {
                self.state = State::Stopped;
                vec![]
            }
            State::Killed { bury_at, .. } => {
                self.state = State::Killed { bury_at, for_good: true };
                vec![]
            }
            State::Diagnosing { .. } => {
                let actions = self.kill(Why::Hung, now);
                self.state = State::Killed { bury_at: now + BURIAL, for_good: true };
                actions
            }
            State::Stopping { .. } => vec![],
            State::Booting { .. } | State::Warming { .. } | State::Ready | State::Retiring { .. } => {
                let timeout = self.rules.stop_timeout;
                let (term_at, how) = match self.hears {
                    true => (Some(now + timeout / 2), Action::SayShutdown),
                    false => (None, Action::Terminate),
                };
                self.state = State::Stopping { term_at, kill_at: now + timeout };
                if was_in_pool { vec![Action::Leave, how] } else { vec![how] }
            }
        }
    }
}

#[cfg(test)]
mod tests;
