//! One request on its way over one connection: sent and read side by side, and then the answer's body. Knows no client protocol.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hostler_dispatch::Lease;
use hostler_wire::{BodyLength, CallError, Fields, MemberConnection, Name, ResponseHead};
use tokio::time::Instant;

use super::http2::{Fault, MemberStream};
use super::interim::Interims;
use super::link::Link;
use super::upload::Upload;
use super::{CallSettings, Endpoint, Failure, MemberEnd, TlsFault, linger, part, request};
use crate::exchange::{BodyError, Downstream, Exchange, PendingEnd};

/// A call to a member. It owns the lease: the slot is free when this has ended, or when what it left behind has.
///
/// Mostly in a box: it is handed on a dozen times, from one place in its request's future to another.
pub struct Call {
    pub(super) lease: Lease<Endpoint>,
    pub(super) link: Link,
    pub(super) settings: CallSettings,
    pub(super) to_head: bool,
    /// The final head has come.
    pub(super) headed: bool,
    /// The final head is 101: HTTP has ended.
    switched: bool,
    upload: Upload,
    began: Instant,
    thread: usize,
    /// Ready when the member is given up; asked for only when the answer is late.
    forsaken: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pub(super) interims: Interims,
}

/// Another lease beside one's own in the last moment before a worker broke off may have broken off with it.
const A_MOMENT: Duration = Duration::from_secs(1);

impl Call {
    pub(super) fn begin(
        exchange: &Exchange,
        lease: Lease<Endpoint>,
        mut connection: Box<MemberConnection>,
        settings: &CallSettings,
        thread: usize,
        began: Instant,
    ) -> Box<Self> {
        let outbox = connection.start();
        let mut upload = Upload::new(exchange);
        request::write_head(outbox, exchange, upload.framing());
        upload.start(outbox);
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
        upload: Upload,
        settings: &CallSettings,
        thread: usize,
    ) -> Box<Self> {
        Self::new(exchange, lease, Link::Http2(stream), upload, settings, thread, Instant::now())
    }

    fn new(
        exchange: &Exchange,
        lease: Lease<Endpoint>,
        link: Link,
        upload: Upload,
        settings: &CallSettings,
        thread: usize,
        began: Instant,
    ) -> Box<Self> {
        Box::new(Self {
            lease,
            link,
            settings: settings.clone(),
            to_head: exchange.is_head_request(),
            headed: false,
            switched: false,
            upload,
            began,
            thread,
            forsaken: None,
            interims: Interims::default(),
        })
    }

    /// Waits for the head of the answer; interim ones go to the client. It may be late, which is to be looked into before it is waited
    /// for again ([`Self::is_late`]). After a failure the lease comes back, unless it
    /// still belongs to a member that has not finished.
    pub(super) async fn head<D: Downstream>(
        mut self: Box<Self>,
        exchange: &mut Exchange,
        client: &mut D,
    ) -> Result<Box<Self>, (Failure, Option<Lease<Endpoint>>)> {
        match poll_fn(|cx| self.poll_head(cx, exchange, client)).await {
            Ok(()) => {
                self.headed = true;
                let worker_time = self.began.elapsed();
                exchange.timings.worker_time = Some(worker_time);
                self.reached();
                self.lease.meter.record_worker_time(self.thread, worker_time);
                Ok(self)
            }
            Err(Failure::TimedOut) if let Some(look) = exchange.look.take() => {
                exchange.deadline.set_at(look.until);
                Ok(self)
            }
            // It may answer yet: then it is not as bad as it seemed.
            Err(failure @ Failure::Forsaken) => {
                exchange.pending_end = linger::until_finished(*self);
                Err((failure, None))
            }
            Err(failure @ Failure::TimedOut) => {
                if !self.lease.is_ours() {
                    self.strike();
                }
                if let Link::Http2(stream) = &self.link {
                    self.lease.http2_connections(self.thread).avoid(stream.permit());
                }
                exchange.pending_end = linger::until_finished(*self);
                Err((failure, None))
            }
            Err(failure @ Failure::Body(_)) => {
                exchange.pending_end = linger::after_hanging_up(*self);
                Err((failure, None))
            }
            // The connection is of no use any more; nor is there a way left to learn when the member finishes.
            Err(failure) => {
                exchange.pending_end = self.broken_off();
                Err((failure, Some(self.lease)))
            }
        }
    }

    fn poll_head<D: Downstream>(
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
                Ok(()) if !self.link.head().is_interim() => {
                    // One that is cut off by now has not cost the client a byte, and may be had elsewhere.
                    let ahead = self.link.poll_ahead(cx);
                    return Poll::Ready(match ahead {
                        Poll::Ready(Err(error)) => Err(self.failure(error)),
                        _ => Ok(()),
                    });
                }
                // The client was told to go on when its body was read.
                Ok(()) if self.link.head().status == 100 => {}
                Ok(()) => client.interim(cx, self.link.head()),
                Err(error) => return Poll::Ready(Err(self.failure(error))),
            }
        }
        if let Some(forsaken) = &mut self.forsaken
            && forsaken.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(Failure::Forsaken));
        }
        exchange.deadline.poll_due(cx).map(|()| Err(Failure::TimedOut))
    }

    /// The request ends before the new protocol begins (RFC 9110 section 7.8), however early the member says that it will.
    fn poll_switch(&mut self, cx: &mut Context<'_>, exchange: &Exchange) -> Poll<Result<(), Failure>> {
        if self.upload.is_done() && !self.link.has_unsent() {
            return Poll::Ready(Ok(()));
        }
        if self.link.has_send_failed() {
            return Poll::Ready(Err(Failure::Broken(CallError::Cut)));
        }
        exchange.deadline.poll_due(cx).map(|()| Err(Failure::TimedOut))
    }

    fn failure(&self, error: CallError) -> Failure {
        if let CallError::Io(error) = &error
            && !self.link.is_answered()
            && let Some(failure) = TlsFault::of_silence(error)
        {
            return failure;
        }
        if let Link::Http2(stream) = &self.link {
            match stream.what_fault() {
                Some(Fault::Unprocessed) => return Failure::Unprocessed(error.to_string()),
                Some(Fault::Malformed) => return Failure::BadAnswer(error),
                None => {}
            }
        }
        match error {
            CallError::Io(_) | CallError::Closed if !self.link.is_answered() => Failure::Unanswered(error),
            CallError::Io(_) | CallError::Closed | CallError::Cut => Failure::Broken(error),
            _ => Failure::BadAnswer(error),
        }
    }

    /// The head has not come by the time it is first looked for.
    pub fn is_late(&self) -> bool {
        !self.headed
    }

    /// From now on an answer is not waited for any longer once the member is given up; if it was to prove itself with this one, at
    /// once.
    pub fn may_be_had_elsewhere(&mut self) {
        if self.lease.is_ours() {
            return;
        }
        self.forsaken = Some(match self.lease.is_wary() {
            true => Box::pin(std::future::ready(())),
            false => Box::pin(self.lease.forsaken()),
        });
    }

    /// Goes on waiting for the head of a late answer.
    pub async fn wait_on<D: Downstream>(
        self: Box<Self>,
        exchange: &mut Exchange,
        client: &mut D,
    ) -> Result<Box<Self>, Failure> {
        self.head(exchange, client).await.map_err(part)
    }

    /// The member answers.
    pub(super) fn reached(&self) {
        if self.lease.reached() {
            self.lease.tell("answers again");
        }
    }

    /// The member has let it wait in vain.
    pub(super) fn strike(&self) {
        if let Some(out) = self.lease.strike() {
            self.lease.tell_ejected(out);
        }
    }

    /// The member has no other request.
    pub(super) fn is_alone(&self) -> bool {
        self.lease.is_alone(A_MOMENT)
    }

    /// Sends what is left of the request; ready when all is sent, or the member takes no more.
    pub fn poll_upload<D: Downstream>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut D,
    ) -> Poll<Result<(), BodyError>> {
        self.upload.poll_push(cx, &mut self.link, client)
    }

    /// The answer is 101: what follows is not HTTP, and [`Self::switch`] has it.
    pub fn has_switched(&self) -> bool {
        self.switched
    }

    /// Gives the slot back and the connection away.
    pub fn switch(self, exchange: &mut Exchange) -> MemberEnd {
        exchange.timings.slot_hold = Some(self.record_slot_hold(Instant::now()));
        let named: Vec<_> = self.answer().fields.all(Name::Upgrade).collect();
        let is_websocket = matches!(named[..], [protocol] if protocol.eq_ignore_ascii_case(b"websocket"));
        let (stream, early) = self.link.into_stream().expect("invariant: only HTTP/1.1 switches");
        let idle_timeout = self.settings.tunnel_idle_timeout;
        MemberEnd { stream, early, is_websocket, idle_timeout, tunnel_guard: self.lease.tunnel_guard() }
    }

    /// The answer's head.
    pub fn answer(&self) -> &ResponseHead {
        self.link.head()
    }

    /// The length of the answer's body.
    pub fn body_length(&self) -> BodyLength {
        self.link.body_length()
    }

    /// Appends some of the answer's body; `true` when it is complete.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, CallError>> {
        self.link.poll_body(cx, into, max)
    }

    /// The trailers of an answer that is complete.
    pub fn trailers(&self) -> Option<&Fields> {
        self.link.trailers()
    }

    /// The member has finished: the slot is free from here on, whether or not the client has all.
    pub fn finish(self, exchange: &mut Exchange) {
        exchange.timings.slot_hold = Some(self.end());
        exchange.let_route_go();
    }

    /// The client has gone: the member goes on alone, and the slot with it. A stream of events has no end of its own; there
    /// the member is told at once.
    pub fn abandon(self, exchange: &mut Exchange) {
        exchange.pending_end = self.leave();
    }

    /// As [`abandon`](Self::abandon), for a call that has outlived its exchange.
    pub fn leave(self) -> Option<PendingEnd> {
        match self.is_event_stream() {
            true => linger::after_hanging_up(self),
            false => linger::until_finished(self),
        }
    }

    /// The member is a worker of ours.
    pub fn is_by_worker(&self) -> bool {
        self.lease.exit_watch().is_some()
    }

    /// The answer goes on for as long as somebody listens.
    pub fn is_event_stream(&self) -> bool {
        let kind = self.answer().fields.first(Name::ContentType).unwrap_or_default();
        kind.get(..17).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/event-stream"))
    }

    /// The member wants its answer to go to the client as it makes it, as nginx knows it.
    pub fn refuses_buffering(&self) -> bool {
        let wish = self.answer().fields.get("x-accel-buffering").unwrap_or_default();
        wish.eq_ignore_ascii_case(b"no")
    }

    /// The answer is broken: nothing more can be learnt from this connection. A worker that has hung up is likely to be dying.
    pub fn give_up(self, exchange: &mut Exchange, error: CallError) -> Failure {
        let (failure, pending_end) = self.break_off(error);
        if pending_end.is_some() {
            exchange.pending_end = pending_end;
        }
        failure
    }

    /// As [`give_up`](Self::give_up), for a call that has outlived its exchange.
    pub fn break_off(self, error: CallError) -> (Failure, Option<PendingEnd>) {
        self.record_slot_hold(Instant::now());
        let failure = self.failure(error);
        if !failure.was_cut_off() {
            return (failure, None);
        }
        let pending_end = self.broken_off();
        self.lease.suspect();
        (failure, pending_end)
    }

    fn broken_off(&self) -> Option<PendingEnd> {
        let exit_watch = self.lease.exit_watch()?;
        Some(PendingEnd::broken_off(exit_watch.clone(), self.lease.since(), self.is_alone()))
    }

    /// Gives the connection back for another call if it is fit, then the slot; in that order, so that whoever gets the
    /// slot finds the connection. Says how long the slot was held.
    pub fn end(self) -> Duration {
        // One look at the clock for all that ends here: it costs more than the rest.
        let now = Instant::now();
        let slot_hold = self.record_slot_hold(now);
        let Self { lease, link, upload, thread, .. } = self;
        if let Link::Http1(mut connection) = link
            && upload.is_done()
            && connection.is_reusable(now)
        {
            lease.checkin(thread, connection);
        }
        lease.end(now);
        slot_hold
    }

    /// Nobody wants to know how it ended.
    pub(super) fn let_go(self) {
        self.record_slot_hold(Instant::now());
    }

    fn record_slot_hold(&self, now: Instant) -> Duration {
        let slot_hold = now.saturating_duration_since(self.lease.since());
        self.lease.meter.record_slot_hold(self.thread, slot_hold);
        slot_hold
    }
}
