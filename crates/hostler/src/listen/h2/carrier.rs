//! The bytes below HTTP/2, watched on their way: floods, heads that do not come to an end, clients that take nothing. Knows no streams.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_wire::{Stream, read_some};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::flood::{Excess, Meter};
use crate::exchange::{Deadline, Sweep};
use crate::listen::Settings;

/// Why a connection is to end: told by the carrier to the session above it, from within the same task.
#[derive(Default)]
pub(super) struct Verdict(AtomicU8);

impl Verdict {
    /// None as long as all is well.
    pub fn passed(&self) -> Option<Excess> {
        Excess::of(self.0.load(Ordering::Relaxed))
    }

    fn pass(&self, excess: Excess) {
        self.0.store(excess as u8, Ordering::Relaxed);
    }
}

/// The stream that carries a connection.
pub(super) struct Carrier {
    stream: Stream,
    /// What was read before it was known that this is HTTP/2.
    early: Vec<u8>,
    meter: Meter,
    verdict: Arc<Verdict>,
    /// When a head has been coming for too long; at the end, when the client does not close.
    slow: Deadline,
    header_timeout: Duration,
    linger_timeout: Duration,
    /// When the client has taken nothing for too long.
    stalled: Deadline,
    send_timeout: Duration,
    /// We have said all.
    closed: bool,
}

impl Carrier {
    pub fn new(
        stream: Stream,
        early: Vec<u8>,
        settings: &Settings,
        sweep: &Sweep,
        verdict: Arc<Verdict>,
    ) -> Self {
        let slow = sweep.deadline();
        slow.set_after(settings.header_timeout);
        Self {
            stream,
            early,
            meter: Meter::default(),
            verdict,
            slow,
            header_timeout: settings.header_timeout,
            linger_timeout: settings.linger_timeout,
            stalled: sweep.deadline(),
            send_timeout: settings.send_timeout,
            closed: false,
        }
    }

    /// Looks at what is about to be read on. After a verdict nothing is: the session is to end the connection.
    fn look(&mut self, bytes: &[u8]) -> bool {
        if let Err(excess) = self.meter.read(bytes) {
            self.verdict.pass(excess);
            return false;
        }
        if !self.meter.is_inside_head() {
            self.slow.clear();
        } else if !self.slow.is_set() {
            self.slow.set_after(self.header_timeout);
        }
        true
    }

    /// A head that does not come to its end is one that nobody need wait for.
    fn poll_slow(&mut self, cx: &mut Context<'_>) {
        if self.slow.is_set() && self.slow.poll_due(cx).is_ready() {
            self.verdict.pass(Excess::SlowHead);
        }
    }

    /// What the client has taken, or that it takes nothing for too long.
    fn note(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => {
                self.meter.wrote(*bytes);
                self.stalled.clear();
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                let stalled = self.stalled.poll_patience(cx, self.send_timeout);
                return stalled.map(|()| Err(io::ErrorKind::TimedOut.into()));
            }
        }
        written
    }
}

impl AsyncRead for Carrier {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.verdict.passed().is_some() {
            return Poll::Pending;
        }
        if !this.early.is_empty() {
            let taken = this.early.len().min(buf.remaining());
            let piece: Vec<u8> = this.early.drain(..taken).collect();
            if this.early.is_empty() {
                this.early = Vec::new();
            }
            if !this.look(&piece) {
                return Poll::Pending;
            }
            buf.put_slice(&piece);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, buf) {
            Poll::Ready(Ok(())) => {}
            Poll::Pending => {
                this.poll_slow(cx);
                return Poll::Pending;
            }
            failed => return failed,
        }
        if !this.look(&buf.filled()[before..]) {
            buf.set_filled(before);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Carrier {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.note(cx, written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_flush(cx) {
            Poll::Pending => this.note(cx, Poll::Pending).map(|failed| failed.map(|_| ())),
            flushed => flushed,
        }
    }

    /// Closes so that the client can read our last frames: what it still sends is read and forgotten for a while, because
    /// closing over unread bytes makes the kernel destroy what we have sent.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.closed {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            this.closed = true;
            this.slow.set_after(this.linger_timeout);
        }
        loop {
            match read_some(&mut this.stream, cx, usize::MAX, <[u8]>::len) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return this.slow.poll_due(cx).map(Ok),
            }
        }
    }
}
