//! Delivers an answer to its client, in HTTP/1.1 and in HTTP/2. Knows no routes, no sockets and no frames.
//!
//! A `Transfer` takes the body in pieces, and the client's `AnswerSink` sends them. What the client does not take waits in memory or in a
//! file, so that a slow client holds no slot. A sink is an HTTP/1.1 connection (`http1_sink`) or an HTTP/2 stream (`h2::sink`): it writes
//! the head, sends what waits, and says how much the client has taken. The limits, the counts and the ways to end are here, once.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hostler_engine::exchange::{BodyError, Exchange};
use hostler_engine::gateway::Refusal;
use hostler_wire::{BodyLength, ChunkStart, ResponseHead, write_end};

use super::answer_buffer::{BufferKind, BufferPlace, PIECE};
use super::body_failure::BodyFailure;
use super::departure::note_departure;
use super::head::{self, Framing};
use super::response_body::{self, ResponseBody};
use super::transfer::{AnswerSink, DeliveryError, Transfer};

/// If an answer pauses for longer, the log names its request should the worker be killed.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// The client has the whole answer.
    Whole,
    /// The answer broke off, or the client did not take it.
    Aborted,
}

/// Delivers an answer. If it breaks off before any of it was sent, returns a refusal.
pub(super) async fn deliver<S: AnswerSink>(
    sink: &mut S,
    exchange: &mut Exchange,
    mut body: ResponseBody,
) -> Result<Delivered, Refusal> {
    let framing = body.framing(exchange);
    exchange.log_facts.status = body.head().status;
    let head = sink.put_head(body.head(), exchange, framing);
    let endless = body.is_endless();
    // Request and response stream at the same time, as in a bidirectional gRPC call: then a silent client is not late.
    let body_may_pause = exchange.length == BodyLength::Chunked && body.is_uploading();
    if body_may_pause {
        sink.let_body_pause();
    }
    // For HEAD, the body of an answer from Hostler is not read.
    let is_unread = body.is_own() && (framing == Framing::Length(0) || exchange.is_head_request());
    let mut transfer = Transfer::new(head, (!is_unread).then_some(body));
    transfer.chunked = S::WRITES_CHUNKS && framing == Framing::Chunked;
    transfer.endless = endless;
    transfer.body_may_pause = body_may_pause;
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
        if !matches!(outcome, Ok(()) | Err(DeliveryError::ResponseBody(_))) {
            self.discount_unsent(sink, exchange);
        }
        sink.refusal_to_read().clear();
        if self.buffer.take().is_some() {
            sink.silence().clear();
        }
        outcome
    }

    /// The client does not get what waits for it in memory and in a file: it may be nearly all of a large answer.
    fn discount_unsent(&self, sink: &S, exchange: &mut Exchange) {
        let in_file = self.buffer.as_ref().map_or(0, |buffer| buffer.in_file());
        let bytes_out = &mut exchange.log_facts.bytes_out;
        *bytes_out = bytes_out.saturating_sub(sink.unsent() as u64 + in_file);
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
            DeliveryError::Request(error) => {
                abandon(self.body, exchange);
                if sink.retract(self.head) {
                    return Err(error.into());
                }
                exchange.log_facts.detail = Some(error.to_string());
                sink.give_client_up(None)
            }
            DeliveryError::Client(slow) => {
                abandon(self.body, exchange);
                let who = sink.give_client_up(slow);
                if who == "client" && sink.retract(self.head) {
                    note_departure(exchange);
                    return Ok(Delivered::Aborted);
                }
                // A stream has no other end than that one side leaves.
                if who == "client" && exchange.log_facts.stream_end.is_some() {
                    return Ok(Delivered::Aborted);
                }
                who
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
            let filled = match self.poll_from_file(cx, sink, exchange) {
                Some(sent) => sent,
                None => self.poll_fill(cx, sink, exchange),
            };
            let filled = match filled {
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                filled => filled.is_ready(),
            };
            // The member waits for the request that has got the slot: that request's head is sent first, then this answer.
            if std::mem::take(&mut exchange.has_handed_over) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            // The head waits for the first look at the body: they go out together, or not at all.
            let sent = match sink.poll_send(cx, self) {
                Poll::Ready(Ok(true)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                sent => sent.is_ready() && !self.is_behind,
            };
            // Most clients keep up.
            let goes_on = match sent && self.buffer.is_none() {
                true => false,
                false => self.poll_buffer(cx, sink, exchange, sent)?,
            };
            if filled || goes_on {
                self.went_on();
                continue;
            }
            if self.poll_left(cx, sink).is_ready() {
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
        let was_awaited = std::mem::take(&mut self.is_awaited);
        let Some(body) = &mut self.body else { return Poll::Pending };
        if let Poll::Ready(Err(error)) = body.poll_upload(cx, sink) {
            return Poll::Ready(Err(match error {
                BodyError::Left => DeliveryError::Client(None),
                error => DeliveryError::Request(error),
            }));
        }
        // The end of a stream is short, so it needs no room. It must not wait for a client that does not read.
        let ends = body.poll_end(cx).is_ready();
        let kind = match self.buffer {
            Some(_) => response_body::kind_of(self.body.as_ref(), exchange),
            // The kind matters only for a client that is behind.
            None => BufferKind::Stored,
        };
        let place = if ends { BufferPlace::Memory(PIECE) } else { self.place(cx, sink, kind) };
        self.was_full = place == BufferPlace::Full && !self.is_behind;
        let place = match place {
            BufferPlace::Memory(room) => BufferPlace::Memory(self.room_to_read(sink, exchange, room)),
            place => place,
        };
        let (into, room) = match (place, &mut self.buffer) {
            (BufferPlace::Memory(room), _) => (sink.outbox(), room),
            (BufferPlace::File(room), Some(buffer)) => match buffer.file_place() {
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
        if let (BufferPlace::File(_), Some(buffer)) = (place, &mut self.buffer) {
            buffer.took(came);
        }
        if taken.is_pending() {
            let Some(has_gone_on) = self.has_gone_on() else { return Poll::Pending };
            self.is_awaited = true;
            return self.poll_pause(cx, exchange, was_awaited && came == 0 && !has_gone_on);
        }
        ready!(taken).map_err(DeliveryError::ResponseBody)?;
        // The slot is free from here on, even if the client is still reading.
        if ended && let Some(body) = self.body.take() {
            body.finish(exchange);
            drop(self.unfinished.take());
        }
        Poll::Ready(Ok(()))
    }

    /// Whether something has moved since the last look although no byte has come for the client: the member has taken some of the request, or more of
    /// a body has come of which the client wants a later range. None: the member has taken all that the client has sent and waits for the rest. Then
    /// it is the client that is late, and the response may pause.
    fn has_gone_on(&mut self) -> Option<bool> {
        let Some(body) = &self.body else { return Some(false) };
        let past = body.gone_past(self.body_may_pause)?;
        Some(std::mem::replace(&mut self.gone_past, past) != past)
    }

    /// Ready if the response has paused for too long. `goes_on`: the pause had begun before and goes on. A response without end has a limit of its own.
    fn poll_pause(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &Exchange,
        goes_on: bool,
    ) -> Poll<Result<(), DeliveryError>> {
        let Some(longest) = exchange.longest_pause.filter(|_| !self.endless) else { return Poll::Pending };
        let names_later = !self.is_named && longest > LONG_PAUSE;
        if !goes_on {
            match names_later {
                true => exchange.deadline.set_roughly_after(LONG_PAUSE),
                false => exchange.deadline.set_after(longest),
            }
        }
        if names_later && exchange.deadline.is_due() {
            self.is_named = true;
            self.unfinished = self.body.as_mut().and_then(|body| body.note_unfinished(exchange));
            exchange.deadline.set_after(longest - LONG_PAUSE);
        }
        exchange.deadline.poll_due(cx).map(|()| Err(DeliveryError::ResponseBody(BodyFailure::Pause)))
    }
}

fn abandon(body: Option<ResponseBody>, exchange: &mut Exchange) {
    if let Some(body) = body {
        body.abandon(exchange);
    }
}
