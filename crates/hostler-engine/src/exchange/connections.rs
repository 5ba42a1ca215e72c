//! Counts client connections and stores whether they must end. The listener, the server and the Status share it. Knows no sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::clients::Clients;
use super::cut::CutAnswers;
use super::handshakes::Handshakes;

/// No connection is accepted, and each open one ends after its next request.
const LEAVING: u8 = 1;
/// No connection is accepted, and idle ones end.
const DRAINING: u8 = 2;

#[derive(Default)]
pub struct Connections {
    /// Sockets that may still accept.
    listening: AtomicUsize,
    open: AtomicUsize,
    tunnels: AtomicUsize,
    streams: AtomicUsize,
    /// 0 while connections are accepted.
    stage: AtomicU8,
    changed: Notify,
    /// Health checks fail.
    end_announced: AtomicBool,
    refused: AtomicUsize,
    /// TLS handshakes and PROXY headers.
    pub handshakes: Handshakes,
    flooded: AtomicUsize,
    /// Answers that were cut because their clients did not take them.
    pub cut: CutAnswers,
    /// The connections and requests of each client.
    pub clients: Arc<Clients>,
}

impl Connections {
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::Relaxed)
    }

    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Connections that were refused because there were too many.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes health checks fail while requests are still served.
    pub fn announce_end(&self) {
        self.end_announced.store(true, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Whether health checks must fail.
    pub fn is_end_announced(&self) -> bool {
        self.end_announced.load(Ordering::Relaxed)
    }

    /// Connections that were closed because they flooded us with frames.
    pub fn flooded(&self) -> usize {
        self.flooded.load(Ordering::Relaxed)
    }

    pub fn count_flood(&self) {
        self.flooded.fetch_add(1, Ordering::Relaxed);
    }

    /// A successor accepts connections from now on. An open connection stays until its next answer, which says that it is the last one:
    /// if it was closed earlier, the client might just be sending a request.
    pub fn leave(&self) {
        self.enter(LEAVING);
    }

    /// From now on connections end after the request that they have.
    pub fn drain(&self) {
        self.enter(DRAINING);
    }

    /// True once [`leave`](Self::leave) or [`drain`](Self::drain) was called: no connection gets another request after its current one.
    pub fn is_ending(&self) -> bool {
        self.stage.load(Ordering::Relaxed) >= LEAVING
    }

    /// True once idle connections must end.
    pub fn is_draining(&self) -> bool {
        self.stage.load(Ordering::Relaxed) >= DRAINING
    }

    /// A stage is never left for an earlier one.
    fn enter(&self, stage: u8) {
        self.stage.fetch_max(stage, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Ready when the stage changes, or when the last connection, stream or listener ends, from this call on.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Waits until no socket accepts, and then until no connection and no stream is open: a listener's last connections are counted as open
    /// before it ends. A stream ends at its member after it has ended at its client.
    pub async fn all_ended(&self) {
        loop {
            let changed = self.changed();
            // In this order: a listener leaves connections behind, and a connection leaves streams. What each has left is counted before its own
            // end, and a thread that sees that end must see this count, too.
            let has_listener = self.listening.load(Ordering::Acquire) > 0;
            if !has_listener && self.open.load(Ordering::Acquire) == 0 && self.streams() == 0 {
                return;
            }
            changed.await;
        }
    }
}

/// A listening socket, counted as long as this lives.
pub struct Listening(Arc<Connections>);

impl Listening {
    pub fn new(connections: &Arc<Connections>) -> Self {
        connections.listening.fetch_add(1, Ordering::Relaxed);
        Self(connections.clone())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.0.listening.fetch_sub(1, Ordering::Release) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

/// A client connection, counted as long as this lives.
pub struct OpenConnection(Arc<Connections>);

impl OpenConnection {
    pub fn new(connections: &Arc<Connections>) -> Self {
        connections.open.fetch_add(1, Ordering::Relaxed);
        Self(connections.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::Release) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

/// A tunnel, counted as long as this lives.
pub struct OpenTunnel(Arc<Connections>);

impl OpenTunnel {
    pub fn new(connections: &Arc<Connections>) -> Self {
        connections.tunnels.fetch_add(1, Ordering::Relaxed);
        Self(connections.clone())
    }
}

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.0.tunnels.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream, counted until it has ended at its member.
pub struct OpenStream(Arc<Connections>);

impl OpenStream {
    pub fn new(connections: &Arc<Connections>) -> Self {
        connections.streams.fetch_add(1, Ordering::Relaxed);
        Self(connections.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if self.0.streams.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}
