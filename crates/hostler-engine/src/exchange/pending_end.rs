//! A request that its worker did not answer, after the end of its exchange: finds out whether the worker died because of it. Knows no
//! requests and no workers.

use std::time::Duration;

use hostler_worker::{ExitCause, ExitWatch};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A connection breaks when its process ends, and the process's exit is reported within this time. If no exit was reported by then, the
/// worker has closed the connection itself.
const EXIT_REPORT_LIMIT: Duration = Duration::from_secs(1);

/// A request that its worker did not answer: the worker broke it off or still works on it.
#[derive(Debug)]
pub struct PendingEnd {
    exit_watch: ExitWatch,
    since: Instant,
    until: Until,
}

#[derive(Debug)]
enum Until {
    BrokenOff { at: Instant, alone: bool },
    Finished(oneshot::Receiver<Ending>),
}

/// How a call that goes on after its exchange has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The worker has finished.
    Whole,
    /// The worker broke it off, or was killed because it hung.
    Lost {
        /// The worker had no other request.
        alone: bool,
    },
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
    /// The worker has broken off a request that it got at `since`. `alone`: it had no other.
    pub fn broken_off(exit_watch: ExitWatch, since: Instant, alone: bool) -> Self {
        Self { exit_watch, since, until: Until::BrokenOff { at: Instant::now(), alone } }
    }

    /// The worker goes on with a request that it got at `since`. The end is sent through the returned sender.
    pub fn lingering(exit_watch: ExitWatch, since: Instant) -> (Self, oneshot::Sender<Ending>) {
        let (sender, finished) = oneshot::channel();
        (Self { exit_watch, since, until: Until::Finished(finished) }, sender)
    }

    /// Whether the worker still works on the request.
    pub fn is_lingering(&self) -> bool {
        matches!(self.until, Until::Finished(_))
    }

    pub fn since(&self) -> Instant {
        self.since
    }

    /// The death of the worker, if it died with the request.
    pub async fn death(self) -> Option<Death> {
        let (at, alone) = match self.until {
            Until::BrokenOff { at, alone } => (at, alone),
            Until::Finished(finished) => match finished.await {
                Ok(Ending::Whole) => return None,
                Ok(Ending::Lost { alone }) => (Instant::now(), alone),
                Err(_) => (Instant::now(), false),
            },
        };
        let cause = self.exit_watch.death_within(EXIT_REPORT_LIMIT).await?;
        Some(Death { pid: self.exit_watch.pid(), since: self.since, at, own: cause == ExitCause::Own, alone })
    }
}
