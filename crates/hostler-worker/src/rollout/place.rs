//! One wanted worker in the plan of a pool. Decides nothing.

use super::words::WorkerTaskId;

/// One wanted worker. Its number is its index.
#[derive(Clone, Debug)]
pub(super) struct WorkerPlace {
    pub task: WorkerTaskId,
    /// How many restarts had been ordered when it was started.
    pub release: u64,
    pub ready: bool,
    /// It has been ready.
    pub was_ready: bool,
    /// It is out of rotation, and comes back when it is told to.
    pub aside: bool,
    /// How many times it has died after it was ready, since the replacement began.
    pub losses: u32,
}

impl WorkerPlace {
    /// A worker that boots.
    pub fn new(task: WorkerTaskId, release: u64) -> Self {
        Self { task, release, ready: false, was_ready: false, aside: false, losses: 0 }
    }
}

/// How many workers no operator has taken out of rotation.
pub(super) fn in_rotation(places: &[WorkerPlace]) -> usize {
    places.iter().filter(|place| !place.aside).count()
}
