//! An answer and its body on the way to a client, from any source. Knows no client protocol.

use std::sync::Arc;
use std::task::{Context, Poll};

use hostler_coding::{
    self as coding, Allowance, ClientEncoders, Coding, EncodedStream, EncodingDecision, EncodingPlan, Flow,
    StreamError,
};
use hostler_engine::cache::{Encoded, SharedBody};
use hostler_engine::exchange::{BodyError, BodySource, Downstream, Exchange};
use hostler_engine::gateway::{Refusal, Streamed, request_name};
use hostler_engine::proxy::{Call, CallBox};
use hostler_wire::{BodyLength, Fields, Name, ResponseHead, Version, parse_digits};
use hostler_worker::UnfinishedRequest;

use super::answer_buffer::BufferKind;
use super::body_failure::{BodyFailure, PAUSED};
use super::head::Framing;

/// An answer: its head, and its body as it arrives.
pub(super) struct ResponseBody {
    origin: AnswerOrigin,
    /// None if the answer is sent as it is.
    encoding: Option<Box<AnswerEncoding>>,
}

/// Where an answer comes from.
pub(super) enum AnswerOrigin {
    /// A member.
    Member(CallBox),
    /// Hostler.
    Own(Box<Streamed>),
    /// A member, through the cache.
    Shared(Box<SharedBody>),
}

/// How the response differs from the one that came: its body is encoded, or only its head names the encoding in `Vary`.
struct AnswerEncoding {
    head: ResponseHead,
    /// None if there is no body to encode, or if it is sent as it is.
    stream: Option<EncodedStream>,
    /// True if the body is encoded, so that its length is unknown.
    is_encoded: bool,
    /// The trailers of a body that was encoded to its end.
    trailers: Option<Fields>,
}

impl ResponseBody {
    /// The answer as it is.
    pub fn of(origin: AnswerOrigin) -> Self {
        Self { origin, encoding: None }
    }

    /// Encodes the answer if the route says so, the client accepts it, and there is memory and time for it.
    #[inline]
    pub fn encoded(
        self,
        exchange: &Exchange,
        allowance: &Arc<Allowance>,
        client: impl FnOnce() -> ClientEncoders,
    ) -> Self {
        match &exchange.compress {
            None => self,
            Some(plan) => self.encoded_by(plan, exchange, allowance, &client()),
        }
    }

    fn encoded_by(
        self,
        plan: &EncodingPlan,
        exchange: &Exchange,
        allowance: &Arc<Allowance>,
        client: &ClientEncoders,
    ) -> Self {
        let request = &exchange.head.fields;
        if let Some(head) = coding::revalidated(request, self.head()) {
            return self.with_head(head, None, false);
        }
        let decision = plan.verdict(request, self.head(), self.content_length());
        // HTTP/1.0 has no chunked coding: an encoded body would end only with the connection.
        let coding = match decision {
            EncodingDecision::Leave => return self,
            EncodingDecision::Encode(coding) if exchange.head.version == Version::Http11 => coding,
            EncodingDecision::Encode(_) | EncodingDecision::Vary => return self.varying(),
        };
        let begin = |flow, waits: bool| {
            EncodedStream::begin(coding, plan.effort, flow, allowance, waits.then_some(client))
        };
        if let AnswerOrigin::Shared(shared) = self.origin {
            return Self::in_form(shared, coding, |waits| begin(Flow::Bytes, waits));
        }
        let mut stream = None;
        if !exchange.is_head_request() {
            let flow = if self.is_endless() { Flow::Events } else { Flow::Bytes };
            stream = begin(flow, kind_of(Some(&self), exchange) != BufferKind::Stored);
            if stream.is_none() {
                return self.varying();
            }
        }
        let head = coding::encoded(self.head(), coding);
        self.with_head(head, stream, true)
    }

    /// The encoded form of an answer that is in the cache. The form is stored there too, and waits for no client.
    fn in_form(
        shared: Box<SharedBody>,
        coding: Coding,
        begin: impl Fn(bool) -> Option<EncodedStream>,
    ) -> Self {
        let plain = match shared.encoded(coding, || begin(false)) {
            Encoded::Arriving(shared) => return Self::of(AnswerOrigin::Shared(shared)),
            Encoded::Whole(head, body) => {
                let (head, length) = (Arc::unwrap_or_clone(head), body.len() as u64);
                let streamed = Streamed { head, length, body: Box::new(body) };
                return Self::of(AnswerOrigin::Own(Box::new(streamed)));
            }
            Encoded::NoRoom(plain) => return Self::of(AnswerOrigin::Shared(plain)).varying(),
            Encoded::Not(plain) => Self::of(AnswerOrigin::Shared(plain)),
        };
        match begin(true) {
            Some(stream) => {
                let head = coding::encoded(plain.head(), coding);
                plain.with_head(head, Some(stream), true)
            }
            None => plain.varying(),
        }
    }

    /// The answer without encoding, with `Vary`.
    fn varying(self) -> Self {
        let head = coding::varying(self.head());
        self.with_head(head, None, false)
    }

    fn with_head(self, head: ResponseHead, stream: Option<EncodedStream>, is_encoded: bool) -> Self {
        let encoding = AnswerEncoding { head, stream, is_encoded, trailers: None };
        Self { encoding: Some(Box::new(encoding)), ..self }
    }

    /// The length of the body. For an answer to HEAD: of the body that a GET would get.
    fn content_length(&self) -> Option<u64> {
        match &self.origin {
            AnswerOrigin::Member(call) => {
                call.answer().fields.first(Name::ContentLength).and_then(parse_digits)
            }
            AnswerOrigin::Own(streamed) => Some(streamed.length),
            AnswerOrigin::Shared(shared) => match shared.length {
                BodyLength::Known(length) => Some(length),
                BodyLength::Chunked | BodyLength::UntilClose => None,
            },
        }
    }

    /// The answer's head.
    pub fn head(&self) -> &ResponseHead {
        match (&self.encoding, &self.origin) {
            (Some(encoding), _) => &encoding.head,
            (None, AnswerOrigin::Member(call)) => call.answer(),
            (None, AnswerOrigin::Own(streamed)) => &streamed.head,
            (None, AnswerOrigin::Shared(shared)) => &shared.head,
        }
    }

    /// The length of the body, or how it is framed.
    pub fn length(&self) -> BodyLength {
        match (&self.encoding, &self.origin) {
            (Some(encoding), _) if encoding.is_encoded => BodyLength::Chunked,
            (_, AnswerOrigin::Member(call)) => call.body_length(),
            (_, AnswerOrigin::Own(streamed)) => BodyLength::Known(streamed.length),
            (_, AnswerOrigin::Shared(shared)) => shared.length,
        }
    }

    /// How the body is framed for the client. For HTTP/2, whose version of the head is 1.1, only a known length matters.
    pub fn framing(&self, exchange: &Exchange) -> Framing {
        let status = self.head().status;
        match (self.length(), exchange.head.version) {
            // The head of a member may contain a length; a head from Hostler does not.
            (BodyLength::Known(length), _) if self.is_own() && !matches!(status, 204 | 304) => {
                Framing::Length(length)
            }
            _ if exchange.is_head_request() || matches!(status, 204 | 304) => Framing::NoBody,
            (BodyLength::Known(length), _) => Framing::Length(length),
            (_, Version::Http11) => Framing::Chunked,
            (_, Version::Http10) => Framing::UntilClose,
        }
    }

    /// Whether Hostler itself answers. Then the length is that of the body even if none is sent, as in an answer to HEAD.
    pub fn is_own(&self) -> bool {
        matches!(self.origin, AnswerOrigin::Own(_))
    }

    /// The call whose answer this is, if it comes from a member.
    pub fn call(&mut self) -> Option<&mut Call> {
        match &mut self.origin {
            AnswerOrigin::Member(call) => Some(call),
            AnswerOrigin::Own(_) | AnswerOrigin::Shared(_) => None,
        }
    }

    /// Progress without a byte for the client: bytes of the request taken by the member, or bytes of a shared body that have come. None: the client is late.
    pub fn gone_past(&self, body_may_pause: bool) -> Option<usize> {
        match &self.origin {
            AnswerOrigin::Member(call) => call.taken_by_member(body_may_pause),
            AnswerOrigin::Own(_) => Some(0),
            AnswerOrigin::Shared(shared) => Some(shared.reading.come()),
        }
    }

    /// Whether the client still sends the body of its request to the member.
    pub fn is_uploading(&mut self) -> bool {
        self.call().is_some_and(|call| call.is_uploading())
    }

    /// Names the request, which the log shows if its worker is killed before it has finished. None: no worker of ours has it.
    pub fn note_unfinished(&mut self, exchange: &Exchange) -> Option<UnfinishedRequest> {
        self.call()?.note_unfinished(request_name(exchange)?)
    }

    /// Ready when Hostler ends the body, a stream that its member would continue. The next piece is then its end.
    pub fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.call().map_or(Poll::Pending, |call| call.poll_stream_end(cx))
    }

    /// Whether the body is a stream, which goes on until one side ends it. The gateway has decided this by the head of the member's response.
    pub fn is_endless(&self) -> bool {
        matches!(&self.origin, AnswerOrigin::Member(call) if call.is_stream())
    }

    /// How the body is buffered while its client does not take it.
    pub fn kind(&self) -> BufferKind {
        match &self.origin {
            AnswerOrigin::Member(call) if call.is_stream() || refuses_buffering(call.answer()) => {
                BufferKind::Straight
            }
            AnswerOrigin::Member(_) => BufferKind::Stored,
            AnswerOrigin::Own(streamed) if streamed.body.is_only_copy() => BufferKind::Stored,
            AnswerOrigin::Own(_) => BufferKind::Ready,
            // The body is too large for the cache, so a member waits for this client.
            AnswerOrigin::Shared(shared) if shared.reading.holds_up() => BufferKind::Stored,
            AnswerOrigin::Shared(_) => BufferKind::Ready,
        }
    }

    /// Whether the body is stored already, so that little of it needs to be copied into memory.
    pub fn is_stored(&self) -> bool {
        match &self.origin {
            AnswerOrigin::Member(_) => false,
            AnswerOrigin::Own(streamed) => !streamed.body.is_only_copy(),
            AnswerOrigin::Shared(_) => true,
        }
    }

    /// Whether it is a body of the cache, stored or on its way there.
    pub fn is_from_cache(&self) -> bool {
        matches!(self.origin, AnswerOrigin::Shared(_))
    }

    /// Sends the rest of the request. Ready when nothing is left to send.
    pub fn poll_upload<D: Downstream>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut D,
    ) -> Poll<Result<(), BodyError>> {
        match &mut self.origin {
            AnswerOrigin::Member(call) => call.poll_upload(cx, client),
            AnswerOrigin::Own(_) | AnswerOrigin::Shared(_) => Poll::Ready(Ok(())),
        }
    }

    /// Appends some of the body, at most about `max` bytes. Returns `true` when the body is complete.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, BodyFailure>> {
        let Self { origin, encoding } = self;
        let Some(AnswerEncoding { stream: Some(stream), trailers, .. }) = encoding.as_deref_mut() else {
            return origin.poll_body(cx, into, max);
        };
        let came = stream.poll(cx, into, |cx, plain, max| origin.poll_body(cx, plain, max));
        if let Poll::Ready(Ok(true)) = came {
            *trailers = origin.trailers().and_then(coding::trailers);
        }
        came.map_err(|error| match error {
            StreamError::Source(failure) => failure,
            StreamError::Encoder(error) => BodyFailure::Encoder(error),
        })
    }

    /// The source of the body, if its bytes go to the client as they are and it may be a file.
    pub fn source(&mut self) -> Option<&mut dyn BodySource> {
        let is_encoded = self.encoding.as_ref().is_some_and(|encoding| encoding.stream.is_some());
        match &mut self.origin {
            AnswerOrigin::Own(streamed) if !is_encoded => Some(&mut *streamed.body),
            AnswerOrigin::Member(_) | AnswerOrigin::Own(_) | AnswerOrigin::Shared(_) => None,
        }
    }

    /// The trailers, once the body is complete.
    pub fn trailers(&self) -> Option<&Fields> {
        match self.encoding.as_deref() {
            Some(AnswerEncoding { stream: Some(_), trailers, .. }) => trailers.as_ref(),
            _ => self.origin.trailers(),
        }
    }

    /// Ends an answer that has arrived whole. The member's slot is free from now on, even if the client is still reading.
    pub fn finish(self, exchange: &mut Exchange) {
        match self.origin {
            AnswerOrigin::Member(call) => call.finish(exchange),
            AnswerOrigin::Own(_) => {}
            AnswerOrigin::Shared(_) => exchange.let_route_go(),
        }
    }

    /// Ends an answer whose client has left.
    pub fn abandon(self, exchange: &mut Exchange) {
        if let AnswerOrigin::Member(call) = self.origin {
            call.abandon(exchange);
        }
    }

    /// Ends an answer whose body failed.
    pub fn give_up(self, exchange: &mut Exchange, failure: BodyFailure) -> Refusal {
        if let BodyFailure::Pause = failure {
            exchange.log_facts.detail = Some(PAUSED.into());
        }
        match (self.origin, failure) {
            (AnswerOrigin::Member(call), BodyFailure::Member(error)) => call.give_up(exchange, error).into(),
            (AnswerOrigin::Member(call), failure) => {
                call.abandon(exchange);
                failure.into()
            }
            (AnswerOrigin::Own(_) | AnswerOrigin::Shared(_), failure) => failure.into(),
        }
    }
}

/// The member asks that its answer is not buffered (`X-Accel-Buffering: no`, as with nginx).
fn refuses_buffering(head: &ResponseHead) -> bool {
    head.fields.get("x-accel-buffering").unwrap_or_default().eq_ignore_ascii_case(b"no")
}

impl AnswerOrigin {
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, BodyFailure>> {
        match self {
            Self::Member(call) => call.poll_body(cx, into, max).map_err(BodyFailure::Member),
            Self::Own(streamed) => streamed.body.poll_body(cx, into, max).map_err(BodyFailure::Own),
            Self::Shared(shared) => shared.reading.poll_body(cx, into, max).map_err(BodyFailure::Shared),
        }
    }

    fn trailers(&self) -> Option<&Fields> {
        match self {
            Self::Member(call) => call.trailers(),
            Self::Own(_) => None,
            Self::Shared(shared) => shared.reading.trailers(),
        }
    }
}

/// How the answer is buffered when the client does not read it.
pub(super) fn kind_of(response_body: Option<&ResponseBody>, exchange: &Exchange) -> BufferKind {
    match response_body {
        Some(_) if exchange.streams => BufferKind::Straight,
        Some(response_body) => response_body.kind(),
        // All of it has come.
        None => BufferKind::Stored,
    }
}
