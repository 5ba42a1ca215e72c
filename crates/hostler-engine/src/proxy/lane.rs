//! One direction of a tunnel: moves bytes from a source to a sink, without a buffer while the sink keeps up. Knows nothing of the other
//! direction, and of WebSockets only where frames end.

use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_wire::{Frames, read_then};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::exchange::{Deadline, Reservation};

/// How many bytes are read at a time while memory is short: what waits then costs no more than the tunnel itself.
const LEAST: usize = 4 * 1024;

pub(super) struct Lane {
    /// Bytes that were read and the sink has not yet taken. While there are any, nothing more is read.
    waiting: Vec<u8>,
    sent: usize,
    /// How many bytes the sink has taken since it was last flushed whole. TLS may still hold all of them.
    held: usize,
    /// How many bytes the socket below the sink had accepted at the last look.
    below: u64,
    /// The memory of the bytes that wait. They are read already, so they are counted and never refused.
    memory: Reservation,
    /// Finds the frame ends of a WebSocket.
    frames: Option<Frames>,
    state: LaneState,
    /// The end of a WebSocket without a Close frame is not passed on, so that it does not look like an end in order.
    withholds_end: bool,
    /// The source has ended.
    ended: bool,
    /// The sink gets its end now, even if the source sends more.
    cut: bool,
    /// The sink has got its end, or is gone.
    finished: bool,
    moved: bool,
    /// When the sink has taken nothing for too long.
    stalled: Deadline,
    time_limit: Duration,
    /// Bytes from the source to the sink.
    pub bytes: u64,
}

/// What happens with the bytes of the source.
enum LaneState {
    /// They are passed on.
    On,
    /// They are passed on to the end of the current frame. Then the sink gets these bytes, and nothing more.
    ToEndOfFrame(Vec<u8>),
    /// They are read, scanned for frames, and dropped.
    Nowhere,
}

/// Which end broke the direction off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneError {
    /// The source cannot be read.
    Source,
    /// The sink cannot be written to.
    Sink,
    /// The sink took nothing for too long.
    Stalled,
}

/// Bytes that the sink gets first.
pub(super) struct Ahead {
    /// Bytes that do not come from the source.
    pub head: Vec<u8>,
    /// Bytes from the source that were read before the tunnel began.
    pub early: Vec<u8>,
}

impl Lane {
    /// A direction whose sink may stall for `time_limit`.
    pub fn new(
        ahead: Ahead,
        frames: Option<Frames>,
        stalled: Deadline,
        time_limit: Duration,
        memory: Reservation,
    ) -> Self {
        let Ahead { head: mut waiting, early } = ahead;
        stalled.clear();
        let mut lane = Self {
            waiting: Vec::new(),
            sent: 0,
            held: 0,
            below: 0,
            memory,
            frames,
            state: LaneState::On,
            withholds_end: false,
            ended: false,
            cut: false,
            finished: false,
            moved: false,
            stalled,
            time_limit,
            bytes: early.len() as u64,
        };
        lane.look(&early);
        waiting.extend_from_slice(&early);
        lane.waiting = waiting;
        lane.count();
        lane
    }

    /// Sets that the end of a WebSocket without a Close frame is not passed on. Has no effect on other protocols.
    pub fn withholds_end(mut self) -> Self {
        self.withholds_end = self.frames.is_some();
        self
    }

    /// Notes how many bytes the socket below the sink has accepted so far. TLS takes bytes before the socket does, so only this shows that the
    /// sink goes on with them.
    pub fn note_below(&mut self, accepted: u64) {
        if accepted != self.below {
            self.below = accepted;
            self.moved = true;
            self.stalled.clear();
        }
    }

    /// Moves bytes. Ready when the source has ended and the sink has everything.
    pub fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
        to: &mut W,
    ) -> Poll<Result<(), LaneError>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            ready!(self.poll_flush(cx, to))?;
            if (self.cut || self.ended && !self.is_end_withheld()) && !self.finished {
                // If the sink is gone, its shutdown fails, which does not matter. Over TLS it is a message, which waits for room as others do.
                if Pin::new(&mut *to).poll_shutdown(cx).is_pending() {
                    return self.poll_stalled(cx);
                }
                self.finished = true;
            }
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            let most = if self.memory.is_tight() { LEAST } else { usize::MAX };
            let read = read_then(from, cx, most, |cx, bytes| self.take(cx, bytes, to));
            match ready!(read) {
                Ok(()) => {}
                // TLS without its close message. Whether a WebSocket is whole, its frames tell.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.frames.is_some() => {
                    self.ended = true;
                }
                Err(_) => return Poll::Ready(Err(LaneError::Source)),
            }
        }
    }

    fn poll_flush<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<Result<(), LaneError>> {
        while self.sent < self.waiting.len() {
            match Pin::new(&mut *to).poll_write(cx, &self.waiting[self.sent..]) {
                Poll::Ready(Ok(taken @ 1..)) => {
                    self.sent += taken;
                    self.held += taken;
                    self.moved = true;
                    self.stalled.clear();
                }
                Poll::Ready(_) => return Poll::Ready(Err(LaneError::Sink)),
                Poll::Pending => {
                    return match self.poll_through(cx, to) {
                        Poll::Ready(Err(_)) => Poll::Ready(Err(LaneError::Sink)),
                        _ => self.poll_stalled(cx),
                    };
                }
            }
        }
        if self.sent > 0 {
            // Many tunnels that idle after a burst must not keep their buffers.
            self.waiting = Vec::new();
            self.sent = 0;
        }
        if self.finished {
            self.count();
            return Poll::Ready(Ok(()));
        }
        match self.poll_through(cx, to) {
            Poll::Ready(Ok(())) => {
                self.stalled.clear();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(LaneError::Sink)),
            Poll::Pending => self.poll_stalled(cx),
        }
    }

    /// Flushes the sink, and counts what waits after that, here or in the sink.
    fn poll_through<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<io::Result<()>> {
        let flushed = Pin::new(to).poll_flush(cx);
        if flushed.is_ready() {
            self.held = 0;
        }
        self.count();
        flushed
    }

    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LaneError>> {
        self.stalled.poll_stalled(cx, self.time_limit).map(|()| Err(LaneError::Stalled))
    }

    fn take<W: AsyncWrite + Unpin>(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &mut W) {
        if bytes.is_empty() {
            self.ended = true;
            return;
        }
        self.moved = true;
        let passed = match self.state {
            LaneState::On => bytes.len(),
            LaneState::ToEndOfFrame(_) => self.frames.as_mut().map_or(0, |frames| frames.take_to_end(bytes)),
            LaneState::Nowhere => 0,
        };
        self.pass(cx, &bytes[..passed], to);
        match mem::replace(&mut self.state, LaneState::Nowhere) {
            LaneState::ToEndOfFrame(close) => {
                if self.is_between_frames() {
                    self.push_close(close);
                } else {
                    self.state = LaneState::ToEndOfFrame(close);
                }
                self.look(&bytes[passed..]);
            }
            as_before => {
                self.state = as_before;
                self.look(bytes);
            }
        }
    }

    /// Writes the bytes to the sink from where they lie. Only what the sink does not take is copied.
    fn pass<W: AsyncWrite + Unpin>(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &mut W) {
        if bytes.is_empty() {
            return;
        }
        self.bytes += bytes.len() as u64;
        let taken = match Pin::new(to).poll_write(cx, bytes) {
            Poll::Ready(Ok(taken)) => taken,
            // A failure of the sink is reported by the next write.
            _ => 0,
        };
        self.held += taken;
        self.waiting.extend_from_slice(&bytes[taken..]);
    }

    /// Counts what waits. Mostly that is nothing, as before. What has been sent of `waiting` is still there.
    fn count(&mut self) {
        let waiting = (self.waiting.len() + self.held.saturating_sub(self.sent)) as u64;
        if self.memory.bytes() != waiting {
            self.memory.set(waiting);
        }
    }

    fn look(&mut self, bytes: &[u8]) {
        if let Some(frames) = &mut self.frames {
            frames.take(bytes);
        }
    }

    /// Ends a WebSocket's direction with this Close frame, after the current frame. Nothing follows it. Other protocols have no such frame.
    pub fn close(&mut self, close: Vec<u8>) {
        self.withholds_end = false;
        if self.frames.is_none() {
            return;
        }
        if self.is_between_frames() {
            self.push_close(close);
        } else if self.ended {
            self.state = LaneState::Nowhere;
        } else {
            self.state = LaneState::ToEndOfFrame(close);
        }
    }

    /// Ends the sink as soon as it has the bytes that wait.
    pub fn cut(&mut self) {
        self.cut = true;
        self.state = LaneState::Nowhere;
    }

    /// Goes on although one end has failed.
    pub fn tolerate(&mut self, broken: LaneError) {
        match broken {
            LaneError::Source => self.ended = true,
            LaneError::Sink | LaneError::Stalled => {
                self.waiting = Vec::new();
                (self.sent, self.held, self.finished) = (0, 0, true);
                self.state = LaneState::Nowhere;
                self.count();
            }
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The source has sent its Close frame.
    pub fn has_closed(&self) -> bool {
        self.frames.as_ref().is_some_and(Frames::has_closed)
    }

    /// The rest of the current frame has not come yet.
    pub fn is_inside_frame(&self) -> bool {
        matches!(self.state, LaneState::ToEndOfFrame(_)) && !self.ended
    }

    /// The sink has everything that was read for it.
    pub fn is_taken(&self) -> bool {
        self.waiting.is_empty() && self.held == 0
    }

    /// The sink has everything, and the source will send nothing more.
    pub fn is_settled(&self) -> bool {
        let is_last = matches!(self.state, LaneState::Nowhere) && self.has_closed();
        self.is_taken() && (self.ended || is_last)
    }

    /// Whether any bytes have moved since the last call.
    pub fn has_moved(&mut self) -> bool {
        mem::take(&mut self.moved)
    }

    fn push_close(&mut self, close: Vec<u8>) {
        if !self.has_closed() && !self.finished {
            self.waiting.extend_from_slice(&close);
        }
        self.state = LaneState::Nowhere;
    }

    fn is_between_frames(&self) -> bool {
        self.frames.as_ref().is_some_and(Frames::is_between)
    }

    fn is_end_withheld(&self) -> bool {
        self.withholds_end && !self.has_closed()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use hostler_wire::going_away;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;
    use crate::exchange::{MemoryBudget, Sweep};

    const TIME_LIMIT: Duration = Duration::from_secs(10);

    fn lane(early: &[u8], is_websocket: bool) -> Lane {
        lane_within(&MemoryBudget::new(1 << 30), early, is_websocket)
    }

    fn lane_within(budget: &Arc<MemoryBudget>, early: &[u8], is_websocket: bool) -> Lane {
        let sweep = Sweep::new();
        tokio::spawn(sweep.clone().run());
        let ahead = Ahead { head: b"HEAD".to_vec(), early: early.to_vec() };
        let (frames, memory) = (is_websocket.then(Frames::default), budget.account().reservation());
        Lane::new(ahead, frames, sweep.deadline(), TIME_LIMIT, memory)
    }

    /// A sink whose end is a message, as that of TLS.
    struct EndsWithMessage {
        below: DuplexStream,
        unsent: &'static [u8],
    }

    impl AsyncWrite for EndsWithMessage {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.get_mut().below).poll_write(cx, buf)
        }

        fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let this = self.get_mut();
            while !this.unsent.is_empty() {
                let taken = ready!(Pin::new(&mut this.below).poll_write(cx, this.unsent))?;
                this.unsent = &this.unsent[taken..];
            }
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let this = self.get_mut();
            if this.unsent.is_empty() {
                this.unsent = b"end";
            }
            ready!(Pin::new(&mut *this).poll_flush(cx))?;
            Pin::new(&mut this.below).poll_shutdown(cx)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sink_that_takes_all_but_the_end_stalls_too() {
        let mut lane = lane(b"", false);
        let (source, mut from) = duplex(64);
        // The head fills it.
        let (below, sink) = duplex(4);
        let mut to = EndsWithMessage { below, unsent: b"" };
        drop(source);
        let moving = poll_fn(|cx| lane.poll(cx, &mut from, &mut to));
        assert_eq!(timeout(2 * TIME_LIMIT, moving).await, Ok(Err(LaneError::Stalled)));
        drop(sink);
    }

    /// A sink that takes all bytes, and passes them on when its socket accepts them, as TLS does.
    struct TakesAhead;

    impl AsyncWrite for TakesAhead {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sink_that_takes_bytes_ahead_stalls_only_when_its_socket_accepts_none() {
        let mut lane = lane(b"", false);
        let (_source, mut from) = duplex(64);
        for accepted in 0..20 {
            lane.note_below(accepted);
            let moving = poll_fn(|cx| lane.poll(cx, &mut from, &mut TakesAhead));
            assert!(timeout(TIME_LIMIT / 2, moving).await.is_err(), "{accepted}");
        }
        let moving = poll_fn(|cx| lane.poll(cx, &mut from, &mut TakesAhead));
        assert_eq!(timeout(2 * TIME_LIMIT, moving).await, Ok(Err(LaneError::Stalled)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_sink_ends_the_direction_and_a_slow_one_does_not() {
        let mut lane = lane(b"", false);
        let (mut source, mut from) = duplex(1 << 20);
        let (mut to, mut sink) = duplex(16);
        source.write_all(&[7; 10_000]).await.unwrap();
        let slow = async {
            for _ in 0..20 {
                tokio::time::sleep_until(tokio::time::Instant::now() + TIME_LIMIT / 2).await;
                sink.read_exact(&mut [0; 16]).await.unwrap();
            }
            std::future::pending::<()>().await;
        };
        let began = tokio::time::Instant::now();
        let outcome = tokio::select! {
            outcome = poll_fn(|cx| lane.poll(cx, &mut from, &mut to)) => outcome,
            () = slow => unreachable!(),
        };
        assert_eq!(outcome, Err(LaneError::Stalled));
        assert!(began.elapsed() >= TIME_LIMIT * 11, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn buffered_bytes_are_bounded_and_freed_when_sent() {
        let mut lane = lane(b"early", false);
        let (mut source, mut from) = duplex(4 << 20);
        let (mut to, mut sink) = duplex(1024);
        source.write_all(&[7; 1 << 20]).await.unwrap();
        drop(source);
        let mut received = Vec::new();
        let mut most = 0;
        let reading = async {
            sink.read_to_end(&mut received).await.unwrap();
        };
        let passing = poll_fn(|cx| {
            let outcome = lane.poll(cx, &mut from, &mut to);
            most = most.max(lane.waiting.len());
            outcome
        });
        let (passed, ()) = tokio::join!(passing, reading);
        assert_eq!((passed, received.len()), (Ok(()), 9 + (1 << 20)));
        assert!((1..=64 * 1024).contains(&most), "{most}");
        assert_eq!((lane.waiting.capacity(), lane.bytes), (0, 5 + (1 << 20)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_counted_and_little_is_read_while_memory_is_short() {
        let budget = MemoryBudget::new(100 * 1024);
        let mut stuck = Vec::new();
        for _ in 0..3 {
            let mut lane = lane_within(&budget, b"", false);
            let (mut source, mut from) = duplex(1 << 20);
            let (mut to, sink) = duplex(16);
            source.write_all(&[7; 200_000]).await.unwrap();
            assert!(poll_fn(|cx| Poll::Ready(lane.poll(cx, &mut from, &mut to))).await.is_pending());
            stuck.push((lane, source, from, to, sink));
        }
        let waiting: Vec<_> = stuck.iter().map(|(lane, ..)| lane.waiting.len()).collect();
        let [first, others @ ..] = &waiting[..] else { panic!("three lanes") };
        assert!(*first > 50 * 1024, "memory is short from then on: {waiting:?}");
        assert!(others.iter().all(|bytes| (1..=LEAST).contains(bytes)), "{waiting:?}");
        assert_eq!(budget.view().used, waiting.iter().sum::<usize>() as u64);
        let (lane, ..) = &mut stuck[0];
        lane.tolerate(LaneError::Sink);
        assert_eq!(budget.view().used, others.iter().sum::<usize>() as u64);
        drop(stuck);
        assert_eq!(budget.view().used, 0);
    }

    /// Unmasked binary frames of these lengths, all below 126.
    fn frames(lengths: &[u8]) -> Vec<Vec<u8>> {
        lengths.iter().map(|&length| [&[0x82, length][..], &vec![0x88; length.into()]].concat()).collect()
    }

    /// At every cut and every moment of the close: whole frames, then the Close frame, then nothing.
    async fn closes_between_frames(
        lengths: Vec<u8>,
        pieces: Vec<usize>,
        at: usize,
        room: usize,
        early: usize,
    ) {
        let frames = frames(&lengths);
        let bytes = frames.concat();
        let early = early.min(bytes.len());
        let mut lane = lane(&bytes[..early], true);
        let (mut source, mut from) = duplex(64);
        let (mut to, mut sink) = duplex(room);
        let mut received = Vec::new();
        let (mut sent, mut pieces) = (early, pieces.iter().cycle());
        for step in 0.. {
            assert!(step < 100_000, "nothing moves any more");
            // Otherwise tokio's cooperative budget soon makes all of them wait.
            tokio::task::yield_now().await;
            if step == at {
                lane.close(going_away(None));
            }
            let _ = poll_fn(|cx| Poll::Ready(lane.poll(cx, &mut from, &mut to))).await;
            let mut piece = [0; 200];
            let next = poll_fn(|cx| {
                let mut buffer = tokio::io::ReadBuf::new(&mut piece);
                Poll::Ready(Pin::new(&mut sink).poll_read(cx, &mut buffer).map(|_| buffer.filled().len()))
            })
            .await;
            if let Poll::Ready(read) = next {
                received.extend_from_slice(&piece[..read]);
            }
            let more = &bytes[sent..bytes.len().min(sent + pieces.next().unwrap())];
            let taken = poll_fn(|cx| Poll::Ready(Pin::new(&mut source).poll_write(cx, more))).await;
            if let Poll::Ready(Ok(taken)) = taken {
                sent += taken;
            }
            if step > at && sent == bytes.len() && next.is_pending() && lane.waiting.is_empty() {
                break;
            }
        }
        let ends = frames.iter().scan(4, |end, frame| {
            *end += frame.len();
            Some(*end)
        });
        let said = received.strip_suffix(&going_away(None)[..]).expect("a Close frame at the end");
        assert!(said.len() == 4 || ends.clone().any(|end| end == said.len()), "in the middle of a frame");
        assert_eq!(*said, [b"HEAD", &bytes[..]].concat()[..said.len()]);
    }

    proptest! {
        #[test]
        fn a_close_frame_goes_between_two_frames_however_the_bytes_are_cut(
            lengths in vec(0_u8..126, 1..20),
            pieces in vec(1_usize..70, 1..10),
            at in 0_usize..30,
            room in 1_usize..100,
            early in 0_usize..300,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(closes_between_frames(lengths, pieces, at, room, early));
        }
    }
}
