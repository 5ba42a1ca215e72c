//! An answer on its way to the client, at the client's speed; what it has not taken waits in memory or in a file, so that a slow reader
//! holds no slot. Knows no routes.

use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use hostler_wire::{BodyLength, ChunkStart, ResponseHead, Version, write_end};

use super::behind::{self, Behind, BufferKind, BufferPlace};
use super::client::Http1Client;
use super::head::{self, Framing, Keeping};
use super::own;
use super::response_body::{ResponseBody, Trouble};
use crate::exchange::{Downstream, Exchange, Slow};
use crate::gateway::{Refusal, StandIn};

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
enum DeliveryError {
    ResponseBody(Trouble),
    /// The file between them.
    File(std::io::Error),
    /// Gone, or as good as gone.
    Client(&'static str),
}

impl From<Slow> for DeliveryError {
    fn from(slow: Slow) -> Self {
        Self::Client(slow.reason())
    }
}

/// What follows a look at a client that is behind.
enum Next {
    /// It has all.
    Done,
    /// Something has moved that others wait for.
    GoOn,
    Wait,
}

struct Transfer {
    /// None once all has come.
    body: Option<ResponseBody>,
    chunked: bool,
    /// It ends when the client leaves.
    endless: bool,
    /// There was no room for more of it.
    was_full: bool,
}

impl Http1Client {
    /// Passes an answer on. One that breaks before any of it was sent is a refusal.
    pub async fn deliver(
        &mut self,
        exchange: &mut Exchange,
        body: ResponseBody,
        keep: bool,
    ) -> Result<Delivered, Refusal> {
        let framing = framing_for(&body, exchange, self.version());
        let keep = keep && framing != Framing::UntilClose;
        let (mark, written) = (self.outbox.len(), self.written);
        let keeping = Keeping { keep, version: self.version() };
        head::write_answer(&mut self.outbox, body.head(), exchange, framing, keeping);
        exchange.log_facts.status = body.head().status;
        let endless = body.is_endless();
        // The body of an answer of our own to HEAD is not even read.
        let is_unread = body.is_own() && (framing == Framing::Length(0) || exchange.is_head_request());
        let mut transfer =
            Transfer { body: Some(body), chunked: framing == Framing::Chunked, endless, was_full: false };
        if is_unread {
            transfer.body = None;
        }
        let outcome = poll_fn(|cx| self.poll_transfer(cx, exchange, &mut transfer)).await;
        self.catch_up();
        match outcome {
            Ok(()) if keep && self.is_in_step() => Ok(Delivered::Keep),
            Ok(()) => Ok(Delivered::Close),
            Err(DeliveryError::Client(who)) => {
                if let Some(body) = transfer.body {
                    body.abandon(exchange);
                }
                exchange.log_facts.aborted = Some(who);
                Ok(Delivered::Abort)
            }
            Err(DeliveryError::File(error)) => {
                if let Some(body) = transfer.body {
                    body.abandon(exchange);
                }
                exchange.log_facts.detail = Some(format!("its temporary file failed: {error}"));
                exchange.log_facts.aborted = Some("temp_dir");
                Ok(Delivered::Abort)
            }
            Err(DeliveryError::ResponseBody(trouble)) => {
                let who = trouble.whose();
                let refusal = match transfer.body {
                    Some(body) => body.give_up(exchange, trouble),
                    None => trouble.into(),
                };
                if self.written == written {
                    self.outbox.truncate(mark);
                    return Err(refusal);
                }
                exchange.log_facts.aborted = Some(who);
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
    ) -> Poll<Result<(), DeliveryError>> {
        loop {
            let filled = match self.poll_fill(cx, exchange, transfer) {
                Poll::Ready(Err(broken)) => return Poll::Ready(Err(broken)),
                filled => filled.is_ready(),
            };
            let flushed = self.poll_flush(cx);
            if let Poll::Ready(Err(_)) = flushed {
                return Poll::Ready(Err(DeliveryError::Client("client")));
            }
            // Most clients take what there is.
            let next = match flushed.is_ready() && self.behind.is_none() {
                true if transfer.body.is_none() => Next::Done,
                true => Next::Wait,
                false => self.look_behind(cx, exchange, transfer, flushed.is_ready())?,
            };
            match next {
                Next::Done => return Poll::Ready(Ok(())),
                Next::GoOn => continue,
                Next::Wait if filled => continue,
                Next::Wait => {}
            }
            // A client that leaves shows in the next write; a stream of events may not have one for hours.
            if transfer.endless && self.poll_left(cx).is_ready() {
                return Poll::Ready(Err(DeliveryError::Client("client")));
            }
            return Poll::Pending;
        }
    }

    /// Sees to a client that has not taken what there is, or of whose answer a part lies in a file.
    fn look_behind(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &Exchange,
        transfer: &mut Transfer,
        flushed: bool,
    ) -> Result<Next, DeliveryError> {
        let progress = self.progress();
        let kind = behind::kind_of(transfer.body.as_ref(), exchange);
        let ended = transfer.body.is_none();
        let settings = &self.settings;
        let behind =
            self.behind.get_or_insert_with(|| Behind::new(&settings.answer_memory.account(), &progress));
        let account = || self.spool.get_or_insert_with(|| settings.spool.account()).clone();
        let wanted = if flushed {
            behind.rest(&progress, &settings.send_limits, &self.refusal_to_read);
            behind.wanted()
        } else {
            let keep = self.sent + behind::LEAST;
            behind.wait(&mut self.outbox, (keep, self.tail.len()), kind, account);
            0
        };
        behind.poll_file(cx, &mut self.outbox, wanted, ended).map_err(DeliveryError::File)?;
        if flushed && !self.outbox.is_empty() {
            return Ok(Next::GoOn);
        }
        if flushed && ended && !behind.is_spilling() {
            return Ok(Next::Done);
        }
        // Nobody would wake us when the member has more: it was not asked.
        if transfer.was_full && !ended && self.place(transfer, kind) != BufferPlace::Full {
            return Ok(Next::GoOn);
        }
        let waits = transfer.was_full && kind == BufferKind::Stored;
        if waits {
            behind::look_again(&self.silence, cx);
        }
        let Some(behind) = &mut self.behind else { return Ok(Next::Wait) };
        if !flushed {
            let holds = waits && behind.is_full();
            if let Poll::Ready(slow) =
                behind.poll_slow(cx, &progress, holds, &self.settings.send_limits, &self.refusal_to_read)
            {
                return Err(slow.into());
            }
        }
        Ok(Next::Wait)
    }

    /// Where more of the answer may go.
    fn place(&mut self, transfer: &Transfer, kind: BufferKind) -> BufferPlace {
        let lies_ready = transfer.body.as_ref().is_some_and(ResponseBody::lies_ready);
        let (unsent, limit) = (self.unsent(), behind::limit(&self.settings, lies_ready));
        if self.behind.is_none() {
            return match limit.saturating_sub(unsent).min(behind::first_piece(&self.settings)) {
                0 => BufferPlace::Full,
                room => BufferPlace::Memory(room),
            };
        }
        let progress = self.progress();
        let Self { behind: Some(behind), spool, settings, .. } = self else { return BufferPlace::Full };
        behind.place((unsent, limit), kind, &progress, || {
            spool.get_or_insert_with(|| settings.spool.account()).clone()
        })
    }

    /// What waited for the client has gone, or will never.
    fn catch_up(&mut self) {
        self.refusal_to_read.clear();
        if self.behind.take().is_some() {
            self.silence.clear();
        }
    }

    /// Takes some of the answer from the member, as long as there is room; pending when there is nothing to take.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &mut Exchange,
        transfer: &mut Transfer,
    ) -> Poll<Result<(), DeliveryError>> {
        let Some(body) = &mut transfer.body else { return Poll::Pending };
        if let Poll::Ready(Err(_)) = body.poll_upload(cx, self) {
            return Poll::Ready(Err(DeliveryError::Client("client")));
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
        let start = transfer.chunked.then(|| ChunkStart::open(into));
        let bytes_before = into.len();
        let taken = body.poll_body(cx, into, room);
        exchange.log_facts.bytes_out += (into.len() - bytes_before) as u64;
        if let Some(start) = start {
            start.finish(into);
        }
        let ended = match taken {
            Poll::Ready(Err(trouble)) => return Poll::Ready(Err(DeliveryError::ResponseBody(trouble))),
            Poll::Ready(Ok(ended)) => ended,
            Poll::Pending => false,
        };
        if ended && transfer.chunked {
            let trailers = head::trailers(body.trailers(), exchange);
            write_end(into, trailers.as_ref());
        }
        let came = into.len() - before;
        if let (BufferPlace::File(_), Some(behind)) = (place, &mut self.behind) {
            behind.took(came);
        }
        if taken.is_pending() {
            return Poll::Pending;
        }
        // The slot is free from here on, whether or not the client has all.
        if ended && let Some(body) = transfer.body.take() {
            body.finish(exchange);
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
        exchange.log_facts.status = 0;
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
        exchange.log_facts.status = head.status;
        let keeping = Keeping { keep, version: self.version() };
        let has_body = !matches!(head.status, 204 | 304);
        let framing = if has_body { Framing::Length(body.len() as u64) } else { Framing::NoBody };
        head::write_answer(&mut self.outbox, head, exchange, framing, keeping);
        if has_body && !exchange.is_head_request() {
            exchange.log_facts.bytes_out = body.len() as u64;
            if body.len() <= COPIED {
                self.outbox.extend_from_slice(&body);
            } else {
                self.tail = body;
            }
        }
        match self.flush().await {
            Ok(()) if keep => Delivered::Keep,
            Ok(()) => Delivered::Close,
            Err(who) => {
                exchange.log_facts.aborted = Some(who);
                Delivered::Abort
            }
        }
    }

    /// Waits until all is written, or the client does not take it.
    async fn flush(&mut self) -> Result<(), &'static str> {
        let outcome = poll_fn(|cx| {
            if let Poll::Ready(outcome) = self.poll_flush(cx) {
                return Poll::Ready(outcome.map_err(|_| "client"));
            }
            let (progress, settings) = (self.progress(), &self.settings);
            let behind =
                self.behind.get_or_insert_with(|| Behind::new(&settings.answer_memory.account(), &progress));
            // What the cache keeps as well is none of ours.
            let tail = if self.tail.is_unique() { self.tail.len() } else { 0 };
            behind.memory().set((self.outbox.len() + tail) as u64);
            let slow = behind.poll_slow(cx, &progress, false, &settings.send_limits, &self.refusal_to_read);
            slow.map(|slow| Err(slow.reason()))
        })
        .await;
        self.catch_up();
        outcome
    }
}

fn framing_for(body: &ResponseBody, exchange: &Exchange, version: Version) -> Framing {
    let status = body.head().status;
    match (body.length(), version) {
        // A member's head says by itself what there would be; ours does not.
        (BodyLength::Known(length), _) if body.is_own() && !matches!(status, 204 | 304) => {
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
