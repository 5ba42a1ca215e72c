//! The messages of one subscription that are not read yet, with a limit in messages and in bytes. Knows no connection.
//!
//! The NATS library limits only their number, and one message may have a megabyte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_nats::Message;
use tokio::sync::mpsc;

/// Limits of a backlog.
#[derive(Debug, Clone, Copy)]
pub(super) struct BacklogLimits {
    pub messages: usize,
    pub bytes: usize,
}

pub(super) struct BacklogWriter {
    sender: mpsc::UnboundedSender<Message>,
    held: Arc<BacklogSize>,
    most: BacklogLimits,
    /// A message was lost, and the backlog has not been empty since.
    overflows: bool,
}

pub(super) struct BacklogReader {
    receiver: mpsc::UnboundedReceiver<Message>,
    held: Arc<BacklogSize>,
}

#[derive(Default)]
struct BacklogSize {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageOutcome {
    Kept,
    /// There is no room for it, and it is the first such message since the backlog was last empty.
    FirstLost,
    Lost,
    /// Nothing reads the backlog any more.
    Unread,
}

pub(super) fn new(most: BacklogLimits) -> (BacklogWriter, BacklogReader) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let held = Arc::<BacklogSize>::default();
    (BacklogWriter { sender, held: held.clone(), most, overflows: false }, BacklogReader { receiver, held })
}

impl BacklogWriter {
    pub fn take(&mut self, message: Message) -> MessageOutcome {
        let messages = self.held.messages.load(Ordering::Acquire);
        let bytes = self.held.bytes.load(Ordering::Acquire);
        // A message that is larger than the limit is taken if it is alone.
        let is_full = messages > 0
            && (messages >= self.most.messages || bytes.saturating_add(message.length) > self.most.bytes);
        if is_full {
            return if std::mem::replace(&mut self.overflows, true) {
                MessageOutcome::Lost
            } else {
                MessageOutcome::FirstLost
            };
        }
        self.overflows &= messages > 0;
        self.held.messages.fetch_add(1, Ordering::AcqRel);
        self.held.bytes.fetch_add(message.length, Ordering::AcqRel);
        if self.sender.send(message).is_ok() { MessageOutcome::Kept } else { MessageOutcome::Unread }
    }
}

impl BacklogReader {
    /// The next message. None: no more will come. Cancel-safe.
    pub async fn next(&mut self) -> Option<Message> {
        let message = self.receiver.recv().await?;
        self.held.messages.fetch_sub(1, Ordering::AcqRel);
        self.held.bytes.fetch_sub(message.length, Ordering::AcqRel);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Message {
        Message {
            subject: "router.register".into(),
            reply: None,
            payload: vec![0; length].into(),
            headers: None,
            status: None,
            description: None,
            length,
        }
    }

    #[tokio::test]
    async fn a_backlog_has_a_limit_in_bytes_and_one_in_messages() {
        let (mut writer, mut reader) = new(BacklogLimits { messages: 3, bytes: 100 });
        assert_eq!(writer.take(message(60)), MessageOutcome::Kept);
        assert_eq!(writer.take(message(41)), MessageOutcome::FirstLost);
        assert_eq!(writer.take(message(50)), MessageOutcome::Lost, "one log line for all of them");
        assert_eq!(writer.take(message(40)), MessageOutcome::Kept);
        for length in [60, 40] {
            assert_eq!(reader.next().await.unwrap().length, length);
        }
        assert_eq!(writer.take(message(1000)), MessageOutcome::Kept, "alone, it may be larger");
        assert_eq!(writer.take(message(1)), MessageOutcome::FirstLost);
        assert_eq!(reader.next().await.unwrap().length, 1000);
        for _ in 0..3 {
            assert_eq!(writer.take(message(0)), MessageOutcome::Kept);
        }
        assert_eq!(writer.take(message(0)), MessageOutcome::FirstLost);
        drop(writer);
        for _ in 0..3 {
            reader.next().await.unwrap();
        }
        assert!(reader.next().await.is_none());
    }

    #[tokio::test]
    async fn a_backlog_without_a_reader_takes_nothing() {
        let (mut writer, reader) = new(BacklogLimits { messages: 3, bytes: 100 });
        drop(reader);
        assert_eq!(writer.take(message(1)), MessageOutcome::Unread);
    }
}
