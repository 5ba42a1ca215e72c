//! What is said to a worker's life and what it answers; knows no rules.

use std::time::Duration;

/// How a process has ended, and what is known about that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeathReport {
    /// By a SIGKILL, which no program sends itself.
    pub killed: bool,
    /// It has had a request since it was started.
    pub served: bool,
    /// A worker of its generation has been ready: what is booted is known to work.
    pub proven: bool,
    /// For how long the pool's boots have to rest, by the CPU that they have taken.
    pub owed: Duration,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LifecycleEvent {
    /// The boot gate is open for this worker.
    Turn,
    /// There is no process: it could not be started.
    SpawnFailed { proven: bool },
    /// It listens, and its address is known.
    Listening,
    /// It has answered its health path.
    Healthy,
    /// It has answered its warm-up paths, well or badly.
    Warmed,
    /// The app listens for messages.
    Hears,
    /// The process that listens is gone, although the one we started lives.
    Orphaned,
    /// A request has lasted longer than any may.
    Hung,
    /// All is known of where it hangs that will ever be.
    Diagnosed,
    /// The process is gone.
    Exited(DeathReport),
    /// The pool misses a worker: a spare is to take its place.
    StepIn,
    /// The pool has all its workers: a spare is to stand by.
    StepBack,
    /// It is to stop and not to come back.
    Stop,
    /// It is to finish what it has, and then to stop and not to come back.
    Retire,
    /// It has left the pool, and its last request has ended.
    Finished,
    /// It is to stop at once.
    Kill,
    /// The [`Lifecycle::deadline`] has come.
    Tick,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ask the boot gate for a turn.
    AskTurn,
    /// Start the process.
    Spawn,
    /// Begin to ask for the health path.
    CheckHealth,
    /// Begin to ask for the warm-up paths.
    WarmUp,
    /// Take it into the pool.
    Join,
    /// Let others boot beside it.
    YieldTurn,
    /// Say that it stands the test, and that its predecessor may go.
    TakeOver,
    /// Take it out of the pool.
    Leave,
    /// Take it out of the pool and tell when its last request has ended.
    Withdraw,
    /// Ask where it hangs.
    Diagnose,
    /// Say `"shutdown"`.
    SayShutdown,
    /// SIGTERM to the group.
    Terminate,
    /// SIGKILL to the group.
    Kill(Why),
}

/// Why a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was not ready in time.
    StartTimeout,
    /// It did not stop in time.
    StopTimeout,
    /// Only its parents were left of it.
    Orphaned,
    /// It held a request too long.
    Hung,
    /// There was no time for a graceful stop.
    Ordered,
}

/// What a worker is to its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// One of those that the pool is to have; it comes back whatever happens.
    Regular,
    /// It stands by, and takes the place of one that is missing until that is back; it comes back whatever happens.
    Spare,
    /// It is to take the place of another and has to prove itself.
    Successor,
    /// It is on its way out.
    Retired,
}
