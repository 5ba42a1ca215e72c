//! Tells a client that has left from one that has only finished sending. Knows no connections.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// In HTTP/1.1, a client that has closed its connection cannot be told from one that has only finished sending. Both get a response that begins
/// within this time. A response that has begun goes on as long as it does not pause for longer.
pub const LEAVING_TIME: Duration = Duration::from_secs(1);

/// The wait for a client that may have left. The default is one that has not closed its side.
#[derive(Default)]
pub struct LeavingClient {
    /// Ready when the client has left.
    wait: Option<Pin<Box<Sleep>>>,
}

impl LeavingClient {
    /// The answer goes on, so the wait starts again.
    pub fn reset(&mut self) {
        self.wait = None;
    }

    /// Ready when the client closed its side [`LEAVING_TIME`] ago. `poll_closed` is ready when it has closed it.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        poll_closed: impl FnOnce(&mut Context<'_>) -> Poll<()>,
    ) -> Poll<()> {
        if self.wait.is_none() {
            ready!(poll_closed(cx));
        }
        self.wait.get_or_insert_with(|| Box::pin(sleep(LEAVING_TIME))).as_mut().poll(cx)
    }
}
