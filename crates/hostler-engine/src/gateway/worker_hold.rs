//! Workers that requests hold for too long, and how. Knows no requests.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

/// The last worker that serves is kept from a path for this long at most. It is the default of `hang_timeout`: where that is longer, requests
/// may be meant to compute for long.
const KEEPS_LAST: Duration = Duration::from_secs(60);

/// How a request holds its worker for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerHold {
    /// The event loop of the worker does not turn.
    Blocks,
    /// The request waits for something. It takes a slot, and the worker does other things.
    Waits,
}

impl WorkerHold {
    /// `turns`: the event loop of the worker turns. `may_close` is false for one of several in a worker, because another one may block the
    /// loop, and for a batch: the others have the same URL, and mostly the same client, whatever they render. Such requests are tried one at
    /// a time, as if this one waited.
    pub fn of(turns: bool, may_close: bool) -> Self {
        if turns || !may_close { Self::Waits } else { Self::Blocks }
    }
}

/// The workers that similar requests hold.
#[derive(Default)]
pub(super) struct HeldWorkers {
    pub all: usize,
    /// The client of each request that blocks the event loop of one of them.
    blocked_by: Vec<u64>,
    /// When the newest of the requests that hold workers was sent.
    last: Option<Instant>,
}

impl HeldWorkers {
    /// One more worker is held, by a request of this client that was sent at `since`.
    pub fn add(&mut self, hold: WorkerHold, client: u64, since: Instant) {
        self.last = self.since().max(Some(since));
        self.all += 1;
        if hold == WorkerHold::Blocks {
            self.blocked_by.push(client);
        }
    }

    /// A request of this client no longer holds a worker.
    pub fn remove(&mut self, hold: WorkerHold, client: u64) {
        self.all = self.all.saturating_sub(1);
        if hold == WorkerHold::Blocks
            && let Some(index) = self.blocked_by.iter().position(|other| *other == client)
        {
            self.blocked_by.swap_remove(index);
        }
    }

    /// Whether a request does not block the event loop of the worker that it holds.
    pub fn some_wait(&self) -> bool {
        self.all > self.blocked_by.len()
    }

    /// Whether the next similar request of this client would probably block one more worker: one of its own blocks a worker, or those of
    /// several clients do. Or whether it could block the last of the pool's `members` that serves: each request here blocks another one.
    pub fn closes_for(&self, client: u64, members: usize, now: Instant) -> bool {
        self.blocked_by.contains(&client)
            || self.blocked_by.windows(2).any(|two| two[0] != two[1])
            || self.leaves_one_at_most(members, now)
    }

    /// Whether workers are blocked, and one of these members serves at most. A pool of one has no other to keep.
    fn leaves_one_at_most(&self, members: usize, now: Instant) -> bool {
        let is_new = self.last.is_some_and(|last| now.saturating_duration_since(last) < KEEPS_LAST);
        is_new && !self.blocked_by.is_empty() && members > 1 && members <= self.blocked_by.len() + 1
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
