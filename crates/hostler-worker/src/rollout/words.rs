//! The events and actions of a pool's plan. Knows no rules.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::recycling::Reason;
use crate::settings::Spares;

/// The number of a worker task. A number is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WorkerTaskId(pub u64);

impl WorkerTaskId {
    /// A new task. `last` is the number of the last one.
    pub fn next(last: &mut u64) -> Self {
        *last += 1;
        Self(*last)
    }
}

/// A report of a worker task about its worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerReport {
    /// It has joined the pool, or stands by as a spare.
    Ready,
    /// It has left the pool, or does not stand by any more.
    Left,
    /// It has left the pool, because it is drained or a heap snapshot is taken of it.
    Aside,
    /// Its event loop has not turned for some seconds although it has requests, or turns again.
    Blocked(bool),
    /// It died although Hostler had not asked for it: after this many failed boots in a row or, if that is 0, after it
    /// was ready.
    Died { failed_boots: u32, how: String },
    /// No new connection reaches it, for this reason, and the process lives.
    NotListening(Reason),
    /// A successor has passed its probation. From now on it is a regular worker.
    TookOver,
    /// It has stopped for good, and its worker task has ended.
    Ended { how: String },
}

/// What happened to a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RolloutEvent {
    /// Replace all workers that have booted before now.
    Restart,
    /// The same. A new worker that is booting for an earlier restart is dismissed: there is newer code.
    RestartAnew,
    /// This many workers are wanted.
    Count(usize),
    /// These spares are wanted.
    Spares(Spares),
    /// The plan's deadline has come.
    Tick,
    /// This worker is due for recycling.
    Due(WorkerTaskId, Reason),
    /// A worker task sent a report.
    Heard(WorkerTaskId, WorkerReport),
    /// All workers are told to stop, and none is started from now on.
    Stop,
}

/// What the pool supervisor does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RolloutAction {
    /// Start a worker task for this worker number.
    Start { task: WorkerTaskId, index: usize, role: WorkerRole },
    /// The spare takes the place of a worker that is missing or blocked.
    StepIn(WorkerTaskId),
    /// The spare leaves the pool and stands by.
    StepBack(WorkerTaskId),
    /// The drained worker gets requests again.
    Undrain(WorkerTaskId),
    /// The worker finishes its requests and stops.
    Retire { task: WorkerTaskId, why: Arc<str> },
    /// All workers have booted after this many restarts were ordered.
    Reached(u64),
    /// The restart has ended early.
    Fail(RestartError),
    /// A worker that was to be recycled stays, for this time at least.
    KeepOld { index: usize, reason: Reason, how: String, pause: Duration },
}

/// The role of a new worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerRole {
    /// One of the wanted workers.
    Regular,
    /// It replaces another worker.
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

/// The result of a complete restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// How many workers there are. All of them are new.
    pub workers: usize,
    /// The time from the command to the end.
    pub took: Duration,
}

/// How far a restart has come. `Display` is a part of a sentence about one that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// How many workers are new.
    pub replaced: usize,
    /// How many workers there are.
    pub total: usize,
    /// A worker is ready, an old or a new one.
    pub any_ready: bool,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replaced, total, any_ready } = self;
        let others = if *any_ready { "the others stay" } else { "and none is ready" };
        write!(f, "{replaced} of {total} workers were replaced, {others}")
    }
}

/// Why a restart did not replace all workers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// A worker of the new generation did not get ready; the old one stays.
    #[error("the new worker {worker} did not get ready: {how}; {reached}")]
    Boot {
        /// The worker's number.
        worker: usize,
        /// What happened to it, with the most useful line of its output.
        how: String,
        /// How far the restart has come.
        reached: Reached,
    },
    /// A worker of the new generation died repeatedly after it was ready, more often than the old ones.
    #[error("the new worker {worker} keeps dying: {how}; {reached}")]
    Unstable {
        /// The worker's number.
        worker: usize,
        /// What happened to it the last time.
        how: String,
        /// How far the restart has come.
        reached: Reached,
    },
    /// The workers are being stopped.
    #[error("the workers are being stopped")]
    Stopping,
}

impl RestartError {
    /// Whether some workers are new, and others are old.
    pub fn has_replaced_some(&self) -> bool {
        match self {
            Self::Boot { reached, .. } | Self::Unstable { reached, .. } => reached.replaced > 0,
            Self::Stopping => false,
        }
    }
}
