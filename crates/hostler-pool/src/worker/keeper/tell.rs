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
            Event::SpawnFailed => (None, self.status.last_error.clone()),
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
            State::Diagnosing { .. } => format!("{how} while it hung"),
            _ => how,
        };
        let crashes = self.life.crashes();
        let next = restarts_in.map(|restarts_in| Next { restarts_in, crashes });
        self.log.event(WorkerEvent::Died { pid, how, next });
    }

    pub(super) fn publish(&mut self) {
        let state = self.life.state();
        let (before, crashes) = (self.status.state, self.status.crashes);
        self.status.state = match state {
            State::Queued | State::Booting { .. } => WorkerState::Booting,
            State::Warming { .. } => WorkerState::Warming,
            State::Ready => WorkerState::Ready,
            State::Retiring { .. } => WorkerState::Retiring,
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
        self.crew.board.send_modify(|board| {
            if let Some(place) = board.iter_mut().find(|place| place.keeper == self.status.keeper) {
                place.clone_from(&self.status);
            }
        });
        if state == State::Ready && before != WorkerState::Ready {
            self.report(Heard::Ready);
        } else if before == WorkerState::Ready && state != State::Ready || self.status.crashes > crashes {
            self.report(Heard::Down { crashes: self.status.crashes, how: self.how_it_went() });
        }
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
