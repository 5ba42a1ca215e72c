//! A call on one HTTP/2 stream: sends as the member's window allows, reads on demand. Knows no pools, and sets no deadlines.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use hostler_wire::{BodyLength, CallError, Fields, Limits, ResponseHead, response_body};
use http::Request;
use tokio::time::Instant;

use super::connection::StreamPermit;
use super::head;

/// A streamed body up to this size is kept until the response begins.
const MOST_KEPT: usize = 4 << 10;

pub(in crate::proxy) struct MemberStream {
    permit: StreamPermit,
    /// How often something had come over the connection when the call began.
    heard_before: u64,
    /// The next part of the request's body.
    outbox: Vec<u8>,
    sending: Bytes,
    /// Bytes of the body that were passed to the `h2` crate, which takes as much as the member allows.
    written: usize,
    /// None after everything has been sent.
    to_send: Option<SendStream<Bytes>>,
    /// Set when the whole body is in the outbox; with the trailers.
    ending: Option<Option<Fields>>,
    send_failed: bool,
    /// What was taken of a streamed body. None if it is too long to be kept.
    kept: Option<KeptBody>,
    answer: StreamAnswer,
    head: ResponseHead,
    length: BodyLength,
    trailers: Option<Fields>,
    /// How many bytes of trailers there may be: as many as of a head.
    most_trailers: usize,
    /// Something of the answer has arrived.
    answered: bool,
    fault: Option<Fault>,
}

/// What was taken of a body that its client sends only once.
#[derive(Default)]
pub(in crate::proxy) struct KeptBody {
    pub bytes: Vec<u8>,
    /// The trailers, once all of the body was taken.
    pub end: Option<Option<Fields>>,
}

enum StreamAnswer {
    Awaited(ResponseFuture),
    /// The part of the body that has arrived but is not read yet, and the stream of the rest.
    Arriving(Bytes, RecvStream),
    Whole,
}

/// Errors that HTTP/1.1 does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Fault {
    /// The member says that it has not processed the request (RFC 9113 section 8.7).
    Unprocessed,
    /// The member requires HTTP/1.1 for the request (RFC 9113 section 7), and has not processed it.
    NeedsHttp1,
    /// The member breaks the protocol.
    Malformed,
}

impl MemberStream {
    /// Sends the head of a request. An error means that nothing of it was sent.
    pub fn begin(mut permit: StreamPermit, request: Request<()>, has_body: bool) -> Result<Self, h2::Error> {
        let heard_before = permit.heard.count();
        let (answer, sending) = permit.requests.send_request(request, !has_body)?;
        Ok(Self {
            permit,
            heard_before,
            outbox: Vec::new(),
            sending: Bytes::new(),
            written: 0,
            to_send: has_body.then_some(sending),
            ending: None,
            send_failed: false,
            kept: None,
            answer: StreamAnswer::Awaited(answer),
            head: ResponseHead::default(),
            length: BodyLength::Known(0),
            trailers: None,
            most_trailers: 0,
            answered: false,
            fault: None,
        })
    }

    pub fn permit(&self) -> &StreamPermit {
        &self.permit
    }

    /// The call is given up. Since when calls that were given up have waited on its connection, if nothing has come over it since this call
    /// began, for this call or another.
    pub fn silent_since(&self, began: Instant) -> Option<Instant> {
        let heard = &self.permit.heard;
        (heard.count() == self.heard_before).then(|| heard.give_up(began))
    }

    pub fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    /// From now on the body is kept, as far as it is short: its client does not send it again.
    pub fn keep_body(&mut self) {
        self.kept = Some(KeptBody::default());
    }

    /// What was taken of the body. None if a part of that is gone.
    pub fn take_kept(&mut self) -> Option<KeptBody> {
        self.kept.take().filter(|_| self.outbox.is_empty())
    }

    /// Nothing more will be put into the outbox.
    pub fn end(&mut self, trailers: Option<Fields>) {
        if let Some(kept) = &mut self.kept {
            kept.end = Some(trailers.clone());
        }
        self.ending = Some(trailers);
    }

    pub fn has_unsent(&self) -> bool {
        !self.outbox.is_empty() || !self.sending.is_empty()
    }

    pub fn written(&self) -> usize {
        self.written
    }

    pub fn has_send_failed(&self) -> bool {
        self.send_failed
    }

    /// Sends the outbox, as far as the member's window allows. A member that refuses the rest of the body may still answer.
    pub fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.send_failed && ready!(self.poll_push(cx)).is_err() {
            self.send_failed = true;
        }
        if self.send_failed {
            self.kept.take_if(|_| !self.outbox.is_empty());
            self.outbox.clear();
            self.sending.clear();
            self.permit.body_ends();
        }
        Poll::Ready(())
    }

    fn poll_push(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        let Some(stream) = &mut self.to_send else { return Poll::Ready(Ok(())) };
        loop {
            if self.sending.is_empty() {
                if self.outbox.is_empty() {
                    break;
                }
                self.sending = std::mem::take(&mut self.outbox).into();
                self.kept.take_if(|kept| kept.bytes.len() + self.sending.len() > MOST_KEPT);
                if let Some(kept) = &mut self.kept {
                    kept.bytes.extend_from_slice(&self.sending);
                }
            }
            stream.reserve_capacity(self.sending.len());
            let room = match ready!(stream.poll_capacity(cx)) {
                Some(room) => room?,
                None => return Poll::Ready(Err(Reason::CANCEL.into())),
            };
            let piece = self.sending.split_to(room.min(self.sending.len()));
            if !piece.is_empty() {
                self.written += piece.len();
                stream.send_data(piece, false)?;
            }
        }
        match self.ending.take() {
            None => return Poll::Ready(Ok(())),
            Some(None) => stream.send_data(Bytes::new(), true)?,
            Some(Some(trailers)) => stream.send_trailers(trailers.to_http2_trailers())?,
        }
        self.to_send = None;
        self.permit.body_ends();
        Poll::Ready(Ok(()))
    }

    /// Waits for a head, interim or final, as in HTTP/1.1.
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        limits: &Limits,
        to_head: bool,
    ) -> Poll<Result<(), CallError>> {
        let StreamAnswer::Awaited(answer) = &mut self.answer else {
            return Poll::Ready(Err(CallError::Closed));
        };
        if let Poll::Ready(Some(interim)) = answer.poll_informational(cx) {
            let interim = interim.map_err(|error| self.fault(error))?;
            self.answered = true;
            head::answer(&mut self.head, interim.status().as_u16(), interim.headers(), limits)?;
            return Poll::Ready(Ok(()));
        }
        let answer = ready!(Pin::new(answer).poll(cx)).map_err(|error| self.fault(error))?;
        (self.answered, self.kept) = (true, None);
        self.most_trailers = limits.max_size;
        let (parts, body) = answer.into_parts();
        head::answer(&mut self.head, parts.status.as_u16(), &parts.headers, limits)?;
        self.length = match response_body(&self.head, to_head)? {
            // A stream always has a definite end, so a body without a length can be sent on with chunked coding.
            BodyLength::UntilClose if body.is_end_stream() => BodyLength::Known(0),
            BodyLength::UntilClose => BodyLength::Chunked,
            length => length,
        };
        self.answer = match body.is_end_stream() {
            true => StreamAnswer::Whole,
            false => StreamAnswer::Arriving(Bytes::new(), body),
        };
        Poll::Ready(Ok(()))
    }

    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    pub fn head_mut(&mut self) -> &mut ResponseHead {
        &mut self.head
    }

    pub fn body_length(&self) -> BodyLength {
        self.length
    }

    pub fn is_answered(&self) -> bool {
        self.answered
    }

    pub fn what_fault(&self) -> Option<Fault> {
        self.fault
    }

    pub fn trailers(&self) -> Option<&Fields> {
        self.trailers.as_ref()
    }

    /// Appends some of the body, at most `max` bytes. True when it is complete.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, CallError>> {
        loop {
            let (held, stream) = match &mut self.answer {
                StreamAnswer::Awaited(_) => return Poll::Ready(Err(CallError::Closed)),
                StreamAnswer::Whole => return Poll::Ready(Ok(true)),
                StreamAnswer::Arriving(held, stream) => (held, stream),
            };
            if !held.is_empty() {
                let taken = held.len().min(max);
                into.extend_from_slice(&held[..taken]);
                held.advance(taken);
                // Fails only if the stream has ended, and then the window does not matter.
                let _ = stream.flow_control().release_capacity(taken);
                if held.is_empty() && stream.is_end_stream() {
                    self.answer = StreamAnswer::Whole;
                }
                return Poll::Ready(Ok(matches!(self.answer, StreamAnswer::Whole)));
            }
            match ready!(stream.poll_data(cx)) {
                Some(Ok(data)) => *held = framed(data, self.length)?,
                Some(Err(error)) => return Poll::Ready(Err(self.fault(error))),
                None => {
                    let trailers = ready!(stream.poll_trailers(cx)).map_err(|error| self.fault(error))?;
                    self.trailers = match trailers {
                        Some(fields) => head::trailers(&fields, self.most_trailers)?,
                        None => None,
                    };
                    self.answer = StreamAnswer::Whole;
                }
            }
        }
    }

    /// Reads the first bytes of the body ahead. So a response that has already broken off is noticed before any of it is passed on.
    pub fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        let StreamAnswer::Arriving(held, stream) = &mut self.answer else { return Poll::Ready(Ok(())) };
        if held.is_empty() && !stream.is_end_stream() {
            match ready!(stream.poll_data(cx)) {
                Some(Ok(data)) => *held = framed(data, self.length)?,
                Some(Err(error)) => return Poll::Ready(Err(self.fault(error))),
                // Trailers, which are read after the body.
                None => {}
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Tells the member that its answer is not needed.
    pub fn hang_up(&mut self) {
        self.send_failed = true;
        self.permit.body_ends();
        // Dropping both handles resets the stream.
        (self.to_send, self.answer) = (None, StreamAnswer::Whole);
    }

    fn fault(&mut self, error: h2::Error) -> CallError {
        let is_refused =
            error.is_remote() && error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
        let needs_http1 = error.is_remote() && error.reason() == Some(Reason::HTTP_1_1_REQUIRED);
        // With this reason the `h2` crate ends a connection whose responses together had too many empty frames. It says nothing about this
        // response.
        let is_calm = error.reason() == Some(Reason::ENHANCE_YOUR_CALM);
        // A member whose response has begun has processed the request, even if it says otherwise.
        let has_begun = !matches!(self.answer, StreamAnswer::Awaited(_));
        if !has_begun && needs_http1 {
            self.fault = Some(Fault::NeedsHttp1);
        // After a GOAWAY, only the streams fail that the member has not processed.
        } else if !has_begun && (is_refused || error.is_remote() && error.is_go_away()) {
            self.fault = Some(Fault::Unprocessed);
        } else if error.is_library() && !(error.is_go_away() && is_calm) {
            self.fault = Some(Fault::Malformed);
        }
        if self.answered && error.is_remote() {
            return CallError::Cut;
        }
        let of_tls = || self.permit.silent_end.error();
        CallError::Io(match error.is_io() {
            true => of_tls().or_else(|| error.into_io()).unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()),
            false => io::Error::other(error),
        })
    }
}

/// Data of a body. The `h2` crate compares it with `Content-Length`, and does not know that a 204 and a 304 have none. A client in HTTP/1.1
/// would read such data as the next answer of its connection.
fn framed(data: Bytes, length: BodyLength) -> Result<Bytes, CallError> {
    if length == BodyLength::Known(0) && !data.is_empty() { Err(CallError::Unframed) } else { Ok(data) }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::super::connection::{BodyNeed, Http2Connections, SEND_BUFFER};
    use super::*;
    use crate::proxy::tests::{
        Dialled, MemberSide, SimulatedMember, WireSettings, listen, simulated_address, wire,
    };
    use crate::proxy::{Connector, MemberProtocol};

    /// A member whose windows have 16 MiB, and that reads nothing.
    #[derive(Default)]
    struct ReadsNothing(Mutex<Vec<MemberSide>>);

    impl SimulatedMember for ReadsNothing {
        fn dial(self: Arc<Self>) -> Dialled {
            let (stream, member) =
                wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
            // SETTINGS with the window of streams, and WINDOW_UPDATE for the connection.
            member.write_at_once(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0]);
            member.write_at_once(&[0, 0, 4, 8, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
            self.0.lock().unwrap().push(member);
            Dialled::Accepted(stream, Duration::ZERO)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn little_of_a_body_waits_for_a_member_that_reads_nothing_however_wide_its_windows_are() {
        let member = Arc::new(ReadsNothing::default());
        listen(vec![member.clone() as Arc<dyn SimulatedMember>]);
        let connector = Connector { protocol: MemberProtocol::Http2, ..simulated_address(0).into() };
        let (all, limits, time_limit) =
            (Http2Connections::new(None), Limits::default(), Duration::from_secs(30));
        let Ok(permit) = all.permit(&connector, &limits, time_limit, BodyNeed::AsRead).await else {
            panic!("the member is there")
        };
        let request = Request::post("http://a.test/").body(()).unwrap();
        let mut stream = MemberStream::begin(permit, request, true).unwrap();
        stream.outbox().resize(1 << 20, 7);
        // The clock moves when all tasks wait.
        let sent = timeout(Duration::from_secs(1), poll_fn(|cx| stream.poll_send(cx))).await;
        assert!(sent.is_err() && stream.has_unsent(), "the rest waits here");
        // The connection has a frame of it and a buffer besides.
        let taken = stream.written();
        assert!((SEND_BUFFER..SEND_BUFFER + 64 * 1024).contains(&taken), "{taken}");
    }
}
