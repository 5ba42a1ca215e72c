//! An HTTP/1.1 connection of a client between two requests: it holds the socket and one deadline. Knows no requests and no routes.
//!
//! Most open connections are idle. So the state of a request, some kilobytes, exists only from the first byte of a request until the connection
//! has been silent for a second. A connection with frequent requests keeps it, because to make it costs more than to keep it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hostler_engine::exchange::{Deadline, SpoolAccount};
use hostler_wire::{Stream, read_some};
use tokio::task::coop;

use super::Settings;
use super::shard::Shard;

/// How long a connection is silent before the memory that only requests need is freed.
const KEPT: Duration = Duration::from_secs(1);
/// The most bytes that are read before there is a request state.
const FIRST_READ: usize = 16 * 1024;

/// A connection that waits for its next request.
pub(super) struct IdleConnection {
    pub stream: Stream,
    /// The settings that the connection found when it began.
    pub settings: Arc<Settings>,
    /// Bytes written since the connection began.
    pub written: u64,
    /// The connection's share of the spool; none before its first use.
    pub spool: Option<SpoolAccount>,
    /// When the connection has been idle for too long.
    pub silence: Deadline,
}

impl IdleConnection {
    /// A connection before its first request.
    pub fn new(stream: Stream, shard: &Shard) -> Self {
        let (settings, silence) = (shard.settings.load_full(), shard.sweep.deadline());
        silence.set_after(settings.idle_timeout);
        Self { stream, settings, written: 0, spool: None, silence }
    }

    /// Waits for bytes of the next request. None if there are none: the client has closed, was idle for too long, or Hostler stops.
    pub async fn first_bytes(&mut self, shard: &Shard) -> Option<Vec<u8>> {
        poll_fn(|cx| match read_some(&mut self.stream, cx, FIRST_READ, <[u8]>::to_vec) {
            Poll::Ready(Ok(bytes)) => Poll::Ready((!bytes.is_empty()).then_some(bytes)),
            Poll::Ready(Err(_)) => Poll::Ready(None),
            // The task has moved many bytes in this turn, so the read was put off.
            Poll::Pending if !coop::has_budget_remaining() => Poll::Pending,
            // Checked after the read: a request that has arrived is answered even while Hostler stops.
            Poll::Pending if shard.is_draining() => Poll::Ready(None),
            Poll::Pending => self.silence.poll_due(cx).map(|()| None),
        })
        .await
    }
}

/// What follows a wait for a head.
pub(super) enum NextHead {
    /// The head was read.
    Read,
    /// There is none: the client has closed, was idle for too long, or Hostler stops.
    None,
    /// None has come for a while. The connection goes on without the state of a request.
    Idle,
}

/// The silence of a connection that still has the memory that only requests need.
#[derive(Default)]
pub(super) struct ShortSilence {
    /// When the silence began, in milliseconds of the sweep.
    began: u64,
    /// Whether the memory is to be freed when the deadline is due.
    is_short: bool,
}

impl ShortSilence {
    /// The silence begins. `silence` is due when the memory is to be freed, or when the connection has been idle for too long.
    pub fn begin(silence: &Deadline, idle_timeout: Duration) -> Self {
        let (began, is_short) = (silence.sweep().millis(), idle_timeout > 2 * KEPT);
        match is_short {
            true => silence.set_roughly_after(KEPT),
            false => silence.set_after(idle_timeout),
        }
        Self { began, is_short }
    }

    /// Something has come that is no request, after the memory was freed. `silence` is due when it is to be freed again. The connection is
    /// idle since the same time as before.
    pub fn begin_again(&mut self, silence: &Deadline) {
        silence.set_roughly_after(KEPT);
        self.is_short = true;
    }

    /// `silence` is due. Returns whether the connection may stay open. Then `silence` is due when it has been idle for too long.
    pub fn end(&mut self, silence: &Deadline, idle_timeout: Duration) -> bool {
        if std::mem::take(&mut self.is_short) {
            silence.set_after_millis(self.began, idle_timeout);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_result<A, B, C, D, Task>(_: fn(A, B, C, D) -> Task) -> usize {
        size_of::<Task>()
    }

    #[test]
    fn the_task_of_an_idle_connection_holds_no_request_state() {
        let bytes = size_of_result(Shard::serve_http1);
        assert!(bytes <= 640, "{bytes} bytes for each open connection");
    }
}
