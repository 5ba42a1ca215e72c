//! What the tasks around a worker report to its worker task. Knows none of these tasks.

use std::time::Duration;

use tokio::sync::mpsc;

use super::boot_gate::BootTurn;
use super::inspector::Diagnosis;
use super::message::FromWorker;
use super::port_owner::TcpListen;
use super::speaker::Speaker;

/// At most this many reports lie unread. Then the senders wait, so a chatty worker uses no more memory.
const MAILBOX: usize = 64;

/// A report to the worker task.
#[derive(Debug)]
pub(super) enum WorkerNews {
    /// The worker may boot.
    Turn(BootTurn),
    /// A process sent a message.
    Said { message: FromWorker, speaker: Speaker },
    /// The process that listens has ended. It is not the one that Hostler started.
    Gone { pid: u32 },
    /// The port accepts connections.
    Connectable {
        /// The process that listens on the port, if it was found.
        owner: Option<TcpListen>,
    },
    /// A process without the preload listens on TCP.
    Stranger {
        /// What the operator should know.
        text: String,
        /// The process, if it listens on the PORT that Hostler has set. Then it is the app.
        owner: Option<u32>,
    },
    /// The health path answered 2xx.
    Healthy,
    /// The health path answered something else.
    Unhealthy(String),
    /// All warm-up paths were requested.
    Warmed,
    /// The result of the question where it is stuck.
    Diagnosed(Diagnosis),
    /// The profile or heap snapshot has ended, well or badly.
    Inspected,
    /// It has requests and has not answered for too long.
    Silent,
    /// A process that may be a helper of the app has waited for a better claim than its own.
    HasWaited { nth: u32 },
    /// Its server was closed, and has not listened again in time.
    Deaf,
    /// Its socket is not at its path any more, or is not its own.
    NoSocket(Absence),
}

/// What is not there any more.
#[derive(Clone, Copy, Debug)]
pub(super) enum Absence {
    /// The folder of the socket. Another user may have made one at its path, and would get the requests.
    Folder,
    /// The socket, in all looks of this time. Zero: in one look.
    Socket(Duration),
}

/// Sends reports to the worker task for one generation. Reports of an earlier generation are ignored.
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
        // If the worker task is gone, no report is needed.
        let _ = self.sender.send((self.generation, news)).await;
    }
}
