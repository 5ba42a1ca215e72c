//! An answer on its way to a client: the interface to the client's protocol, where the next piece may go, and what is done while the client
//! is behind. Takes no piece and sends none.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use hostler_cache::CacheStatus;
use hostler_coding::ClientEncoders;
use hostler_engine::exchange::{BodyError, Deadline, Downstream, Exchange, Slow, SpoolAccount};
use hostler_engine::gateway::Streamed;
use hostler_engine::proxy::LeavingClient;
use hostler_wire::{Fields, FilePart, ResponseHead};
use hostler_worker::UnfinishedRequest;

use super::answer_buffer::{
    self, AnswerBuffer, BufferKind, BufferPlace, HeldResource, LEAST, PIECE, Progress,
};
use super::body_failure::BodyFailure;
use super::head::Framing;
use super::response_body::{self, AnswerOrigin, ResponseBody};
use super::settings::Settings;

/// How many bytes are held of an answer that is stored elsewhere.
const MOST_OF_STORED: usize = 2 * PIECE;

/// A client as the receiver of an answer: an HTTP/1.1 connection, or an HTTP/2 stream.
pub(super) trait AnswerSink: Downstream + Sized {
    /// The answer's head until it is sent.
    type Head;
    /// Whether the outbox contains the framing too: a body of unknown length is chunked there.
    const WRITES_CHUNKS: bool;
    /// Whether the next piece of a file or a stored answer is read before the last one is sent.
    const READS_AHEAD: bool;

    fn settings(&self) -> &Settings;

    /// The bytes to be sent.
    fn outbox(&mut self) -> &mut Vec<u8>;

    /// When to check a client that is behind again.
    fn silence(&self) -> &Deadline;

    /// The deadline for the client to take some of its answer.
    fn refusal_to_read(&self) -> &Deadline;

    /// How much the client has taken.
    fn progress(&self) -> Progress;

    /// How many bytes wait to be sent.
    fn unsent(&self) -> usize;

    /// What waits of a body in memory that others may share.
    fn unsent_shared(&mut self) -> &mut Bytes;

    /// A new buffer for an answer that the client does not take at once.
    fn new_buffer(&self) -> Box<AnswerBuffer>;

    /// The connection's share of the spool.
    fn spool_account(&mut self) -> SpoolAccount;

    /// What the encoders of the connection hold. None if it never has more than one.
    fn encoders(&self) -> Option<&ClientEncoders> {
        None
    }

    /// Puts the head of an answer into the outbox. Its body follows in pieces.
    fn put_head(&mut self, head: &ResponseHead, exchange: &Exchange, framing: Framing) -> Self::Head;

    /// Puts an answer that is whole in memory into the outbox. `closes`: an HTTP/1.1 connection is closed after it.
    fn put_whole(
        &mut self,
        head: &ResponseHead,
        body: Bytes,
        exchange: &Exchange,
        framing: Framing,
        closes: bool,
    ) -> Self::Head;

    /// Sends the waiting bytes. Ready when no bytes wait in memory, with `true` when the end of the answer was sent.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        transfer: &mut Transfer<Self>,
    ) -> Poll<Result<bool, DeliveryError>>;

    /// Whether the connection takes bytes from a file.
    fn takes_files(&self) -> bool {
        false
    }

    /// Sends bytes of a file past the outbox, which is empty. Ready with 0 if the file ends before them.
    fn poll_send_file(&mut self, _: &mut Context<'_>, _: &FilePart<'_>) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(0))
    }

    /// Ready when bytes that are read now can be sent at once, with their number. Otherwise the task is woken then.
    fn poll_room(&mut self, _: &mut Context<'_>) -> Poll<usize> {
        Poll::Ready(PIECE)
    }

    /// Counts the bytes in memory in `buffer`. Returns how many bytes are wanted from the file. `sent`: no bytes wait in memory.
    fn hold(&mut self, buffer: &mut AnswerBuffer, sent: bool, kind: BufferKind) -> usize;

    /// The answer is a stream: nothing may be sent for long, and the client ends it by leaving.
    fn begin_stream(&self);

    /// From now on the client may pause while it sends the body of its request, and send it slowly.
    fn let_body_pause(&mut self);

    /// Ready when the client has left in the middle of an answer, or perhaps has only finished sending.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Whether other answers on the same connection delay this one.
    fn waits_for_others(&self) -> bool {
        false
    }

    /// Whether the client wants a WebSocket over HTTP/2: a 2xx would tell it that the WebSocket is open (RFC 8441 section 5).
    fn wants_websocket(&self) -> bool {
        false
    }

    /// Removes an answer of which nothing was sent. False if something was sent.
    fn retract(&mut self, head: Self::Head) -> bool;

    /// Ends an answer in the middle, so that the client does not take it for the whole.
    fn break_off(&mut self);

    /// Ends an answer whose client has left or is too slow. Returns the reason for the log.
    fn give_client_up(&mut self, slow: Option<Slow>) -> &'static str;
}

/// Why a delivery ends before the client has the whole answer.
pub(super) enum DeliveryError {
    ResponseBody(BodyFailure),
    /// The temporary file with a part of the answer failed.
    File(io::Error),
    /// The client has left, or is too slow.
    Client(Option<Slow>),
    /// What the client still sends of its request is wrong, too much or too slow.
    Request(BodyError),
}

/// An answer that is being sent.
pub(super) struct Transfer<S: AnswerSink> {
    pub head: S::Head,
    /// None once all of it has arrived.
    pub body: Option<ResponseBody>,
    /// Trailers that are sent on their own, after the body.
    pub trailers: Option<Fields>,
    /// What the client has not taken yet; none while it keeps up.
    pub buffer: Option<Box<AnswerBuffer>>,
    /// Whether the body is chunked in the outbox.
    pub chunked: bool,
    /// Whether the body ends only when the client leaves.
    pub endless: bool,
    /// Whether there was no room for more of the body.
    pub was_full: bool,
    /// Whether the client does not take more of a stored body at the moment. Nothing waits in memory then.
    pub is_behind: bool,
    /// Whether the member was asked for more, and nothing has come yet.
    pub is_awaited: bool,
    /// How many bytes had gone past the client at the last look: see [`ResponseBody::gone_past`].
    pub gone_past: usize,
    /// Whether the client may pause while it sends: then a pause counts if nothing goes in either direction.
    pub body_may_pause: bool,
    /// Whether the answer has paused for so long that its request was named.
    pub is_named: bool,
    /// The name of the request, until its worker has finished.
    pub unfinished: Option<UnfinishedRequest>,
    /// The wait for a client that has closed its side, while the answer pauses.
    leaving: LeavingClient,
}

impl<S: AnswerSink> Transfer<S> {
    pub fn new(head: S::Head, body: Option<ResponseBody>) -> Self {
        let (chunked, endless, was_full, is_behind, is_awaited) = (false, false, false, false, false);
        let (is_named, trailers, buffer, unfinished) = (false, None, None, None);
        Self {
            head,
            body,
            trailers,
            buffer,
            chunked,
            endless,
            was_full,
            is_behind,
            is_awaited,
            gone_past: 0,
            body_may_pause: false,
            is_named,
            unfinished,
            leaving: LeavingClient::default(),
        }
    }

    /// The answer goes on.
    pub fn went_on(&mut self) {
        self.leaving.reset();
    }

    /// Ready when the client has left. Usually the next write shows that, but it comes only when the member goes on, and until then the answer
    /// holds a slot. So the connection is looked at while the answer pauses.
    pub fn poll_left(&mut self, cx: &mut Context<'_>, sink: &mut S) -> Poll<()> {
        if S::SHOWS_LEAVING || self.endless {
            return sink.poll_gone(cx);
        }
        let comes = self.body.as_mut().is_some_and(|body| !body.is_uploading());
        // While the client is behind with a file, it is the client that pauses, although nothing waits in memory.
        let may_pause = comes && !self.is_behind && sink.unsent() == 0 && !self.is_spilling();
        self.leaving.poll(cx, |cx| if may_pause { sink.poll_gone(cx) } else { Poll::Pending })
    }

    /// Whether a part of the answer is in a file.
    pub fn is_spilling(&self) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.is_spilling())
    }

    /// Where the next piece of the body may go.
    pub fn place(&mut self, cx: &mut Context<'_>, sink: &mut S, kind: BufferKind) -> BufferPlace {
        let is_stored = self.body.as_ref().is_some_and(ResponseBody::is_stored);
        let (unsent, limit) = (sink.unsent(), limit(sink.settings(), is_stored));
        // A body that has become too large for the cache is `Stored` here, like one of a member: a member waits for its readers.
        if is_stored
            && !S::READS_AHEAD
            && self.body.as_ref().map(ResponseBody::kind) == Some(BufferKind::Ready)
        {
            if unsent > 0 {
                return BufferPlace::Full;
            }
            if !self.is_spilling() {
                return self.place_of_stored(cx, sink, limit);
            }
        }
        match &mut self.buffer {
            Some(buffer) => {
                let progress = sink.progress();
                buffer.place((unsent, limit), kind, &progress, || sink.spool_account())
            }
            None => match limit.saturating_sub(unsent).min(first_piece(sink.settings())) {
                0 => BufferPlace::Full,
                room => BufferPlace::Memory(room),
            },
        }
    }

    /// Where the next piece of a stored body may go if none is read ahead. While memory is short, it is read only when it can be sent.
    fn place_of_stored(&mut self, cx: &mut Context<'_>, sink: &mut S, limit: usize) -> BufferPlace {
        let wanted = PIECE.min(limit);
        let is_free = !sink.settings().answer_memory.is_tight()
            && self.buffer.as_mut().is_none_or(|buffer| buffer.memory().resize(wanted as u64));
        if is_free {
            return BufferPlace::Memory(wanted);
        }
        match sink.poll_room(cx) {
            Poll::Ready(room) => BufferPlace::Memory(wanted.min(room)),
            Poll::Pending => {
                self.is_behind = true;
                BufferPlace::Full
            }
        }
    }

    /// Checks a client that is behind, or whose answer is partly in a file. True if the loop has more to do at once.
    pub fn poll_buffer(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut S,
        exchange: &mut Exchange,
        sent: bool,
    ) -> Result<bool, DeliveryError> {
        if self.has_taken_back(sink, exchange) {
            return Ok(true);
        }
        let progress = sink.progress();
        let kind = response_body::kind_of(self.body.as_ref(), exchange);
        let ended = self.body.is_none();
        let buffer = self.buffer.get_or_insert_with(|| sink.new_buffer());
        // No bytes wait in memory, but they may still be in the buffers of the connection, and the spool may be full. Then the member waits.
        let holds_up = sent && self.was_full && kind == BufferKind::Stored && buffer.is_full();
        if sent && !holds_up {
            buffer.rest(&progress, &sink.settings().send_limits, sink.refusal_to_read());
        }
        let was_empty = sink.outbox().is_empty();
        let wanted = sink.hold(buffer, sent, kind);
        let was_spilling = buffer.is_spilling();
        buffer.poll_file(cx, sink.outbox(), wanted, ended).map_err(DeliveryError::File)?;
        let has_come = was_empty && !sink.outbox().is_empty();
        if has_come || (was_spilling && !buffer.is_spilling()) {
            return Ok(true);
        }
        // The member was not asked for more, so it would not wake this task.
        if self.was_full
            && !ended
            && (self.place(cx, sink, kind) != BufferPlace::Full || (sent && self.is_behind))
        {
            return Ok(true);
        }
        let waits = self.was_full && kind == BufferKind::Stored;
        let crowds = self.crowds_cache(sink, exchange);
        if waits || crowds {
            answer_buffer::look_again(sink.silence(), cx);
        }
        if (!sent || holds_up)
            && let Some(slow) = self.find_slow(cx, sink, &progress, (waits, crowds, sent))
        {
            return Err(DeliveryError::Client(Some(slow)));
        }
        Ok(false)
    }

    /// Takes the unsent rest of a body in memory back from a slow client, if no other part of Hostler has the body. From here on the rest is delivered
    /// like a body of a member: what has no room in memory goes to a file.
    fn has_taken_back(&mut self, sink: &mut S, exchange: &mut Exchange) -> bool {
        // Each client may hold this much.
        if self.body.is_some() || exchange.log_facts.bytes_out <= LEAST as u64 {
            return false;
        }
        let rest = sink.unsent_shared();
        // A body that other parts have too is counted by them. A route that streams keeps nothing in a file.
        if exchange.streams || !rest.is_unique() {
            return false;
        }
        let rest = std::mem::take(rest);
        if rest.len() <= LEAST {
            // The client may hold these bytes, but as a copy: otherwise the whole body would stay in memory.
            sink.outbox().extend_from_slice(&rest);
            return false;
        }
        exchange.log_facts.bytes_out -= rest.len() as u64;
        // The sink has the real head already, so this one is never sent.
        let (head, length) = (ResponseHead::with_status(exchange.log_facts.status), rest.len() as u64);
        let streamed = Streamed { head, length, body: Box::new(rest) };
        self.body = Some(ResponseBody::of(AnswerOrigin::Own(Box::new(streamed))));
        true
    }

    /// Whether the client holds a body of the cache while clients hold too many of them.
    fn crowds_cache(&self, sink: &mut S, exchange: &Exchange) -> bool {
        let is_coming = self.body.as_ref().is_some_and(ResponseBody::is_from_cache);
        let is_from_cache = is_coming || exchange.log_facts.cache.is_some_and(CacheStatus::is_from_cache);
        if !is_from_cache || !sink.settings().cache_bodies.is_crowded() {
            return false;
        }
        let unsent = sink.unsent_shared();
        if unsent.len() <= LEAST {
            // The client may hold this much, but as a copy: otherwise the whole body would stay in memory.
            *unsent = Bytes::copy_from_slice(unsent);
            return self.body.is_some();
        }
        true
    }

    /// Whether the client is too slow. `waits`: a member waits for the client. `crowds`: the client holds memory that the cache lacks. `sent`: no bytes
    /// wait in memory.
    fn find_slow(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut S,
        progress: &Progress,
        (waits, crowds, sent): (bool, bool, bool),
    ) -> Option<Slow> {
        let buffer = self.buffer.as_mut()?;
        let waits_for_others = sink.waits_for_others() || sent;
        if waits_for_others {
            // The task of the connection checks whether the whole connection stalls.
            sink.refusal_to_read().clear();
        }
        let held = if waits && buffer.is_full() {
            Some(if sent { HeldResource::WorkerByAll } else { HeldResource::Worker })
        } else if !crowds {
            None
        } else if waits_for_others {
            // Other answers for the same client delay this one, so all of them together count.
            Some(HeldResource::CacheByAll)
        } else {
            Some(HeldResource::Cache)
        };
        match buffer.poll_slow(cx, progress, held, &sink.settings().send_limits, sink.refusal_to_read()) {
            Poll::Ready(Slow::Stalled) if waits_for_others => None,
            Poll::Ready(slow) => Some(slow),
            Poll::Pending => None,
        }
    }
}

/// How many bytes of an answer are taken at a time while the client keeps up.
fn first_piece(settings: &Settings) -> usize {
    if settings.answer_memory.is_tight() { LEAST } else { PIECE }
}

/// How many bytes of one answer may be in memory. `is_stored`: the answer is stored elsewhere too.
fn limit(settings: &Settings, is_stored: bool) -> usize {
    if is_stored { settings.answer_buffer.min(MOST_OF_STORED) } else { settings.answer_buffer }
}
