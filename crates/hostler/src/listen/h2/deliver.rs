//! An answer on its way into a stream, at the client's speed but for a bounded buffer, so that a slow reader holds no slot. Knows no
//! routes.

use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::Reason;
use hostler_wire::{BodyLength, Fields, ResponseHead};
use http::Response;

use super::head;
use super::stream::StreamClient;
use crate::exchange::Exchange;
use crate::gateway::{Refusal, StandIn};
use crate::listen::head::Framing;
use crate::listen::own;
use crate::listen::supply::{Supply, Trouble};

/// What is taken from a member at a time.
const PIECE: usize = 64 * 1024;

/// What went wrong on the way.
enum Broken {
    Supply(Trouble),
    /// Gone, or as good as gone.
    Client(&'static str),
}

/// An answer under way.
struct Transfer {
    /// Until it has gone.
    head: Option<Response<()>>,
    /// None once all has come.
    supply: Option<Supply>,
    trailers: Option<Fields>,
    /// All has been handed over, the end of the stream included.
    done: bool,
}

impl StreamClient<'_> {
    /// Passes an answer on. One that breaks before any of it was sent is a refusal.
    pub async fn deliver(&mut self, exchange: &mut Exchange, supply: Supply) -> Result<(), Refusal> {
        let framing = framing_for(&supply, exchange);
        let head = head::answer(supply.head(), exchange, framing);
        exchange.trail.status = supply.head().status;
        let supply = match supply {
            // The body of an answer of our own to HEAD is not even read.
            supply if supply.is_own() && (framing == Framing::Length(0) || exchange.is_head_request()) => {
                None
            }
            supply => Some(supply),
        };
        let mut transfer = Transfer { head: Some(head), supply, trailers: None, done: false };
        match self.transfer(exchange, &mut transfer).await {
            Ok(()) => Ok(()),
            Err(Broken::Client(who)) => {
                if let Some(supply) = transfer.supply {
                    supply.abandon(exchange);
                }
                exchange.trail.aborted = Some(who);
                Ok(())
            }
            Err(Broken::Supply(trouble)) => {
                let who = trouble.whose();
                let refusal = match transfer.supply {
                    Some(supply) => supply.give_up(exchange, trouble),
                    None => trouble.into(),
                };
                if transfer.head.is_some() {
                    self.outbox.clear();
                    return Err(refusal);
                }
                self.reset(Reason::INTERNAL_ERROR);
                exchange.trail.aborted = Some(who);
                Ok(())
            }
        }
    }

    /// Answers with what the route has for the case that its pool does not.
    pub async fn deliver_fallback(&mut self, exchange: &mut Exchange, fallback: &StandIn, refusal: &Refusal) {
        let (head, _) = own::fallback(exchange, fallback, refusal);
        self.deliver_own(exchange, &head, fallback.body()).await;
    }

    /// Answers for ourselves.
    pub async fn refuse(&mut self, exchange: &mut Exchange, refusal: &Refusal) {
        match own::refusal(exchange, refusal).0 {
            Some((head, body)) => self.deliver_own(exchange, &head, body).await,
            None => self.reset(Reason::CANCEL),
        }
    }

    /// Answers with a body that lies in memory.
    pub async fn deliver_own(&mut self, exchange: &mut Exchange, head: &ResponseHead, body: Bytes) {
        exchange.trail.status = head.status;
        let has_body = !matches!(head.status, 204 | 304);
        let framing = if has_body { Framing::Length(body.len() as u64) } else { Framing::NoBody };
        if has_body && !exchange.is_head_request() {
            exchange.trail.bytes_out = body.len() as u64;
            self.whole = body;
        }
        let head = head::answer(head, exchange, framing);
        let mut transfer = Transfer { head: Some(head), supply: None, trailers: None, done: false };
        if let Err(Broken::Client(who)) = self.transfer(exchange, &mut transfer).await {
            exchange.trail.aborted = Some(who);
        }
    }

    async fn transfer(&mut self, exchange: &mut Exchange, transfer: &mut Transfer) -> Result<(), Broken> {
        let outcome = poll_fn(|cx| self.poll_transfer(cx, exchange, transfer)).await;
        self.refusal_to_read.clear();
        if let Err(Broken::Client("client stalled")) = outcome {
            self.reset(Reason::CANCEL);
        }
        outcome
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
                Poll::Ready(Err(trouble)) => return Poll::Ready(Err(trouble)),
                filled => filled.is_ready(),
            };
            // The head waits for the first look at the body: they go out together, or not at all.
            match self.poll_push(cx, transfer) {
                Poll::Ready(Err(())) => return Poll::Ready(Err(Broken::Client("client"))),
                Poll::Ready(Ok(())) if transfer.done => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => {}
                Poll::Pending => {
                    if self.refusal_to_read.poll_patience(cx, self.settings.send_timeout).is_ready() {
                        return Poll::Ready(Err(Broken::Client("client stalled")));
                    }
                }
            }
            // A full buffer keeps us from asking the member for more, so nobody would wake us when it has some.
            if filled || (was_full && self.room() > 0) {
                continue;
            }
            if let Some(sender) = &mut self.sender
                && sender.poll_reset(cx).is_ready()
            {
                return Poll::Ready(Err(Broken::Client("client")));
            }
            return Poll::Pending;
        }
    }

    fn room(&self) -> usize {
        self.settings.answer_buffer.saturating_sub(self.outbox.len())
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
        let before = self.outbox.len();
        let taken = supply.poll_body(cx, &mut self.outbox, room.min(PIECE));
        exchange.trail.bytes_out += (self.outbox.len() - before) as u64;
        if ready!(taken).map_err(Broken::Supply)? {
            transfer.trailers = supply.trailers().cloned();
            // The slot is free from here on, whether or not the client has all.
            if let Some(supply) = transfer.supply.take() {
                supply.finish(exchange);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Hands over what may go; ready when that is all there is.
    fn poll_push(&mut self, cx: &mut Context<'_>, transfer: &mut Transfer) -> Poll<Result<(), ()>> {
        let is_last = transfer.supply.is_none() && transfer.trailers.is_none();
        if let Some(head) = transfer.head.take() {
            let is_end = is_last && self.outbox.is_empty() && self.whole.is_empty();
            self.sender = Some(self.respond.send_response(head, is_end).map_err(|_| ())?);
            transfer.done = is_end;
        }
        let Some(sender) = &mut self.sender else { return Poll::Ready(Err(())) };
        while !self.outbox.is_empty() || !self.whole.is_empty() {
            sender.reserve_capacity(self.outbox.len() + self.whole.len());
            let granted = match sender.capacity() {
                0 => match ready!(sender.poll_capacity(cx)) {
                    Some(Ok(granted)) => granted,
                    _ => return Poll::Ready(Err(())),
                },
                granted => granted,
            };
            self.refusal_to_read.clear();
            let piece = match self.outbox.is_empty() {
                true => self.whole.split_to(granted.min(self.whole.len())),
                false => take(&mut self.outbox, granted),
            };
            let is_end = is_last && self.outbox.is_empty() && self.whole.is_empty();
            sender.send_data(piece, is_end).map_err(|_| ())?;
            transfer.done = is_end;
        }
        if transfer.supply.is_none() && !transfer.done {
            match transfer.trailers.take() {
                Some(trailers) => sender.send_trailers(head::trailers(&trailers)),
                None => sender.send_data(Bytes::new(), true),
            }
            .map_err(|_| ())?;
            transfer.done = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Breaks the stream off, so that nobody takes what was sent for the whole.
    fn reset(&mut self, reason: Reason) {
        match &mut self.sender {
            Some(sender) => sender.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
    }
}

/// The first bytes, without a copy where that is all of them.
fn take(outbox: &mut Vec<u8>, most: usize) -> Bytes {
    if most >= outbox.len() {
        return mem::take(outbox).into();
    }
    let piece = Bytes::copy_from_slice(&outbox[..most]);
    outbox.drain(..most);
    piece
}

fn framing_for(supply: &Supply, exchange: &Exchange) -> Framing {
    let status = supply.head().status;
    match supply.length() {
        // A member's head says by itself what there would be; ours does not.
        BodyLength::Known(length) if supply.is_own() && !matches!(status, 204 | 304) => {
            Framing::Length(length)
        }
        _ if exchange.is_head_request() || matches!(status, 204 | 304) => Framing::NoBody,
        BodyLength::Known(length) => Framing::Length(length),
        BodyLength::Chunked | BodyLength::UntilClose => Framing::Chunked,
    }
}
