//! The sending side of a connection to a worker process. Does not know what messages mean.

use tokio::sync::mpsc;

use super::message::ToWorker;

/// Sends messages to the process at the other end of a connection.
#[derive(Clone, Debug)]
pub(super) struct MessageSender(pub(super) mpsc::Sender<ToWorker>);

impl MessageSender {
    /// With the receiver of the messages, which the connection writes.
    pub fn pair() -> (Self, mpsc::Receiver<ToWorker>) {
        let (sender, receiver) = mpsc::channel(4);
        (Self(sender), receiver)
    }

    /// Returns whether the message is on its way. It may still go unread.
    pub fn tell(&self, message: ToWorker) -> bool {
        self.0.try_send(message).is_ok()
    }

    /// Whether the other end is still connected.
    pub fn is_open(&self) -> bool {
        !self.0.is_closed()
    }
}
