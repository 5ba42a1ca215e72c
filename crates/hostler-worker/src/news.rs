//! What the tasks around a worker report to its worker task; knows none of them.

use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::channel::Speaker;
use super::inspector::Diagnosis;
use super::message::FromWorker;

/// So many reports may lie unread; then those who report wait, so a chatty worker costs no memory.
const MAILBOX: usize = 64;

/// What happened around a worker.
#[derive(Debug)]
pub(super) enum WorkerNews {
    /// It may boot, for as long as the permit is held.
    Turn(OwnedSemaphorePermit),
    /// A process said something.
    Said { message: FromWorker, speaker: Speaker },
    /// The process that listens, which is not the one that we started, has ended.
    Gone { pid: u32 },
    /// Its port accepts connections.
    Connectable,
    /// Its health path answered 2xx.
    Healthy,
    /// Its health path answered otherwise.
    Unhealthy(String),
    /// Its warm-up paths have been asked for.
    Warmed,
    /// It has been asked where it is stuck.
    Diagnosed(Diagnosis),
    /// It has requests and has not answered for too long.
    Silent,
}

/// The way to the worker task for the tasks of one generation; what comes from an earlier one is passed over.
#[derive(Clone)]
pub(super) struct Wire {
    generation: u64,
    sender: mpsc::Sender<(u64, WorkerNews)>,
}

pub(super) type Mailbox = mpsc::Receiver<(u64, WorkerNews)>;

impl Wire {
    pub fn pair(generation: u64) -> (Self, Mailbox) {
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        (Self { generation, sender }, mailbox)
    }

    pub fn of_generation(&self, generation: u64) -> Self {
        Self { generation, sender: self.sender.clone() }
    }

    pub async fn send(&self, news: WorkerNews) {
        // A worker task that is gone needs no news.
        let _ = self.sender.send((self.generation, news)).await;
    }
}
