//! Serves one HTTP/2 stream: its request, the request body, its answer. Knows no routes and no members.

use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use hostler_engine::exchange::{BodyError, Deadline, Downstream, Exchange, Reservation, SpoolAccount};
use hostler_engine::gateway::{Answer, Failed, Refusal};
use hostler_engine::proxy::{Call, CallBox, ClientEnd};
use hostler_wire::{BadLine, BodyLength, CallError, ChunkedError, Fields, ResponseHead, Stream};
use http::header::EXPECT;
use http::{HeaderMap, Request, Response, StatusCode};

use super::send_buffer::{SendGrant, SendPiece};
use super::websocket::{WebSocketKey, WebSocketStream};
use super::{Http2Shared, StreamState, head};
use crate::listen::Settings;
use crate::listen::refuse::refuse;
use crate::listen::request_body::ReceivedBody;
use crate::listen::respond::RequestOutcome;
use crate::listen::transfer::AnswerSink;
use crate::listen::tunnel::UpgradedConnection;
use crate::listen::unsettled::Unsettled;

/// The longest trailer section in bytes, as in HTTP/1.1.
const MOST_TRAILERS: usize = 16 * 1024;
/// The head of a request that takes less memory is not counted. Usual heads take less.
const UNCOUNTED_HEAD: usize = 8 * 1024;
/// A longer request body asks for a large receive window.
const LONG_BODY: u64 = 32 * 1024;

/// The client of one stream.
pub(super) struct StreamClient<'a> {
    pub settings: &'a Settings,
    /// The deadline for the next bytes of the client. While an answer is sent: when to check a slow client again.
    pub silence: &'a Deadline,
    pub refusal_to_read: &'a Deadline,
    body: RecvStream,
    awaits_continue: bool,
    pub common: &'a Http2Shared,
    /// How much of the request body has arrived.
    pub request_body: ReceivedBody,
    /// The bytes that the connection had received at the last check of the rate.
    received: u64,
    /// Whether the body may need a large window, and has not asked for it.
    may_ask: bool,
    trailers: Option<Fields>,
    /// Set if the request wants a WebSocket.
    pub key: Option<WebSocketKey>,
    /// Used until the answer's head is sent.
    pub respond: SendResponse<SendPiece>,
    /// Used after the answer's head is sent.
    pub sender: Option<SendStream<SendPiece>>,
    /// Bytes to be sent.
    pub outbox: Vec<u8>,
    /// The rest of a body in memory, to be sent after the outbox. Other streams may share it.
    pub whole: Bytes,
    /// Bytes of the answer that were passed to the `h2` crate.
    pub handed: u64,
    /// How many bytes of the file can be sent now.
    pub wanted: usize,
    /// How many bytes that are read now can be sent at once, and the grant of the send buffer for them. A few bytes need no grant.
    pub grant: Option<(usize, Option<SendGrant>)>,
    /// Whether the rest waits for other streams of the connection.
    pub waits_for_others: bool,
}

/// What follows the exchange of a stream.
pub(super) enum AfterStream {
    /// The exchange has ended, and the state is free for the next stream.
    Nothing(Box<StreamState>),
    /// The stream becomes a tunnel, which keeps the head of its request for the log. With the memory of a long head.
    Tunnel(Box<UpgradedConnection>, Reservation),
}

/// A request that has arrived. Its head is in the exchange.
pub(super) struct NewRequest {
    /// How the head frames the body, or why the request is refused.
    length: Result<BodyLength, Refusal>,
    key: Option<WebSocketKey>,
    awaits_continue: bool,
    body: RecvStream,
    respond: SendResponse<SendPiece>,
    /// The memory of a long head.
    head_memory: Reservation,
}

/// Begins the exchange of a request, in the connection's own task: it has the request in its CPU cache, and the head need not be moved to
/// another task.
pub(super) fn begin(
    common: &Http2Shared,
    state: &mut StreamState,
    request: Request<RecvStream>,
    respond: SendResponse<SendPiece>,
) -> NewRequest {
    state.move_to(common);
    let exchange = &mut state.exchange;
    let (key, read) = match WebSocketKey::wanted(request.method(), request.extensions()) {
        Ok(key) => {
            let read =
                head::read_request(&mut exchange.head, &request, key.as_ref(), &common.settings.limits);
            (key, read)
        }
        Err(refusal) => (None, Err(refusal)),
    };
    let mut head_memory = common.memory.reservation();
    let counted = exchange.head.fields.memory().saturating_sub(UNCOUNTED_HEAD);
    // Also of a head that is refused: the refusal waits until the client takes it.
    let read = if head_memory.resize(counted as u64) {
        read
    } else {
        exchange.head.forget_fields();
        read.and(Err(Refusal::HeadMemory))
    };
    let ended = request.body().is_end_stream() || key.is_some();
    let awaits_continue = !ended && request.headers().contains_key(EXPECT);
    let length = match read {
        Ok(announced) => {
            exchange.begin(&common.settings.trust);
            Ok(match announced {
                _ if ended => BodyLength::Known(0),
                // The end of the stream, perhaps with trailers, has not arrived yet.
                BodyLength::Known(0) => BodyLength::Chunked,
                announced => announced,
            })
        }
        Err(refusal) => {
            exchange.begin_unread();
            Err(refusal)
        }
    };
    common.shard.trace(exchange);
    NewRequest { length, key, awaits_continue, body: request.into_body(), respond, head_memory }
}

/// Serves an exchange that has begun.
pub(super) async fn serve(common: &Http2Shared, mut state: Box<StreamState>, new: NewRequest) -> AfterStream {
    let StreamState { exchange, silence, refusal_to_read } = &mut *state;
    let NewRequest { length, key, awaits_continue, body, respond, head_memory } = new;
    let unsettled = Unsettled::new(&common.shard, exchange);
    let exchange = &mut *unsettled.exchange;
    let mut client = StreamClient {
        settings: &common.settings,
        silence,
        refusal_to_read,
        awaits_continue,
        common,
        request_body: ReceivedBody::new(),
        received: common.received.load(Ordering::Relaxed),
        may_ask: length.as_ref().is_ok_and(may_be_long),
        body,
        trailers: None,
        key,
        respond,
        sender: None,
        outbox: Vec::new(),
        whole: Bytes::new(),
        handed: 0,
        wanted: 0,
        grant: None,
        waits_for_others: false,
    };
    let mut switched = None;
    match length {
        Ok(length) => {
            exchange.length = length;
            switched = client.answer(exchange).await;
        }
        Err(refusal) => {
            refuse(&mut client, exchange, &refusal).await;
        }
    }
    if let Some(call) = switched
        && let Some(stream) = client.switch(exchange, &call)
    {
        unsettled.release();
        return AfterStream::Tunnel(become_tunnel(common, *state, stream, call), head_memory);
    }
    unsettled.settle();
    drop(head_memory);
    AfterStream::Nothing(state)
}

fn become_tunnel(
    common: &Http2Shared,
    state: StreamState,
    stream: WebSocketStream,
    call: CallBox,
) -> Box<UpgradedConnection> {
    let StreamState { exchange, silence, refusal_to_read } = state;
    let third = exchange.deadline.sweep().deadline();
    let client = ClientEnd {
        stream: Stream::InHttp2(Box::new(stream)),
        head: Vec::new(),
        early: Vec::new(),
        deadlines: [silence, refusal_to_read, third],
        send_timeout: common.settings.send_limits.send_timeout,
        memory: common.send_buffer.account.clone(),
    };
    UpgradedConnection::new(&common.shard, client, exchange, call)
}

impl StreamClient<'_> {
    /// Answers the request. Returns the call if it becomes a tunnel.
    async fn answer(&mut self, exchange: &mut Exchange) -> Option<CallBox> {
        let shard = &self.common.shard;
        let answer = shard.answer(self, exchange).await;
        let answer = self.as_websocket(exchange, answer);
        let outcome = shard.respond(self, exchange, answer).await;
        self.request_body.note(exchange);
        match outcome {
            RequestOutcome::Switched(call) => Some(call),
            RequestOutcome::Delivered(_) => None,
        }
    }

    /// Refuses a wrong answer to a request that wants a WebSocket, and a tunnel for other requests.
    fn as_websocket(
        &self,
        exchange: &mut Exchange,
        answer: Result<Answer, Failed>,
    ) -> Result<Answer, Failed> {
        match (answer?, &self.key) {
            (Answer::Tunnel(call), Some(key)) if key.is_accepted(call.answer()) => Ok(Answer::Tunnel(call)),
            (Answer::Tunnel(call), _) => {
                Err(Refusal::from(call.give_up(exchange, CallError::Switched)).into())
            }
            // This status would tell the client that its WebSocket is open.
            (answer, Some(_)) if is_success(&answer) => {
                if let Answer::Member(call) = answer {
                    call.abandon(exchange);
                }
                Err(Refusal::NoWebSocket.into())
            }
            (answer, _) => Ok(answer),
        }
    }

    /// Tells the client that its WebSocket is open. None if the client has left.
    fn switch(mut self, exchange: &mut Exchange, call: &Call) -> Option<WebSocketStream> {
        let head = head::switch(call.answer(), exchange);
        match self.respond.send_response(head, false) {
            Ok(sender) => {
                self.common.signals.note_lasting();
                exchange.log_facts.status = 200;
                Some(WebSocketStream::new(self.body, sender, &self.common.send_buffer))
            }
            Err(_) => {
                exchange.log_facts.aborted = Some("client");
                None
            }
        }
    }

    /// Counts bytes of the body. Returns how many bytes all streams of the connection have received since the last call.
    fn receive(&mut self, bytes: u64) -> u64 {
        let received = self.common.received.fetch_add(bytes, Ordering::Relaxed) + bytes;
        received - std::mem::replace(&mut self.received, received)
    }

    /// Asks for a large window, once per body. There may be no memory for it.
    fn ask_for_window(&mut self) {
        if std::mem::take(&mut self.may_ask) {
            self.common.window_demand.ask(&self.common.waker);
        }
    }

    fn say_continue(&mut self) {
        self.awaits_continue = false;
        let mut interim = Response::new(());
        *interim.status_mut() = StatusCode::CONTINUE;
        // An error appears again when the body is read or the answer is sent.
        let _ = self.respond.send_informational(interim);
    }

    fn take_trailers(&mut self, map: &HeaderMap) -> Result<(), BodyError> {
        let mut trailers = Fields::default();
        let mut size = 0;
        for (name, value) in map {
            size += name.as_str().len() + value.len() + 4;
            trailers
                .write_line(name.as_str().as_bytes(), [value.as_bytes()], b"")
                .map_err(|BadLine| BodyError::Malformed(ChunkedError::Trailer))?;
        }
        if size > MOST_TRAILERS {
            return Err(BodyError::Malformed(ChunkedError::TooManyTrailers));
        }
        self.trailers = (!trailers.is_empty()).then_some(trailers);
        Ok(())
    }

    /// Takes received bytes of the body. Ready with `true` at its end.
    fn poll_piece(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>) -> Poll<Result<bool, BodyError>> {
        match ready!(self.body.poll_data(cx)) {
            Some(Ok(data)) => {
                into.extend_from_slice(&data);
                // It fails only for more bytes than were received.
                let _ = self.body.flow_control().release_capacity(data.len());
                Poll::Ready(Ok(self.body.is_end_stream()))
            }
            Some(Err(_)) => Poll::Ready(Err(BodyError::Left)),
            None => match ready!(self.body.poll_trailers(cx)) {
                Ok(None) => Poll::Ready(Ok(true)),
                Ok(Some(map)) => Poll::Ready(self.take_trailers(&map).map(|()| true)),
                Err(_) => Poll::Ready(Err(BodyError::Left)),
            },
        }
    }
}

/// Whether a body that its head announces in this way may need a large window.
fn may_be_long(announced: &BodyLength) -> bool {
    match announced {
        BodyLength::Known(bytes) => *bytes > LONG_BODY,
        BodyLength::Chunked | BodyLength::UntilClose => true,
    }
}

fn is_success(answer: &Answer) -> bool {
    let head = match answer {
        Answer::Member(call) | Answer::Tunnel(call) => call.answer(),
        Answer::Whole(whole) => &whole.head,
        Answer::Streamed(streamed) => &streamed.head,
        Answer::Shared(shared) => &shared.head,
    };
    (200..300).contains(&head.status)
}

impl Downstream for StreamClient<'_> {
    const SHOWS_LEAVING: bool = true;

    /// While a request waits for a slot, its body stays unread. With a wide window, much of it arrives in the meantime.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.body.is_end_stream() {
            self.ask_for_window();
        }
        self.respond.poll_reset(cx).map(|_| ())
    }

    fn allow_body(&mut self, most: u64) {
        self.request_body.allow(most);
    }

    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, BodyError>> {
        if self.awaits_continue {
            self.say_continue();
        }
        let before = into.len();
        let mut ended = false;
        while !ended && into.len() - before < max {
            match self.poll_piece(cx, into) {
                Poll::Ready(outcome) => ended = outcome?,
                Poll::Pending if into.len() > before => break,
                Poll::Pending => {
                    // The client cannot send while other bodies fill its window, so its time begins again.
                    if self.silence.is_due() && self.common.window_demand.is_full() {
                        self.silence.clear();
                    }
                    return self.request_body.poll_stalled(cx, self.silence, self.settings).map(Err);
                }
            }
        }
        let bytes = (into.len() - before) as u64;
        self.request_body.count(bytes, self.silence)?;
        let moved = self.receive(bytes);
        self.request_body.check_rate(moved, ended, self.silence, self.settings)?;
        if !ended && self.request_body.bytes() > LONG_BODY {
            self.ask_for_window();
        }
        Poll::Ready(Ok(ended))
    }

    fn spool(&mut self) -> Option<SpoolAccount> {
        Some(self.spool_account())
    }

    fn trailers(&self) -> Option<&Fields> {
        self.trailers.as_ref()
    }

    fn interim(&mut self, _: &mut Context<'_>, interim: &ResponseHead) -> bool {
        self.respond.send_informational(head::interim(interim)).is_ok()
    }
}
