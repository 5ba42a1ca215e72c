//! What the delivery of an answer needs of a client's protocol, and an answer that is under way. Sends nothing itself.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use hostler_engine::exchange::{Deadline, Downstream, Exchange, Slow, SpoolAccount};
use hostler_wire::{Fields, ResponseHead};

use super::Settings;
use super::behind::{Behind, BufferKind, Progress};
use super::head::Framing;
use super::response_body::{ResponseBody, Trouble};

/// A client as the receiver of an answer: an HTTP/1.1 connection, or an HTTP/2 stream.
pub(super) trait AnswerSink: Downstream + Sized {
    /// What is known of the answer's head until it has been sent.
    type Head;
    /// The outbox holds the framing of the body as well: a body of unknown length is in the chunked coding there.
    const WRITES_CHUNKS: bool;
    /// Of a body that lies in a file or in the cache, the next piece is read before the last one is sent.
    const READS_AHEAD: bool;

    fn settings(&self) -> &Settings;

    /// Bytes that wait to be sent.
    fn outbox(&mut self) -> &mut Vec<u8>;

    /// When to look again at a client that is behind.
    fn silence(&self) -> &Deadline;

    /// When the client has taken nothing for too long.
    fn refusal_to_read(&self) -> &Deadline;

    /// How far the client is.
    fn progress(&self) -> Progress;

    /// How many bytes wait to be sent.
    fn unsent(&self) -> usize;

    /// What holds the rest of an answer that the client does not take at once.
    fn fall_behind(&self) -> Box<Behind>;

    /// What the connection holds of the spool.
    fn spool_account(&mut self) -> SpoolAccount;

    /// Takes the head of an answer whose body follows in pieces.
    fn put_head(&mut self, head: &ResponseHead, exchange: &Exchange, framing: Framing) -> Self::Head;

    /// Takes an answer of which all lies in memory. `closes`: an HTTP/1.1 connection ends after it.
    fn put_whole(
        &mut self,
        head: &ResponseHead,
        body: Bytes,
        exchange: &Exchange,
        framing: Framing,
        closes: bool,
    ) -> Self::Head;

    /// Sends what waits. Ready when nothing waits in memory, and with `true` when the end of the answer has been sent.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        transfer: &mut Transfer<Self>,
    ) -> Poll<Result<bool, DeliveryError>>;

    /// Counts in `behind` what waits in memory, and returns how many bytes are wanted from the file. `sent`: nothing waits in memory.
    fn hold(&mut self, behind: &mut Behind, sent: bool, kind: BufferKind) -> usize;

    /// Ready when the client has left in the middle of an answer. `endless`: the next write, which would show it, may be hours away.
    fn poll_gone(&mut self, cx: &mut Context<'_>, endless: bool) -> Poll<()>;

    /// Other answers on the same connection keep this one from being sent, whether or not the client would take it.
    fn waits_for_others(&self) -> bool {
        false
    }

    /// The client wants a WebSocket over HTTP/2: a 2xx would say to it that the WebSocket is open (RFC 8441 section 5).
    fn wants_websocket(&self) -> bool {
        false
    }

    /// Takes back an answer of which nothing has been sent. False if something has been sent.
    fn retract(&mut self, head: Self::Head) -> bool;

    /// The answer fails in the middle: the client must not take what was sent for the whole.
    fn break_off(&mut self);

    /// The client has left, or is too slow. Returns the reason for the log.
    fn give_client_up(&mut self, slow: Option<Slow>) -> &'static str;
}

/// Why a delivery ends before the client has all.
pub(super) enum DeliveryError {
    ResponseBody(Trouble),
    /// The temporary file that holds a part of the answer.
    File(io::Error),
    /// The client has left, or does not take enough.
    Client(Option<Slow>),
}

/// An answer under way.
pub(super) struct Transfer<S: AnswerSink> {
    pub head: S::Head,
    /// None once all of it has come.
    pub body: Option<ResponseBody>,
    /// To be sent by itself, behind the body.
    pub trailers: Option<Fields>,
    /// What the client has not taken; none while it keeps up.
    pub behind: Option<Box<Behind>>,
    /// The body goes to the outbox in the chunked coding.
    pub chunked: bool,
    /// The body ends when the client leaves.
    pub endless: bool,
    /// There was no room for more of the body.
    pub was_full: bool,
}

impl<S: AnswerSink> Transfer<S> {
    pub fn new(head: S::Head, body: Option<ResponseBody>) -> Self {
        let (chunked, endless, was_full) = (false, false, false);
        Self { head, body, trailers: None, behind: None, chunked, endless, was_full }
    }

    /// A part of the answer lies in a file.
    pub fn is_spilling(&self) -> bool {
        self.behind.as_ref().is_some_and(|behind| behind.is_spilling())
    }
}
