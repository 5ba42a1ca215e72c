//! Finds out that a client has left although bytes that it has sent are unread. Knows no requests.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_wire::Stream;
use tokio::time::{Sleep, sleep};

/// The time between two looks at a connection.
const PAUSE: Duration = Duration::from_millis(250);

/// The wait for the end of a connection behind bytes that are not read. The runtime wakes no task for it while there are bytes to read.
#[derive(Default)]
pub(super) struct HiddenEnd {
    /// Ready when it is time for the next look.
    next_look: Option<Pin<Box<Sleep>>>,
}

impl HiddenEnd {
    /// Ready when the client has closed its side or has reset the connection.
    pub fn poll(&mut self, cx: &mut Context<'_>, stream: &Stream) -> Poll<()> {
        while !stream.has_closed() {
            ready!(self.next_look.get_or_insert_with(|| Box::pin(sleep(PAUSE))).as_mut().poll(cx));
            self.next_look = None;
        }
        Poll::Ready(())
    }
}
