//! The life of one worker as a pure state machine: events in, actions out. It knows no process, no clock and no pool.
//!
//! ```text
//! Queued -> Booting -> Warming -> Ready -> Retiring -> Stopping -> Stopped     (a spare: Standby <-> Ready)
//!                                  (drained, or during a heap snapshot: Ready -> Aside -> Ready)
//!   ^          |          |         |          |           |
//!   |          |          |         +----------+--> Diagnosing (a hung one)
//!   |          |          |         |          |           |
//!   |          +----------+---------+----------+-----------+--> Killed (the exit is awaited)
//!   +---- BackingOff <--- exit                                     |
//!          ^---------------------------------------------------+
//! ```
//!
//! A successor is on probation until it has been in the pool for a moment. If it does not boot, or dies without a
//! request, during the probation, it stops for good and its predecessor stays. If it dies over a request, it boots again.
//!
//! A worker that dies after it was ready boots again at once. Only failed boots are followed by rests.

mod aside;
mod ends;
mod rest;
mod state;
mod words;

use std::time::Duration;

use tokio::time::Instant;

use ends::EXIT_LIMIT;
pub(super) use rest::{SETTLED_AFTER, is_forgiven};
use state::AsideFor;
pub(super) use state::{Drain, Lifecycle, LifecycleState};
pub(super) use words::{Action, DeathReport, KillReason, LifecycleEvent, PoolRole};

/// A boot that takes longer gives its turn to the next worker: it may never end.
const TURN: Duration = Duration::from_secs(10);
/// How long a successor must stay in the pool before its predecessor leaves. Many apps first listen and then find out
/// that their database is missing.
const PROBATION: Duration = Duration::from_millis(500);
/// If a tick comes this much too late, Hostler itself did not run. It could not hear what the worker did meanwhile, and in a container that was
/// paused the worker did not run, either.
const HELD_UP: Duration = Duration::from_secs(1);

impl Lifecycle {
    /// When [`LifecycleEvent::Tick`] is due, unless another event comes first.
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            LifecycleState::Booting { until } | LifecycleState::Warming { until } => {
                Some(self.turn_ends.map_or(until, |ends| ends.min(until)))
            }
            LifecycleState::Retiring { until }
            | LifecycleState::Diagnosing { until }
            | LifecycleState::BackingOff { until } => Some(until),
            LifecycleState::Stopping { term_at, kill_at } => Some(term_at.unwrap_or(kill_at)),
            LifecycleState::Killed { bury_at, .. } => Some(bury_at),
            LifecycleState::Ready if self.role == PoolRole::Successor => {
                self.ready_since.map(|since| if planted!(EarlyTakeOver) { since } else { since + PROBATION })
            }
            LifecycleState::Aside { .. } => self.aside_until(),
            LifecycleState::Queued
            | LifecycleState::Ready
            | LifecycleState::Standby
            | LifecycleState::SteppingBack
            | LifecycleState::Stopped => None,
        }
    }

    /// Takes an event at `now`. Returns the new state and the actions that follow. An event that has no meaning in the
    /// state changes nothing.
    pub fn step(mut self, event: LifecycleEvent, now: Instant) -> (Self, Vec<Action>) {
        let due = self.deadline().is_some_and(|deadline| deadline <= now);
        let actions = match event {
            LifecycleEvent::Stop => self.stop(now),
            LifecycleEvent::Retire => self.retire(now),
            LifecycleEvent::Finished if matches!(self.state, LifecycleState::Retiring { .. }) => {
                self.stop(now)
            }
            LifecycleEvent::Finished if self.state == LifecycleState::SteppingBack => self.joins_if_needed(),
            LifecycleEvent::Finished if self.state == (LifecycleState::Aside { finished: false }) => {
                self.finished_aside(now)
            }
            LifecycleEvent::SetAside => self.set_aside(),
            LifecycleEvent::PutBack => self.put_back(now),
            LifecycleEvent::StandsStill => self.stands_still(now),
            LifecycleEvent::Drain { until } => self.drained(until, now),
            LifecycleEvent::Undrain => self.undrained(now),
            LifecycleEvent::StepIn | LifecycleEvent::StepBack => self.steps(event == LifecycleEvent::StepIn),
            LifecycleEvent::Kill => self.kill_for_good(now),
            LifecycleEvent::Exited(death) => self.exited(death, now),
            LifecycleEvent::Tick if due => self.tick(now),
            LifecycleEvent::Tick => vec![],
            LifecycleEvent::Hears => {
                self.hears = true;
                vec![]
            }
            LifecycleEvent::Deaf => self.is_deaf(),
            LifecycleEvent::Turn if self.state == LifecycleState::Queued => self.boot(now),
            LifecycleEvent::Hung if self.is_at_work() => self.diagnose(now),
            LifecycleEvent::Diagnosed if self.is_diagnosed() => self.kill(KillReason::Hung, now),
            LifecycleEvent::Orphaned if self.is_alive() => self.kill(KillReason::Orphaned, now),
            LifecycleEvent::Turn
            | LifecycleEvent::Finished
            | LifecycleEvent::Hung
            | LifecycleEvent::Diagnosed
            | LifecycleEvent::Orphaned => vec![],
            LifecycleEvent::SpawnFailed { .. }
            | LifecycleEvent::Listening
            | LifecycleEvent::Healthy
            | LifecycleEvent::Warmed => self.boots(event, now),
        };
        if !matches!(self.state, LifecycleState::Aside { .. }) {
            self.aside_for = AsideFor::default();
        }
        (self, actions)
    }

    fn boot(&mut self, now: Instant) -> Vec<Action> {
        self.hears = false;
        self.listening = false;
        self.turn_ends = Some(now + TURN);
        self.state = LifecycleState::Booting { until: now + self.settings.start_timeout };
        vec![Action::Spawn]
    }

    /// The states between the spawn and the pool.
    fn boots(&mut self, event: LifecycleEvent, now: Instant) -> Vec<Action> {
        match (self.state, event) {
            (LifecycleState::Booting { .. }, LifecycleEvent::SpawnFailed { proven }) => {
                self.crashed(DeathReport { proven, ..DeathReport::default() }, now)
            }
            (LifecycleState::Booting { .. }, LifecycleEvent::Listening) if !self.listening => {
                self.listening = true;
                if self.settings.health.is_some() { vec![Action::CheckHealth] } else { self.healthy(now) }
            }
            (LifecycleState::Booting { .. }, LifecycleEvent::Healthy) => self.healthy(now),
            (LifecycleState::Warming { .. }, LifecycleEvent::Warmed) => self.ready(now),
            _ => vec![],
        }
    }

    fn healthy(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            LifecycleState::Booting { until } if !self.settings.warmup.is_empty() => {
                self.state = LifecycleState::Warming { until };
                vec![Action::WarmUp]
            }
            _ => self.ready(now),
        }
    }

    fn ready(&mut self, now: Instant) -> Vec<Action> {
        self.ready_since = Some(now);
        if self.role == PoolRole::Spare {
            return self.joins_if_needed();
        }
        self.state = LifecycleState::Ready;
        vec![Action::Join]
    }

    /// A spare that is ready joins the pool or stands by, whichever is needed.
    fn joins_if_needed(&mut self) -> Vec<Action> {
        self.state = if self.needed { LifecycleState::Ready } else { LifecycleState::Standby };
        if self.needed { vec![Action::Join] } else { vec![] }
    }

    /// A spare takes the place of a missing worker, or gives it back. One that is not ready does so later.
    fn steps(&mut self, needed: bool) -> Vec<Action> {
        match self.state {
            LifecycleState::Standby if needed => {
                self.needed = true;
                self.joins_if_needed()
            }
            LifecycleState::Ready if self.role == PoolRole::Spare && !needed => {
                self.needed = false;
                self.state = LifecycleState::SteppingBack;
                vec![Action::Withdraw]
            }
            LifecycleState::SteppingBack => {
                self.needed = needed;
                vec![]
            }
            _ => vec![],
        }
    }

    /// The present state with a new, full deadline, if Hostler was held up. `None`: the tick came in time.
    fn with_its_time_again(&self, now: Instant) -> Option<LifecycleState> {
        let is_late = |until: Instant| now >= until + HELD_UP;
        match self.state {
            LifecycleState::Booting { until } if is_late(until) => {
                Some(LifecycleState::Booting { until: now + self.settings.start_timeout })
            }
            LifecycleState::Retiring { until } if is_late(until) => {
                Some(LifecycleState::Retiring { until: now + self.settings.retire_timeout() })
            }
            LifecycleState::Stopping { term_at: Some(term_at), .. } if is_late(term_at) => {
                Some(self.stopping(now, true))
            }
            LifecycleState::Stopping { term_at: None, kill_at } if is_late(kill_at) => {
                Some(self.stopping(now, false))
            }
            LifecycleState::Killed { bury_at, for_good } if is_late(bury_at) => {
                Some(LifecycleState::Killed { bury_at: now + EXIT_LIMIT, for_good })
            }
            _ => None,
        }
    }

    fn is_late_successor(&self, now: Instant) -> bool {
        let ends = self.ready_since.map(|since| since + PROBATION);
        self.role == PoolRole::Successor && ends.is_some_and(|ends| now >= ends + HELD_UP)
    }

    fn tick(&mut self, now: Instant) -> Vec<Action> {
        if let Some(state) = self.with_its_time_again(now) {
            self.state = state;
            return vec![];
        }
        match self.state {
            LifecycleState::Booting { until } | LifecycleState::Warming { until } if now < until => {
                self.turn_ends = None;
                vec![Action::YieldTurn]
            }
            LifecycleState::Booting { .. } => self.kill(KillReason::StartTimeout, now),
            // A worker that answered its health path serves requests, even with cold pages.
            LifecycleState::Warming { .. } => self.ready(now),
            LifecycleState::BackingOff { .. } => {
                self.state = LifecycleState::Queued;
                vec![Action::AskTurn]
            }
            LifecycleState::Stopping { term_at: Some(_), kill_at } => {
                self.state = LifecycleState::Stopping { term_at: None, kill_at };
                vec![Action::Terminate]
            }
            LifecycleState::Stopping { term_at: None, .. } => {
                self.state = LifecycleState::Killed { bury_at: now + EXIT_LIMIT, for_good: true };
                vec![Action::Kill(KillReason::StopTimeout)]
            }
            LifecycleState::Killed { .. } => self.exited(DeathReport::default(), now),
            LifecycleState::Diagnosing { .. } => self.kill(KillReason::Hung, now),
            // A request that takes longer would count as hung, or is an endless stream.
            LifecycleState::Retiring { .. } => self.stop(now),
            // Hostler was held up, and the successor may not have run either. So its probation begins again.
            LifecycleState::Ready if self.is_late_successor(now) => {
                self.ready_since = Some(now);
                vec![]
            }
            LifecycleState::Ready if self.role == PoolRole::Successor => {
                self.role = PoolRole::Regular;
                vec![Action::TakeOver]
            }
            LifecycleState::Aside { .. } => self.aside_is_over(now),
            LifecycleState::Queued
            | LifecycleState::Ready
            | LifecycleState::Standby
            | LifecycleState::SteppingBack
            | LifecycleState::Stopped => vec![],
        }
    }
}

#[cfg(test)]
mod tests;
