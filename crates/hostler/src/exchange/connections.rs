//! How many client connections there are, and whether they are to end: what the listener, the server and the status share. Knows no
//! sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The client connections of all data-plane threads.
#[derive(Default)]
pub struct Connections {
    open: AtomicUsize,
    draining: AtomicBool,
    changed: Notify,
    refused: AtomicUsize,
}

impl Connections {
    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many were refused for being too many.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// One was refused for being too many.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// From now on connections end with the request they have.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// True while we are stopping.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Ready when a drain has begun or the last connection has ended, from the moment of this call on.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Waits until none is open.
    pub async fn none_open(&self) {
        loop {
            let changed = self.changed();
            if self.open() == 0 {
                return;
            }
            changed.await;
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
