//! An HTTP/1.1 connection of a client between two requests: it holds the socket and one deadline. Knows no requests and no routes.
//!
//! Most open connections are idle. So the state of a request, some kilobytes, exists only from the first byte of a request until the connection
//! has been silent for a second. A connection with frequent requests keeps it, because to make it costs more than to keep it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use hostler_engine::exchange::{Deadline, SpoolAccount};
use hostler_wire::{Stream, read_some};
use tokio::task::coop;

use super::Settings;
use super::shard::Shard;
use super::silence::FIRST_READ;

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
    pub fn new(stream: Stream, settings: Arc<Settings>, shard: &Shard) -> Self {
        let silence = shard.sweep.deadline();
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
            Poll::Pending if shard.ends_idle(&self.settings, self.stream.is_tls()) => Poll::Ready(None),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_result<A, B, C, D, E, Task>(_: fn(A, B, C, D, E) -> Task) -> usize {
        size_of::<Task>()
    }

    #[test]
    fn the_task_of_an_idle_connection_holds_no_request_state() {
        let bytes = size_of_result(Shard::serve_http1);
        assert!(bytes <= 400, "{bytes} bytes for each open connection");
    }
}
