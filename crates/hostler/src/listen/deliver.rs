//! An answer on its way to the client, at the client's speed but for a bounded buffer, so that a slow reader holds no slot.
//! Knows no routes.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::{Context, Poll};

use bytes::Bytes;
use hostler_wire::{BodyLength, ChunkStart, ResponseHead, Version, write_end};

use super::client::Client;
use super::head::{self, Framing, Keeping};
use super::own;
use super::supply::{Supply, Trouble};
use crate::exchange::{Downstream, Exchange};
use crate::gateway::{Refusal, StandIn};

/// What is taken from a member at a time.
const PIECE: usize = 64 * 1024;
/// A body in memory that is no longer than this is copied behind its head: that costs less than writing from two places.
const COPIED: usize = 2 * 1024;

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
    Supply(Trouble),
    /// Gone, or as good as gone.
    Client(&'static str),
}

struct Transfer {
    /// None once all has come.
    supply: Option<Supply>,
    chunked: bool,
    /// It ends when the client leaves.
    endless: bool,
}

impl Client {
    /// Passes an answer on. One that breaks before any of it was sent is a refusal.
    pub async fn deliver(
        &mut self,
        exchange: &mut Exchange,
        supply: Supply,
        keep: bool,
    ) -> Result<Delivered, Refusal> {
        let framing = framing_for(&supply, exchange, self.version());
        let keep = keep && framing != Framing::UntilClose;
        let (mark, written) = (self.outbox.len(), self.written);
        let keeping = Keeping { keep, version: self.version() };
        head::write_answer(&mut self.outbox, supply.head(), exchange, framing, keeping);
        exchange.trail.status = supply.head().status;
        let endless = supply.is_endless();
        // The body of an answer of our own to HEAD is not even read.
        let is_unread = supply.is_own() && (framing == Framing::Length(0) || exchange.is_head_request());
        let mut transfer = Transfer { supply: Some(supply), chunked: framing == Framing::Chunked, endless };
        if is_unread {
            transfer.supply = None;
        }
        let outcome = poll_fn(|cx| self.poll_transfer(cx, exchange, &mut transfer)).await;
        self.refusal_to_read.clear();
        match outcome {
            Ok(()) if keep && self.is_in_step() => Ok(Delivered::Keep),
            Ok(()) => Ok(Delivered::Close),
            Err(Broken::Client(who)) => {
                if let Some(supply) = transfer.supply {
                    supply.abandon(exchange);
                }
                exchange.trail.aborted = Some(who);
                Ok(Delivered::Abort)
            }
            Err(Broken::Supply(trouble)) => {
                let who = trouble.whose();
                let refusal = match transfer.supply {
                    Some(supply) => supply.give_up(exchange, trouble),
                    None => trouble.into(),
                };
                if self.written == written {
                    self.outbox.truncate(mark);
                    return Err(refusal);
                }
                exchange.trail.aborted = Some(who);
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
                Poll::Ready(Ok(())) if transfer.supply.is_none() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => {}
                Poll::Pending => {
                    if self.refusal_to_read.poll_patience(cx, self.settings.send_timeout).is_ready() {
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
        let Some(supply) = &mut transfer.supply else { return Poll::Pending };
        if let Poll::Ready(Err(_)) = supply.poll_upload(cx, self) {
            return Poll::Ready(Err(Broken::Client("client")));
        }
        let room = self.room();
        if room == 0 {
            return Poll::Pending;
        }
        let start = transfer.chunked.then(|| ChunkStart::open(&mut self.outbox));
        let before = self.outbox.len();
        let taken = supply.poll_body(cx, &mut self.outbox, room.min(PIECE));
        exchange.trail.bytes_out += (self.outbox.len() - before) as u64;
        if let Some(start) = start {
            start.finish(&mut self.outbox);
        }
        match taken {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(trouble)) => return Poll::Ready(Err(Broken::Supply(trouble))),
            Poll::Ready(Ok(false)) => {}
            Poll::Ready(Ok(true)) => {
                if transfer.chunked {
                    write_end(&mut self.outbox, supply.trailers());
                }
                // The slot is free from here on, whether or not the client has all.
                if let Some(supply) = transfer.supply.take() {
                    supply.finish(exchange);
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Answers with what the route has for the case that its pool does not.
    pub async fn deliver_fallback(
        &mut self,
        exchange: &mut Exchange,
        fallback: &StandIn,
        refusal: &Refusal,
        keep: bool,
    ) -> Delivered {
        let (head, facts) = own::fallback(exchange, fallback, refusal);
        self.deliver_own(exchange, &head, fallback.body(), keep && !facts.closes).await
    }

    /// Answers for ourselves.
    pub async fn refuse(&mut self, exchange: &mut Exchange, refusal: &Refusal, keep: bool) -> Delivered {
        let (answer, facts) = own::refusal(exchange, refusal);
        match answer {
            Some((head, body)) => self.deliver_own(exchange, &head, body, keep && !facts.closes).await,
            None => Delivered::Abort,
        }
    }

    /// As [`refuse`](Self::refuse), for the log alone.
    pub fn refuse_silently(&mut self, exchange: &mut Exchange, refusal: &Refusal) -> Delivered {
        let _ = own::refusal(exchange, refusal);
        exchange.trail.status = 0;
        Delivered::Close
    }

    /// Answers with a body that lies in memory.
    pub async fn deliver_own(
        &mut self,
        exchange: &mut Exchange,
        head: &ResponseHead,
        body: Bytes,
        keep: bool,
    ) -> Delivered {
        let keep = keep && self.is_in_step();
        exchange.trail.status = head.status;
        let keeping = Keeping { keep, version: self.version() };
        let has_body = !matches!(head.status, 204 | 304);
        let framing = if has_body { Framing::Length(body.len() as u64) } else { Framing::NoBody };
        head::write_answer(&mut self.outbox, head, exchange, framing, keeping);
        if has_body && !exchange.is_head_request() {
            exchange.trail.bytes_out = body.len() as u64;
            if body.len() <= COPIED {
                self.outbox.extend_from_slice(&body);
            } else {
                self.tail = body;
            }
        }
        match self.flush().await {
            Ok(()) if keep => Delivered::Keep,
            Ok(()) => Delivered::Close,
            Err(error) => {
                let stalled = error.kind() == ErrorKind::TimedOut;
                exchange.trail.aborted = Some(if stalled { "client stalled" } else { "client" });
                Delivered::Abort
            }
        }
    }
}

fn framing_for(supply: &Supply, exchange: &Exchange, version: Version) -> Framing {
    let status = supply.head().status;
    match (supply.length(), version) {
        // A member's head says by itself what there would be; ours does not.
        (BodyLength::Known(length), _) if supply.is_own() && !matches!(status, 204 | 304) => {
            Framing::Length(length)
        }
        _ if exchange.is_head_request() || matches!(status, 204 | 304) => Framing::NoBody,
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
