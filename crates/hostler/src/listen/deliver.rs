//! Delivers an answer to its client, in HTTP/1.1 and in HTTP/2. Knows no routes, no sockets and no frames.
//!
//! A `Transfer` takes the body in pieces, and the client's `AnswerSink` sends them. What the client does not take waits in memory or in a
//! file, so that a slow client holds no slot. A sink is an HTTP/1.1 connection (`http1_sink`) or an HTTP/2 stream (`h2::sink`): it writes
//! the head, sends what waits, and says how much the client has taken. The limits, the counts and the ways to end are here, once; `slow` has
//! what is done while a client is behind.

mod slow;

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hostler_engine::exchange::{Deadline, Downstream, Exchange, Slow, SpoolAccount};
use hostler_engine::gateway::Refusal;
use hostler_wire::{ChunkStart, Fields, ResponseHead, write_end};

use super::behind::{Behind, BufferKind, BufferPlace, LEAST, PIECE, Progress};
use super::head::{self, Framing};
use super::response_body::{self, BodyFailure, ResponseBody};
use super::settings::Settings;

/// How many bytes are held of an answer that is stored elsewhere.
const MOST_OF_STORED: usize = 2 * PIECE;

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// The client has the whole answer.
    Whole,
    /// The answer broke off, or the client did not take it.
    Aborted,
}

/// A client as the receiver of an answer: an HTTP/1.1 connection, or an HTTP/2 stream.
pub(super) trait AnswerSink: Downstream + Sized {
    /// The answer's head until it is sent.
    type Head;
    /// Whether the outbox contains the framing too: a body of unknown length is chunked there.
    const WRITES_CHUNKS: bool;
    /// Whether the next piece of a file or a stored answer is read before the last one is sent.
    const READS_AHEAD: bool;

    fn settings(&self) -> &Settings;

    /// The bytes to be sent.
    fn outbox(&mut self) -> &mut Vec<u8>;

    /// When to check a client that is behind again.
    fn silence(&self) -> &Deadline;

    /// The deadline for the client to take some of its answer.
    fn refusal_to_read(&self) -> &Deadline;

    /// How much the client has taken.
    fn progress(&self) -> Progress;

    /// How many bytes wait to be sent.
    fn unsent(&self) -> usize;

    /// A new buffer for an answer that the client does not take at once.
    fn fall_behind(&self) -> Box<Behind>;

    /// The connection's share of the spool.
    fn spool_account(&mut self) -> SpoolAccount;

    /// Puts the head of an answer into the outbox. Its body follows in pieces.
    fn put_head(&mut self, head: &ResponseHead, exchange: &Exchange, framing: Framing) -> Self::Head;

    /// Puts an answer that is whole in memory into the outbox. `closes`: an HTTP/1.1 connection is closed after it.
    fn put_whole(
        &mut self,
        head: &ResponseHead,
        body: Bytes,
        exchange: &Exchange,
        framing: Framing,
        closes: bool,
    ) -> Self::Head;

    /// Sends the waiting bytes. Ready when no bytes wait in memory, with `true` when the end of the answer was sent.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        transfer: &mut Transfer<Self>,
    ) -> Poll<Result<bool, DeliveryError>>;

    /// Counts the bytes in memory in `behind`. Returns how many bytes are wanted from the file. `sent`: no bytes wait in memory.
    fn hold(&mut self, behind: &mut Behind, sent: bool, kind: BufferKind) -> usize;

    /// Ready when the client has left in the middle of an answer. `endless`: the next write may be hours away, so it cannot show that.
    fn poll_gone(&mut self, cx: &mut Context<'_>, endless: bool) -> Poll<()>;

    /// Whether other answers on the same connection delay this one.
    fn waits_for_others(&self) -> bool {
        false
    }

    /// Whether the client wants a WebSocket over HTTP/2: a 2xx would tell it that the WebSocket is open (RFC 8441 section 5).
    fn wants_websocket(&self) -> bool {
        false
    }

    /// Removes an answer of which nothing was sent. False if something was sent.
    fn retract(&mut self, head: Self::Head) -> bool;

    /// Ends an answer in the middle, so that the client does not take it for the whole.
    fn break_off(&mut self);

    /// Ends an answer whose client has left or is too slow. Returns the reason for the log.
    fn give_client_up(&mut self, slow: Option<Slow>) -> &'static str;
}

/// Why a delivery ends before the client has the whole answer.
pub(super) enum DeliveryError {
    ResponseBody(BodyFailure),
    /// The temporary file with a part of the answer failed.
    File(io::Error),
    /// The client has left, or is too slow.
    Client(Option<Slow>),
}

/// An answer that is being sent.
pub(super) struct Transfer<S: AnswerSink> {
    pub head: S::Head,
    /// None once all of it has arrived.
    pub body: Option<ResponseBody>,
    /// Trailers that are sent on their own, after the body.
    pub trailers: Option<Fields>,
    /// What the client has not taken yet; none while it keeps up.
    pub behind: Option<Box<Behind>>,
    /// Whether the body is chunked in the outbox.
    pub chunked: bool,
    /// Whether the body ends only when the client leaves.
    pub endless: bool,
    /// Whether there was no room for more of the body.
    pub was_full: bool,
}

impl<S: AnswerSink> Transfer<S> {
    pub fn new(head: S::Head, body: Option<ResponseBody>) -> Self {
        let (chunked, endless, was_full) = (false, false, false);
        Self { head, body, trailers: None, behind: None, chunked, endless, was_full }
    }

    /// Whether a part of the answer is in a file.
    pub fn is_spilling(&self) -> bool {
        self.behind.as_ref().is_some_and(|behind| behind.is_spilling())
    }
}

/// Delivers an answer. If it breaks off before any of it was sent, returns a refusal.
pub(super) async fn deliver<S: AnswerSink>(
    sink: &mut S,
    exchange: &mut Exchange,
    body: ResponseBody,
) -> Result<Delivered, Refusal> {
    let framing = body.framing(exchange);
    exchange.log_facts.status = body.head().status;
    let head = sink.put_head(body.head(), exchange, framing);
    let endless = body.is_endless();
    // For HEAD, the body of an answer from Hostler is not read.
    let is_unread = body.is_own() && (framing == Framing::Length(0) || exchange.is_head_request());
    let mut transfer = Transfer::new(head, (!is_unread).then_some(body));
    transfer.chunked = S::WRITES_CHUNKS && framing == Framing::Chunked;
    transfer.endless = endless;
    match transfer.run(sink, exchange).await {
        Ok(()) => Ok(Delivered::Whole),
        Err(error) => transfer.fail(sink, exchange, error),
    }
}

/// Delivers an answer that is whole in memory. `closes`: an HTTP/1.1 connection is closed after it.
pub(super) async fn deliver_whole<S: AnswerSink>(
    sink: &mut S,
    exchange: &mut Exchange,
    head: &ResponseHead,
    mut body: Bytes,
    closes: bool,
) -> Delivered {
    exchange.log_facts.status = head.status;
    let has_body = !matches!(head.status, 204 | 304);
    let framing = if has_body { Framing::Length(body.len() as u64) } else { Framing::NoBody };
    if has_body && !exchange.is_head_request() {
        exchange.log_facts.bytes_out = body.len() as u64;
    } else {
        body = Bytes::new();
    }
    let mut transfer = Transfer::new(sink.put_whole(head, body, exchange, framing, closes), None);
    match transfer.run(sink, exchange).await {
        Ok(()) => Delivered::Whole,
        // No body is read, so nothing can fail with a refusal.
        Err(error) => transfer.fail(sink, exchange, error).unwrap_or(Delivered::Aborted),
    }
}

impl<S: AnswerSink> Transfer<S> {
    /// Sends the answer to the client.
    async fn run(&mut self, sink: &mut S, exchange: &mut Exchange) -> Result<(), DeliveryError> {
        let outcome = poll_fn(|cx| self.poll(cx, sink, exchange)).await;
        sink.refusal_to_read().clear();
        if self.behind.take().is_some() {
            sink.silence().clear();
        }
        outcome
    }

    /// Ends an answer that the client does not get whole. If its body failed before anything was sent, returns a refusal.
    fn fail(self, sink: &mut S, exchange: &mut Exchange, error: DeliveryError) -> Result<Delivered, Refusal> {
        exchange.log_facts.aborted = Some(match error {
            DeliveryError::ResponseBody(failure) => {
                let who = failure.whose();
                let refusal = match self.body {
                    Some(body) => body.give_up(exchange, failure),
                    None => failure.into(),
                };
                if sink.retract(self.head) {
                    return Err(refusal);
                }
                sink.break_off();
                who
            }
            DeliveryError::File(error) => {
                abandon(self.body, exchange);
                exchange.log_facts.detail = Some(format!("its temporary file failed: {error}"));
                sink.break_off();
                "temp_dir"
            }
            DeliveryError::Client(slow) => {
                abandon(self.body, exchange);
                sink.give_client_up(slow)
            }
        });
        Ok(Delivered::Aborted)
    }

    /// Takes pieces of the body and sends them, until the client has all.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut S,
        exchange: &mut Exchange,
    ) -> Poll<Result<(), DeliveryError>> {
        loop {
            let filled = match self.poll_fill(cx, sink, exchange) {
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                filled => filled.is_ready(),
            };
            // The head waits for the first look at the body: they go out together, or not at all.
            let sent = match sink.poll_send(cx, self) {
                Poll::Ready(Ok(true)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                sent => sent.is_ready(),
            };
            // Most clients keep up.
            let goes_on = match sent && self.behind.is_none() {
                true => false,
                false => self.look_behind(cx, sink, exchange, sent)?,
            };
            if filled || goes_on {
                continue;
            }
            if sink.poll_gone(cx, self.endless).is_ready() {
                return Poll::Ready(Err(DeliveryError::Client(None)));
            }
            return Poll::Pending;
        }
    }

    /// Takes a piece of the body if there is room for it. Pending if there is nothing to take.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut S,
        exchange: &mut Exchange,
    ) -> Poll<Result<(), DeliveryError>> {
        let Some(body) = &mut self.body else { return Poll::Pending };
        if let Poll::Ready(Err(_)) = body.poll_upload(cx, sink) {
            return Poll::Ready(Err(DeliveryError::Client(None)));
        }
        let kind = match self.behind {
            Some(_) => response_body::kind_of(self.body.as_ref(), exchange),
            // The kind matters only for a client that is behind.
            None => BufferKind::Stored,
        };
        let place = self.place(sink, kind);
        self.was_full = place == BufferPlace::Full;
        let (into, room) = match (place, &mut self.behind) {
            (BufferPlace::Memory(room), _) => (sink.outbox(), room),
            (BufferPlace::File(room), Some(behind)) => match behind.file_place() {
                Some(staged) => (staged, room),
                None => return Poll::Pending,
            },
            _ => return Poll::Pending,
        };
        let Some(body) = &mut self.body else { return Poll::Pending };
        let before = into.len();
        let chunk = self.chunked.then(|| ChunkStart::open(into));
        let bytes_before = into.len();
        let taken = body.poll_body(cx, into, room);
        exchange.log_facts.bytes_out += (into.len() - bytes_before) as u64;
        if let Some(chunk) = chunk {
            chunk.finish(into);
        }
        let ended = matches!(taken, Poll::Ready(Ok(true)));
        if ended {
            let trailers = head::trailers(body.trailers(), exchange);
            match self.chunked {
                true => write_end(into, trailers.as_ref()),
                false => self.trailers = trailers,
            }
        }
        let came = into.len() - before;
        if let (BufferPlace::File(_), Some(behind)) = (place, &mut self.behind) {
            behind.took(came);
        }
        ready!(taken).map_err(DeliveryError::ResponseBody)?;
        // The slot is free from here on, even if the client is still reading.
        if ended && let Some(body) = self.body.take() {
            body.finish(exchange);
        }
        Poll::Ready(Ok(()))
    }

    /// Where the next piece of the body may go.
    fn place(&mut self, sink: &mut S, kind: BufferKind) -> BufferPlace {
        let is_stored = self.body.as_ref().is_some_and(ResponseBody::is_stored);
        let (unsent, limit) = (sink.unsent(), limit(sink.settings(), is_stored));
        if is_stored && unsent > 0 && !S::READS_AHEAD {
            return BufferPlace::Full;
        }
        match &mut self.behind {
            Some(behind) => {
                let progress = sink.progress();
                behind.place((unsent, limit), kind, &progress, || sink.spool_account())
            }
            None => match limit.saturating_sub(unsent).min(first_piece(sink.settings())) {
                0 => BufferPlace::Full,
                room => BufferPlace::Memory(room),
            },
        }
    }
}

fn abandon(body: Option<ResponseBody>, exchange: &mut Exchange) {
    if let Some(body) = body {
        body.abandon(exchange);
    }
}

/// How many bytes of an answer are taken at a time while the client keeps up.
fn first_piece(settings: &Settings) -> usize {
    if settings.answer_memory.is_tight() { LEAST } else { PIECE }
}

/// How many bytes of one answer may be in memory. `is_stored`: the answer is stored elsewhere too.
fn limit(settings: &Settings, is_stored: bool) -> usize {
    if is_stored { settings.answer_buffer.min(MOST_OF_STORED) } else { settings.answer_buffer }
}
