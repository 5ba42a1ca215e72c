//! One kept-alive HTTP/1.1 connection to a member, for one call after another. Knows no pools, routes or queues, and sets
//! no deadlines.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::Instant;

use crate::body::{BodyLength, BodyReader, lets_another_follow, response_body};
use crate::bulk::Bulk;
use crate::call_error::CallError;
use crate::field::{Fields, Name};
use crate::grammar::{parse_digits, tokens};
use crate::head::{ResponseHead, Version};
use crate::scan::{HeadScan, Limits};
use crate::spare;
use crate::stream::{Address, Stream, any_end, read_some};

/// About how many bytes of a body are read ahead at a time, and at most.
const AHEAD: usize = 16 * 1024;

/// Node reads up to 64 KiB at a time, and Linux keeps a write of this size to a Unix socket in one piece. So Node reads all of it or nothing.
const ONE_READ: usize = 32 * 1024;

/// A connection to a member.
///
/// A *call* is one request and its response: [`start`](Self::start), then send and read at the same time, then
/// [`is_reusable`](Self::is_reusable).
#[derive(Debug)]
pub struct MemberConnection {
    stream: Stream,
    /// Bytes that were read and not parsed yet. Has memory only while it has bytes, like the outbox.
    inbox: Vec<u8>,
    taken: usize,
    /// Bytes to write.
    outbox: Vec<u8>,
    sent: usize,
    send_failed: bool,
    /// Bytes of this call that the kernel has taken.
    written: usize,
    /// Each request so far was one write of at most [`ONE_READ`] bytes.
    in_one_piece: bool,
    scan: HeadScan,
    head: ResponseHead,
    body: BodyReader,
    bulk: Bulk,
    length: BodyLength,
    answered: bool,
    /// The protocols to which the member may switch, as a list. Usually empty.
    offer: Vec<u8>,
    opened: Instant,
    idle_since: Instant,
    keep_alive: Option<Duration>,
    /// How many final heads have come over the connection.
    answers: u32,
}

impl MemberConnection {
    /// Connects to a member. Sets no deadline.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        Ok(Self::new(Stream::connect(address).await?))
    }

    /// A connection over a connected stream.
    pub fn new(stream: Stream) -> Self {
        let now = Instant::now();
        Self {
            stream,
            inbox: Vec::new(),
            taken: 0,
            outbox: Vec::new(),
            sent: 0,
            send_failed: false,
            written: 0,
            in_one_piece: true,
            scan: HeadScan::default(),
            head: ResponseHead::default(),
            body: BodyReader::Length(0),
            bulk: Bulk::default(),
            length: BodyLength::Known(0),
            answered: false,
            offer: Vec::new(),
            opened: now,
            idle_since: now,
            keep_alive: None,
            answers: 0,
        }
    }

    /// Begins a call. Append the request to the returned buffer.
    pub fn start(&mut self) -> &mut Vec<u8> {
        self.outbox.clear();
        spare::take(&mut self.outbox);
        (self.sent, self.written) = (0, 0);
        self.scan = HeadScan::default();
        self.head.clear();
        self.body = BodyReader::Length(0);
        self.bulk = Bulk::default();
        self.answered = false;
        self.offer.clear();
        &mut self.outbox
    }

    /// Allows the member to switch to one of these protocols in this call. `protocols` is a list as in `Upgrade`.
    pub fn offer(&mut self, protocols: &[u8]) {
        self.offer.extend_from_slice(protocols);
    }

    /// Whether the member may switch protocols in this call. After such a request a Node server reads no more HTTP from the connection, whatever it
    /// answers, and if its app does not read, nothing is read at all.
    pub fn has_offer(&self) -> bool {
        !self.offer.is_empty()
    }

    /// The buffer for more of the request. To bound its size, append only after [`poll_send`](Self::poll_send) was ready.
    pub fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    /// Whether a byte of the response to this call has come.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Writes the outbox. A write error is not returned; it only makes [`is_reusable`](Self::is_reusable) false. A member
    /// may send its response and close without reading the whole request, and then the response counts.
    pub fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.sent < self.outbox.len() && !self.send_failed {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.outbox[self.sent..])) {
                Ok(n) if n > 0 => {
                    self.in_one_piece &= self.written == 0 && n == self.outbox.len() && n <= ONE_READ;
                    self.written += n;
                    self.sent += n;
                }
                _ => self.send_failed = true,
            }
        }
        if !self.send_failed && ready!(Pin::new(&mut self.stream).poll_flush(cx)).is_err() {
            self.send_failed = true;
        }
        spare::give_back(&mut self.outbox);
        self.sent = 0;
        Poll::Ready(())
    }

    /// Whether the outbox has bytes.
    pub fn has_unsent(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// How many bytes of this call the kernel has taken.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Whether the member accepts no more of the request.
    pub fn has_send_failed(&self) -> bool {
        self.send_failed
    }

    /// Whether the member, a Node process behind a Unix socket, has read nothing of this request, as this error shows. On Linux the kernel
    /// reports `ECONNRESET` if the other side has closed such a socket with bytes in it that it has not read.
    pub fn has_read_nothing(&self, error: &CallError) -> bool {
        let is_reset =
            matches!(error, CallError::Io(error) if error.kind() == io::ErrorKind::ConnectionReset);
        let is_unread = cfg!(target_os = "linux") && is_reset && self.in_one_piece;
        matches!(self.stream, Stream::Unix(_)) && !self.answered && (self.written == 0 || is_unread)
    }

    /// Reads the head of a response. Then [`head`](Self::head) returns it. After an interim head, call it again. A 101 is
    /// the last head of the connection, and comes only if it was [offered](Self::offer).
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        limits: &Limits,
        to_head: bool,
    ) -> Poll<Result<(), CallError>> {
        loop {
            let unread = &self.inbox[self.taken..];
            // The head has nearly always come completely. Then it is parsed without a search for its end.
            let is_first = self.scan.is_fresh() && !unread.is_empty();
            let at_once = is_first.then(|| self.head.parse_at_once(unread, limits)).flatten();
            let end = match at_once {
                None if unread.is_empty() => None,
                None => self.scan.advance_response(unread, limits.max_size)?,
                whole => whole,
            };
            if let Some(end) = end {
                if at_once.is_none() {
                    self.head.parse(&unread[..end], limits)?;
                }
                self.take(end);
                self.scan = HeadScan::default();
                if self.head.status == 101 && !self.is_offered() {
                    return Poll::Ready(Err(CallError::Switched));
                }
                self.length = response_body(&self.head, to_head)?;
                if !self.head.is_interim() {
                    self.body = BodyReader::new(self.length);
                    self.keep_alive = keep_alive_hint(&self.head.fields);
                    self.answers = self.answers.saturating_add(1);
                }
                return Poll::Ready(Ok(()));
            }
            let inbox = &mut self.inbox;
            let read = any_end(ready!(read_some(&mut self.stream, cx, usize::MAX, |bytes| {
                spare::take(inbox);
                inbox.extend_from_slice(bytes);
                bytes.len()
            })))?;
            if read == 0 {
                return Poll::Ready(Err(CallError::Closed));
            }
            self.answered = true;
        }
    }

    /// A 101 must name the new protocol, which must be an offered one (RFC 9110 section 7.8).
    fn is_offered(&self) -> bool {
        let mut named = self.head.fields.all(Name::Upgrade).flat_map(tokens).peekable();
        let is_offered = |protocol| tokens(&self.offer).any(|offered| offered.eq_ignore_ascii_case(protocol));
        self.head.version == Version::Http11 && named.peek().is_some() && named.all(is_offered)
    }

    /// The last head that was read.
    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// The same head, to remove fields from it.
    pub fn head_mut(&mut self) -> &mut ResponseHead {
        &mut self.head
    }

    /// The length of the body after the head.
    pub fn body_length(&self) -> BodyLength {
        self.length
    }

    /// Appends at least one byte of the body to `into`, and reads at most about `max` bytes. Ready with `true` if the
    /// body is complete; even then there may be new bytes.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, CallError>> {
        let before = into.len();
        let used = self.body.take(&self.inbox[self.taken..], into)?;
        self.take(used);
        while !self.body.has_ended() && into.len() == before {
            let places = (&mut *into, &mut self.inbox);
            let read = ready!(self.bulk.poll_read(&mut self.stream, cx, &mut self.body, places, max))??;
            if read == 0 {
                return Poll::Ready(if self.body.end_of_input() { Ok(true) } else { Err(CallError::Cut) });
            }
        }
        Poll::Ready(Ok(self.body.has_ended()))
    }

    /// Reads a little ahead if less of the body has come than announced. So a response that has been cut off by now is
    /// found before any of it is passed on.
    pub fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        while self.is_short() {
            let inbox = &mut self.inbox;
            let read = any_end(ready!(read_some(&mut self.stream, cx, AHEAD, |bytes| {
                inbox.extend_from_slice(bytes);
                bytes.len()
            })))?;
            if read == 0 {
                return Poll::Ready(Err(CallError::Cut));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn is_short(&self) -> bool {
        let unread = self.inbox.len() - self.taken;
        match self.body {
            BodyReader::Length(left) => left > unread as u64 && unread < AHEAD,
            // Only decoding shows whether the bytes so far are the whole body.
            BodyReader::Chunked(..) => unread == 0 && !self.body.has_ended(),
            // The body ends with the connection, so there is nothing to find.
            BodyReader::UntilClose(_) => false,
        }
    }

    /// The trailer fields of a complete response.
    pub fn trailers(&self) -> Option<&Fields> {
        self.body.trailers()
    }

    /// Ends a call. Returns whether another call may follow on this connection (RFC 9112 section 9.3).
    pub fn is_reusable(&mut self, now: Instant) -> bool {
        self.idle_since = now;
        self.body.has_ended()
            && !matches!(self.length, BodyLength::UntilClose)
            && self.inbox.is_empty()
            && self.outbox.is_empty()
            && !self.send_failed
            && lets_another_follow(&self.head)
            && !self.has_offer()
    }

    /// Whether a new call may be tried: the connection is quiet, and it has been idle for no longer than `most` and than
    /// the member announced (minus one second for the transfer).
    pub fn is_fresh(&mut self, now: Instant, most: Option<Duration>) -> bool {
        let idle = self.idle(now);
        let hinted = self.keep_alive.map(|hint| hint.saturating_sub(Duration::from_secs(1)));
        most.is_none_or(|most| idle <= most)
            && hinted.is_none_or(|hint| idle < hint)
            && self.stream.is_quiet()
    }

    /// How long ago the last call on it ended.
    pub fn idle(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.idle_since)
    }

    /// How many responses have come over the connection, with the current one if its head has come.
    pub fn answers(&self) -> u32 {
        self.answers
    }

    /// How long ago the connection was opened.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.opened)
    }

    /// Asks the kernel whether the member has closed the connection. See [`Stream::is_quiet_now`].
    pub fn is_quiet_now(&mut self) -> bool {
        self.stream.is_quiet_now()
    }

    /// The parts of the connection after a switch of protocols: the stream, and the bytes after the head.
    pub fn into_stream(mut self) -> (Stream, Vec<u8>) {
        self.inbox.drain(..self.taken);
        (self.stream, self.inbox)
    }

    /// Lets the kernel detect that the member is gone, while nothing is sent to it for long.
    pub fn keep_alive(&self) {
        self.stream.keep_alive();
    }

    /// Sends FIN, because no more requests follow and the response is not read. Node then ends the response at the next
    /// turn of its event loop and closes the connection.
    pub fn poll_hang_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.send_failed = true;
        Pin::new(&mut self.stream).poll_shutdown(cx).map(|_| ())
    }

    fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken == self.inbox.len() {
            spare::give_back(&mut self.inbox);
            self.taken = 0;
        }
    }
}

/// `Keep-Alive: timeout=5`, as Node sends it: how long the member waits for the next request.
fn keep_alive_hint(fields: &Fields) -> Option<Duration> {
    let value = fields.first(Name::KeepAlive)?;
    let seconds = tokens(value).find_map(|token| token.strip_prefix(b"timeout="))?;
    parse_digits(seconds).map(Duration::from_secs)
}
