//! Decides when a worker may boot, so that many boots do not slow down the workers that serve. Knows no worker and no pool.
//!
//! The rule, for each of [`Turns`]:
//!
//! * The next worker boots at once if no worker boots, or if all that boot only wait (for a database, for example).
//! * While a worker computes during its boot, the next one begins only if the CPU has room ([`CpuRoom`]).

mod cpu_room;
mod demand;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep};

use cpu_room::CpuRoom;
use demand::Demand;

/// How often the CPU is looked at while workers wait for their turn.
const LOOK: Duration = Duration::from_millis(50);

/// The kind of a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turns {
    /// A first start, or a boot after a failed one.
    Starts,
    /// A worker that was ready boots again. Boots of other workers do not hold it up.
    Returns,
}

/// The gate that all boots of one Hostler pass.
#[derive(Clone)]
pub(super) struct BootGate(Arc<GateInner>);

struct GateInner {
    /// One queue for each of [`Turns`]. Only the first caller in a queue asks whether it may boot.
    lines: [Semaphore; 2],
    boots: Mutex<BootsInProgress>,
    /// A boot has ended.
    ended: Notify,
}

/// The boots in progress.
struct BootsInProgress {
    room: CpuRoom,
    in_progress: Vec<BootInProgress>,
    last: u64,
}

struct BootInProgress {
    number: u64,
    kind: Turns,
    /// `None` until the process is started. Until then the boot counts as one that computes.
    demand: Option<Demand>,
}

impl BootInProgress {
    fn computes(&self) -> bool {
        self.demand.as_ref().is_none_or(Demand::is_high)
    }
}

impl BootGate {
    /// A gate for this number of cores. `proc` is `/proc`, and `cgroups` is where the control groups are mounted.
    pub fn new(cores: usize, proc: &Path, cgroups: &Path) -> Self {
        let room = CpuRoom::new(cores, proc, cgroups);
        Self(Arc::new(GateInner {
            lines: [Semaphore::new(1), Semaphore::new(1)],
            boots: Mutex::new(BootsInProgress { room, in_progress: Vec::new(), last: 0 }),
            ended: Notify::new(),
        }))
    }

    /// Waits until a worker may boot, in the order of the calls. Its boot ends when the turn is dropped.
    pub async fn turn(&self, kind: Turns) -> BootTurn {
        let line = &self.0.lines[kind as usize];
        let _head = line.acquire().await.expect("invariant: the line is never closed");
        loop {
            let ended = self.0.ended.notified();
            if let Some(number) = self.0.boots().begin(kind, Instant::now()) {
                return BootTurn { gate: Arc::clone(&self.0), number };
            }
            tokio::select! {
                () = ended => {}
                () = sleep(LOOK) => {}
            }
        }
    }
}

impl GateInner {
    fn boots(&self) -> MutexGuard<'_, BootsInProgress> {
        self.boots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BootsInProgress {
    /// The number of a new boot, if one of this kind may begin now.
    fn begin(&mut self, kind: Turns, now: Instant) -> Option<u64> {
        for boot in &mut self.in_progress {
            if let Some(demand) = &mut boot.demand {
                demand.look(now);
            }
        }
        let computing = self.in_progress.iter().filter(|boot| boot.computes());
        let (mut of_kind, mut all) = (0, 0);
        for boot in computing {
            all += 1;
            of_kind += usize::from(boot.kind == kind);
        }
        if of_kind > 0 && !self.room.has_for_another(all, now) {
            return None;
        }
        self.room.take(now);
        self.last += 1;
        self.in_progress.push(BootInProgress { number: self.last, kind, demand: None });
        Some(self.last)
    }
}

/// The permission to boot. Dropping it ends the boot.
pub(super) struct BootTurn {
    gate: Arc<GateInner>,
    number: u64,
}

impl std::fmt::Debug for BootTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BootTurn").field(&self.number).finish()
    }
}

impl BootTurn {
    /// Says which process boots. From now on the gate measures whether this process computes.
    pub fn is_of(&self, pid: u32) {
        let mut boots = self.gate.boots();
        let proc = boots.room.proc().to_owned();
        if let Some(boot) = boots.in_progress.iter_mut().find(|boot| boot.number == self.number) {
            boot.demand = Some(Demand::of(pid, proc));
        }
    }
}

impl Drop for BootTurn {
    fn drop(&mut self) {
        self.gate.boots().in_progress.retain(|boot| boot.number != self.number);
        self.gate.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
