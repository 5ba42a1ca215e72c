//! One request on its way over one connection: sent and read side by side, and then the answer's body. Knows no client protocol.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use hostler_dispatch::Lease;
use hostler_wire::{BodyLength, CallError, Fields, MemberConnection, Name, ResponseHead};
use tokio::time::Instant;

use super::ending::end_lease;
use super::http2::{Fault, MemberStream};
use super::interim::Interims;
use super::link::Link;
use super::upload::Upload;
use super::{CallSettings, Endpoint, Failure, TlsFault, request};
use crate::exchange::{BodyError, Downstream, Exchange};

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
    pub(super) upload: Upload,
    began: Instant,
    pub(super) thread: usize,
    /// Ready when the member is given up; asked for only when the answer is late.
    forsaken: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pub(super) interims: Interims,
}

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
            Err(failure) => Err(self.without_answer(exchange, failure)),
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

    pub(super) fn failure(&self, error: CallError) -> Failure {
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
        self.head(exchange, client).await.map_err(end_lease)
    }

    /// The member answers.
    pub(super) fn reached(&self) {
        if self.lease.reached() {
            self.lease.tell("answers again");
        }
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
}
