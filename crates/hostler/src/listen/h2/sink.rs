//! An HTTP/2 stream as an `AnswerSink`: sends as much as the client's window and the other streams allow. Knows no routes.

use std::mem;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::Reason;
use hostler_coding::ClientEncoders;
use hostler_engine::exchange::{Deadline, Exchange, Slow, SpoolAccount, is_grpc};
use hostler_wire::ResponseHead;
use http::Response;

use super::head;
use super::send_buffer::SendPiece;
use super::stream::StreamClient;
use crate::listen::Settings;
use crate::listen::answer_buffer::{AnswerBuffer, BufferKind, PIECE, Progress};
use crate::listen::head::Framing;
use crate::listen::transfer::{AnswerSink, DeliveryError, Transfer};

impl AnswerSink for StreamClient<'_> {
    /// None once the head was sent.
    type Head = Option<Response<()>>;
    const WRITES_CHUNKS: bool = false;
    const READS_AHEAD: bool = false;

    fn settings(&self) -> &Settings {
        self.settings
    }

    fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    fn silence(&self) -> &Deadline {
        self.silence
    }

    fn refusal_to_read(&self) -> &Deadline {
        self.refusal_to_read
    }

    /// Bytes of other streams count in `all`, because they share the connection.
    fn progress(&self) -> Progress {
        Progress {
            all: self.common.send_buffer.sent.load(Ordering::Relaxed),
            own: self.handed,
            least: self.settings.send_limits.min_send_rate.max(1),
            now: self.silence.sweep().millis(),
        }
    }

    fn unsent(&self) -> usize {
        self.outbox.len() + self.whole.len()
    }

    fn unsent_shared(&mut self) -> &mut Bytes {
        &mut self.whole
    }

    fn new_buffer(&self) -> Box<AnswerBuffer> {
        AnswerBuffer::new(&self.common.send_buffer.account, &self.progress())
    }

    fn spool_account(&mut self) -> SpoolAccount {
        self.common.spool.get_or_init(|| self.settings.spool.account()).clone()
    }

    fn encoders(&self) -> Option<&ClientEncoders> {
        Some(self.common.encoders.get_or_init(ClientEncoders::default))
    }

    fn put_head(&mut self, head: &ResponseHead, exchange: &Exchange, framing: Framing) -> Self::Head {
        // The messages of a call of gRPC may go on without an end, as an event stream does.
        if framing == Framing::Chunked && is_grpc(&exchange.head.fields) {
            self.common.signals.note_lasting();
        }
        Some(head::answer(head, exchange, framing))
    }

    fn put_whole(
        &mut self,
        head: &ResponseHead,
        body: Bytes,
        exchange: &Exchange,
        framing: Framing,
        _: bool,
    ) -> Self::Head {
        self.whole = body;
        self.put_head(head, exchange, framing)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        transfer: &mut Transfer<Self>,
    ) -> Poll<Result<bool, DeliveryError>> {
        self.poll_push(cx, transfer).map_err(|()| DeliveryError::Client(None))
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        if self.sender.is_none() {
            // The window is known when the head is sent, and that is the next step.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.poll_grant(cx) {
            Poll::Ready(Ok(bytes)) => Poll::Ready(bytes),
            // An error shows again when the stream is sent to.
            Poll::Ready(Err(())) | Poll::Pending => Poll::Pending,
        }
    }

    fn hold(&mut self, buffer: &mut AnswerBuffer, sent: bool, kind: BufferKind) -> usize {
        if sent {
            if !buffer.is_spilling() {
                let _shrinks = buffer.memory().resize(0);
            }
        } else if !self.outbox.is_empty() {
            let (common, settings) = (self.common, self.settings);
            let account = || common.spool.get_or_init(|| settings.spool.account()).clone();
            buffer.wait(&mut self.outbox, 0, kind, account);
        } else if self.whole.is_unique() {
            // A body that is in the cache too is counted there.
            buffer.memory().set(self.whole.len() as u64);
        }
        mem::take(&mut self.wanted)
    }

    fn begin_stream(&self) {
        self.common.signals.note_lasting();
    }

    fn let_body_pause(&mut self) {
        self.request_body.let_pause(self.silence);
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.sender {
            Some(sender) => sender.poll_reset(cx).map(drop),
            None => Poll::Pending,
        }
    }

    fn waits_for_others(&self) -> bool {
        self.waits_for_others
    }

    fn wants_websocket(&self) -> bool {
        self.key.is_some()
    }

    fn retract(&mut self, head: Self::Head) -> bool {
        if head.is_some() {
            self.outbox.clear();
        }
        // The head is not sent either if the client resets the stream before.
        head.is_some() || self.sender.is_none()
    }

    fn break_off(&mut self) {
        self.reset(Reason::INTERNAL_ERROR);
    }

    fn give_client_up(&mut self, slow: Option<Slow>) -> &'static str {
        if slow == Some(Slow::TooSlow) {
            // The whole connection ends.
            self.common.signals.set_slow(Slow::TooSlow);
            self.common.waker.wake();
        }
        // A client that has left needs no reset: the stream has ended, or ends when it is dropped.
        if slow.is_some() {
            self.reset(Reason::CANCEL);
        }
        // If the whole connection ends, its reason is logged.
        slow.or_else(|| self.common.signals.slow()).map_or("client", Slow::reason)
    }
}

impl StreamClient<'_> {
    /// Sends as much as is allowed. Ready when no bytes wait in memory, with `true` after the end of the stream.
    fn poll_push(&mut self, cx: &mut Context<'_>, transfer: &mut Transfer<Self>) -> Poll<Result<bool, ()>> {
        let is_spilling = transfer.is_spilling();
        let is_last = transfer.body.is_none() && transfer.trailers.is_none() && !is_spilling;
        self.waits_for_others &= transfer.is_behind;
        if let Some(head) = transfer.head.take() {
            let is_end = is_last && self.outbox.is_empty() && self.whole.is_empty();
            self.sender = Some(self.respond.send_response(head, is_end).map_err(|_| ())?);
            if is_end {
                return Poll::Ready(Ok(true));
            }
        }
        while !self.outbox.is_empty() || !self.whole.is_empty() {
            // No more than a piece: what a stream reserves of the connection's window, no other stream can use, however long it is not sent.
            let window = self.poll_window(cx, PIECE.min(self.outbox.len() + self.whole.len()));
            // A stream without a window gives its grant back, so that no other stream waits for it.
            let early = self.grant.take().filter(|_| window.is_ready());
            let window = ready!(window)?;
            let next = if self.outbox.is_empty() { self.whole.len() } else { self.outbox.len() }.min(window);
            let memory = transfer.buffer.as_mut().map(|buffer| buffer.memory());
            let granted = match early {
                Some((bytes, grant)) => Poll::Ready((bytes.min(next), grant)),
                None => self.common.send_buffer.poll_reserve(cx, next, memory),
            };
            let Poll::Ready((bytes, grant)) = granted else {
                self.waits_for_others = true;
                return Poll::Pending;
            };
            let piece = match self.outbox.is_empty() {
                true => take_shared(&mut self.whole, bytes),
                false => take(&mut self.outbox, bytes),
            };
            self.handed += bytes as u64;
            let is_end = is_last && self.outbox.is_empty() && self.whole.is_empty();
            let Some(sender) = &mut self.sender else { return Poll::Ready(Err(())) };
            sender
                .send_data(SendPiece::new(piece, &self.common.send_buffer, grant), is_end)
                .map_err(|_| ())?;
            if is_end {
                return Poll::Ready(Ok(true));
            }
        }
        if is_spilling {
            self.wanted = ready!(self.poll_grant(cx))?;
            return Poll::Ready(Ok(false));
        }
        if self.grant.take().is_some()
            && let Some(sender) = &mut self.sender
        {
            // The body had no bytes for the grant, so its part of the window is given back.
            sender.reserve_capacity(0);
        }
        if transfer.body.is_some() {
            return Poll::Ready(Ok(false));
        }
        let Some(sender) = &mut self.sender else { return Poll::Ready(Err(())) };
        match transfer.trailers.take() {
            Some(trailers) => sender.send_trailers(trailers.to_http2_trailers()),
            None => sender.send_data(Bytes::new().into(), true),
        }
        .map_err(|_| ())?;
        Poll::Ready(Ok(true))
    }

    /// Waits until bytes that are read now can be sent at once, and returns how many. Without this wait, each of many streams would hold bytes that
    /// it has read too early: in memory, or in the file from which they have just come.
    fn poll_grant(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, ()>> {
        self.waits_for_others = false;
        let window = match self.poll_window(cx, PIECE) {
            Poll::Ready(window) => window?,
            Poll::Pending => {
                self.grant = None;
                return Poll::Pending;
            }
        };
        if self.grant.is_none() {
            match self.common.send_buffer.poll_reserve(cx, window, None) {
                Poll::Ready(granted) => self.grant = Some(granted),
                Poll::Pending => {
                    self.waits_for_others = true;
                    return Poll::Pending;
                }
            }
        }
        let granted = self.grant.as_ref().map_or(0, |(bytes, _)| *bytes);
        Poll::Ready(Ok(granted.min(window)))
    }

    /// How many of `wanted` bytes fit into the client's window.
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

    /// Resets the stream, so that the client does not take a part of an answer for all of it.
    fn reset(&mut self, reason: Reason) {
        match &mut self.sender {
            Some(sender) => sender.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
    }
}

/// Takes the first bytes of a body. They are copied if this is the only holder of the body: a piece may wait for long, and all of the body with it.
fn take_shared(body: &mut Bytes, most: usize) -> Bytes {
    if !body.is_unique() {
        return body.split_to(most);
    }
    let piece = Bytes::copy_from_slice(&body[..most]);
    body.advance(most);
    if body.is_empty() {
        *body = Bytes::new();
    }
    piece
}

/// Takes the first bytes of the outbox, without a copy if that is all of them.
fn take(outbox: &mut Vec<u8>, most: usize) -> Bytes {
    if most >= outbox.len() {
        return mem::take(outbox).into();
    }
    let piece = Bytes::copy_from_slice(&outbox[..most]);
    outbox.drain(..most);
    piece
}
