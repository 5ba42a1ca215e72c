//! A request that its worker did not answer, after the end of its exchange: finds out whether the worker died because of it. Knows no
//! requests and no workers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::CpuClock;
use hostler_worker::{ExitCause, ExitWatch, UnfinishedRequest};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// If a connection broke because its process ended, the exit is reported within this time. If none is reported, the worker closed the
/// connection itself and lives.
const EXIT_REPORT_LIMIT: Duration = Duration::from_secs(1);
/// The same for a worker that was told to close the connection. The limit is short, because the kernel closes the files of a process only
/// just before its end.
const EXIT_REPORT_LIMIT_AFTER_FIN: Duration = Duration::from_millis(50);
/// If the event loop waits for events this long after the break, the worker lives: the loop of a process whose connections the kernel
/// closes waits no more. The time is for an app that closes its connections itself and then ends.
const LIVES_AFTER: Duration = Duration::from_millis(250);

/// A request that its worker did not answer: the worker broke it off or still works on it.
#[derive(Debug)]
pub struct PendingEnd {
    exit_watch: ExitWatch,
    event_loop: Option<LoopWatch>,
    since: Instant,
    until: Until,
    /// The name of the request, for as long as its end is waited for.
    unfinished: Option<UnfinishedRequest>,
}

/// Tells whether the event loop of a worker turns.
#[derive(Clone)]
pub struct LoopWatch(Arc<dyn CpuClock>);

#[derive(Debug)]
enum Until {
    BrokenOff { at: Instant, alone: bool },
    Finished { ending: oneshot::Receiver<Ending>, alone: bool },
}

/// How a call that goes on after its exchange has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The worker has finished.
    Whole,
    /// The worker was told to stop, and its side of the connection is closed: it has noticed, or it has died.
    Closed {
        /// The worker had no other request.
        alone: bool,
    },
    /// The worker broke it off, or was killed because it hung.
    Lost {
        /// The worker had no other request.
        alone: bool,
    },
}

/// What became of a request that its worker broke off or still worked on.
#[derive(Debug)]
pub enum RequestFate {
    /// The worker has finished it.
    Finished,
    /// The worker has not finished it, and lives.
    Dropped,
    /// The worker died with it.
    Deadly(Death),
}

/// The death of a worker that had a request.
#[derive(Debug)]
pub struct Death {
    pub pid: u32,
    /// When the worker got the request.
    pub since: Instant,
    /// When the worker broke the request off.
    pub at: Instant,
    /// The worker ended by itself: it was not killed from outside.
    pub own: bool,
    /// The worker had no other request.
    pub alone: bool,
}

impl PendingEnd {
    /// The worker with this clock has broken off a request that it got at `since`. `alone`: it had no other.
    ///
    /// Without a clock it takes a second to learn that the worker lives.
    pub fn broken_off(
        exit_watch: ExitWatch,
        clock: Option<Arc<dyn CpuClock>>,
        since: Instant,
        alone: bool,
    ) -> Self {
        let event_loop = clock.map(LoopWatch::new);
        Self {
            exit_watch,
            event_loop,
            since,
            until: Until::BrokenOff { at: Instant::now(), alone },
            unfinished: None,
        }
    }

    /// The worker with this clock goes on with a request that it got at `since`. `alone`: it has no other. The end is sent through the
    /// returned sender.
    ///
    /// Without a clock nothing tells whether its event loop turns.
    pub fn lingering(
        exit_watch: ExitWatch,
        clock: Option<Arc<dyn CpuClock>>,
        since: Instant,
        alone: bool,
    ) -> (Self, oneshot::Sender<Ending>) {
        let (sender, ending) = oneshot::channel();
        let (event_loop, until) = (clock.map(LoopWatch::new), Until::Finished { ending, alone });
        (Self { exit_watch, event_loop, since, until, unfinished: None }, sender)
    }

    /// Tells whether the event loop of the worker turns. None: nothing tells.
    pub fn event_loop(&self) -> Option<LoopWatch> {
        self.event_loop.clone()
    }

    /// Whether the worker still works on the request.
    pub fn is_lingering(&self) -> bool {
        matches!(self.until, Until::Finished { .. })
    }

    /// Whether the worker had no other request when the exchange ended.
    pub fn is_alone(&self) -> bool {
        let (Until::BrokenOff { alone, .. } | Until::Finished { alone, .. }) = self.until;
        alone
    }

    pub fn since(&self) -> Instant {
        self.since
    }

    /// Gives the request a name for the log, in case the worker is killed before it has finished.
    pub fn named(self, name: &Arc<str>) -> Self {
        let unfinished =
            self.is_lingering().then(|| self.exit_watch.note_unfinished(name.clone(), self.since));
        Self { unfinished, ..self }
    }

    /// As [`Self::named`], for a request whose end has no other consequence. Waits for the end in a task.
    pub fn name_until_end(self, name: &Arc<str>) {
        if self.is_lingering() {
            tokio::spawn(self.named(name).death());
        }
    }

    /// The death of the worker, if it died with the request.
    pub async fn death(self) -> Option<Death> {
        match self.fate().await {
            RequestFate::Deadly(death) => Some(death),
            RequestFate::Finished | RequestFate::Dropped => None,
        }
    }

    /// Waits for the end of the request.
    pub async fn fate(self) -> RequestFate {
        // Kept until the end is known.
        let _unfinished = self.unfinished;
        let (at, alone, event_loop, limit) = match self.until {
            Until::BrokenOff { at, alone } => (at, alone, self.event_loop, EXIT_REPORT_LIMIT),
            Until::Finished { ending, .. } => {
                let (alone, limit) = match ending.await {
                    Ok(Ending::Whole) => return RequestFate::Finished,
                    Ok(Ending::Closed { alone }) => (alone, EXIT_REPORT_LIMIT_AFTER_FIN),
                    Ok(Ending::Lost { alone }) => (alone, EXIT_REPORT_LIMIT),
                    Err(_) => (false, EXIT_REPORT_LIMIT),
                };
                (Instant::now(), alone, None, limit)
            }
        };
        let Some(cause) = reported(&self.exit_watch, event_loop, limit).await else {
            return RequestFate::Dropped;
        };
        let (pid, since, own) = (self.exit_watch.pid(), self.since, cause == ExitCause::Own);
        RequestFate::Deadly(Death { pid, since, at, own, alone })
    }
}

/// The cause of the worker's death. None if none is reported within `limit`, or the event loop shows that the worker lives.
async fn reported(
    exit_watch: &ExitWatch,
    event_loop: Option<LoopWatch>,
    limit: Duration,
) -> Option<ExitCause> {
    let Some(event_loop) = event_loop else { return exit_watch.death_within(limit).await };
    let cause = exit_watch.death_within(LIVES_AFTER).await;
    if cause.is_some() || event_loop.waits() {
        return cause;
    }
    exit_watch.death_within(limit.saturating_sub(LIVES_AFTER)).await
}

/// A loop counts as blocked if it computes at each of this many looks ...
const LOOKS: usize = 100;
/// ... with this time between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

impl LoopWatch {
    pub fn new(clock: Arc<dyn CpuClock>) -> Self {
        Self(clock)
    }

    /// Whether the loop waits for events now, so that no request blocks it.
    pub fn waits(&self) -> bool {
        self.0.waits()
    }

    /// Whether the loop turns: it waits for events at some moment within a second.
    pub async fn turns(&self) -> bool {
        for _ in 0..LOOKS {
            if self.waits() {
                return true;
            }
            sleep(BETWEEN_LOOKS).await;
        }
        false
    }
}

impl fmt::Debug for LoopWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LoopWatch").finish_non_exhaustive()
    }
}
