//! What a worker does for the developer of its app: it keeps why a boot has failed, and opens Node's inspector. Decides nothing.

use std::sync::Arc;

use super::state::WorkerTask;
use crate::failed_boot::{self, FailedBoot};
use crate::lifecycle::{LifecycleState, SETTLED_AFTER};
use crate::log::{Tail, WorkerEvent};
use crate::message::ToWorker;
use crate::process::Exit;
use crate::running::RunningProcess;

const NO_INSPECTOR: &str = "the inspector does not open: only a Node app with bind = \"socket\" can open it";

impl<E: Send + Sync + 'static> WorkerTask<E> {
    /// The process has ended by itself. Notes whether it has worked, or why it has not.
    pub(super) fn note_end(&mut self, exit: Exit, how: &str, running: &RunningProcess) {
        let has_worked = self.has_proved_itself();
        self.status.has_worked |= has_worked;
        let when = match self.life.state() {
            LifecycleState::Booting { .. } | LifecycleState::Warming { .. } => "before it was ready",
            LifecycleState::Ready if !has_worked => "as soon as it was ready",
            _ => return,
        };
        let how = format!("{how} {when}");
        self.boot_failed(how, exit.code(), &running.tail, running.obstacle());
    }

    /// Its process has had a request, or has been ready for a while.
    pub(super) fn has_proved_itself(&self) -> bool {
        self.served || self.status.ready_at.is_some_and(|at| at.elapsed() >= SETTLED_AFTER)
    }

    /// `obstacle`: the server of the app that Hostler does not use. The sibling of such a worker dies because the port is taken.
    pub(super) fn boot_failed(&self, how: String, exit_code: u8, tail: &Tail, obstacle: Option<String>) {
        let obstacle = obstacle.or_else(|| self.shared.obstacle());
        // A complaint about a boot that took too long has it at its end.
        let how = match &obstacle {
            Some(obstacle) => how.replace(&format!("; {obstacle}"), ""),
            None => how,
        };
        let failed = FailedBoot {
            obstacle,
            worker: self.status.index,
            how,
            exit_code,
            error: tail.most_useful_line(),
            output: tail.last_words(),
        };
        self.shared.failed_boot.send_replace(Some(Arc::new(failed)));
    }

    pub(super) fn open_inspector(&self) {
        let (Some(running), Some(address)) = (&self.running, self.settings.borrow().development.inspector)
        else {
            return;
        };
        if running.say_to_preload(ToWorker::Inspect) {
            self.log.event(WorkerEvent::Inspector { pid: running.pid(), address });
        } else {
            self.log.warn(NO_INSPECTOR);
        }
    }
}

/// The exit code that stands for this end, if it ends Hostler.
impl Exit {
    fn code(self) -> u8 {
        let (code, signal) = self.code_and_signal();
        failed_boot::exit_code(code, signal)
    }
}
