//! A connection to a simulated member: two buffers in memory, whose reads and writes are split at random. Knows no HTTP.
//!
//! A close that is on its way ([`MemberSide::deafen`]) is what a kept connection suffers: for a while the proxy can write, and its bytes are lost.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use hostler_wire::{Duplex, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gets the bytes of the proxy that the member does not read.
pub type Discarded = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// How a connection behaves.
pub struct WireSettings {
    /// How many bytes each direction holds.
    pub capacity: usize,
    /// What its random splits follow from.
    pub seed: u64,
    pub discarded: Discarded,
}

/// How the member has ended the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WireEnd {
    Closed,
    Reset,
}

#[derive(Default)]
struct Half {
    bytes: Vec<u8>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Half {
    fn wake(&mut self) {
        self.reader.take().into_iter().chain(self.writer.take()).for_each(Waker::wake);
    }
}

struct WireState {
    up: Half,
    down: Half,
    capacity: usize,
    dice: fastrand::Rng,
    discarded: Discarded,
    /// The proxy sends nothing more.
    is_up_ended: bool,
    /// The proxy has closed the connection.
    is_dropped: bool,
    /// The member reads nothing more.
    is_deaf: bool,
    end: Option<WireEnd>,
}

impl WireState {
    /// A part of `most` bytes: often all of them.
    fn part(&mut self, most: usize) -> usize {
        if self.dice.u8(..) < 90 && most > 1 { self.dice.usize(1..=most) } else { most }
    }

    fn deafen(&mut self) {
        self.is_deaf = true;
        let unread = std::mem::take(&mut self.up.bytes);
        if !unread.is_empty() {
            (self.discarded)(&unread);
        }
        self.up.wake();
    }

    fn end(&mut self, how: WireEnd) {
        if self.end.is_none() {
            self.end = Some(how);
            if how == WireEnd::Reset && self.dice.bool() {
                self.down.bytes.clear();
            }
            self.deafen();
            self.down.wake();
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_up_ended || self.end == Some(WireEnd::Reset) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.is_deaf {
            // The first bytes after a close are taken. They are answered with a reset.
            if self.end == Some(WireEnd::Closed) && self.dice.bool() {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            (self.discarded)(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        let room = self.capacity.saturating_sub(self.up.bytes.len());
        if room == 0 {
            self.up.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let some = self.part(room.min(bytes.len()));
        self.up.bytes.extend_from_slice(&bytes[..some]);
        self.up.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(some))
    }

    fn read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.down.bytes.is_empty() {
            return match self.end {
                Some(WireEnd::Closed) => Poll::Ready(Ok(())),
                Some(WireEnd::Reset) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                None => {
                    self.down.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
            };
        }
        let some = self.part(self.down.bytes.len().min(buf.remaining()));
        buf.put_slice(&self.down.bytes[..some]);
        self.down.bytes.drain(..some);
        self.down.writer.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }
}

type Shared = Arc<Mutex<WireState>>;

fn lock(shared: &Shared) -> MutexGuard<'_, WireState> {
    shared.lock().unwrap()
}

/// The side of the proxy.
struct ProxySide(Shared);

/// The side of the member. Dropping it closes the connection.
pub struct MemberSide(Shared);

/// A connection.
pub fn wire(settings: WireSettings) -> (Stream, MemberSide) {
    let WireSettings { capacity, seed, discarded } = settings;
    let state = WireState {
        up: Half::default(),
        down: Half::default(),
        capacity,
        dice: fastrand::Rng::with_seed(seed),
        discarded,
        is_up_ended: false,
        is_dropped: false,
        is_deaf: false,
        end: None,
    };
    let shared = Arc::new(Mutex::new(state));
    (Stream::InHttp2(Box::new(ProxySide(shared.clone()))), MemberSide(shared))
}

impl MemberSide {
    /// Appends what the proxy has sent. Ready with 0 when it sends nothing more.
    pub fn poll_read(&self, cx: &mut Context<'_>, into: &mut Vec<u8>) -> Poll<usize> {
        let mut state = lock(&self.0);
        if state.up.bytes.is_empty() && !state.is_up_ended {
            state.up.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = state.up.bytes.len();
        let some = if count == 0 { 0 } else { state.part(count) };
        into.extend_from_slice(&state.up.bytes[..some]);
        state.up.bytes.drain(..some);
        state.up.writer.take().into_iter().for_each(Waker::wake);
        Poll::Ready(some)
    }

    /// Whether bytes of the proxy wait to be read.
    pub fn has_unread(&self) -> bool {
        !lock(&self.0).up.bytes.is_empty()
    }

    /// Ready when the proxy sends nothing more, or has closed the connection.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if state.is_up_ended {
            return Poll::Ready(());
        }
        state.up.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes bytes for the proxy. Ready with false when the proxy has closed the connection.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &mut &[u8]) -> Poll<bool> {
        let mut state = lock(&self.0);
        loop {
            if state.is_dropped || state.end.is_some() {
                return Poll::Ready(false);
            }
            if bytes.is_empty() {
                return Poll::Ready(true);
            }
            let room = state.capacity.saturating_sub(state.down.bytes.len());
            if room == 0 {
                state.down.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let some = room.min(bytes.len());
            state.down.bytes.extend_from_slice(&bytes[..some]);
            *bytes = &bytes[some..];
            state.down.reader.take().into_iter().for_each(Waker::wake);
        }
    }

    /// The proxy finds all of these bytes at its next look, even if there is no room for them.
    pub fn write_at_once(&self, bytes: &[u8]) {
        let mut state = lock(&self.0);
        if state.end.is_none() {
            state.down.bytes.extend_from_slice(bytes);
            state.down.reader.take().into_iter().for_each(Waker::wake);
        }
    }

    /// From now on the member reads nothing, and the proxy does not know it.
    pub fn deafen(&self) {
        lock(&self.0).deafen();
    }

    pub fn close(&self) {
        lock(&self.0).end(WireEnd::Closed);
    }

    pub fn reset(&self) {
        lock(&self.0).end(WireEnd::Reset);
    }
}

impl Drop for MemberSide {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for ProxySide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxySide")
    }
}

impl Duplex for ProxySide {
    fn abort(&mut self) {}

    fn is_quiet(&self) -> bool {
        let state = lock(&self.0);
        state.down.bytes.is_empty() && state.end.is_none()
    }
}

impl AsyncRead for ProxySide {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).read(cx, buf)
    }
}

impl AsyncWrite for ProxySide {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        lock(&self.0).write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0);
        state.is_up_ended = true;
        state.up.wake();
        Poll::Ready(Ok(()))
    }
}

impl Drop for ProxySide {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        (state.is_up_ended, state.is_dropped) = (true, true);
        state.up.wake();
        state.down.wake();
    }
}
