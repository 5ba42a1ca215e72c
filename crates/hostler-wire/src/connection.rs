//! One kept-alive HTTP/1.1 connection to a member, one call after another. Knows no pools, routes or queues, and sets no deadlines.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::Instant;

use crate::body::BodyReader;
use crate::chunked::ChunkedError;
use crate::field::{Fields, Name};
use crate::framing::{BodyLength, FramingError, response_body};
use crate::grammar::{parse_digits, tokens};
use crate::head::{HeadError, ResponseHead, Version};
use crate::scan::{HeadScan, Limits, ScanError};
use crate::spare;
use crate::stream::{Address, Stream, read_some};

/// How much of a body is read before it is asked for, at a time and about at most.
const AHEAD: usize = 16 * 1024;

/// Why a call brought no answer, or not the whole of it.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The connection failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
    /// The member closed before its answer's head was complete.
    #[error("connection closed before an answer")]
    Closed,
    /// The member closed in the middle of the body.
    #[error("connection closed in the middle of the answer's body")]
    Cut,
    /// The head is not one.
    #[error("malformed answer: {0}")]
    Head(#[from] HeadError),
    /// The body's length is in doubt.
    #[error("malformed answer: {0}")]
    Framing(#[from] FramingError),
    /// The body breaks its coding.
    #[error("malformed answer: {0}")]
    Chunked(#[from] ChunkedError),
    /// A switch of protocols that nobody asked for, or to one that nobody offered.
    #[error("malformed answer: 101 to no protocol that was offered")]
    Switched,
    /// More interim heads than are allowed before one answer.
    #[error("more than {count} interim answers (1xx), or more than {size} bytes of them")]
    Interim {
        /// So many are.
        count: usize,
        /// So many bytes all of them may have.
        size: usize,
    },
}

impl From<ScanError> for CallError {
    fn from(error: ScanError) -> Self {
        Self::Head(error.into())
    }
}

/// A connection to a member. A *call* is one request and its answer on it: [`start`](Self::start), then send and read
/// side by side, then [`is_reusable`](Self::is_reusable).
#[derive(Debug)]
pub struct MemberConnection {
    stream: Stream,
    /// Read, not yet understood. Like the outbox it has memory only as long as there is something in it.
    inbox: Vec<u8>,
    taken: usize,
    /// To be written.
    outbox: Vec<u8>,
    sent: usize,
    send_failed: bool,
    scan: HeadScan,
    head: ResponseHead,
    body: BodyReader,
    length: BodyLength,
    answered: bool,
    /// The protocols to which the member may switch, as a list; mostly none.
    offer: Vec<u8>,
    calls: u64,
    idle_since: Instant,
    keep_alive: Option<Duration>,
}

impl MemberConnection {
    /// Connects to a member.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        Ok(Self::new(Stream::connect(address).await?))
    }

    /// A connection over a stream that is connected already.
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
            taken: 0,
            outbox: Vec::new(),
            sent: 0,
            send_failed: false,
            scan: HeadScan::default(),
            head: ResponseHead::default(),
            body: BodyReader::Length(0),
            length: BodyLength::Known(0),
            answered: false,
            offer: Vec::new(),
            calls: 0,
            idle_since: Instant::now(),
            keep_alive: None,
        }
    }

    /// Begins a call: the request goes into the buffer that this returns.
    pub fn start(&mut self) -> &mut Vec<u8> {
        self.outbox.clear();
        spare::take(&mut self.outbox);
        self.sent = 0;
        self.scan = HeadScan::default();
        self.body = BodyReader::Length(0);
        self.answered = false;
        self.offer.clear();
        self.calls += 1;
        &mut self.outbox
    }

    /// The member may answer this call with a switch to one of these protocols, a list as in `Upgrade`.
    pub fn offer(&mut self, protocols: &[u8]) {
        self.offer.extend_from_slice(protocols);
    }

    /// More of the request; append only after [`poll_send`](Self::poll_send) was ready, so that it stays bounded.
    pub fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    /// True when this connection had served a call before the present one: if it fails now without a byte of an answer,
    /// the member may simply have closed it in that moment.
    pub fn is_reused(&self) -> bool {
        self.calls > 1
    }

    /// True as soon as a byte of the present call's answer has come.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Writes what is in the outbox. A failure to write is kept for [`is_reusable`](Self::is_reusable) only: a member may
    /// answer and close without reading the whole request, and then the answer is what counts.
    pub fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.sent < self.outbox.len() && !self.send_failed {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.outbox[self.sent..])) {
                Ok(n) if n > 0 => self.sent += n,
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

    /// True while something waits in the outbox.
    pub fn has_unsent(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// True when the member takes no more of the request.
    pub fn has_send_failed(&self) -> bool {
        self.send_failed
    }

    /// Reads the answer's head, then [`head`](Self::head) has it. After an interim head, call it again; but not after 101, the
    /// last one in HTTP, which comes only if it was [offered](Self::offer).
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        limits: &Limits,
        to_head: bool,
    ) -> Poll<Result<(), CallError>> {
        loop {
            let unread = &self.inbox[self.taken..];
            // Nearly always it has come whole, and is read without looking for its end before.
            let at_once = self.scan.is_fresh().then(|| self.head.parse_at_once(unread, limits)).flatten();
            let end = match at_once {
                None => self.scan.advance(unread, limits.max_size)?,
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
                }
                return Poll::Ready(Ok(()));
            }
            let inbox = &mut self.inbox;
            let read = ready!(read_some(&mut self.stream, cx, usize::MAX, |bytes| {
                spare::take(inbox);
                inbox.extend_from_slice(bytes);
                bytes.len()
            }))?;
            if read == 0 {
                return Poll::Ready(Err(CallError::Closed));
            }
            self.answered = true;
        }
    }

    /// A 101 must name what it switches to, and only what it was offered (RFC 9110 section 7.8).
    fn is_offered(&self) -> bool {
        let mut named = self.head.fields.all(Name::Upgrade).flat_map(tokens).peekable();
        let is_offered = |protocol| tokens(&self.offer).any(|offered| offered.eq_ignore_ascii_case(protocol));
        self.head.version == Version::Http11 && named.peek().is_some() && named.all(is_offered)
    }

    /// The head that was read last.
    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// The same, for taking fields away.
    pub fn head_mut(&mut self) -> &mut ResponseHead {
        &mut self.head
    }

    /// The length of the body that follows the head.
    pub fn body_length(&self) -> BodyLength {
        self.length
    }

    /// Appends at least one byte of the body to `into`, reading at most about `max`, or says that it is complete
    /// (`true`; there may be new bytes all the same).
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, CallError>> {
        let before = into.len();
        let taken = self.body.take(&self.inbox[self.taken..], into)?;
        self.take(taken.used);
        while !self.body.has_ended() && into.len() == before {
            let (body, inbox) = (&mut self.body, &mut self.inbox);
            let read = ready!(read_some(&mut self.stream, cx, max, |bytes| {
                let taken = body.take(bytes, into)?;
                inbox.extend_from_slice(&bytes[taken.used..]);
                Ok::<usize, ChunkedError>(bytes.len())
            }))?;
            if read? == 0 {
                return Poll::Ready(if self.body.end_of_input() { Ok(true) } else { Err(CallError::Cut) });
            }
        }
        Poll::Ready(Ok(self.body.has_ended()))
    }

    /// Looks a little way ahead where less of the body has come than was announced: an answer that has broken off by now is
    /// known before any of it is passed on.
    pub fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        while self.is_short() {
            let inbox = &mut self.inbox;
            let read = ready!(read_some(&mut self.stream, cx, AHEAD, |bytes| {
                inbox.extend_from_slice(bytes);
                bytes.len()
            }))?;
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
            // Whether what has come is all of it, only decoding tells.
            BodyReader::Chunked(..) => unread == 0 && !self.body.has_ended(),
            // The end of the connection is the end of this one.
            BodyReader::UntilClose(_) => false,
        }
    }

    /// The trailer fields of an answer that is complete.
    pub fn trailers(&self) -> Option<&Fields> {
        self.body.trailers()
    }

    /// Ends a call: true when another may follow on this connection (RFC 9112 section 9.3).
    pub fn is_reusable(&mut self, now: Instant) -> bool {
        self.idle_since = now;
        self.body.has_ended()
            && !matches!(self.length, BodyLength::UntilClose)
            && !self.head.is_interim()
            && self.inbox.is_empty()
            && self.outbox.is_empty()
            && !self.send_failed
            && self.head.version == Version::Http11
            && !self.head.fields.says_close()
    }

    /// True when a new call may be tried on this connection: it is quiet, it has not idled longer than `most`, nor longer
    /// than the member said it would wait (less a second for the way).
    pub fn is_fresh(&mut self, now: Instant, most: Option<Duration>) -> bool {
        let idle = now.saturating_duration_since(self.idle_since);
        let hinted = self.keep_alive.map(|hint| hint.saturating_sub(Duration::from_secs(1)));
        most.is_none_or(|most| idle <= most)
            && hinted.is_none_or(|hint| idle < hint)
            && self.stream.is_quiet()
    }

    /// Asks the kernel whether the member has closed by now; see [`Stream::is_quiet_now`].
    pub fn is_quiet_now(&mut self) -> bool {
        self.stream.is_quiet_now()
    }

    /// What is left once the member has switched protocols: the stream, and what has come on it behind the head.
    pub fn into_stream(mut self) -> (Stream, Vec<u8>) {
        self.inbox.drain(..self.taken);
        (self.stream, self.inbox)
    }

    /// Tells the member that nothing more will come and nobody reads on (FIN); Node then ends the answer at its next turn
    /// of the event loop and closes.
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
