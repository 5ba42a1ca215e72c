//! What the ways of taking a profile or a heap snapshot share: the replies of the preload, and the way of the result. Decides nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::InspectionEvent;
use crate::inspector::Notices;
use crate::message_sender::MessageSender;
use crate::process::cpu_time;

/// How long the reader of a result may take nothing. Meanwhile a heap snapshot stops its worker.
const STALL: Duration = Duration::from_secs(30);
const PIECE: usize = 64 * 1024;
/// A process that has used no CPU time between two looks stands still.
const LOOK: Duration = Duration::from_secs(15);

/// The reader of the result has left. It needs no error.
pub(crate) const LEFT: &str = "the command has ended";

/// What the preload says about an inspection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PreloadReply {
    /// Its event loop turns, and it begins.
    Begins,
    /// It has ended, or has failed for this reason.
    Ended(Option<String>),
}

/// Why an inspection has no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotTaken {
    /// A sentence for the operator.
    pub why: String,
    /// The process is stopped, or stuck in the kernel, so it cannot serve.
    pub stands_still: bool,
}

impl From<String> for NotTaken {
    fn from(why: String) -> Self {
        Self { why, stands_still: false }
    }
}

impl From<&str> for NotTaken {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// A running process, as an inspection needs it.
pub(crate) struct Inspectable {
    /// The process that serves.
    pub pid: u32,
    pub preload: MessageSender,
    pub replies: mpsc::Receiver<PreloadReply>,
    /// The process whose main thread serves the requests, if there is one. It is Node.
    pub node: Option<u32>,
    pub notices: Notices,
    /// The beginning of paths that are removed with the worker. No other inspection has the same: a worker that hangs reads an order late.
    pub place: PathBuf,
}

/// One inspection of one process.
pub(crate) struct Taking {
    pub process: Inspectable,
    pub events: mpsc::Sender<InspectionEvent>,
}

impl Taking {
    /// Tells the operator what happens. The error is [`LEFT`].
    pub async fn progress(&self, text: impl Into<String>) -> Result<(), String> {
        let told = self.events.send(InspectionEvent::Progress(text.into())).await;
        told.map_err(|_| LEFT.to_owned())
    }

    pub async fn data(&self, bytes: Vec<u8>) -> Result<(), String> {
        match timeout(STALL, self.events.send(InspectionEvent::Data(bytes))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(LEFT.to_owned()),
            Err(_) => Err(format!("the command has taken no data for {} s", STALL.as_secs())),
        }
    }

    /// The next reply of the preload. `None` if it does not come in time.
    pub async fn reply(&mut self, limit: Duration) -> Option<PreloadReply> {
        timeout(limit, self.process.replies.recv()).await.ok().flatten()
    }

    /// Why the preload could not be asked.
    pub fn unasked(&self) -> &'static str {
        if self.process.preload.is_open() {
            "too many messages to it are unread, so it cannot be asked"
        } else {
            "it has closed its connection to Hostler, so it cannot be asked"
        }
    }

    /// A path that no other inspection uses.
    pub fn path(&self, ending: &str) -> TemporaryPath {
        TemporaryPath(self.process.place.with_added_extension(ending))
    }
}

/// The next piece of a result, to be passed on. Empty at the end. The future can be dropped.
pub(super) async fn piece(from: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(PIECE);
    from.read_buf(&mut bytes).await.map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Waits until this process computes no more. For ever if it is gone, or if the system does not show its CPU time.
pub(super) async fn stands_still(pid: u32) {
    let mut before = None;
    loop {
        sleep(LOOK).await;
        let used = cpu_time(pid);
        if used.is_some() && used == before {
            return;
        }
        before = used;
    }
}

/// The path of a socket or pipe. It is removed when this value is dropped.
pub(crate) struct TemporaryPath(PathBuf);

impl TemporaryPath {
    pub fn get(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
