//! An HTTP/1.1 connection as an `AnswerSink`: writes head and body into its outbox. Knows no routes.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hostler_engine::exchange::{Deadline, Downstream, Exchange, Slow, SpoolAccount};
use hostler_wire::{FilePart, ResponseHead};

use super::Settings;
use super::answer_buffer::{self, AnswerBuffer, BufferKind, Progress};
use super::client::Http1Client;
use super::head::{self, Framing, Keeping};
use super::transfer::{AnswerSink, DeliveryError, Transfer};

/// A body in memory up to this length is copied behind its head: that costs less than a write from two buffers.
const COPIED: usize = 2 * 1024;

/// The state before an answer was put into the outbox.
pub(super) struct OutboxMark {
    /// The length of the outbox.
    at: usize,
    /// The bytes written on the connection.
    written: u64,
    /// Whether the connection was to be kept.
    keep: bool,
}

impl Http1Client {
    /// Writes a head. The connection is closed after the answer unless `keep` is true and its client wants it kept. It is also closed if
    /// the request has not been read whole: its rest may never be read. The head says so (RFC 9112 section 9.6), so that the client
    /// sends its next request on another connection.
    fn write_head(
        &mut self,
        head: &ResponseHead,
        exchange: &Exchange,
        framing: Framing,
        keep: bool,
    ) -> OutboxMark {
        let mark = OutboxMark { at: self.outbox.len(), written: self.written, keep: self.keep };
        self.keep &= keep && self.is_request_read();
        let keeping = Keeping { keep: self.keep, version: self.version() };
        head::write_answer(&mut self.outbox, head, exchange, framing, keeping);
        mark
    }
}

impl AnswerSink for Http1Client {
    type Head = OutboxMark;
    const WRITES_CHUNKS: bool = true;
    const READS_AHEAD: bool = true;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    fn silence(&self) -> &Deadline {
        &self.silence
    }

    fn refusal_to_read(&self) -> &Deadline {
        &self.refusal_to_read
    }

    fn progress(&self) -> Progress {
        let taken = self.taken_by_client();
        Progress { all: taken, own: taken, least: 1, now: self.silence.sweep().millis() }
    }

    fn unsent(&self) -> usize {
        self.outbox.len() - self.sent + self.tail.len()
    }

    fn unsent_shared(&mut self) -> &mut Bytes {
        &mut self.tail
    }

    fn new_buffer(&self) -> Box<AnswerBuffer> {
        AnswerBuffer::new(&self.settings.answer_memory.account(), &self.progress())
    }

    fn spool_account(&mut self) -> SpoolAccount {
        self.spool.get_or_insert_with(|| self.settings.spool.account()).clone()
    }

    fn put_head(&mut self, head: &ResponseHead, exchange: &Exchange, framing: Framing) -> OutboxMark {
        let keep = framing != Framing::UntilClose && !may_be_misread(head.status, framing);
        self.write_head(head, exchange, framing, keep)
    }

    fn put_whole(
        &mut self,
        head: &ResponseHead,
        body: Bytes,
        exchange: &Exchange,
        framing: Framing,
        closes: bool,
    ) -> OutboxMark {
        let is_misread = !body.is_empty() && may_be_misread(head.status, framing);
        let mark = self.write_head(head, exchange, framing, !closes && !is_misread);
        if body.len() <= COPIED {
            self.outbox.extend_from_slice(&body);
        } else {
            self.tail = body;
        }
        mark
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        transfer: &mut Transfer<Self>,
    ) -> Poll<Result<bool, DeliveryError>> {
        ready!(self.poll_flush(cx)).map_err(|_| DeliveryError::Client(None))?;
        Poll::Ready(Ok(transfer.body.is_none() && !transfer.is_spilling()))
    }

    fn takes_files(&self) -> bool {
        self.stream.takes_files()
    }

    fn poll_send_file(&mut self, cx: &mut Context<'_>, part: &FilePart<'_>) -> Poll<io::Result<usize>> {
        let sent = self.stream.poll_send_file(cx, part);
        if let Poll::Ready(Ok(bytes)) = &sent {
            self.written += *bytes as u64;
        }
        sent
    }

    fn hold(&mut self, buffer: &mut AnswerBuffer, sent: bool, kind: BufferKind) -> usize {
        let held = if sent { 0 } else { self.stream.held_back() };
        buffer.note_held_back(held);
        if sent {
            return buffer.wanted();
        }
        if self.tail.is_empty() {
            let keep = self.sent + answer_buffer::LEAST.saturating_sub(held);
            let Self { outbox, spool, settings, .. } = self;
            let account = || spool.get_or_insert_with(|| settings.spool.account()).clone();
            buffer.wait(outbox, keep, kind, account);
        } else {
            // A body that is in the cache too is counted there.
            let tail = if self.tail.is_unique() { self.tail.len() } else { 0 };
            buffer.memory().set((self.outbox.len() + tail + held) as u64);
        }
        0
    }

    /// The kernel detects a client that is gone.
    fn begin_stream(&self) {
        self.stream.keep_alive_within(self.settings.send_limits.send_timeout);
    }

    fn let_body_pause(&mut self) {
        self.request_body.let_pause(&self.silence);
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_left(cx)
    }

    fn retract(&mut self, mark: OutboxMark) -> bool {
        let is_unsent = self.written == mark.written;
        if is_unsent {
            self.outbox.truncate(mark.at);
            self.keep = mark.keep;
        }
        is_unsent
    }

    /// The caller closes the connection without the end of the answer.
    fn break_off(&mut self) {}

    fn give_client_up(&mut self, slow: Option<Slow>) -> &'static str {
        slow.map_or("client", Slow::reason)
    }
}

/// Whether some clients would read a body as the next answer of the connection. A 205 has no content (RFC 9110 section 15.3.6), so browsers such
/// as Chrome look for none, although its head may announce a body (RFC 9112 section 6.3). No answer follows such a body.
fn may_be_misread(status: u16, framing: Framing) -> bool {
    status == 205 && !matches!(framing, Framing::Length(0) | Framing::NoBody)
}
