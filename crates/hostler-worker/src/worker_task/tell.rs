//! Reports about the worker: to the log, to the published status, and to the pool supervisor. Does not decide about the worker.

use std::time::Duration;

use tokio::time::Instant;

use super::state::WorkerTask;
use crate::heartbeat::BLOCKED;
use crate::lifecycle::{LifecycleEvent, LifecycleState, PoolRole};
use crate::log::{NextLine, WorkerEvent};
use crate::rollout::WorkerReport;
use crate::running::RunningProcess;
use crate::snapshot::WorkerState;

/// The log says at most so often that a process is blocked: an app may compute for seconds in each request.
const TELL_BLOCK_EVERY: Duration = Duration::from_secs(60);

impl<E: Send + Sync + 'static> WorkerTask<E> {
    pub(super) fn report_end(&mut self, event: LifecycleEvent, before: LifecycleState) {
        let (pid, how) = match event {
            LifecycleEvent::SpawnFailed { .. } => (None, self.status.last_error.clone()),
            // Published while it still ran, and not overwritten yet.
            LifecycleEvent::Exited { .. } => (self.status.pid, self.status.last_exit.clone()),
            // It never ran, has waited, or is not shown again.
            _ => return,
        };
        let how = how.unwrap_or_default();
        let was_asked = matches!(before, LifecycleState::Stopping { .. } | LifecycleState::Killed { .. });
        let restarts_in = match self.life.state() {
            LifecycleState::Stopped if was_asked => return self.log.event(WorkerEvent::Stopped { pid, how }),
            LifecycleState::Stopped => None,
            LifecycleState::BackingOff { until } => Some(until.saturating_duration_since(Instant::now())),
            _ => Some(Duration::ZERO),
        };
        let how = match before {
            LifecycleState::Booting { .. } | LifecycleState::Warming { .. } if pid.is_some() => {
                format!("{how} before it was ready")
            }
            LifecycleState::Retiring { .. } => format!("{how} before it had finished its requests"),
            LifecycleState::Standby => format!("{how} while it was a spare"),
            LifecycleState::Diagnosing { .. } => format!("{how} while it hung"),
            LifecycleState::Aside { .. } => format!("{how} while it was out of rotation"),
            _ => how,
        };
        let how = match self.port_in_use.take().filter(|_| pid.is_some()) {
            Some(in_use) => {
                let others = self.shared.board.borrow().len() > 1;
                format!("{how}: {}", in_use.told(self.status.role, others))
            }
            None => how,
        };
        let failed_boots = self.life.failed_boots();
        let waits_for_change = self.life.waits_for_change();
        let next = restarts_in.map(|restarts_in| NextLine { restarts_in, failed_boots, waits_for_change });
        self.log.event(WorkerEvent::Died { pid, how, next });
    }

    pub(super) fn publish(&mut self) {
        self.tell_cpus();
        let state = self.life.state();
        let before = self.status.state;
        self.status.state = state.into();
        self.status.blocked_since.take_if(|_| state != LifecycleState::Ready);
        self.status.role = self.life.role();
        self.status.restarts_at = match state {
            LifecycleState::BackingOff { until } if !self.life.waits_for_change() => Some(until),
            _ => None,
        };
        self.status.failed_boots = self.life.failed_boots();
        self.status.crashes = self.life.crashes();
        self.status.pid = self.running.as_ref().map(RunningProcess::app_pid);
        self.status.started = self.running.as_ref().map(|running| running.started);
        self.status.member = self.member();
        self.status.drain = self.life.drain();
        self.status.inspection = self.inspection.as_ref().map(|inspection| inspection.kind);
        let is_ready = matches!(state, LifecycleState::Ready | LifecycleState::Standby);
        match (is_ready, self.status.ready_at) {
            (true, None) => {
                self.status.ready_at = Some(Instant::now());
                self.is_ready();
            }
            (false, Some(_)) if self.running.is_none() => self.status.ready_at = None,
            _ => {}
        }
        self.shared.board.send_modify(|board| {
            if let Some(place) = board.iter_mut().find(|place| place.task == self.status.task) {
                place.clone_from(&self.status);
            }
        });
        self.report_change(before);
    }

    fn report_change(&mut self, before: WorkerState) {
        let can_serve = |state| matches!(state, WorkerState::Ready | WorkerState::Standby);
        let state = self.status.state;
        if self.life.deaths() > self.told_deaths {
            self.shared.died(self.life.deaths() - self.told_deaths);
            self.told_deaths = self.life.deaths();
            let failed_boots = self.life.failed_boots();
            self.report(WorkerReport::Died { failed_boots, how: self.how_it_went() });
        } else if can_serve(before) && !can_serve(state) {
            let is_aside = state == WorkerState::OutOfRotation;
            self.report(if is_aside { WorkerReport::Aside } else { WorkerReport::Left });
        }
        if can_serve(state) && !can_serve(before) {
            self.report(WorkerReport::Ready);
        }
        if before == WorkerState::Ready && state == WorkerState::Retiring && self.status.spare {
            let pid = self.status.pid.unwrap_or_default();
            self.log.event(WorkerEvent::SpareLeft { pid });
        }
    }

    /// A worker that is leaving, or is on probation, needs no spare.
    pub(super) fn is_blocked(&mut self, blocked: bool) -> Option<LifecycleEvent> {
        let is_in_pool = self.life.state() == LifecycleState::Ready;
        let running = self.running.as_mut().filter(|_| is_in_pool)?;
        let now = Instant::now();
        if blocked && running.block_told.is_none_or(|at| now >= at + TELL_BLOCK_EVERY) {
            running.block_told = Some(now);
            self.log.event(WorkerEvent::Blocked { pid: running.app_pid() });
        }
        self.status.blocked_since = if blocked { now.checked_sub(BLOCKED) } else { None };
        self.report(WorkerReport::Blocked(blocked));
        self.publish();
        None
    }

    /// It is ready for the first time since it was started.
    fn is_ready(&mut self) {
        let Some(running) = &self.running else { return };
        self.log.event(WorkerEvent::Ready { pid: running.app_pid(), took: running.started.elapsed() });
        if self.life.deaths() > 0 {
            self.shared.charge(running.cost());
        }
        self.known_good.clone_from(&self.booted_with);
        self.shared.failed_boot.send_if_modified(|failed| failed.take().is_some());
    }

    /// The last report. A worker that was not needed any more, or never finished its probation, is not shown any longer.
    pub(super) fn report_last(&mut self) {
        if self.life.role() != PoolRole::Regular {
            self.shared.board.send_modify(|board| board.retain(|place| place.task != self.status.task));
        }
        self.report(WorkerReport::Ended { how: self.how_it_went() });
    }

    pub(super) fn report(&self, heard: WorkerReport) {
        // The pool supervisor outlives the worker tasks, unless the whole runtime ends.
        let _ = self.shared.reports.send((self.status.task, heard));
    }

    fn how_it_went(&self) -> String {
        let how = self.status.last_error.as_ref().or(self.status.last_exit.as_ref());
        how.cloned().unwrap_or_else(|| "it was stopped".to_owned())
    }
}
