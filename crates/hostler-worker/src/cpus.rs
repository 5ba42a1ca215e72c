//! The CPUs of the workers' main threads: who has which, for all pools of one Hostler. Knows no requests.
//!
//! `placement` decides, and is pure. This file asks it whenever a worker comes, serves or goes and once a second, and carries out its
//! decision. See docs/concepts/cpus.md.

mod disturbance;
mod list;
mod machine;
mod placement;
mod setting;
mod state;
mod threads;
mod ticks;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

pub use list::CpuList;
pub(super) use placement::CpuPhase;
pub use setting::CpuSetting;
use state::{CpuState, UserId};
pub(super) use state::{CpuUse, ShownPlace};
pub use ticks::{CpuTicks, usable_cpus};

/// How often the CPUs and the workers' waits for them are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Who uses which CPUs. A clone is cheap.
#[derive(Clone, Default)]
pub(super) struct CpuBoard(Arc<Mutex<CpuState>>);

/// A worker's process on the board. Dropping it takes the process off.
pub(super) struct CpuUser {
    board: CpuBoard,
    id: UserId,
    last: CpuUse,
    shown: ShownPlace,
}

/// While it lives, no worker is bound to CPUs by `"auto"`.
pub struct FreeCpus {
    board: CpuBoard,
    for_good: bool,
}

impl CpuBoard {
    /// Puts a process of a worker on the board.
    pub fn enter(&self, first: CpuUse) -> CpuUser {
        let shown = ShownPlace::default();
        let (id, is_first) = self.with(|state| state.enter(first.clone(), shown.clone()));
        if is_first {
            tokio::spawn(look(Arc::downgrade(&self.0)));
        }
        CpuUser { board: self.clone(), id, last: first, shown }
    }

    /// Frees all workers with `"auto"`, because another process of Hostler starts its workers beside them.
    pub fn free_all(&self) -> FreeCpus {
        self.with(|state| state.hold(1));
        FreeCpus { board: self.clone(), for_good: false }
    }

    fn with<T>(&self, act: impl FnOnce(&mut CpuState) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn look(board: Weak<Mutex<CpuState>>) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(state) = board.upgrade() else { return };
        state.lock().unwrap_or_else(PoisonError::into_inner).look(Instant::now());
    }
}

impl CpuUser {
    /// Something about the process may have changed.
    pub fn update(&mut self, new: CpuUse) {
        if self.last != new {
            self.board.with(|state| state.update(self.id, new.clone()));
            self.last = new;
        }
    }

    /// Where its place is shown.
    pub fn shown(&self) -> ShownPlace {
        self.shown.clone()
    }
}

impl Drop for CpuUser {
    fn drop(&mut self) {
        self.board.with(|state| state.leave(self.id));
    }
}

impl FreeCpus {
    /// Keeps the workers free also when this value is dropped.
    pub fn for_good(mut self) {
        self.for_good = true;
    }
}

impl Drop for FreeCpus {
    fn drop(&mut self) {
        if !self.for_good {
            self.board.with(|state| state.hold(-1));
        }
    }
}
