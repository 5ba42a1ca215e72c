//! What a keeper says of its worker: to the log, to the board, and to the foreman.

use std::time::Duration;

use tokio::time::Instant;

use super::Keeper;
use crate::worker::lifecycle::{Event, Standing, State};
use crate::worker::log::{Next, WorkerEvent};
use crate::worker::rollout::Heard;
use crate::worker::running::Running;
use crate::worker::snapshot::WorkerState;

impl<E: Send + Sync + 'static> Keeper<E> {
    pub(super) fn report_end(&mut self, event: Event, before: State) {
        let (pid, how) = match event {
            Event::SpawnFailed { .. } => (None, self.status.last_error.clone()),
            // Published when it still ran, and not overwritten yet.
            Event::Exited { .. } => (self.status.pid, self.status.last_exit.clone()),
            // It never ran, has rested, or will not be seen again.
            _ => return,
        };
        let how = how.unwrap_or_default();
        let was_asked = matches!(before, State::Stopping { .. } | State::Killed { .. });
        let restarts_in = match self.life.state() {
            State::Stopped if was_asked => return self.log.event(WorkerEvent::Stopped { pid, how }),
            State::Stopped => None,
            State::BackingOff { until } => Some(until.saturating_duration_since(Instant::now())),
            _ => Some(Duration::ZERO),
        };
        let how = match before {
            State::Booting { .. } | State::Warming { .. } if pid.is_some() => {
                format!("{how} before it was ready")
            }
            State::Retiring { .. } => format!("{how} before it had finished its requests"),
            State::Standby => format!("{how} while it stood by"),
            State::Diagnosing { .. } => format!("{how} while it hung"),
            _ => how,
        };
        let failed_boots = self.life.failed_boots();
        let next = restarts_in.map(|restarts_in| Next { restarts_in, failed_boots });
        self.log.event(WorkerEvent::Died { pid, how, next });
    }

    pub(super) fn publish(&mut self) {
        let state = self.life.state();
        let before = self.status.state;
        self.status.state = match state {
            State::Queued | State::Booting { .. } => WorkerState::Booting,
            State::Warming { .. } => WorkerState::Warming,
            State::Ready => WorkerState::Ready,
            State::Standby => WorkerState::Standby,
            State::Retiring { .. } | State::SteppingBack => WorkerState::Retiring,
            State::Diagnosing { .. } | State::Stopping { .. } | State::Killed { .. } => WorkerState::Stopping,
            State::BackingOff { .. } => WorkerState::BackingOff,
            State::Stopped => WorkerState::Stopped,
        };
        self.status.standing = self.life.standing();
        self.status.restarts_at = if let State::BackingOff { until } = state { Some(until) } else { None };
        self.status.crashes = self.life.crashes();
        self.status.pid = self.running.as_ref().map(Running::pid);
        self.status.started = self.running.as_ref().map(|running| running.started);
        self.status.member = self.member();
        let is_ready = matches!(state, State::Ready | State::Standby);
        match (is_ready, self.status.ready_at) {
            (true, None) => {
                self.status.ready_at = Some(Instant::now());
                self.is_ready();
            }
            (false, Some(_)) if self.running.is_none() => self.status.ready_at = None,
            _ => {}
        }
        self.crew.board.send_modify(|board| {
            if let Some(place) = board.iter_mut().find(|place| place.keeper == self.status.keeper) {
                place.clone_from(&self.status);
            }
        });
        self.report_change(before);
    }

    fn report_change(&mut self, before: WorkerState) {
        let can_serve = |state| matches!(state, WorkerState::Ready | WorkerState::Standby);
        let state = self.status.state;
        if self.life.deaths() > self.told_deaths {
            self.told_deaths = self.life.deaths();
            let failed_boots = self.life.failed_boots();
            self.report(Heard::Died { failed_boots, how: self.how_it_went() });
        } else if can_serve(before) && !can_serve(state) {
            self.report(Heard::Left);
        }
        if can_serve(state) && !can_serve(before) {
            self.report(Heard::Ready);
        }
        if before == WorkerState::Ready && state == WorkerState::Retiring && self.status.spare {
            let pid = self.status.pid.unwrap_or_default();
            self.log.event(WorkerEvent::StepsBack { pid });
        }
    }

    /// It can serve for the first time since it was started.
    fn is_ready(&mut self) {
        let Some(running) = &self.running else { return };
        self.log.event(WorkerEvent::Ready { pid: running.pid(), took: running.started.elapsed() });
        if self.life.deaths() > 0 {
            self.crew.charge(running.cost());
        }
        self.known_good.clone_from(&self.booted_with);
    }

    /// The last word. One that was needed no more, or never took over, is not to be seen any longer.
    pub(super) fn sign_off(&mut self) {
        if self.life.standing() != Standing::Regular {
            self.crew.board.send_modify(|board| board.retain(|place| place.keeper != self.status.keeper));
        }
        self.report(Heard::Ended { how: self.how_it_went() });
    }

    pub(super) fn report(&self, heard: Heard) {
        // The foreman outlives the keepers, unless the whole runtime ends.
        let _ = self.crew.reports.send((self.status.keeper, heard));
    }

    fn how_it_went(&self) -> String {
        let how = self.status.last_error.as_ref().or(self.status.last_exit.as_ref());
        how.cloned().unwrap_or_else(|| "it was stopped".to_owned())
    }
}
