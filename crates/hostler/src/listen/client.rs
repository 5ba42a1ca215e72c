//! An HTTP/1.1 connection of a client: reads heads and bodies, writes answers. Knows no routes and no members.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hostler_engine::exchange::{BodyError, Deadline, Downstream, Exchange, SpoolAccount};
use hostler_engine::gateway::Refusal;
use hostler_engine::proxy::ClientEnd;
use hostler_wire::turn::MOST_AT_ONCE;
use hostler_wire::{
    BodyLength, BodyReader, Bulk, Fields, HeadScan, Name, RequestHead, ResponseHead, Stream, Version,
    read_some,
};
use tokio::io::AsyncWrite;
use tokio::task::coop;

use super::answer_buffer::LEAST;
use super::hidden_end::HiddenEnd;
use super::idle::{IdleConnection, NextHead};
use super::request_body::ReceivedBody;
use super::shard::Shard;
use super::transfer::AnswerSink;
use super::{Settings, head, silence::ShortSilence};

/// How many bytes are read ahead while a request waits: enough to notice that the client leaves, and for a few pipelined requests.
const READ_AHEAD: usize = 16 * 1024;
/// A larger buffer is freed while a connection is idle.
const KEPT_BUFFER: usize = 4 * 1024;

/// A head that was found in the inbox, with its length in bytes.
enum HeadFound {
    /// It is parsed.
    Parsed(usize),
    /// It is complete, and not parsed yet.
    Ends(usize),
    /// There is none.
    Not(NextHead),
}

/// A client's connection.
pub(super) struct Http1Client {
    pub(super) stream: Stream,
    pub(super) settings: Arc<Settings>,
    /// Bytes that were read. The first `taken` of them are processed.
    pub(super) inbox: Vec<u8>,
    pub(super) taken: usize,
    /// Bytes to be written. The first `sent` of them are written.
    pub(super) outbox: Vec<u8>,
    pub(super) sent: usize,
    /// The rest of a body in memory, to be written after the outbox. Other connections may share it.
    pub(super) tail: Bytes,
    /// Bytes written since the connection began.
    pub(super) written: u64,
    /// Its share of the spool; none before its first use.
    pub(super) spool: Option<SpoolAccount>,
    /// Whether the connection is to be kept after the answer, as far as is known.
    pub(super) keep: bool,
    body: BodyReader,
    bulk: Bulk,
    /// How much of the request body has arrived.
    pub(super) request_body: ReceivedBody,
    awaits_continue: bool,
    version: Version,
    /// The deadline for the next bytes of the client. While an answer is sent: when to check a slow client again.
    pub(super) silence: Deadline,
    /// The deadline for the client to take some of its answer.
    pub(super) refusal_to_read: Deadline,
    /// The wait for the next head. None while `silence` is still that of the idle connection.
    short_silence: Option<ShortSilence>,
    hidden_end: HiddenEnd,
}

impl Http1Client {
    /// An idle connection from which the `first` bytes of a request have been read.
    pub fn new(idle: IdleConnection, first: Vec<u8>, shard: &Shard) -> Self {
        let IdleConnection { stream, settings, written, spool, silence } = idle;
        Self {
            stream,
            settings,
            inbox: first,
            taken: 0,
            outbox: Vec::new(),
            sent: 0,
            tail: Bytes::new(),
            written,
            spool,
            keep: false,
            body: BodyReader::Length(0),
            bulk: Bulk::default(),
            request_body: ReceivedBody::new(),
            awaits_continue: false,
            version: Version::Http11,
            silence,
            refusal_to_read: shard.sweep.deadline(),
            short_silence: None,
            hidden_end: HiddenEnd::default(),
        }
    }

    /// The connection without the state of a request, after [`NextHead::Idle`].
    pub fn into_idle(self) -> IdleConnection {
        let Self { stream, settings, written, spool, silence, .. } = self;
        IdleConnection { stream, settings, written, spool, silence }
    }

    /// Reads the next head.
    pub async fn next_head(&mut self, exchange: &mut Exchange, shard: &Shard) -> Result<NextHead, Refusal> {
        self.shrink();
        let mut scan = HeadScan::default();
        let mut begun = false;
        if let Some(wait) = &mut self.short_silence {
            *wait = ShortSilence::begin(&self.silence, self.settings.idle_timeout);
        }
        let found =
            poll_fn(|cx| self.poll_head(cx, &mut exchange.head, &mut scan, &mut begun, shard)).await?;
        let parsed = match found {
            HeadFound::Not(next) => return Ok(next),
            HeadFound::Parsed(_) => Ok(()),
            HeadFound::Ends(end) => {
                exchange.head.parse(&self.inbox[self.taken..self.taken + end], &self.settings.limits)
            }
        };
        self.silence.clear();
        self.short_silence = Some(ShortSilence::default());
        self.version = exchange.head.version;
        parsed?;
        if let HeadFound::Parsed(end) | HeadFound::Ends(end) = found {
            self.take(end);
        }
        Ok(NextHead::Read)
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut RequestHead,
        scan: &mut HeadScan,
        begun: &mut bool,
        shard: &Shard,
    ) -> Poll<Result<HeadFound, Refusal>> {
        loop {
            let (unread, limits) = (&self.inbox[self.taken..], &self.settings.limits);
            // Nearly always the head has arrived whole, and can be parsed without a search for its end.
            if scan.is_fresh()
                && !unread.is_empty()
                && let Some(end) = head.parse_at_once(unread, limits)
            {
                return Poll::Ready(Ok(HeadFound::Parsed(end)));
            }
            if !unread.is_empty()
                && let Some(end) = scan.advance_request(unread, limits.max_size)?
            {
                return Poll::Ready(Ok(HeadFound::Ends(end)));
            }
            if !*begun && scan.has_begun() {
                *begun = true;
                self.silence.set_after(self.settings.header_timeout);
            }
            match self.poll_read(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(Ok(HeadFound::Not(NextHead::None))),
                // The task has moved many bytes in this turn, so the read was put off.
                Poll::Pending if !coop::has_budget_remaining() => return Poll::Pending,
                // Checked after the read: a request that has arrived is answered even while Hostler stops.
                Poll::Pending if !*begun && shard.ends_idle(&self.settings, self.stream.is_tls()) => {
                    return Poll::Ready(Ok(HeadFound::Not(NextHead::None)));
                }
                Poll::Pending => {
                    ready!(self.silence.poll_due(cx));
                    if *begun {
                        return Poll::Ready(Err(Refusal::HeaderTimeout));
                    }
                    let wait = self.short_silence.as_mut();
                    if !wait.is_some_and(|wait| wait.end(&self.silence, self.settings.idle_timeout)) {
                        return Poll::Ready(Ok(HeadFound::Not(NextHead::None)));
                    }
                    // Empty lines may precede a head. With them the connection stays as it is.
                    if self.inbox.is_empty() {
                        return Poll::Ready(Ok(HeadFound::Not(NextHead::Idle)));
                    }
                }
            }
        }
    }

    /// Prepares for the body of a request whose head is valid.
    pub fn begin(&mut self, head: &RequestHead, length: BodyLength) {
        self.body = BodyReader::new(length);
        self.bulk = Bulk::default();
        self.request_body = ReceivedBody::new();
        self.awaits_continue = self.version == Version::Http11
            && !self.body.has_ended()
            && head.fields.first(Name::Expect).is_some();
    }

    /// Notes that the head is invalid: where the next request begins is unknown, so the connection cannot be kept.
    pub fn forbid_reuse(&mut self) {
        self.body = BodyReader::UntilClose(false);
    }

    /// Whether the next byte of the connection is the first byte of a request.
    pub fn is_request_read(&self) -> bool {
        self.body.has_ended()
    }

    /// The protocol version of the current request.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the connection is kept for another request.
    pub fn is_kept(&self) -> bool {
        self.keep && self.is_request_read()
    }

    /// Writes the outbox and the tail. Ready when all is written.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.unsent() > 0 {
            let n = match self.poll_write(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(outcome) => outcome?,
                Poll::Pending => {
                    self.drop_written();
                    return Poll::Pending;
                }
            };
            let of_outbox = n.min(self.outbox.len() - self.sent);
            self.sent += of_outbox;
            // The last piece that is split off frees the whole body.
            drop(self.tail.split_to(n - of_outbox));
            self.written += n as u64;
        }
        self.outbox.clear();
        self.sent = 0;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut most = MOST_AT_ONCE;
        // TLS takes 64 KiB before its socket does. While memory is short, it gets less, and more only when the socket has taken that.
        if self.unsent() > LEAST && self.stream.is_tls() && self.settings.answer_memory.is_tight() {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            most = LEAST;
        }
        let (stream, unsent) = (Pin::new(&mut self.stream), &self.outbox[self.sent..]);
        let tail = &self.tail[..self.tail.len().min(most)];
        match (unsent, tail) {
            _ if unsent.len() > most => stream.poll_write(cx, &unsent[..most]),
            (unsent, []) => stream.poll_write(cx, unsent),
            ([], tail) => stream.poll_write(cx, tail),
            (unsent, tail) => stream.poll_write_vectored(cx, &[IoSlice::new(unsent), IoSlice::new(tail)]),
        }
    }

    /// Removes written bytes from the outbox and shrinks it, so that a long transfer does not make it large.
    pub(super) fn drop_written(&mut self) {
        if self.sent > self.outbox.len() / 2 {
            self.outbox.drain(..self.sent);
            self.sent = 0;
            if self.outbox.capacity() > 4 * self.outbox.len().max(READ_AHEAD) {
                self.outbox.shrink_to(READ_AHEAD);
            }
        }
    }

    /// Bytes of answers that the client's socket has accepted since the connection began.
    pub(super) fn taken_by_client(&self) -> u64 {
        self.stream.taken_below().unwrap_or(self.written)
    }

    /// The connection for another protocol, with the bytes that are not processed yet.
    pub fn into_end(mut self, third: Deadline) -> ClientEnd {
        self.inbox.drain(..self.taken);
        self.outbox.drain(..self.sent);
        ClientEnd {
            stream: self.stream,
            head: self.outbox,
            early: self.inbox,
            deadlines: [self.silence, self.refusal_to_read, third],
            send_timeout: self.settings.send_limits.send_timeout,
            memory: self.settings.answer_memory.account(),
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        read_some(&mut self.stream, cx, READ_AHEAD, |bytes| {
            self.inbox.extend_from_slice(bytes);
            bytes.len()
        })
    }

    fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken == self.inbox.len() {
            self.inbox.clear();
            self.taken = 0;
        } else if self.taken > READ_AHEAD {
            self.inbox.drain(..self.taken);
            self.taken = 0;
        }
    }

    fn shrink(&mut self) {
        for buffer in [&mut self.inbox, &mut self.outbox] {
            if buffer.is_empty() && buffer.capacity() > KEPT_BUFFER {
                *buffer = Vec::new();
            }
        }
    }

    fn say_continue(&mut self, cx: &mut Context<'_>) {
        self.awaits_continue = false;
        if self.taken == self.inbox.len() {
            self.outbox.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            // What cannot be written now is written with the answer. An error appears there too.
            let _ = self.poll_flush(cx);
        }
    }
}

impl Downstream for Http1Client {
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.inbox.len() - self.taken < READ_AHEAD {
            match ready!(self.poll_read(cx)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
        let unread = (self.inbox.len() - self.taken) as u64;
        // An upload that has begun finds the end when it comes to it. It may never do so, if its member takes no more.
        let missing = match self.body {
            _ if self.request_body.bytes() == 0 => None,
            BodyReader::Length(left) => Some(left.saturating_sub(unread)),
            BodyReader::Chunked(..) | BodyReader::UntilClose(_) => Some(0),
        };
        self.hidden_end.poll(cx, &self.stream, missing)
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
            self.say_continue(cx);
        }
        let before = into.len();
        while !self.body.has_ended() && into.len() == before {
            // Bytes that were read ahead come first.
            let unread = &self.inbox[self.taken..];
            if !unread.is_empty() {
                let used =
                    self.body.take(&unread[..unread.len().min(max)], into).map_err(BodyError::Malformed)?;
                self.take(used);
                continue;
            }
            let places = (&mut *into, &mut self.inbox);
            match self.bulk.poll_read(&mut self.stream, cx, &mut self.body, places, max) {
                Poll::Ready(Ok(Ok(1..))) => {}
                Poll::Ready(Ok(Err(error))) => return Poll::Ready(Err(BodyError::Malformed(error))),
                Poll::Ready(_) => return Poll::Ready(Err(BodyError::Left)),
                Poll::Pending => {
                    return self.request_body.poll_stalled(cx, &self.silence, &self.settings).map(Err);
                }
            }
        }
        let (bytes, ended) = ((into.len() - before) as u64, self.body.has_ended());
        self.request_body.count(bytes, &self.silence)?;
        self.request_body.check_rate(bytes, ended, &self.silence, &self.settings)?;
        Poll::Ready(Ok(ended))
    }

    fn spool(&mut self) -> Option<SpoolAccount> {
        Some(self.spool_account())
    }

    fn trailers(&self) -> Option<&Fields> {
        self.body.trailers()
    }

    fn interim(&mut self, cx: &mut Context<'_>, interim: &ResponseHead) -> bool {
        let is_known = self.version == Version::Http11;
        if is_known {
            head::write_interim(&mut self.outbox, interim);
            let _ = self.poll_flush(cx);
        }
        is_known
    }
}
