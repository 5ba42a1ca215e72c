//! An answer on its way to the client, at the client's speed but for a bounded buffer, so that a slow reader holds no slot.
//! Knows no routes.

use std::future::poll_fn;
use std::task::{Context, Poll};

use hostler_wire::{BodyLength, CallError, ChunkStart, Version, write_end};

use super::client::Client;
use super::head::{self, Framing, Keeping};
use crate::exchange::{Downstream, Exchange};
use crate::gateway::{Facts, Fixed, Refusal, StandIn};
use crate::proxy::Call;

/// What is taken from a member at a time.
const PIECE: usize = 64 * 1024;

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// The client has all, and may send its next request.
    Keep,
    /// The client has all, and the connection has done its duty.
    Close,
    /// The answer broke off, or nobody reads it.
    Abort,
}

/// What went wrong on the way.
enum Broken {
    Member(CallError),
    /// Gone, or as good as gone.
    Client(&'static str),
}

struct Transfer {
    /// None once the member has finished.
    call: Option<Call>,
    chunked: bool,
    /// It ends when the client leaves.
    endless: bool,
}

impl Client {
    /// Passes a member's answer on. An answer that breaks before any of it was sent is a refusal.
    pub async fn deliver(
        &mut self,
        exchange: &mut Exchange,
        call: Call,
        keep: bool,
    ) -> Result<Delivered, Refusal> {
        let framing = framing_for(&call, exchange, self.version());
        let keep = keep && framing != Framing::UntilClose;
        let (mark, written) = (self.outbox.len(), self.written);
        let keeping = Keeping { keep, version: self.version() };
        head::write_answer(&mut self.outbox, call.answer(), framing, keeping);
        exchange.trail.status = call.answer().status;
        let endless = call.is_event_stream();
        let mut transfer = Transfer { call: Some(call), chunked: framing == Framing::Chunked, endless };
        let outcome = poll_fn(|cx| self.poll_transfer(cx, exchange, &mut transfer)).await;
        self.refusal_to_read.clear();
        match outcome {
            Ok(()) if keep && self.is_in_step() => Ok(Delivered::Keep),
            Ok(()) => Ok(Delivered::Close),
            Err(Broken::Client(who)) => {
                if let Some(call) = transfer.call {
                    call.abandon(exchange);
                }
                exchange.trail.aborted = Some(who);
                Ok(Delivered::Abort)
            }
            Err(Broken::Member(error)) => {
                let refusal = match transfer.call {
                    Some(call) => call.give_up(exchange, error).into(),
                    None => Refusal::BadAnswer(error.to_string()),
                };
                if self.written == written {
                    self.outbox.truncate(mark);
                    return Err(refusal);
                }
                exchange.trail.aborted = Some("worker");
                Ok(Delivered::Abort)
            }
        }
    }

    /// Moves bytes both ways until the client has all.
    fn poll_transfer(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &mut Exchange,
        transfer: &mut Transfer,
    ) -> Poll<Result<(), Broken>> {
        loop {
            let was_full = self.room() == 0;
            let filled = match self.poll_fill(cx, exchange, transfer) {
                Poll::Ready(outcome) => outcome.map(|()| true),
                Poll::Pending => Ok(false),
            };
            let filled = match filled {
                Ok(filled) => filled,
                Err(broken) => return Poll::Ready(Err(broken)),
            };
            match self.poll_flush(cx) {
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Broken::Client("client"))),
                Poll::Ready(Ok(())) if transfer.call.is_none() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => {}
                Poll::Pending => {
                    if !self.refusal_to_read.is_set() {
                        self.refusal_to_read.set_after(self.settings.send_timeout);
                    }
                    if self.refusal_to_read.poll_due(cx).is_ready() {
                        return Poll::Ready(Err(Broken::Client("client stalled")));
                    }
                }
            }
            // A full buffer keeps us from asking the member for more, so nobody would wake us when it has some.
            let has_room_again = was_full && self.room() > 0;
            if filled || has_room_again {
                continue;
            }
            // A client that leaves shows in the next write; a stream of events may not have one for hours.
            if transfer.endless && self.poll_left(cx).is_ready() {
                return Poll::Ready(Err(Broken::Client("client")));
            }
            return Poll::Pending;
        }
    }

    fn room(&self) -> usize {
        self.settings.answer_buffer.saturating_sub(self.unsent())
    }

    /// Takes some of the answer from the member, as long as there is room; pending when there is nothing to take.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &mut Exchange,
        transfer: &mut Transfer,
    ) -> Poll<Result<(), Broken>> {
        let Some(call) = &mut transfer.call else { return Poll::Pending };
        if let Poll::Ready(Err(_)) = call.poll_upload(cx, self) {
            return Poll::Ready(Err(Broken::Client("client")));
        }
        let room = self.room();
        if room == 0 {
            return Poll::Pending;
        }
        let start = transfer.chunked.then(|| ChunkStart::open(&mut self.outbox));
        let before = self.outbox.len();
        let taken = call.poll_body(cx, &mut self.outbox, room.min(PIECE));
        exchange.trail.bytes_out += (self.outbox.len() - before) as u64;
        if let Some(start) = start {
            start.finish(&mut self.outbox);
        }
        match taken {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(Broken::Member(error))),
            Poll::Ready(Ok(false)) => {}
            Poll::Ready(Ok(true)) => {
                if transfer.chunked {
                    write_end(&mut self.outbox, call.trailers());
                }
                // The slot is free from here on, whether or not the client has all.
                if let Some(call) = transfer.call.take() {
                    call.finish(exchange);
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Answers with what a route always says.
    pub async fn deliver_fixed(&mut self, exchange: &mut Exchange, fixed: &Fixed, keep: bool) -> Delivered {
        let keep = keep && self.is_in_step();
        head::begin_own(&mut self.outbox, fixed.status);
        for (name, value) in &fixed.fields {
            head::write_field(&mut self.outbox, name.as_bytes(), value);
        }
        let length = (!matches!(fixed.status, 204 | 304)).then_some(fixed.body.len());
        self.finish_own(exchange, fixed.status, length, &fixed.body, keep).await
    }

    /// Answers with what the route has for the case that its pool does not.
    pub async fn deliver_fallback(
        &mut self,
        exchange: &mut Exchange,
        fallback: &StandIn,
        refusal: &Refusal,
        keep: bool,
    ) -> Delivered {
        let facts = note(exchange, refusal);
        exchange.trail.fallback = true;
        let keep = keep && !facts.closes && self.is_in_step();
        head::begin_own(&mut self.outbox, 200);
        let out = &mut self.outbox;
        head::write_field(out, b"Content-Type", fallback.content_type().as_bytes());
        // It stands for another page, and only for as long as that cannot be had.
        head::write_field(out, b"Cache-Control", b"no-store");
        head::write_field(out, b"Hostler-Fallback", facts.reason.as_bytes());
        head::write_field(out, b"X-Request-Id", exchange.id.as_bytes());
        self.finish_own(exchange, 200, Some(fallback.body().len()), fallback.body(), keep).await
    }

    /// Answers for ourselves.
    pub async fn refuse(&mut self, exchange: &mut Exchange, refusal: &Refusal, keep: bool) -> Delivered {
        let facts = note(exchange, refusal);
        exchange.trail.status = facts.status;
        if facts.status == 499 {
            exchange.trail.aborted = Some("client");
            return Delivered::Abort;
        }
        let keep = keep && !facts.closes && self.is_in_step();
        let text = format!("{} {}\n{refusal}\n", facts.status, head::reason(facts.status));
        head::begin_own(&mut self.outbox, facts.status);
        let out = &mut self.outbox;
        head::write_field(out, b"Content-Type", b"text/plain; charset=utf-8");
        head::write_field(out, b"Cache-Control", b"no-store");
        head::write_field(out, b"Hostler-Refusal", facts.reason.as_bytes());
        if !exchange.id.as_str().is_empty() {
            head::write_field(out, b"X-Request-Id", exchange.id.as_str().as_bytes());
        }
        if let Some(seconds) = facts.retry_after {
            let seconds = seconds.max(exchange.trail.retry_after);
            head::write_field(out, b"Retry-After", itoa::Buffer::new().format(seconds).as_bytes());
        }
        self.finish_own(exchange, facts.status, Some(text.len()), text.as_bytes(), keep).await
    }

    async fn finish_own(
        &mut self,
        exchange: &mut Exchange,
        status: u16,
        length: Option<usize>,
        body: &[u8],
        keep: bool,
    ) -> Delivered {
        exchange.trail.status = status;
        let keeping = Keeping { keep, version: self.version() };
        head::end_own(&mut self.outbox, length, keeping);
        if length.is_some() && !exchange.is_head_request() {
            self.outbox.extend_from_slice(body);
            exchange.trail.bytes_out = body.len() as u64;
        }
        match self.flush().await {
            Ok(()) if keep => Delivered::Keep,
            Ok(()) => Delivered::Close,
            Err(_) => {
                exchange.trail.aborted = Some("client");
                Delivered::Abort
            }
        }
    }
}

/// Why the worker's own answer is not what the client gets.
fn note(exchange: &mut Exchange, refusal: &Refusal) -> Facts {
    let facts = refusal.facts();
    exchange.trail.refusal = Some(facts.reason);
    exchange.trail.detail = refusal.detail();
    facts
}

fn framing_for(call: &Call, exchange: &Exchange, version: Version) -> Framing {
    let head = call.answer();
    match (call.body_length(), version) {
        _ if exchange.is_head_request() || matches!(head.status, 204 | 304) => Framing::NoBody,
        (BodyLength::Known(length), _) => Framing::Length(length),
        (_, Version::Http11) => Framing::Chunked,
        (_, Version::Http10) => Framing::UntilClose,
    }
}

/// Whether the client wants the connection kept (RFC 9112 section 9.3).
pub(super) fn wants_keep_alive(exchange: &Exchange) -> bool {
    let fields = &exchange.head.fields;
    match exchange.head.version {
        _ if fields.says_close() => false,
        Version::Http11 => true,
        Version::Http10 => fields.says_keep_alive(),
    }
}
