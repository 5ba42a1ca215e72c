//! The rules of one worker's life, checked at each of its events. They are written down again here, not taken from the lifecycle.

use std::time::Duration;

use tokio::time::Instant;

use crate::lifecycle::{
    Action, DeathReport, KillReason, Lifecycle, LifecycleEvent, LifecycleState, PoolRole,
};

pub type Checked = Result<(), String>;

/// How long a successor serves before its predecessor leaves.
const PROBATION: Duration = Duration::from_millis(500);
/// A worker that ends earlier than this, and without a request, has failed to boot.
const SETTLED: Duration = Duration::from_secs(1);
/// The rests after the first, second ... failed boot in a row, in milliseconds.
const RESTS: [u64; 9] = [0, 200, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000];
/// The longest rest of an app that is known to work, in milliseconds.
const LONGEST_IF_PROVEN: u64 = 1_000;

pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

/// What the rules remember of one worker.
#[derive(Default)]
pub struct RememberedWorker {
    /// Since when it is a member of its pool.
    joined: Option<Instant>,
    /// When its process was ready.
    ready: Option<Instant>,
    /// Its failed boots in a row.
    failed: usize,
    is_orphan: bool,
    death: DeathReport,
    /// It is or was one of the wanted workers.
    pub was_regular: bool,
    pub seen: Coverage,
}

/// How often something happened in which a bug could show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage {
    pub take_overs: u64,
    pub rests: u64,
    pub drains: u64,
    pub hung: u64,
    pub step_ins: u64,
    pub sent_again: u64,
    pub failed_restarts: u64,
    pub restarts: u64,
    pub stops: u64,
    pub served: u64,
}

impl Coverage {
    fn all(&mut self) -> [&mut u64; 10] {
        let Self { take_overs, rests, drains, hung, step_ins, sent_again, .. } = self;
        let Self { failed_restarts, restarts, stops, served, .. } = self;
        [take_overs, rests, drains, hung, step_ins, sent_again, failed_restarts, restarts, stops, served]
    }

    pub fn add(&mut self, mut other: Self) {
        self.all().into_iter().zip(other.all()).for_each(|(sum, one)| *sum += *one);
    }

    /// Everything has happened at least once. Otherwise the histories would show little.
    pub fn assert_complete(mut self) {
        assert!(self.all().into_iter().all(|count| *count > 0), "{self:?}");
    }
}

fn is_ended(state: LifecycleState) -> bool {
    matches!(state, LifecycleState::Queued | LifecycleState::BackingOff { .. } | LifecycleState::Stopped)
}

impl RememberedWorker {
    pub fn of(role: PoolRole) -> Self {
        Self { was_regular: role == PoolRole::Regular, ..Self::default() }
    }

    /// How its process has ended, or that it could not be started. The event follows.
    pub fn reports(&mut self, death: DeathReport) {
        self.death = death;
    }

    /// A worker has taken an event.
    pub fn after(
        &mut self,
        event: LifecycleEvent,
        before: LifecycleState,
        life: &Lifecycle,
        now: Instant,
    ) -> Checked {
        let state = life.state();
        let has_ended = matches!(event, LifecycleEvent::Exited(_) | LifecycleEvent::SpawnFailed { .. })
            || (event == LifecycleEvent::Tick && matches!(before, LifecycleState::Killed { .. }));
        if event == LifecycleEvent::Tick && matches!(before, LifecycleState::Killed { .. }) {
            // The process did not end, and is given up.
            self.death = DeathReport::default();
        }
        let is_dismissed = matches!(
            before,
            LifecycleState::Killed { for_good: true, .. }
                | LifecycleState::Retiring { .. }
                | LifecycleState::Stopping { .. }
        );
        let checked = if has_ended && !is_ended(before) && !is_dismissed && is_ended(state) {
            self.died(before, life, now)
        } else {
            Ok(())
        };
        if is_ended(state) {
            (self.ready, self.joined, self.is_orphan) = (None, None, false);
        }
        if matches!(state, LifecycleState::Ready | LifecycleState::Standby) {
            self.ready.get_or_insert(now);
        }
        let is_drain = matches!(state, LifecycleState::Aside { .. }) && state != before;
        self.seen.drains += u64::from(is_drain);
        checked
    }

    /// It died by itself: how long does it rest?
    fn died(&mut self, before: LifecycleState, life: &Lifecycle, now: Instant) -> Checked {
        let DeathReport { killed, served, proven, owed } = self.death;
        let killed = killed && !self.is_orphan;
        let was_killed_by_us = matches!(before, LifecycleState::Killed { .. }) && !self.is_orphan;
        let has_failed = self.ready.is_none_or(|ready| {
            now.saturating_duration_since(ready) < SETTLED && !served && !killed && !was_killed_by_us
        });
        self.failed = if has_failed { self.failed + 1 } else { 0 };
        let full = self.failed.checked_sub(1).map_or(0, |last| RESTS[last.min(RESTS.len() - 1)]);
        let full = if killed || proven { full.min(LONGEST_IF_PROVEN) } else { full };
        let (least, most) = (Duration::from_millis(full * 8 / 10), Duration::from_millis(full));
        let (least, most) = (least.max(owed), most.max(owed));
        let failed = self.failed;
        match life.state() {
            LifecycleState::BackingOff { until } => {
                self.seen.rests += 1;
                let rest = until.saturating_duration_since(now);
                // Rounded to a nanosecond.
                let (least, most) = (least.saturating_sub(Duration::from_micros(1)), most);
                ensure((least..=most).contains(&rest), || {
                    format!("it rests for {rest:?} after {failed} failed boots, not {least:?} to {most:?}")
                })
            }
            LifecycleState::Queued => ensure(least.is_zero(), || {
                format!("it boots at once after {failed} failed boots, and should rest for {least:?}")
            }),
            _ => {
                let may_end = match life.role() {
                    PoolRole::Regular | PoolRole::Spare => false,
                    PoolRole::Successor => failed > 1,
                    PoolRole::Retired => true,
                };
                ensure(may_end, || format!("it ends for good after {failed} failed boots"))
            }
        }
    }

    /// A worker acts.
    pub fn acts(&mut self, action: Action, now: Instant) -> Checked {
        match action {
            Action::Join => self.joined = Some(now),
            Action::Leave | Action::Withdraw => self.joined = None,
            Action::Kill(why) => {
                self.is_orphan = why == KillReason::Orphaned;
                self.seen.hung += u64::from(why == KillReason::Hung);
            }
            Action::TakeOver => {
                self.seen.take_overs += 1;
                self.was_regular = true;
                let served = self.joined.map(|joined| now.saturating_duration_since(joined));
                return ensure(served >= Some(PROBATION), || {
                    format!("a successor takes over after it has served for {served:?}")
                });
            }
            _ => {}
        }
        Ok(())
    }
}
