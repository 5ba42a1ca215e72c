//! The events and actions of a worker's lifecycle. Knows no rules.

use std::time::Duration;

use tokio::time::Instant;

/// How a process has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeathReport {
    /// It was killed by SIGKILL, which no program sends to itself.
    pub killed: bool,
    /// It has had a request since it started.
    pub served: bool,
    /// A worker of its generation has been ready, so the code is known to work.
    pub proven: bool,
    /// How long the pool's boots have to wait because of the CPU time they have used.
    pub owed: Duration,
}

/// What happened to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LifecycleEvent {
    /// The boot gate lets this worker boot.
    Turn,
    /// The process could not be started.
    SpawnFailed { proven: bool },
    /// The process listens, and its address is known.
    Listening,
    /// The health path answered.
    Healthy,
    /// The warm-up paths have answered, well or badly.
    Warmed,
    /// The app listens for messages.
    Hears,
    /// It cannot be told to stop: the app has closed its channel.
    Deaf,
    /// The process that listens is gone, but the one that Hostler started lives.
    Orphaned,
    /// A request has taken longer than `hang_timeout`.
    Hung,
    /// The diagnosis of a hung worker is complete.
    Diagnosed,
    /// The process is gone.
    Exited(DeathReport),
    /// The pool misses a worker, and this spare takes its place.
    StepIn,
    /// The pool has all its workers, and this spare stands by again.
    StepBack,
    /// Leave the pool for a heap snapshot, and finish the running requests.
    SetAside,
    /// The heap snapshot has ended.
    PutBack,
    /// The process has stopped in the middle of its heap snapshot.
    StandsStill,
    /// An operator takes it out of rotation.
    Drain { until: Option<Instant> },
    /// The operator puts it back.
    Undrain,
    /// Stop for good.
    Stop,
    /// Finish the running requests, then stop for good.
    Retire,
    /// The worker has left the pool, and its last request has ended.
    Finished,
    /// Stop at once.
    Kill,
    /// The [`Lifecycle::deadline`] has come.
    Tick,
}

/// What the worker task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ask the boot gate for a turn.
    AskTurn,
    /// Start the process.
    Spawn,
    /// Begin to request the health path.
    CheckHealth,
    /// Begin to request the warm-up paths.
    WarmUp,
    /// Join the pool.
    Join,
    /// Let the next worker boot.
    YieldTurn,
    /// Report that the probation is over, so that the predecessor can leave.
    TakeOver,
    /// Leave the pool.
    Leave,
    /// Leave the pool and report when the last request has ended.
    Withdraw,
    /// Find out where it hangs.
    Diagnose,
    /// Send `"shutdown"`.
    SayShutdown,
    /// SIGTERM to the group.
    Terminate,
    /// SIGKILL to the group.
    Kill(KillReason),
}

/// Why a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillReason {
    /// It was not ready in time.
    StartTimeout,
    /// It did not stop in time.
    StopTimeout,
    /// Only its parent processes were left.
    Orphaned,
    /// A request took too long, or the event loop did not answer.
    Hung,
    /// There was no time for a graceful stop.
    Ordered,
}

/// The role of a worker in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolRole {
    /// One of the wanted workers. It boots again after every death.
    Regular,
    /// It stands by and takes the place of a missing worker until that is back. It boots again after every death.
    Spare,
    /// It is to replace another worker and is on probation.
    Successor,
    /// It leaves.
    Retired,
}
