//! Tells the board of CPUs what the worker's process does. Decides nothing.

use super::state::WorkerTask;
use crate::cpus::{CpuPhase, CpuUse};
use crate::lifecycle::LifecycleState;
use crate::running::RunningProcess;

impl<E: Send + Sync + 'static> WorkerTask<E> {
    /// Brings the board up to date.
    pub(super) fn tell_cpus(&mut self) {
        let Some(running) = &self.running else {
            (self.cpu, self.status.cpus) = (None, None);
            return;
        };
        let new = CpuUse {
            setting: self.settings.borrow().cpu.clone(),
            index: self.status.index,
            phase: match self.life.state() {
                LifecycleState::Booting { .. } | LifecycleState::Warming { .. } => CpuPhase::Boots,
                LifecycleState::Ready => CpuPhase::Serves,
                _ => CpuPhase::Rests,
            },
            pid: RunningProcess::serving_pid(running),
        };
        match &mut self.cpu {
            Some(cpu) => cpu.update(new),
            None => {
                let cpu = self.shared.context.cpus().enter(new);
                self.status.cpus = Some(cpu.shown());
                self.cpu = Some(cpu);
            }
        }
    }
}
