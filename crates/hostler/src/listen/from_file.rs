//! Sends the body of an answer from a file, past the outbox, while the client takes it (`sendfile`). Knows no protocol.

use std::io::ErrorKind;
use std::task::{Context, Poll};

use hostler_engine::exchange::Exchange;
use tokio::task::coop;

use super::response_body::ResponseBody;
use super::transfer::{AnswerSink, DeliveryError, Transfer};

/// How many bytes of a file are copied behind the head of its response. That costs less than a packet for the head alone.
const WITH_HEAD: usize = 16 * 1024;

impl<S: AnswerSink> Transfer<S> {
    /// How many of `room` bytes are read. A few at the beginning of a body whose rest is sent from its file.
    pub(super) fn room_to_read(&mut self, sink: &S, exchange: &Exchange, room: usize) -> usize {
        let is_first = exchange.log_facts.bytes_out == 0 && sink.takes_files() && !self.chunked;
        let source = self.body.as_mut().filter(|_| is_first).and_then(ResponseBody::source);
        match source.is_some_and(|source| source.file_at_hand().is_some()) {
            true => room.min(WITH_HEAD),
            false => room,
        }
    }

    /// Sends the next bytes from their file. None if they must be read: the first ones always are, because they leave with the head.
    pub(super) fn poll_from_file(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut S,
        exchange: &mut Exchange,
    ) -> Option<Poll<Result<(), DeliveryError>>> {
        self.is_behind = false;
        let is_next = sink.unsent() == 0 && exchange.log_facts.bytes_out > 0 && !self.is_spilling();
        if !is_next || self.chunked || !sink.takes_files() {
            return None;
        }
        let source = self.body.as_mut().and_then(ResponseBody::source)?;
        let part = source.file_at_hand()?;
        let sent = match sink.poll_send_file(cx, &part) {
            Poll::Ready(Ok(sent @ 1..)) => sent,
            Poll::Ready(Err(error)) if is_of_client(error.kind()) => {
                return Some(Poll::Ready(Err(DeliveryError::Client(None))));
            }
            // The file has become shorter, or has an error. The read that follows shows which.
            Poll::Ready(_) => {
                source.sent_from_file(None);
                return None;
            }
            Poll::Pending => {
                // If this task has no budget left, only its turn is over, and the client is not behind.
                (self.is_behind, self.was_full) = (coop::has_budget_remaining(), false);
                return Some(Poll::Pending);
            }
        };
        exchange.log_facts.bytes_out += sent as u64;
        if source.sent_from_file(Some(sent))
            && let Some(body) = self.body.take()
        {
            body.finish(exchange);
        }
        Some(Poll::Ready(Ok(())))
    }
}

/// Whether the client's connection has failed, and not the file.
fn is_of_client(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::NotConnected
            | ErrorKind::TimedOut
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
    )
}
