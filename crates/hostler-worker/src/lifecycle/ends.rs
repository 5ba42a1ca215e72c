//! How a worker's life ends, by itself or by command, and whether it boots again. A part of the same pure machine.

use std::time::Duration;

use tokio::time::Instant;

use super::rest;
use super::state::{Lifecycle, LifecycleState};
use super::words::{Action, DeathReport, KillReason, PoolRole};

/// How long to wait for the exit of a killed process. One that is stuck in the kernel must not hold up the rest.
pub(super) const EXIT_LIMIT: Duration = Duration::from_secs(5);
/// How long a hung worker lives to report where it hangs. The diagnosis itself has a shorter limit. It takes 70 ms if a CPU is free; the rest is for a busy
/// machine, where workers hang most.
const DIAGNOSIS: Duration = Duration::from_millis(1600);
/// How many times a successor boots again after a failed boot: one failure may be chance.
const MOST_REBOOTS: u32 = 1;

impl Lifecycle {
    pub(super) fn exited(&mut self, death: DeathReport, now: Instant) -> Vec<Action> {
        match self.state {
            LifecycleState::Booting { .. }
            | LifecycleState::Warming { .. }
            | LifecycleState::Ready
            | LifecycleState::Standby
            | LifecycleState::SteppingBack
            | LifecycleState::Aside { .. }
            | LifecycleState::Diagnosing { .. }
            | LifecycleState::Killed { for_good: false, .. } => self.crashed(death, now),
            LifecycleState::Killed { for_good: true, .. }
            | LifecycleState::Retiring { .. }
            | LifecycleState::Stopping { .. } => {
                self.state = LifecycleState::Stopped;
                vec![]
            }
            LifecycleState::Queued | LifecycleState::BackingOff { .. } | LifecycleState::Stopped => vec![],
        }
    }

    /// A death that Hostler did not ask for. The worker boots again at once, or after a rest if its boots fail.
    pub(super) fn crashed(&mut self, death: DeathReport, now: Instant) -> Vec<Action> {
        let mut actions = self.leave();
        let ready = self.ready_since.take().map(|since| now.saturating_duration_since(since));
        // If its app had ended before, the exit was caused by our own signal.
        let was_orphaned = std::mem::take(&mut self.orphaned);
        let death = DeathReport { killed: death.killed && !was_orphaned, ..death };
        let was_killed = matches!(self.state, LifecycleState::Killed { .. }) && !was_orphaned;
        self.note(rest::is_failed_boot(ready, &death) && !(was_killed && ready.is_some()), ready);
        let waits = self.waits_for_change();
        let rest = if waits {
            rest::UNTIL_CHANGED
        } else {
            rest::after(self.failed_boots, &death, &mut self.chance)
        };

        let is_the_last = match self.role {
            PoolRole::Regular | PoolRole::Spare => false,
            PoolRole::Successor => waits || self.failed_boots > MOST_REBOOTS,
            PoolRole::Retired => true,
        };
        if is_the_last {
            self.state = LifecycleState::Stopped;
        } else if rest.is_zero() {
            self.state = LifecycleState::Queued;
            actions.push(Action::AskTurn);
        } else {
            self.state = LifecycleState::BackingOff { until: now + rest };
        }
        actions
    }

    fn note(&mut self, failed_boot: bool, ready: Option<Duration>) {
        if rest::is_forgiven(ready) {
            self.crashes = 0;
        }
        self.crashes = self.crashes.saturating_add(1);
        let before = if failed_boot || planted!(EndlessRest) { self.failed_boots } else { 0 };
        self.failed_boots = before.saturating_add(u32::from(failed_boot));
        self.deaths += 1;
        self.needed = false;
    }

    /// It gets no new requests, and is asked where it hangs.
    pub(super) fn diagnose(&mut self, now: Instant) -> Vec<Action> {
        let mut actions = self.leave();
        self.state = LifecycleState::Diagnosing { until: now + DIAGNOSIS };
        actions.push(Action::Diagnose);
        actions
    }

    /// It leaves the pool, if it is in it. To be asked before the state changes.
    fn leave(&self) -> Vec<Action> {
        if self.state == LifecycleState::Ready { vec![Action::Leave] } else { vec![] }
    }

    pub(super) fn kill(&mut self, why: KillReason, now: Instant) -> Vec<Action> {
        let mut actions = self.leave();
        self.orphaned = why == KillReason::Orphaned;
        let comes_back = match self.role {
            PoolRole::Regular | PoolRole::Spare => true,
            // A successor that was not ready in time has had enough time, and one that hung must not replace a worker.
            PoolRole::Successor => self.orphaned,
            PoolRole::Retired => false,
        };
        let for_good = why == KillReason::Ordered || !comes_back;
        self.state = LifecycleState::Killed { bury_at: now + EXIT_LIMIT, for_good };
        actions.push(Action::Kill(why));
        actions
    }

    pub(super) fn kill_for_good(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            LifecycleState::Booting { .. }
            | LifecycleState::Warming { .. }
            | LifecycleState::Ready
            | LifecycleState::Standby
            | LifecycleState::SteppingBack
            | LifecycleState::Aside { .. }
            | LifecycleState::Retiring { .. }
            | LifecycleState::Diagnosing { .. }
            | LifecycleState::Stopping { .. } => self.kill(KillReason::Ordered, now),
            LifecycleState::Queued
            | LifecycleState::BackingOff { .. }
            | LifecycleState::Killed { .. }
            | LifecycleState::Stopped => self.stop(now),
        }
    }

    /// The worker leaves the pool and finishes its requests.
    pub(super) fn retire(&mut self, now: Instant) -> Vec<Action> {
        self.role = PoolRole::Retired;
        match self.state {
            LifecycleState::Ready
            | LifecycleState::SteppingBack
            | LifecycleState::Aside { finished: false } => {
                let is_member = self.state == LifecycleState::Ready;
                self.state = LifecycleState::Retiring { until: now + self.settings.retire_timeout() };
                if is_member { vec![Action::Withdraw] } else { vec![] }
            }
            // A worker that is asked where it hangs is killed anyway.
            LifecycleState::Retiring { .. } | LifecycleState::Diagnosing { .. } => vec![],
            _ => self.stop(now),
        }
    }

    /// The app cannot hear `"shutdown"`, so it gets SIGTERM now. It gets no second SIGTERM later: many apps end at once at that.
    pub(super) fn is_deaf(&mut self) -> Vec<Action> {
        match self.state {
            LifecycleState::Stopping { term_at: Some(_), kill_at } => {
                self.state = LifecycleState::Stopping { term_at: None, kill_at };
                vec![Action::Terminate]
            }
            _ => vec![],
        }
    }

    /// The state with the full `stop_timeout` from `now` on. `hears`: the app has got `"shutdown"`, so SIGTERM follows only after half of that time.
    pub(super) fn stopping(&self, now: Instant, hears: bool) -> LifecycleState {
        let timeout = self.settings.stop_timeout;
        LifecycleState::Stopping { term_at: hears.then(|| now + timeout / 2), kill_at: now + timeout }
    }

    pub(super) fn stop(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            LifecycleState::Queued | LifecycleState::BackingOff { .. } | LifecycleState::Stopped => {
                self.state = LifecycleState::Stopped;
                vec![]
            }
            LifecycleState::Killed { bury_at, .. } => {
                self.state = LifecycleState::Killed { bury_at, for_good: true };
                vec![]
            }
            LifecycleState::Diagnosing { .. } => {
                let actions = self.kill(KillReason::Hung, now);
                self.state = LifecycleState::Killed { bury_at: now + EXIT_LIMIT, for_good: true };
                actions
            }
            LifecycleState::Stopping { .. } => vec![],
            LifecycleState::Booting { .. } if planted!(DeafBoot) => vec![],
            LifecycleState::Booting { .. }
            | LifecycleState::Warming { .. }
            | LifecycleState::Ready
            | LifecycleState::Standby
            | LifecycleState::SteppingBack
            | LifecycleState::Aside { .. }
            | LifecycleState::Retiring { .. } => {
                let mut actions = self.leave();
                self.state = self.stopping(now, self.hears);
                actions.push(if self.hears { Action::SayShutdown } else { Action::Terminate });
                actions
            }
        }
    }
}
