//! What a request may have left behind at a worker: whether the worker ended over it, to be asked a moment later. Knows neither.

use std::time::Duration;

use hostler_pool::worker::Fate;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A connection breaks with its process, and whoever watches the process hears of it within this. One that has not ended by
/// then has broken the connection off itself.
const NEWS_TRAVELS: Duration = Duration::from_secs(1);

/// A worker that will not answer a request any more, or not in time.
#[derive(Debug)]
pub struct Aftermath {
    fate: Fate,
    since: Instant,
    until: Until,
}

#[derive(Debug)]
enum Until {
    BrokenOff(Instant),
    Finished(oneshot::Receiver<()>),
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
}

impl Aftermath {
    /// The worker has broken off a request that it got then.
    pub fn broken_off(fate: Fate, since: Instant) -> Self {
        Self { fate, since, until: Until::BrokenOff(Instant::now()) }
    }

    /// The worker goes on with a request that it got then; whoever keeps the sender says when it has finished, and drops it
    /// unsaid when it has not.
    pub fn lingering(fate: Fate, since: Instant) -> (Self, oneshot::Sender<()>) {
        let (sender, finished) = oneshot::channel();
        (Self { fate, since, until: Until::Finished(finished) }, sender)
    }

    /// True when the answer may take its time: the worker is still at it.
    pub fn is_lingering(&self) -> bool {
        matches!(self.until, Until::Finished(_))
    }

    /// The worker's death, if it died over the request.
    pub async fn death(self) -> Option<Death> {
        let at = match self.until {
            Until::BrokenOff(at) => at,
            Until::Finished(finished) => match finished.await {
                Ok(()) => return None,
                Err(_) => Instant::now(),
            },
        };
        let died = self.fate.died_within(NEWS_TRAVELS).await;
        died.then(|| Death { pid: self.fate.pid(), since: self.since, at })
    }
}
