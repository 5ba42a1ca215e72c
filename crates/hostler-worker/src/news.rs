//! What the tasks around a worker report to its worker task. Knows none of these tasks.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::mpsc;

use super::boot_gate::BootTurn;
use super::inspector::Diagnosis;
use super::message::FromWorker;
use super::message_sender::MessageSender;
use super::port_owner::TcpListen;
use super::start_files::StartLook;

/// At most this many reports lie unread. Then the senders wait, so a chatty worker uses no more memory.
const MOST_UNREAD_NEWS: usize = 64;

/// A report to the worker task.
#[derive(Debug)]
pub(super) enum WorkerNews {
    /// The worker may boot, and what a look at its files has found, if there was one. `None`: it has waited long enough for its files, and
    /// its boot fails.
    Turn(Option<(BootTurn, Option<StartLook>)>),
    /// A process sent a message.
    Said { message: FromWorker, message_sender: MessageSender },
    /// The process that listens has ended. It is not the one that Hostler started.
    Gone { pid: u32 },
    /// The port accepts connections.
    Connectable {
        /// Where.
        address: SocketAddr,
        /// The process that listens on the port, if it was found.
        owner: Option<TcpListen>,
    },
    /// A process without the preload listens on TCP.
    ForeignProcess {
        /// What the operator should know.
        text: String,
        /// The process, if it listens on the PORT that Hostler has set. Then it is the app, and this is where it does.
        owner: Option<(u32, SocketAddr)>,
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
    Inspected {
        /// The process has stopped in the middle of it.
        stands_still: bool,
    },
    /// Its event loop has not turned for some seconds although it has requests, or turns again.
    Blocked(bool),
    /// It has requests and has not answered for too long.
    Silent,
    /// A process that may be a helper of the app has waited for a better claim than its own.
    HasWaited { nth: u32 },
    /// Its server was closed, and has not listened again in time.
    NotListening,
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
pub(super) struct NewsSender {
    generation: u64,
    sender: mpsc::Sender<(u64, WorkerNews)>,
}

pub(super) type NewsReceiver = mpsc::Receiver<(u64, WorkerNews)>;

impl NewsSender {
    pub fn pair(generation: u64) -> (Self, NewsReceiver) {
        let (sender, news_receiver) = mpsc::channel(MOST_UNREAD_NEWS);
        (Self { generation, sender }, news_receiver)
    }

    pub fn of_generation(&self, generation: u64) -> Self {
        Self { generation, sender: self.sender.clone() }
    }

    pub async fn send(&self, news: WorkerNews) {
        // If the worker task is gone, no report is needed.
        let _ = self.sender.send((self.generation, news)).await;
    }
}
