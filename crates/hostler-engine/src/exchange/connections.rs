//! How many client connections there are, and whether they are to end: what the listener, the server and the status share. Knows no
//! sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::clients::Clients;
use super::cut::CutAnswers;
use super::handshakes::Handshakes;

/// Nobody is let in, and each connection ends with its next request.
const LEAVING: u8 = 1;
/// Nobody is let in, and connections without a request end.
const DRAINING: u8 = 2;

/// The client connections of all data-plane threads.
#[derive(Default)]
pub struct Connections {
    /// Sockets that may still let clients in.
    listening: AtomicUsize,
    open: AtomicUsize,
    /// Those of them that are tunnels.
    tunnels: AtomicUsize,
    /// 0 while clients come and go.
    stage: AtomicU8,
    changed: Notify,
    /// Whoever asks about our health is told to go elsewhere.
    end_announced: AtomicBool,
    refused: AtomicUsize,
    /// What comes before the first request of each.
    pub handshakes: Handshakes,
    flooded: AtomicUsize,
    /// Answers that were broken off because their clients did not take them.
    pub cut: CutAnswers,
    /// What each client holds of them.
    pub clients: Arc<Clients>,
}

impl Connections {
    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many of them are tunnels.
    pub fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::Relaxed)
    }

    /// How many were refused for being too many.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// One was refused for being too many.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// All goes on, but whoever asks about our health is told to go elsewhere: the end will come.
    pub fn announce_end(&self) {
        self.end_announced.store(true, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Whether health checks are to fail.
    pub fn is_end_announced(&self) -> bool {
        self.end_announced.load(Ordering::Relaxed)
    }

    /// How many were ended because they flooded us with frames.
    pub fn flooded(&self) -> usize {
        self.flooded.load(Ordering::Relaxed)
    }

    /// One was ended because it flooded us with frames.
    pub fn count_flood(&self) {
        self.flooded.fetch_add(1, Ordering::Relaxed);
    }

    /// From now on nobody is let in: a successor does that. A connection is kept until its next request, which is told to be the
    /// last one: closed before, it could be in the very moment in which its client sends that.
    pub fn leave(&self) {
        self.enter(LEAVING);
    }

    /// From now on connections end with the request they have.
    pub fn drain(&self) {
        self.enter(DRAINING);
    }

    /// True from the first of those on: no connection gets another request after the one that it has.
    pub fn is_ending(&self) -> bool {
        self.stage.load(Ordering::Relaxed) >= LEAVING
    }

    /// True once connections without a request are to end.
    pub fn is_draining(&self) -> bool {
        self.stage.load(Ordering::Relaxed) >= DRAINING
    }

    /// There is no way back.
    fn enter(&self, stage: u8) {
        self.stage.fetch_max(stage, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Ready when the end has begun, or the last connection or listener has ended, from the moment of this call on.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Waits until nobody is let in any more, and then until none is open: a listener's last clients are counted as open before
    /// it ends.
    pub async fn all_ended(&self) {
        loop {
            let changed = self.changed();
            if self.listening.load(Ordering::Acquire) == 0 && self.open() == 0 {
                return;
            }
            changed.await;
        }
    }
}

/// One socket that lets clients in, counted for as long as this lives.
pub struct Listening(Arc<Connections>);

impl Listening {
    /// One more.
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

/// One client connection, counted for as long as this lives.
pub struct OpenConnection(Arc<Connections>);

impl OpenConnection {
    /// One more.
    pub fn new(connections: &Arc<Connections>) -> Self {
        connections.open.fetch_add(1, Ordering::Relaxed);
        Self(connections.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

/// One connection that has become a tunnel, counted for as long as this lives.
pub struct OpenTunnel(Arc<Connections>);

impl OpenTunnel {
    /// One more.
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
