//! An answer on its way into a stream, at the client's speed; what it has not taken waits in memory or in a file, so that a slow reader
//! holds no slot. Knows no routes.

use std::future::poll_fn;
use std::mem;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::Reason;
use hostler_wire::{BodyLength, ResponseHead};

use super::head;
use super::stream::StreamClient;
use super::transfer::{StreamTransfer, TransferError};
use super::way::SendPiece;
use crate::exchange::{Exchange, Slow};
use crate::gateway::{Refusal, StandIn};
use crate::listen::behind::{self, Behind, BufferKind, BufferPlace, PIECE, Progress};
use crate::listen::head::{Framing, trailers};
use crate::listen::own;
use crate::listen::response_body::ResponseBody;

impl StreamClient<'_> {
    /// Passes an answer on. One that breaks before any of it was sent is a refusal.
    pub async fn deliver(&mut self, exchange: &mut Exchange, body: ResponseBody) -> Result<(), Refusal> {
        let framing = framing_for(&body, exchange);
        let head = head::answer(body.head(), exchange, framing);
        exchange.log_facts.status = body.head().status;
        let body = match body {
            // The body of an answer of our own to HEAD is not even read.
            body if body.is_own() && (framing == Framing::Length(0) || exchange.is_head_request()) => None,
            body => Some(body),
        };
        let mut transfer = StreamTransfer::new(head, body);
        match self.transfer(exchange, &mut transfer).await {
            Ok(()) => Ok(()),
            Err(TransferError::Client(who)) => {
                transfer.abandon(exchange, who);
                Ok(())
            }
            Err(TransferError::File(error)) => {
                exchange.log_facts.detail = Some(format!("its temporary file failed: {error}"));
                transfer.abandon(exchange, "temp_dir");
                self.reset(Reason::INTERNAL_ERROR);
                Ok(())
            }
            Err(TransferError::ResponseBody(trouble)) => {
                let who = trouble.whose();
                let refusal = match transfer.body {
                    Some(body) => body.give_up(exchange, trouble),
                    None => trouble.into(),
                };
                if transfer.head.is_some() {
                    self.outbox.clear();
                    return Err(refusal);
                }
                self.reset(Reason::INTERNAL_ERROR);
                exchange.log_facts.aborted = Some(who);
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
        exchange.log_facts.status = head.status;
        let has_body = !matches!(head.status, 204 | 304);
        let framing = if has_body { Framing::Length(body.len() as u64) } else { Framing::NoBody };
        if has_body && !exchange.is_head_request() {
            exchange.log_facts.bytes_out = body.len() as u64;
            self.whole = body;
        }
        let head = head::answer(head, exchange, framing);
        let mut transfer = StreamTransfer::new(head, None);
        if let Err(TransferError::Client(who)) = self.transfer(exchange, &mut transfer).await {
            exchange.log_facts.aborted = Some(who);
        }
    }

    async fn transfer(
        &mut self,
        exchange: &mut Exchange,
        transfer: &mut StreamTransfer,
    ) -> Result<(), TransferError> {
        let outcome = poll_fn(|cx| self.poll_transfer(cx, exchange, transfer)).await;
        self.refusal_to_read.clear();
        if self.behind.take().is_some() {
            self.silence.clear();
        }
        match outcome {
            // Where the whole connection is to end, that is the reason.
            Err(TransferError::Client("client")) if let Some(slow) = self.common.verdict.slow() => {
                Err(TransferError::Client(slow.reason()))
            }
            outcome => outcome,
        }
    }

    /// Moves bytes both ways until the client has all.
    fn poll_transfer(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &mut Exchange,
        transfer: &mut StreamTransfer,
    ) -> Poll<Result<(), TransferError>> {
        loop {
            let filled = match self.poll_fill(cx, exchange, transfer) {
                Poll::Ready(Err(trouble)) => return Poll::Ready(Err(trouble)),
                filled => filled.is_ready(),
            };
            // The head waits for the first look at the body: they go out together, or not at all.
            let pushed = match self.poll_push(cx, transfer) {
                Poll::Ready(Err(())) => return Poll::Ready(Err(TransferError::Client("client"))),
                Poll::Ready(Ok(())) if transfer.done => return Poll::Ready(Ok(())),
                pushed => pushed.is_ready(),
            };
            // Most clients take what there is.
            let goes_on = match pushed && self.behind.is_none() {
                true => false,
                false => self.look_behind(cx, exchange, transfer, pushed)?,
            };
            if filled || goes_on {
                continue;
            }
            if let Some(sender) = &mut self.sender
                && sender.poll_reset(cx).is_ready()
            {
                return Poll::Ready(Err(TransferError::Client("client")));
            }
            return Poll::Pending;
        }
    }

    /// Sees to a client that has not taken what there is, or of whose answer a part lies in a file. True if something has moved that others
    /// wait for.
    fn look_behind(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &Exchange,
        transfer: &mut StreamTransfer,
        pushed: bool,
    ) -> Result<bool, TransferError> {
        let (progress, common, settings) = (self.progress(), self.common, self.settings);
        let kind = behind::kind_of(transfer.body.as_ref(), exchange);
        let ended = transfer.body.is_none();
        let behind = self.behind.get_or_insert_with(|| Behind::new(&common.way.account, &progress));
        let spool = || common.spool.get_or_init(|| settings.spool.account()).clone();
        let was_empty = self.outbox.is_empty();
        if pushed {
            behind.rest(&progress, &settings.send_limits, self.refusal_to_read);
            if !behind.is_spilling() {
                let _shrinks = behind.memory().resize(0);
            }
        } else if !was_empty {
            behind.wait(&mut self.outbox, (0, 0), kind, spool);
        } else if self.whole.is_unique() {
            // What the cache keeps as well is none of ours.
            behind.memory().set(self.whole.len() as u64);
        }
        let wanted = mem::take(&mut self.wanted);
        let was_spilling = behind.is_spilling();
        behind.poll_file(cx, &mut self.outbox, wanted, ended).map_err(TransferError::File)?;
        let has_come = self.outbox.is_empty() != was_empty && !self.outbox.is_empty();
        if has_come || (was_spilling && !behind.is_spilling()) {
            return Ok(true);
        }
        // Nobody would wake us when the member has more: it was not asked.
        if transfer.was_full && !ended && self.place(transfer, kind) != BufferPlace::Full {
            return Ok(true);
        }
        let waits = transfer.was_full && kind == BufferKind::Stored;
        if waits {
            behind::look_again(self.silence, cx);
        }
        if pushed {
            return Ok(false);
        }
        let Some(behind) = &mut self.behind else { return Ok(false) };
        if transfer.waits_for_others {
            // The connection is looked after by whoever writes to it.
            self.refusal_to_read.clear();
        }
        let holds = waits && behind.is_full();
        match behind.poll_slow(cx, &progress, holds, &settings.send_limits, self.refusal_to_read) {
            Poll::Ready(Slow::Stalled) if transfer.waits_for_others => Ok(false),
            Poll::Ready(slow) => {
                if slow == Slow::TooSlow {
                    common.end_slow(slow);
                }
                self.reset(Reason::CANCEL);
                Err(TransferError::Client(slow.reason()))
            }
            Poll::Pending => Ok(false),
        }
    }

    /// How far the client is: what other streams were sent counts as well, they share its way.
    fn progress(&self) -> Progress {
        Progress {
            all: self.common.way.sent.load(Ordering::Relaxed),
            own: self.handed,
            least: self.settings.send_limits.min_send_rate.max(1),
            now: self.silence.sweep().millis(),
        }
    }

    /// Where more of the answer may go.
    fn place(&mut self, transfer: &StreamTransfer, kind: BufferKind) -> BufferPlace {
        let lies_ready = transfer.body.as_ref().is_some_and(ResponseBody::lies_ready);
        let (unsent, limit) = (self.outbox.len(), behind::limit(self.settings, lies_ready));
        // It is read when there is a window for it.
        if lies_ready && unsent > 0 {
            return BufferPlace::Full;
        }
        let (progress, common, settings) = (self.progress(), self.common, self.settings);
        match &mut self.behind {
            Some(behind) => behind.place((unsent, limit), kind, &progress, || {
                common.spool.get_or_init(|| settings.spool.account()).clone()
            }),
            None => match limit.saturating_sub(unsent).min(behind::first_piece(settings)) {
                0 => BufferPlace::Full,
                room => BufferPlace::Memory(room),
            },
        }
    }

    /// Takes some of the answer from the member, as long as there is room; pending when there is nothing to take.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &mut Exchange,
        transfer: &mut StreamTransfer,
    ) -> Poll<Result<(), TransferError>> {
        let Some(body) = &mut transfer.body else { return Poll::Pending };
        if let Poll::Ready(Err(_)) = body.poll_upload(cx, self) {
            return Poll::Ready(Err(TransferError::Client("client")));
        }
        let kind = match self.behind {
            Some(_) => behind::kind_of(transfer.body.as_ref(), exchange),
            // It makes no difference yet.
            None => BufferKind::Stored,
        };
        let place = self.place(transfer, kind);
        transfer.was_full = place == BufferPlace::Full;
        let (into, room) = match (place, &mut self.behind) {
            (BufferPlace::Memory(room), _) => (&mut self.outbox, room),
            (BufferPlace::File(room), Some(behind)) => match behind.file_place() {
                Some(staged) => (staged, room),
                None => return Poll::Pending,
            },
            _ => return Poll::Pending,
        };
        let Some(body) = &mut transfer.body else { return Poll::Pending };
        let before = into.len();
        let taken = body.poll_body(cx, into, room);
        let came = into.len() - before;
        exchange.log_facts.bytes_out += came as u64;
        if let (BufferPlace::File(_), Some(behind)) = (place, &mut self.behind) {
            behind.took(came);
        }
        if ready!(taken).map_err(TransferError::ResponseBody)? {
            transfer.trailers = trailers(body.trailers(), exchange);
            // The slot is free from here on, whether or not the client has all.
            if let Some(body) = transfer.body.take() {
                body.finish(exchange);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Hands over what may go; ready when that is all there is in memory.
    fn poll_push(&mut self, cx: &mut Context<'_>, transfer: &mut StreamTransfer) -> Poll<Result<(), ()>> {
        let is_spilling = self.behind.as_ref().is_some_and(|behind| behind.is_spilling());
        let is_last = transfer.body.is_none() && transfer.trailers.is_none() && !is_spilling;
        transfer.waits_for_others = false;
        if let Some(head) = transfer.head.take() {
            let is_end = is_last && self.outbox.is_empty() && self.whole.is_empty();
            self.sender = Some(self.respond.send_response(head, is_end).map_err(|_| ())?);
            transfer.done = is_end;
        }
        while !self.outbox.is_empty() || !self.whole.is_empty() {
            let granted = ready!(self.poll_window(cx, self.outbox.len() + self.whole.len()))?;
            let next = if self.outbox.is_empty() { self.whole.len() } else { self.outbox.len() };
            let memory = self.behind.as_mut().map(|behind| behind.memory());
            let Poll::Ready((bytes, slip)) = self.common.way.poll_enter(cx, granted.min(next), memory) else {
                transfer.waits_for_others = true;
                return Poll::Pending;
            };
            let piece = match self.outbox.is_empty() {
                true => self.whole.split_to(bytes),
                false => take(&mut self.outbox, bytes),
            };
            self.handed += bytes as u64;
            self.common.way.sent.fetch_add(bytes as u64, Ordering::Relaxed);
            let is_end = is_last && self.outbox.is_empty() && self.whole.is_empty();
            let Some(sender) = &mut self.sender else { return Poll::Ready(Err(())) };
            sender.send_data(SendPiece::new(piece, slip), is_end).map_err(|_| ())?;
            transfer.done = is_end;
        }
        if is_spilling {
            // It is read when there is a window for it: many streams of one connection wait for one.
            let granted = ready!(self.poll_window(cx, PIECE))?;
            if self.common.way.poll_open(cx).is_pending() {
                transfer.waits_for_others = true;
                return Poll::Pending;
            }
            self.wanted = granted.min(PIECE);
            return Poll::Ready(Ok(()));
        }
        if transfer.body.is_none() && !transfer.done {
            let Some(sender) = &mut self.sender else { return Poll::Ready(Err(())) };
            match transfer.trailers.take() {
                Some(trailers) => sender.send_trailers(head::trailers(&trailers)),
                None => sender.send_data(Bytes::new().into(), true),
            }
            .map_err(|_| ())?;
            transfer.done = true;
        }
        Poll::Ready(Ok(()))
    }

    /// For how many of so many bytes the client has a window.
    fn poll_window(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<Result<usize, ()>> {
        let Some(sender) = &mut self.sender else { return Poll::Ready(Err(())) };
        sender.reserve_capacity(wanted);
        match sender.capacity() {
            0 => match ready!(sender.poll_capacity(cx)) {
                Some(Ok(granted)) => Poll::Ready(Ok(granted)),
                _ => Poll::Ready(Err(())),
            },
            granted => Poll::Ready(Ok(granted)),
        }
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

fn framing_for(body: &ResponseBody, exchange: &Exchange) -> Framing {
    let status = body.head().status;
    match body.length() {
        // A member's head says by itself what there would be; ours does not.
        BodyLength::Known(length) if body.is_own() && !matches!(status, 204 | 304) => Framing::Length(length),
        _ if exchange.is_head_request() || matches!(status, 204 | 304) => Framing::NoBody,
        BodyLength::Known(length) => Framing::Length(length),
        BodyLength::Chunked | BodyLength::UntilClose => Framing::Chunked,
    }
}
