//! The bytes below HTTP/2, watched on their way: floods, heads that do not come to an end, clients that take nothing. Knows no streams.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_engine::exchange::{Deadline, Slow, Sweep, TransferRate};
use hostler_wire::{Stream, read_some};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::flood::{Excess, FloodMeter};
use super::joiner::Joiner;
use crate::listen::Settings;

/// Why a connection is to end: told by the carrier to the session above it, from within the same task.
#[derive(Default)]
pub(super) struct EndReason(AtomicU8, OnceLock<Slow>);

impl EndReason {
    /// None as long as all is well.
    pub fn passed(&self) -> Option<Excess> {
        Excess::of(self.0.load(Ordering::Relaxed))
    }

    /// How the client has failed to take its answers; none as long as it takes them.
    pub fn slow(&self) -> Option<Slow> {
        self.1.get().copied()
    }

    /// The client does not take its answers.
    pub fn find_slow(&self, slow: Slow) {
        let _ = self.1.set(slow);
    }

    fn pass(&self, excess: Excess) {
        self.0.store(excess as u8, Ordering::Relaxed);
    }
}

/// The stream that carries a connection.
pub(super) struct MeteredIo {
    stream: Stream,
    /// What was read before it was known that this is HTTP/2.
    early: Vec<u8>,
    meter: FloodMeter,
    joiner: Joiner,
    /// What has been joined, and what came behind it, to be read next.
    joined: Vec<u8>,
    verdict: Arc<EndReason>,
    /// When a head has been coming for too long; at the end, when the client does not close.
    slow: Deadline,
    header_timeout: Duration,
    linger_timeout: Duration,
    /// When the client has taken nothing for too long.
    stalled: Deadline,
    send_timeout: Duration,
    /// How fast it takes it, and what it had taken when that was last looked at.
    pace: TransferRate,
    taken: u64,
    written: u64,
    min_send_rate: u64,
    /// We have said all.
    closed: bool,
}

impl MeteredIo {
    pub fn new(
        stream: Stream,
        early: Vec<u8>,
        settings: &Settings,
        sweep: &Sweep,
        verdict: Arc<EndReason>,
    ) -> Self {
        let slow = sweep.deadline();
        slow.set_after(settings.header_timeout);
        Self {
            stream,
            early,
            meter: FloodMeter::new(settings.limits.max_size),
            joiner: Joiner::default(),
            joined: Vec::new(),
            verdict,
            slow,
            header_timeout: settings.header_timeout,
            linger_timeout: settings.linger_timeout,
            stalled: sweep.deadline(),
            send_timeout: settings.send_limits.send_timeout,
            pace: TransferRate::default(),
            taken: 0,
            written: 0,
            min_send_rate: settings.send_limits.min_send_rate,
            closed: false,
        }
    }

    /// Looks at what is about to be read on, and says how much of it is; the rest is in `joined`, or yet to be joined. After a
    /// verdict nothing is: the session is to end the connection.
    fn look(&mut self, bytes: &[u8]) -> Option<usize> {
        let (mut rest, mut as_it_is) = (bytes, 0);
        while !rest.is_empty() {
            let taken = match self.meter.read(rest) {
                Ok(taken) => taken,
                Err(excess) => {
                    self.verdict.pass(excess);
                    return None;
                }
            };
            let (these, others) = rest.split_at(taken);
            if self.joiner.is_open() || !self.joined.is_empty() {
                self.joiner.take(these, &mut self.joined);
            } else {
                as_it_is += taken;
            }
            if self.meter.is_between_frames_of_a_head() {
                self.joiner.begin();
            }
            rest = others;
        }
        if !self.meter.is_inside_head() {
            self.slow.clear();
        } else if !self.slow.is_set() {
            self.slow.set_after(self.header_timeout);
        }
        Some(as_it_is)
    }

    /// Hands over of what was read already; false if there is nothing.
    fn read_joined(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        if self.joined.is_empty() {
            return false;
        }
        let taken = self.joined.len().min(buf.remaining());
        buf.put_slice(&self.joined[..taken]);
        self.joined.drain(..taken);
        if self.joined.is_empty() {
            self.joined = Vec::new();
        }
        true
    }

    /// What was read early, and then what the client sends.
    fn poll_bytes(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let taken = self.early.len().min(buf.remaining());
            let piece: Vec<u8> = self.early.drain(..taken).collect();
            if self.early.is_empty() {
                self.early = Vec::new();
            }
            buf.put_slice(&piece);
        } else {
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        }
        Poll::Ready(Ok(()))
    }

    /// A head that does not come to its end is one that nobody need wait for.
    fn poll_slow(&mut self, cx: &mut Context<'_>) {
        if self.slow.is_set() && self.slow.poll_due(cx).is_ready() {
            self.verdict.pass(Excess::SlowHead);
        }
    }

    /// What the client has taken, or that it takes nothing, or too little, for too long.
    fn note(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.meter.wrote(*bytes);
            self.written += *bytes as u64;
        }
        let taken = self.stream.taken_below().unwrap_or(self.written);
        let moved = taken - std::mem::replace(&mut self.taken, taken);
        let mut slow = None;
        if moved > 0 {
            self.stalled.clear();
            let now = self.stalled.sweep().millis();
            if !self.pace.has_moved(moved, now, self.min_send_rate) {
                slow = Some(Slow::TooSlow);
            }
        }
        if written.is_pending() {
            self.pace.wait(self.stalled.sweep().millis());
            if self.stalled.poll_stalled(cx, self.send_timeout).is_ready() {
                slow = Some(Slow::Stalled);
            }
        }
        match slow {
            None => written,
            Some(slow) => {
                self.verdict.find_slow(slow);
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl AsyncRead for MeteredIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.verdict.passed().is_some() {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        loop {
            if this.read_joined(buf) {
                return Poll::Ready(Ok(()));
            }
            if this.poll_bytes(cx, buf)?.is_pending() {
                this.poll_slow(cx);
                return Poll::Pending;
            }
            let has_ended = buf.filled().len() == before;
            let Some(as_it_is) = this.look(&buf.filled()[before..]) else {
                buf.set_filled(before);
                return Poll::Pending;
            };
            buf.set_filled(before + as_it_is);
            // Of a head that is still to be joined nothing is there to be read yet.
            if has_ended || as_it_is > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for MeteredIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.note(cx, written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_flush(cx) {
            Poll::Pending => this.note(cx, Poll::Pending).map(|failed| failed.map(|_| ())),
            // TLS had kept something back that has gone now.
            Poll::Ready(Ok(())) => this.note(cx, Poll::Ready(Ok(0))).map_ok(|_| ()),
            failed => failed,
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
