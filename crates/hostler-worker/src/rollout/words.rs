//! What is said to a plan and what it answers; knows no rules.

use std::sync::Arc;
use std::time::Duration;

use crate::recycling::Reason;
use crate::settings::Spares;

/// One worker task's number; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WorkerTaskId(pub u64);

/// What a worker task has to say of its worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerReport {
    /// It has joined the pool, or stands by as a spare.
    Ready,
    /// It has left the pool, or stands by no more.
    Left,
    /// It died unasked: after so many failed boots in a row, or, if that is 0, after it was ready.
    Died { failed_boots: u32, how: String },
    /// A successor has stood the test, and is from now on a worker like any other.
    TookOver,
    /// It has stopped for good, and its worker task is gone.
    Ended { how: String },
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RolloutEvent {
    /// All workers that have been booted before are to be replaced.
    Restart,
    /// So many workers are wanted.
    Count(usize),
    /// So many spares are wanted.
    Spares(Spares),
    /// The plan's deadline has come.
    Tick,
    /// This worker has had its time.
    Due(WorkerTaskId, Reason),
    /// A worker task said something.
    Heard(WorkerTaskId, WorkerReport),
    /// All workers are told to stop; nobody is hired from now on.
    Stop,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RolloutAction {
    /// Boot a worker of this number.
    Hire { task: WorkerTaskId, index: usize, role: WorkerRole },
    /// A spare is to take the place of a worker that is missing.
    StepIn(WorkerTaskId),
    /// A spare is to leave the pool and stand by.
    StepBack(WorkerTaskId),
    /// Let it finish what it has and go.
    Retire { task: WorkerTaskId, why: Arc<str> },
    /// All workers have been booted after this many restarts were ordered.
    Reached(u64),
    /// The rollout has ended early.
    Fail(RestartError),
    /// A worker that was to be recycled stays for so long at least.
    KeepOld { index: usize, reason: Reason, how: String, pause: Duration },
}

/// What a worker is hired as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerRole {
    /// One of those that the pool is to have.
    Regular,
    /// It is to replace another.
    Successor(ReplaceCause),
    /// It stands by.
    Spare,
}

/// Why a worker is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReplaceCause {
    Restart,
    Recycled(Reason),
}

/// Why a restart did not reach its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// A worker of the new generation did not get ready; the old one stays.
    #[error(
        "worker {worker} of the new generation did not get ready: {how}; {replaced} of {total} workers were replaced, the others stay"
    )]
    Boot {
        /// The worker's number.
        worker: usize,
        /// How it went, with the telling line of what it printed.
        how: String,
        /// How many workers had been replaced before.
        replaced: usize,
        /// How many workers there are.
        total: usize,
    },
    /// A worker of the new generation died again and again after it was ready, more often than the old ones.
    #[error(
        "worker {worker} of the new generation keeps dying: {how}; {replaced} of {total} workers were replaced, the others stay"
    )]
    Unstable {
        /// The worker's number.
        worker: usize,
        /// How it went the last time.
        how: String,
        /// How many workers had been replaced before.
        replaced: usize,
        /// How many workers there are.
        total: usize,
    },
    /// The workers are being stopped.
    #[error("the workers are being stopped")]
    Stopping,
}
