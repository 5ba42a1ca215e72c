//! One request over one connection: sends it, reads the answer's head at the same time, then the body. Knows no client protocol.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hostler_dispatch::{Lease, MemberId};
use hostler_wire::{BodyLength, CallError, Fields, MemberConnection, ResponseHead};
use tokio::time::Instant;

use super::call_settings::CallSettings;
use super::failure::{Failure, TlsFault};
use super::http2::{Fault, MemberStream};
use super::leaving::LeavingClient;
use super::link::{Interims, Link, edit_interim, remove_own_fields};
use super::live_stream::{self, LiveStream};
use super::marked_down::{MarkedDown, marked_down, marked_down_later};
use super::read_ahead::ReadAhead;
use super::upload::Upload;
use super::{Endpoint, request};
use crate::exchange::{BodyError, Connections, Downstream, Exchange, LateAnswer, OpenStream, clock};

/// A call to a member. It owns the lease: the slot is free when the call has ended, with the part of it that may go on in the background.
/// Mostly in a `CallBox`.
pub struct Call {
    pub(super) lease: Lease<Endpoint>,
    pub(super) link: Link,
    pub(super) settings: CallSettings,
    pub(super) to_head: bool,
    pub(super) headed: bool,
    pub(super) authenticates: bool,
    /// The final head is a 101: the connection no longer speaks HTTP.
    switched: bool,
    /// The request's body. None if it has none.
    pub(super) upload: Option<Upload>,
    pub(super) began: Instant,
    pub(super) thread: usize,
    /// Ready when the pool has marked the member down. Set only once the response is late.
    marked_down: Option<MarkedDown>,
    leaving: LeavingClient,
    interims: Interims,
    /// Set once the answer is a stream and the slot was returned.
    pub(super) live_stream: Option<Box<LiveStream>>,
    /// The first bytes of the body, if [`Self::peek`] has read them.
    ahead: Option<Box<ReadAhead>>,
    /// As in the exchange.
    pub(super) late_answer: Option<LateAnswer>,
}

impl Call {
    pub(super) fn begin(
        exchange: &Exchange,
        lease: Lease<Endpoint>,
        mut connection: Box<MemberConnection>,
        settings: &CallSettings,
        thread: usize,
        began: Instant,
    ) -> Self {
        let outbox = connection.start();
        let mut upload = if exchange.body.is_none() { None } else { Upload::new(exchange) };
        request::write_head(outbox, exchange, upload.as_ref().map(Upload::framing));
        if let Some(upload) = &mut upload {
            upload.start(outbox);
        }
        if let Some(offer) = &exchange.offer {
            connection.offer(offer);
        }
        Self::new(exchange, lease, Link::Http1(connection), upload, settings, thread, began)
    }

    /// A call whose head has been sent already.
    pub(super) fn on_stream(
        exchange: &Exchange,
        lease: Lease<Endpoint>,
        stream: Box<MemberStream>,
        upload: Option<Upload>,
        settings: &CallSettings,
        thread: usize,
    ) -> Self {
        Self::new(exchange, lease, Link::Http2(stream), upload, settings, thread, Instant::now())
    }

    fn new(
        exchange: &Exchange,
        lease: Lease<Endpoint>,
        link: Link,
        upload: Option<Upload>,
        settings: &CallSettings,
        thread: usize,
        began: Instant,
    ) -> Self {
        Self {
            lease,
            link,
            settings: settings.clone(),
            to_head: exchange.is_head_request(),
            headed: false,
            authenticates: request::authenticates_connection(exchange),
            switched: false,
            upload,
            began,
            thread,
            marked_down: None,
            leaving: LeavingClient::default(),
            interims: Interims::default(),
            live_stream: None,
            ahead: None,
            late_answer: exchange.late_answer.clone(),
        }
    }

    pub(super) fn poll_head<D: Downstream>(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &Exchange,
        client: &mut D,
    ) -> Poll<Result<(), Failure>> {
        if let Poll::Ready(Err(error)) = self.poll_upload(cx, client) {
            return Poll::Ready(Err(Failure::Body(error)));
        }
        if self.switched {
            return self.poll_switch(cx, exchange);
        }
        while let Poll::Ready(outcome) = self.poll_next_head(cx) {
            match outcome {
                Ok(()) if self.link.head().status == 101 => {
                    self.switched = true;
                    return self.poll_switch(cx, exchange);
                }
                Ok(()) if !self.link.head().is_interim() || planted!(InterimIsFinal) => {
                    // If the answer has been cut off by now, the client has got no byte of it, and another member may be asked.
                    let ahead = self.link.poll_ahead(cx);
                    return Poll::Ready(match ahead {
                        Poll::Ready(Err(error)) => Err(self.failure(error)),
                        _ => Ok(()),
                    });
                }
                // The client got its 100 (Continue) when its body was read.
                Ok(()) if self.link.head().status == 100 => {}
                Ok(()) => {
                    edit_interim(self.link.head_mut(), &exchange.to_client);
                    _ = client.interim(cx, self.link.head());
                }
                Err(error) => return Poll::Ready(Err(self.failure(error))),
            }
        }
        if self.ends_with_client(exchange) && self.poll_left(cx, client).is_ready() {
            return Poll::Ready(Err(Failure::Body(BodyError::Left)));
        }
        if let Some(marked_down) = &mut self.marked_down
            && marked_down.as_mut().poll(cx).is_ready()
        {
            if self.lease.has_other_member() {
                return Poll::Ready(Err(Failure::MarkedDown));
            }
            // No other member gets requests now, and this one may still respond.
            self.marked_down = Some(marked_down_later(&self.lease));
            cx.waker().wake_by_ref();
        }
        if planted!(NoDeadline) {
            return Poll::Pending;
        }
        exchange.deadline.poll_due(cx).map(|()| Err(Failure::TimedOut))
    }

    /// Ready when the client has left.
    fn poll_left<D: Downstream>(&mut self, cx: &mut Context<'_>, client: &mut D) -> Poll<()> {
        match D::SHOWS_LEAVING {
            true => client.poll_left(cx),
            false => self.leaving.poll(cx, |cx| client.poll_left(cx)),
        }
    }

    /// Whether the member is told at once that the client has left. Not while it waits for the client's body: then the upload notices. Also
    /// for an unanswered upgrade: the member has no work to finish, so no slot is kept.
    fn ends_with_client(&self, exchange: &Exchange) -> bool {
        let ends_at_once = self.settings.hangs_up_at_once || self.link.has_offer();
        ends_at_once && !exchange.is_for_others && !self.awaits_body()
    }

    /// Reads the next head, interim or final.
    pub(super) fn poll_next_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        let to_head = self.to_head && !planted!(HeadHasBody);
        ready!(self.link.poll_head(cx, &self.settings.limits, to_head))?;
        let head = self.link.head();
        if head.is_interim() && head.status != 101 {
            self.interims.note(head, self.settings.max_interim_answers, self.settings.limits.max_size)?;
        }
        if self.is_by_worker() {
            remove_own_fields(self.link.head_mut());
        }
        Poll::Ready(Ok(()))
    }

    /// The whole request must be sent before the protocol changes (RFC 9110 section 7.8), even if the member answers earlier.
    fn poll_switch(&mut self, cx: &mut Context<'_>, exchange: &Exchange) -> Poll<Result<(), Failure>> {
        if self.is_uploaded() && !self.link.has_unsent() {
            return Poll::Ready(Ok(()));
        }
        if self.link.has_send_failed() {
            return Poll::Ready(Err(Failure::Broken(CallError::Cut)));
        }
        exchange.deadline.poll_due(cx).map(|()| Err(Failure::TimedOut))
    }

    pub(super) fn failure(&self, error: CallError) -> Failure {
        if let CallError::Io(error) = &error
            && !self.link.is_answered()
            && let Some(failure) = TlsFault::of_silence(error)
        {
            return failure;
        }
        if let Link::Http2(stream) = &self.link {
            match stream.what_fault() {
                Some(Fault::Malformed) => return Failure::BadAnswer(error),
                Some(_) => return Failure::Unprocessed(error.to_string()),
                None => {}
            }
        }
        if let Link::Http1(connection) = &self.link
            && self.is_by_worker()
            && connection.has_read_nothing(&error)
        {
            return Failure::Unprocessed(format!("the worker ended before it read the request: {error}"));
        }
        match error {
            CallError::Io(_) | CallError::Closed if !self.link.is_answered() => Failure::Unanswered(error),
            CallError::Io(_) | CallError::Closed | CallError::Cut => Failure::Broken(error),
            _ => Failure::BadAnswer(error),
        }
    }

    /// The head of the answer has come.
    pub(super) fn note_head(&mut self, exchange: &mut Exchange) {
        self.headed = true;
        let worker_time = clock::now().saturating_duration_since(self.began);
        exchange.timings.worker_time = Some(worker_time);
        self.reached();
        self.lease.meter.record_worker_time(self.thread, worker_time);
    }

    /// The member has answered, so it works.
    pub(super) fn reached(&self) {
        self.lease.note_answered(self.link.http1());
        if self.lease.reached() {
            self.lease.tell("answers again");
        }
    }

    /// The response is late: `CallBox::head` has returned before the head came.
    pub fn is_late(&self) -> bool {
        !self.headed
    }

    /// Ends the wait for the head when the pool marks the member down (at once, if it was down before), if there is another. Not for our workers.
    pub fn watch_ejection(&mut self) {
        if self.lease.is_ours() {
            return;
        }
        self.marked_down = Some(marked_down(&self.lease));
    }

    /// Sends what is left of the request. Ready when all is sent, or when the member takes no more.
    pub fn poll_upload<D: Downstream>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut D,
    ) -> Poll<Result<(), BodyError>> {
        let Some(upload) = &mut self.upload else { return self.link.poll_send(cx).map(Ok) };
        let pushed = ready!(upload.poll_push(cx, &mut self.link, client));
        // Nothing holds a body that was sent, however long the answer goes on.
        if upload.is_done() {
            self.upload = None;
        }
        Poll::Ready(pushed)
    }

    /// Whether the client still sends the body of its request, which the member gets as it comes.
    pub fn is_uploading(&self) -> bool {
        self.upload.as_ref().is_some_and(Upload::comes_from_client)
    }

    /// Whether the client is late, and not the member: the member has taken all of the body that the client has sent, and waits for the
    /// rest. False if the member takes no more of the request.
    pub(super) fn awaits_body(&self) -> bool {
        self.is_uploading() && !self.link.has_unsent() && !self.link.has_send_failed()
    }

    /// Whether the whole body has been handed to the connection.
    pub(super) fn is_uploaded(&self) -> bool {
        self.upload.as_ref().is_none_or(Upload::is_done)
    }

    /// The answer is a 101: what follows is not HTTP. Go on with [`Self::switch`].
    pub fn has_switched(&self) -> bool {
        self.switched
    }

    pub fn answer(&self) -> &ResponseHead {
        self.link.head()
    }

    pub fn body_length(&self) -> BodyLength {
        self.link.body_length()
    }

    /// Appends some of the answer's body. True when it is complete.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, CallError>> {
        if let Some(ahead) = &mut self.ahead {
            match ahead.take(into, max) {
                Some(taken) => return Poll::Ready(taken),
                None => self.ahead = None,
            }
        }
        match &mut self.live_stream {
            None if planted!(CutIsWhole) => {
                self.link.poll_body(cx, into, max).map(|read| Ok(read.unwrap_or(true)))
            }
            None => self.link.poll_body(cx, into, max),
            Some(live_stream) => live_stream.poll_body(cx, &mut self.link, into, max),
        }
    }

    /// Looks at the first bytes of the body, at most about `most`. They are still a part of the body. Empty if none come before the
    /// deadline, or if the answer breaks off.
    pub async fn peek(&mut self, exchange: &Exchange, most: usize) -> &[u8] {
        let mut bytes = Vec::new();
        let came = poll_fn(|cx| match self.link.poll_body(cx, &mut bytes, most) {
            Poll::Ready(came) => Poll::Ready(Some(came)),
            Poll::Pending => exchange.deadline.poll_due(cx).map(|()| None),
        });
        let came = came.await;
        self.ahead = Some(Box::new(ReadAhead::new(bytes, came)));
        self.ahead.as_ref().map_or(&[], |ahead| ahead.bytes())
    }

    /// The trailers of a complete answer.
    pub fn trailers(&self) -> Option<&Fields> {
        self.link.trailers()
    }

    /// The member.
    pub fn member(&self) -> MemberId {
        self.lease.member()
    }

    /// The release of the worker: see [`Endpoint::release`].
    pub fn release(&self) -> u64 {
        self.lease.release
    }

    pub fn is_by_worker(&self) -> bool {
        self.lease.exit_watch().is_some()
    }

    /// The answer goes on until one side ends it, such as a stream of events.
    pub fn is_endless(&self) -> bool {
        live_stream::is_endless(self.answer(), self.body_length())
    }

    /// From now on the answer is a stream: the slot is returned. False if the member has too many streams: then nothing changes.
    pub fn begin_stream(&mut self, exchange: &mut Exchange) -> bool {
        let slot_hold = self.lease.since().elapsed();
        if !self.lease.begin_stream() {
            return false;
        }
        self.link.keep_alive();
        self.lease.meter.record_slot_hold(self.thread, slot_hold);
        exchange.timings.slot_hold = Some(slot_hold);
        let deadline = exchange.deadline.sweep().deadline();
        let idle_timeout = self.settings.stream_idle_timeout;
        self.live_stream = Some(Box::new(LiveStream::new(self.answer(), deadline, idle_timeout)));
        true
    }

    /// The call's answer is a stream, which holds no slot.
    pub fn is_stream(&self) -> bool {
        self.live_stream.is_some()
    }

    /// Counts the answer in `all`, if it is a stream.
    pub fn count_stream(&mut self, all: &Arc<Connections>) {
        if let Some(live_stream) = &mut self.live_stream {
            live_stream.count(OpenStream::new(all));
        }
    }

    /// Ready when the answer is a stream that ends now, although the member goes on.
    pub fn poll_stream_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.live_stream {
            None => Poll::Pending,
            Some(live_stream) => live_stream.poll_end(cx),
        }
    }
}
