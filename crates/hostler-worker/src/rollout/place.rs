//! One wanted worker in the plan of a pool, and the replacement of one. Decides only which worker is next.

use super::words::{Reached, ReplaceCause, WorkerTaskId};

/// One wanted worker. Its number is its index.
#[derive(Clone, Debug)]
pub(super) struct WorkerPlace {
    pub task: WorkerTaskId,
    /// How many restarts had been ordered when it was started.
    pub release: u64,
    pub ready: bool,
    /// It has been ready.
    pub was_ready: bool,
    /// It is ready, and its event loop does not turn.
    pub blocked: bool,
    /// It is out of rotation, and comes back when it is told to.
    pub aside: bool,
    /// How many times it has died after it was ready, since the replacement began.
    pub losses: u32,
    /// An operator has ordered that it is replaced.
    pub ordered: bool,
}

/// A replacement in progress.
#[derive(Clone, Debug)]
pub(super) struct Replacement {
    pub place: usize,
    pub successor: WorkerTaskId,
    pub release: u64,
    pub cause: ReplaceCause,
    /// How many times the successor has died after it was ready.
    pub losses: u32,
}

impl Replacement {
    pub fn new(place: usize, successor: WorkerTaskId, release: u64, cause: ReplaceCause) -> Self {
        Self { place, successor, release, cause, losses: 0 }
    }
}

impl WorkerPlace {
    /// A worker that boots.
    pub fn new(task: WorkerTaskId, release: u64) -> Self {
        Self {
            task,
            release,
            ready: false,
            was_ready: false,
            blocked: false,
            aside: false,
            losses: 0,
            ordered: false,
        }
    }

    /// It has joined the pool, or has left it.
    pub fn seen(&mut self, ready: bool) {
        (self.ready, self.blocked, self.aside) = (ready, false, false);
        self.was_ready |= ready;
    }

    /// Whether the pool misses it: it has been ready, and is not, or is blocked.
    pub fn is_missing(&self) -> bool {
        self.was_ready && (!self.ready || self.blocked)
    }
}

/// How many workers no operator has taken out of rotation.
pub(super) fn in_rotation(places: &[WorkerPlace]) -> usize {
    places.iter().filter(|place| !place.aside).count()
}

/// How many workers are of this generation or a newer one.
pub(super) fn reached(places: &[WorkerPlace], release: u64) -> Reached {
    let replaced = places.iter().filter(|place| place.release >= release).count();
    Reached { replaced, total: places.len(), any_ready: places.iter().any(|place| place.ready) }
}

/// The first worker whose replacement was ordered. The order is taken.
pub(super) fn first_ordered(places: &mut [WorkerPlace]) -> Option<usize> {
    places.iter_mut().position(|place| std::mem::take(&mut place.ordered))
}

/// The worker that a restart replaces next: one that is missing, or else one of the oldest generation. `None`: all workers are new, or a new
/// worker must first be ready again, so that a bad generation does not replace all workers.
pub(super) fn next_outdated(places: &[WorkerPlace], newest: u64) -> Option<usize> {
    let serves = |place: &WorkerPlace| place.ready || place.aside;
    // A worker of an earlier restart is not waited for: it says nothing about the newest code, and may never get ready.
    if places.iter().any(|place| place.release == newest && !serves(place)) {
        return None;
    }
    let oldest = places.iter().map(|place| place.release).min().filter(|oldest| *oldest < newest)?;
    let is_lost = |place: &WorkerPlace| place.release < newest && place.was_ready && !serves(place);
    // A worker that was ready and has died comes first: the pool misses it.
    let lost = places.iter().position(is_lost);
    lost.or_else(|| places.iter().position(|place| place.release == oldest))
}
