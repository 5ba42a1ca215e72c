//! A queue of writes for one server. Writes beyond a limit are dropped, so that nothing waits for a slow server. Knows no requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::server::MemcachedServer;
use crate::Variants;

/// The most writes that wait for a server. They are in memory meanwhile.
const MOST_WAITING: usize = 1024;
const MOST_BYTES: usize = 16 << 20;

/// A write for a key.
pub(super) enum Write<H> {
    Put(Box<[u8]>, Variants<H>),
    Delete(Box<[u8]>),
}

/// The sending end of the queue.
pub(super) struct WriteQueue<H> {
    sender: mpsc::Sender<(Write<H>, usize)>,
    bytes: Arc<AtomicUsize>,
}

/// The receiving end of the queue.
pub(super) struct Writes<H> {
    receiver: mpsc::Receiver<(Write<H>, usize)>,
    bytes: Arc<AtomicUsize>,
}

impl<H> WriteQueue<H> {
    pub fn new() -> (Self, Writes<H>) {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let bytes = Arc::<AtomicUsize>::default();
        (Self { sender, bytes: bytes.clone() }, Writes { receiver, bytes })
    }

    /// Queues a write or drops it. Returns whether it was queued.
    pub fn push(&self, write: Write<H>, weight: usize, server: &MemcachedServer) -> bool {
        let before = self.bytes.fetch_add(weight, Ordering::Relaxed);
        let is_taken = server.is_here()
            && before + weight <= MOST_BYTES
            && self.sender.try_send((write, weight)).is_ok();
        if !is_taken {
            self.bytes.fetch_sub(weight, Ordering::Relaxed);
            server.counts.dropped.add(1);
        }
        is_taken
    }
}

impl<H> Writes<H> {
    /// Waits for the next write. `None` if the queue is closed.
    pub async fn next(&mut self) -> Option<(Write<H>, usize)> {
        self.receiver.recv().await
    }

    /// A write of this weight has been done or dropped.
    pub fn done(&self, weight: usize) {
        self.bytes.fetch_sub(weight, Ordering::Relaxed);
    }
}
