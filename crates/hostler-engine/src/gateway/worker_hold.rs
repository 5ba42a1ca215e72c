//! Workers that requests hold for too long, and how. Knows no requests.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

/// How a request holds its worker for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerHold {
    /// The event loop of the worker does not turn.
    Blocks,
    /// The request waits for something. It takes a slot, and the worker does other things.
    Waits,
}

impl WorkerHold {
    /// `turns`: the event loop of the worker turns.
    pub fn of(turns: bool) -> Self {
        if turns { Self::Waits } else { Self::Blocks }
    }
}

/// The workers that similar requests hold.
#[derive(Default)]
pub(super) struct HeldWorkers {
    pub all: usize,
    /// Those of them whose event loop does not turn.
    pub blocked: usize,
    /// When the newest of the requests that hold workers was sent.
    last: Option<Instant>,
}

impl HeldWorkers {
    /// One more worker is held, by a request that was sent at `since`.
    pub fn add(&mut self, hold: WorkerHold, since: Instant) {
        self.last = self.since().max(Some(since));
        self.all += 1;
        self.blocked += usize::from(hold == WorkerHold::Blocks);
    }

    /// A request no longer holds a worker.
    pub fn remove(&mut self, hold: WorkerHold) {
        self.all = self.all.saturating_sub(1);
        self.blocked = self.blocked.saturating_sub(usize::from(hold == WorkerHold::Blocks));
    }

    /// When the last of the requests that hold workers was sent. None: no worker is held.
    pub fn since(&self) -> Option<Instant> {
        self.last.filter(|_| self.all > 0)
    }
}

/// Waits so long for the end of a request, after which it holds its worker for too long. `may_hold` is called when half of the time is over.
pub(super) async fn end_within<T>(
    time: Duration,
    mut ended: Pin<&mut impl Future<Output = T>>,
    may_hold: impl FnOnce(),
) -> Result<T, Elapsed> {
    let half = time / 2;
    if let Ok(end) = timeout(half, ended.as_mut()).await {
        return Ok(end);
    }
    may_hold();
    timeout(time - half, ended).await
}
