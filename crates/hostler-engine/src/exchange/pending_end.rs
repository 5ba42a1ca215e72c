//! What a request may have left behind at a worker: whether the worker ended over it, to be asked a moment later. Knows neither.

use std::time::Duration;

use hostler_worker::{ExitCause, ExitWatch};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A connection breaks with its process, and whoever watches the process hears of it within this. One that has not ended by
/// then has broken the connection off itself.
const NEWS_TRAVELS: Duration = Duration::from_secs(1);

/// A worker that will not answer a request any more, or not in time.
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

/// How a call that goes on by itself has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The worker has finished.
    Whole,
    /// The worker broke it off, or was killed because it hung.
    Lost {
        /// It had no other request.
        alone: bool,
    },
}

/// A worker that ended while it held a request.
#[derive(Debug)]
pub struct Death {
    /// The worker's process.
    pub pid: u32,
    /// When the worker got the request.
    pub since: Instant,
    /// When it broke the request off.
    pub at: Instant,
    /// How the worker ended says that it was its own doing, and nobody else's.
    pub own: bool,
    /// It had no other request.
    pub alone: bool,
}

impl PendingEnd {
    /// The worker has broken off a request that it got then, `alone` if it had no other.
    pub fn broken_off(exit_watch: ExitWatch, since: Instant, alone: bool) -> Self {
        Self { exit_watch, since, until: Until::BrokenOff { at: Instant::now(), alone } }
    }

    /// The worker goes on with a request that it got then; whoever keeps the sender says how that ends.
    pub fn lingering(exit_watch: ExitWatch, since: Instant) -> (Self, oneshot::Sender<Ending>) {
        let (sender, finished) = oneshot::channel();
        (Self { exit_watch, since, until: Until::Finished(finished) }, sender)
    }

    /// True when the answer may take its time: the worker is still at it.
    pub fn is_lingering(&self) -> bool {
        matches!(self.until, Until::Finished(_))
    }

    /// When the worker got the request.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// The worker's death, if it died over the request.
    pub async fn death(self) -> Option<Death> {
        let (at, alone) = match self.until {
            Until::BrokenOff { at, alone } => (at, alone),
            Until::Finished(finished) => match finished.await {
                Ok(Ending::Whole) => return None,
                Ok(Ending::Lost { alone }) => (Instant::now(), alone),
                Err(_) => (Instant::now(), false),
            },
        };
        let cause = self.exit_watch.death_within(NEWS_TRAVELS).await?;
        Some(Death { pid: self.exit_watch.pid(), since: self.since, at, own: cause == ExitCause::Own, alone })
    }
}
