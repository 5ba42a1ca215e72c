//! The byte stream below HTTP/2. Detects floods, heads that do not end, and clients that do not read. Knows no streams.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_engine::exchange::{Deadline, Reservation, Slow, Sweep, TransferRate};
use hostler_wire::{Stream, read_some};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::flood::{Flood, FloodMeter};
use crate::listen::Settings;
use crate::listen::silence::FIRST_READ;

/// What the byte stream of a connection, its session and its streams tell each other.
#[derive(Default)]
pub(super) struct ConnectionSignals {
    /// Why the connection must end: the number of a flood. The stream sets it, and the session reads it in the same task.
    flood: AtomicU8,
    /// The same: how the client is too slow.
    slow: OnceLock<Slow>,
    /// How many event streams, responses of gRPC and tunnels have begun since the byte stream last looked.
    lasting: AtomicU32,
}

impl ConnectionSignals {
    /// The flood that was detected; none if there was none.
    pub fn flood(&self) -> Option<Flood> {
        Flood::of(self.flood.load(Ordering::Relaxed))
    }

    /// How the client is too slow; none while it is not.
    pub fn slow(&self) -> Option<Slow> {
        self.slow.get().copied()
    }

    /// Notes that the client does not take its answers.
    pub fn set_slow(&self, slow: Slow) {
        let _ = self.slow.set(slow);
    }

    fn set_flood(&self, flood: Flood) {
        self.flood.store(flood as u8, Ordering::Relaxed);
    }

    /// An event stream, a response of gRPC or a tunnel begins, which the client can end only by a reset.
    pub fn note_lasting(&self) {
        self.lasting.fetch_add(1, Ordering::Relaxed);
    }

    fn take_lasting(&self) -> u32 {
        match self.lasting.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.lasting.swap(0, Ordering::Relaxed),
        }
    }
}

/// A client for which bytes wait because its socket does not take them.
struct BlockedClient {
    /// The deadline for it to take some of them.
    stalled: Deadline,
    /// The memory of the bytes that TLS holds.
    held_back: Reservation,
}

/// The byte stream of an HTTP/2 connection.
pub(super) struct MeteredIo {
    stream: Stream,
    /// Bytes that were read before the connection was known to be HTTP/2, or at its rest.
    early: Box<[u8]>,
    meter: FloodMeter,
    settings: Arc<Settings>,
    signals: Arc<ConnectionSignals>,
    /// The thread's deadlines. Those below are made when they are needed: an idle connection has none of them, and no room for them.
    sweep: Sweep,
    /// The deadline for the end of a head. After the shutdown: for the client to close.
    slow: Option<Box<Deadline>>,
    /// None while no bytes wait in the socket.
    blocked: Option<Box<BlockedClient>>,
    /// How fast the client reads, and how many bytes it had taken at the last check.
    pace: TransferRate,
    taken: u64,
    written: u64,
    /// Whether our side is shut down.
    closed: bool,
}

impl MeteredIo {
    pub fn new(
        stream: Stream,
        early: Vec<u8>,
        settings: Arc<Settings>,
        sweep: &Sweep,
        signals: Arc<ConnectionSignals>,
    ) -> Self {
        let slow = sweep.deadline();
        slow.set_after(settings.header_timeout);
        Self {
            stream,
            early: early.into(),
            meter: FloodMeter::new(settings.limits.max_size),
            settings,
            signals,
            sweep: sweep.clone(),
            slow: Some(Box::new(slow)),
            blocked: None,
            pace: TransferRate::default(),
            taken: 0,
            written: 0,
            closed: false,
        }
    }

    /// Counts the frames in `bytes`. False after a flood: the session ends the connection.
    fn look(&mut self, bytes: &[u8]) -> bool {
        self.meter.note_lasting(self.signals.take_lasting(), self.settings.http2.max_streams);
        if let Err(flood) = self.meter.read(bytes) {
            self.signals.set_flood(flood);
            return false;
        }
        let has_begun = self.meter.take_begun();
        if !self.meter.is_inside_head() {
            self.slow = None;
        } else if has_begun || self.slow.is_none() {
            self.set_slow_after(self.settings.header_timeout);
        }
        true
    }

    fn set_slow_after(&mut self, period: Duration) {
        self.slow.get_or_insert_with(|| Box::new(self.sweep.deadline())).set_after(period);
    }

    /// Reads the early bytes, and then from the client.
    fn poll_bytes(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let taken = self.early.len().min(buf.remaining());
            let (piece, rest) = self.early.split_at(taken);
            buf.put_slice(piece);
            self.early = rest.into();
        } else {
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Whether bytes wait in the socket for the client. It has `send_timeout` to take some of them.
    pub fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// Waits for bytes while `h2` has no buffer to read them into. It reads them next.
    pub fn poll_first_bytes(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match read_some(&mut self.stream, cx, FIRST_READ, <[u8]>::to_vec) {
            Poll::Ready(Ok(bytes)) => self.early = bytes.into(),
            // `h2` gets the error, or the end of the stream, when it reads.
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                self.poll_slow(cx);
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Ends the connection if a head is not complete in time.
    fn poll_slow(&mut self, cx: &mut Context<'_>) {
        if self.slow.as_ref().is_some_and(|slow| slow.poll_due(cx).is_ready()) {
            self.signals.set_flood(Flood::SlowHead);
        }
    }

    /// Notes how much the client has taken. Fails if it takes nothing, or too little, for too long.
    fn note(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.meter.wrote(*bytes);
            self.written += *bytes as u64;
        }
        let taken = self.stream.taken_below().unwrap_or(self.written);
        let moved = taken - std::mem::replace(&mut self.taken, taken);
        let mut slow = None;
        if moved > 0 {
            self.blocked = None;
            let now = self.sweep.millis();
            if !self.pace.has_moved(moved, now, self.settings.send_limits.min_send_rate) {
                slow = Some(Slow::TooSlow);
            }
        }
        if written.is_pending() {
            let held = self.stream.held_back() as u64;
            // Made first: without any deadline, the clock of the sweep stands still.
            let blocked = self.blocked.get_or_insert_with(|| {
                let held_back = self.settings.answer_memory.account().reservation();
                Box::new(BlockedClient { stalled: self.sweep.deadline(), held_back })
            });
            blocked.held_back.set(held);
            self.pace.wait(self.sweep.millis());
            if blocked.stalled.poll_stalled(cx, self.settings.send_limits.send_timeout).is_ready() {
                slow = Some(Slow::Stalled);
            }
        }
        match slow {
            None => written,
            Some(slow) => {
                self.signals.set_slow(slow);
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl AsyncRead for MeteredIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.signals.flood().is_some() {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        if this.poll_bytes(cx, buf)?.is_pending() {
            this.poll_slow(cx);
            return Poll::Pending;
        }
        if !this.look(&buf.filled()[before..]) {
            buf.set_filled(before);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // TLS takes 64 KiB before its socket does. While memory is short, it gets more only when the socket has taken what it has.
        if this.stream.holds_back()
            && this.settings.answer_memory.is_tight()
            && Pin::new(&mut this.stream).poll_flush(cx)?.is_pending()
        {
            return this.note(cx, Poll::Pending);
        }
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.note(cx, written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_flush(cx) {
            Poll::Pending => this.note(cx, Poll::Pending).map(|failed| failed.map(|_| ())),
            // TLS has written the bytes that it had held back.
            Poll::Ready(Ok(())) => this.note(cx, Poll::Ready(Ok(0))).map_ok(|_| ()),
            failed => failed,
        }
    }

    /// Closes so that the client can read the last frames: for `linger_timeout`, bytes from the client are read and discarded. A close with
    /// unread bytes would make the kernel discard the last frames.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.closed {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            this.closed = true;
            this.set_slow_after(this.settings.linger_timeout);
        }
        loop {
            match read_some(&mut this.stream, cx, usize::MAX, <[u8]>::len) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    return this.slow.as_ref().map_or(Poll::Pending, |slow| slow.poll_due(cx).map(Ok));
                }
            }
        }
    }
}
