//! Limits and counts the bytes that all streams of a connection have given to the `h2` crate and that are not sent yet. Knows no streams.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use atomic_waker::AtomicWaker;
use bytes::{Buf, Bytes};
use hostler_engine::exchange::{MemoryAccount, Reservation};

use crate::listen::answer_buffer::{LEAST, LEAST_ANSWER_MEMORY, PIECE};

/// The most bytes in the `h2` crate at once: enough to keep the socket busy.
const MOST_BUFFERED: usize = 256 * 1024;
/// A piece up to this length needs no grant while all such pieces of the connection have at most [`LEAST`] bytes. A tunnel may have this many bytes
/// without a grant.
const UNCOUNTED: usize = 4 * 1024;
/// A piece shorter than this is tiny: it takes some hundred bytes in the `h2` crate, more than its own.
const TINY: usize = 256;
/// The most tiny pieces in the `h2` crate at once. Beyond it, bytes wait outside and join into large pieces. Half of the tiny pieces have at most
/// `MOST_BUFFERED / 2` bytes, so a stream waits no longer for its turn than behind large pieces.
const MOST_TINY: usize = MOST_BUFFERED / TINY;

/// The send buffer that the streams of a connection share.
pub(super) struct SharedSendBuffer {
    /// The connection's share of the memory for answers.
    pub account: Arc<MemoryAccount>,
    buffered: AtomicUsize,
    /// Bytes in the `h2` crate without a grant, but for those of tunnels.
    ungranted: AtomicUsize,
    /// The number of tiny pieces in the `h2` crate.
    tiny: AtomicUsize,
    /// Whether there were too many tiny pieces, and half of them have not left yet.
    is_crowded: AtomicBool,
    /// Bytes of answers that were passed on, over all streams.
    pub sent: AtomicU64,
    /// How many of the bytes in `sent` the `h2` crate no longer has.
    left: AtomicU64,
    /// The value of `left` when it last counted as progress.
    mark: AtomicU64,
    /// Streams that wait for room.
    waiting: Mutex<Vec<Waker>>,
}

/// What the `h2` crate has of one tunnel without a grant.
#[derive(Default)]
pub(super) struct OwnRoom {
    used: AtomicUsize,
    /// Wakes the tunnel when some of it has left.
    waker: AtomicWaker,
}

impl OwnRoom {
    fn left(&self) -> usize {
        UNCOUNTED.saturating_sub(self.used.load(Ordering::Acquire))
    }
}

impl SharedSendBuffer {
    pub fn new(account: Arc<MemoryAccount>) -> Arc<Self> {
        let [sent, left, mark] = [0; 3].map(AtomicU64::new);
        let [buffered, ungranted, tiny] = [0; 3].map(AtomicUsize::new);
        let (is_crowded, waiting) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self { account, buffered, ungranted, tiny, is_crowded, sent, left, mark, waiting })
    }

    /// Whether the `h2` crate has bytes of responses. The client's windows have room for them, unless it has made the windows smaller since.
    pub fn has_bytes(&self) -> bool {
        self.sent.load(Ordering::Relaxed) > self.left.load(Ordering::Relaxed)
    }

    /// Whether at least this many bytes have left since the last progress.
    pub fn goes_on(&self, least: u64) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        let goes_on = left - self.mark.load(Ordering::Relaxed) >= least;
        if goes_on {
            self.mark.store(left, Ordering::Relaxed);
        }
        goes_on
    }

    /// Ready when the `h2` crate may get one more piece.
    pub fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_crowded() {
            self.wait(cx);
            // Some may have left before this task was registered.
            if self.is_crowded() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Whether streams must wait because of tiny pieces: until half of them have left, so that no stream gets ahead of those that wait.
    fn is_crowded(&self) -> bool {
        match self.tiny.load(Ordering::Acquire) {
            MOST_TINY.. => self.is_crowded.store(true, Ordering::Relaxed),
            few if few <= MOST_TINY / 2 => self.is_crowded.store(false, Ordering::Relaxed),
            _ => {}
        }
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// Grants up to `wanted` bytes. Their memory is taken over from `memory`. Pending while the buffer is full.
    pub fn poll_reserve(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        wanted: usize,
        memory: Option<&mut Reservation>,
    ) -> Poll<(usize, Option<SendGrant>)> {
        ready!(self.poll_piece(cx));
        let is_free = wanted <= UNCOUNTED && self.ungranted.load(Ordering::Acquire) + wanted <= LEAST;
        if is_free && self.buffered.load(Ordering::Acquire) < MOST_BUFFERED {
            return Poll::Ready((wanted, None));
        }
        self.poll_counted(cx, wanted, memory).map(|(bytes, grant)| (bytes, Some(grant)))
    }

    /// As [`Self::poll_reserve`], for a tunnel. [`UNCOUNTED`] of its bytes may be in the `h2` crate whatever the other streams have there. So a tunnel
    /// whose client keeps up does not wait behind a long response.
    pub fn poll_tunnel(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        wanted: usize,
        own: &OwnRoom,
    ) -> Poll<(usize, Option<SendGrant>)> {
        if wanted <= own.left() {
            return Poll::Ready((wanted, None));
        }
        if let Poll::Ready((bytes, grant)) = self.poll_counted(cx, wanted, None) {
            return Poll::Ready((bytes, Some(grant)));
        }
        own.waker.register(cx.waker());
        // Some may have left before this task was registered. A little room is not used, because that would make many tiny frames.
        match own.left() {
            left if left >= wanted.min(UNCOUNTED / 2) => Poll::Ready((left.min(wanted), None)),
            _ => Poll::Pending,
        }
    }

    fn poll_counted(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        wanted: usize,
        memory: Option<&mut Reservation>,
    ) -> Poll<(usize, SendGrant)> {
        let buffered = self.buffered.load(Ordering::Acquire);
        let mut own = self.account.reservation();
        let memory = memory.unwrap_or(&mut own);
        let mut bytes = wanted.min(PIECE);
        let is_counted =
            buffered < MOST_BUFFERED && (memory.bytes() >= bytes as u64 || memory.resize(bytes as u64));
        if !is_counted && buffered > 0 {
            self.wait(cx);
            // The last piece may have left before this task was registered.
            if self.buffered.load(Ordering::Acquire) > 0 {
                return Poll::Pending;
            }
        }
        if !is_counted {
            // One piece is granted even without memory: otherwise no piece would ever be sent and free memory.
            bytes = bytes.min(LEAST);
            memory.set(memory.bytes().max(bytes.min(LEAST_ANSWER_MEMORY as usize) as u64));
        }
        self.buffered.fetch_add(bytes, Ordering::AcqRel);
        let grant = SendGrant { bytes, buffer: self.clone(), memory: memory.split(bytes as u64) };
        Poll::Ready((bytes, grant))
    }

    fn wait(&self, cx: &mut Context<'_>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
    }

    fn release(&self, bytes: usize) {
        let before = self.buffered.fetch_sub(bytes, Ordering::AcqRel);
        if before - bytes <= MOST_BUFFERED / 2 {
            self.wake();
        }
    }

    fn forget_tiny(&self) {
        let before = self.tiny.fetch_sub(1, Ordering::AcqRel);
        if before - 1 == MOST_TINY / 2 {
            self.wake();
        }
    }

    fn wake(&self) {
        let mut waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        // The first waiter had the last turn and asked again before the others. Now it is the last.
        if waiting.len() > 1 {
            waiting.rotate_left(1);
        }
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// The grant for a piece that was passed on. It is returned when the piece is dropped.
pub(super) struct SendGrant {
    bytes: usize,
    buffer: Arc<SharedSendBuffer>,
    memory: Reservation,
}

impl Drop for SendGrant {
    fn drop(&mut self) {
        drop(self.memory.take());
        self.buffer.release(self.bytes);
    }
}

/// Bytes that are sent on a stream.
pub(super) struct SendPiece {
    bytes: Bytes,
    /// Where they are counted. None: they are not.
    buffer: Option<Arc<SharedSendBuffer>>,
    /// The room of its tunnel that it takes, if it has no grant.
    own: Option<Arc<OwnRoom>>,
    is_tiny: bool,
    /// Returned when the bytes were sent, or never will be.
    grant: Option<SendGrant>,
}

impl SendPiece {
    pub fn new(bytes: Bytes, buffer: &Arc<SharedSendBuffer>, grant: Option<SendGrant>) -> Self {
        if grant.is_none() {
            buffer.ungranted.fetch_add(bytes.len(), Ordering::AcqRel);
        }
        Self::of(bytes, buffer, grant, None)
    }

    fn of(
        bytes: Bytes,
        buffer: &Arc<SharedSendBuffer>,
        grant: Option<SendGrant>,
        own: Option<Arc<OwnRoom>>,
    ) -> Self {
        buffer.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let is_tiny = bytes.len() < TINY;
        if is_tiny {
            buffer.tiny.fetch_add(1, Ordering::AcqRel);
        }
        Self { bytes, buffer: Some(buffer.clone()), own, is_tiny, grant }
    }

    /// A piece that [`SharedSendBuffer::poll_tunnel`] has allowed.
    pub fn of_tunnel(
        bytes: Bytes,
        buffer: &Arc<SharedSendBuffer>,
        own: &Arc<OwnRoom>,
        grant: Option<SendGrant>,
    ) -> Self {
        let own = if grant.is_none() { Some(own.clone()) } else { None };
        if let Some(own) = &own {
            own.used.fetch_add(bytes.len(), Ordering::AcqRel);
        }
        Self::of(bytes, buffer, grant, own)
    }

    fn leave(&self, bytes: usize) {
        let Some(buffer) = self.buffer.as_ref().filter(|_| bytes > 0) else { return };
        buffer.left.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(own) = &self.own {
            own.used.fetch_sub(bytes, Ordering::AcqRel);
            own.waker.wake();
        } else if self.grant.is_none() {
            buffer.ungranted.fetch_sub(bytes, Ordering::AcqRel);
        }
    }
}

impl From<Bytes> for SendPiece {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, buffer: None, own: None, is_tiny: false, grant: None }
    }
}

impl Drop for SendPiece {
    /// What is left of it will never be sent.
    fn drop(&mut self) {
        self.leave(self.bytes.len());
        if let Some(buffer) = self.buffer.as_ref().filter(|_| self.is_tiny) {
            buffer.forget_tiny();
        }
    }
}

impl Buf for SendPiece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, bytes: usize) {
        self.leave(bytes);
        self.bytes.advance(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use hostler_engine::exchange::MemoryBudget;

    use super::*;

    fn reserve(buffer: &Arc<SharedSendBuffer>, wanted: usize) -> Poll<(usize, Option<SendGrant>)> {
        buffer.poll_reserve(&mut Context::from_waker(Waker::noop()), wanted, None)
    }

    #[test]
    fn a_full_send_buffer_takes_more_when_bytes_have_left() {
        let budget = MemoryBudget::with_minimum(1 << 30, LEAST_ANSWER_MEMORY);
        let buffer = SharedSendBuffer::new(budget.account());
        let mut pieces = Vec::new();
        while let Poll::Ready((bytes, grant)) = reserve(&buffer, 1 << 20) {
            assert_eq!(bytes, PIECE);
            pieces.push(grant);
        }
        assert_eq!((pieces.len(), budget.view().used), (MOST_BUFFERED / PIECE, MOST_BUFFERED as u64));
        assert!(reserve(&buffer, 10).is_pending());
        drop(pieces);
        assert_eq!(budget.view().used, 0);
        assert!(matches!(reserve(&buffer, 10), Poll::Ready((10, None))), "small ones are not counted");
    }

    #[test]
    fn small_pieces_are_counted_too_when_many_wait() {
        let budget = MemoryBudget::with_minimum(1 << 30, LEAST_ANSWER_MEMORY);
        let buffer = SharedSendBuffer::new(budget.account());
        let piece = |_: i32| match reserve(&buffer, 1000) {
            Poll::Ready((bytes, grant)) => Some(SendPiece::new(vec![7_u8; bytes].into(), &buffer, grant)),
            Poll::Pending => None,
        };
        let pieces: Vec<_> = (0..1000).map_while(piece).collect();
        let all: usize = pieces.iter().map(Buf::remaining).sum();
        assert!((MOST_BUFFERED..=MOST_BUFFERED + LEAST + 1000).contains(&all), "{all}");
        assert_eq!(budget.view().used, all as u64 - 16_000);
        drop(pieces);
        assert_eq!(budget.view().used, 0);
        assert!(matches!(reserve(&buffer, 1000), Poll::Ready((1000, None))));
    }

    /// Pieces of a tunnel, as many as are allowed, of this length or what is left.
    fn fill(
        buffer: &Arc<SharedSendBuffer>,
        own: &Arc<OwnRoom>,
        length: usize,
        cx: &mut Context<'_>,
    ) -> Vec<SendPiece> {
        let mut pieces = Vec::new();
        while let Poll::Ready((bytes, grant)) = buffer.poll_tunnel(cx, length, own) {
            assert!((1..=length).contains(&bytes));
            pieces.push(SendPiece::of_tunnel(vec![7_u8; bytes].into(), buffer, own, grant));
        }
        pieces
    }

    #[test]
    fn small_pieces_of_a_tunnel_are_counted_too_and_a_few_never_wait_for_others() {
        let budget = MemoryBudget::with_minimum(1 << 30, LEAST_ANSWER_MEMORY);
        let buffer = SharedSendBuffer::new(budget.account());
        let (one, other) = (Arc::<OwnRoom>::default(), Arc::<OwnRoom>::default());
        let cx = &mut Context::from_waker(Waker::noop());
        let of_one = fill(&buffer, &one, 1000, cx);
        let all: usize = of_one.iter().map(Buf::remaining).sum();
        assert!((MOST_BUFFERED..=MOST_BUFFERED + 1000 + UNCOUNTED).contains(&all), "{all}");
        assert_eq!((budget.view().used, one.left()), (all as u64 - 4000, UNCOUNTED - 4000));
        // The other one has as much of its own, although the buffer is full.
        let woken = Arc::new(Woken::default());
        let mut of_other = fill(&buffer, &other, 3000, &mut Context::from_waker(&woken.clone().into()));
        assert_eq!(
            of_other.iter().map(Buf::remaining).collect::<Vec<_>>(),
            [3000],
            "a little room is not used"
        );
        of_other[0].advance(1000);
        assert!(woken.0.load(Ordering::SeqCst), "it does not wait for the bytes of the other one");
        assert!(matches!(buffer.poll_tunnel(cx, 3000, &other), Poll::Ready((2096, None))));
        drop((of_one, of_other));
        assert_eq!((budget.view().used, one.left(), other.left()), (0, UNCOUNTED, UNCOUNTED));
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn tiny_pieces_are_limited_in_number() {
        let budget = MemoryBudget::with_minimum(1 << 30, LEAST_ANSWER_MEMORY);
        let buffer = SharedSendBuffer::new(budget.account());
        let mut pieces = Vec::new();
        while let Poll::Ready((1, None)) = reserve(&buffer, 1) {
            pieces.push(SendPiece::new(Bytes::from_static(b"x"), &buffer, None));
        }
        assert_eq!(pieces.len(), MOST_TINY);
        let woken = Arc::new(Woken::default());
        assert!(buffer.poll_piece(&mut Context::from_waker(&woken.clone().into())).is_pending());
        pieces.truncate(MOST_TINY / 2 + 1);
        assert!(reserve(&buffer, 1).is_pending(), "none gets ahead");
        assert!(!woken.0.load(Ordering::SeqCst));
        pieces.pop();
        assert!(woken.0.load(Ordering::SeqCst));
        assert!(reserve(&buffer, 1).is_ready());
    }

    #[test]
    fn bytes_that_were_sent_or_never_will_be_have_left() {
        let buffer =
            SharedSendBuffer::new(MemoryBudget::with_minimum(1 << 30, LEAST_ANSWER_MEMORY).account());
        let mut pieces =
            [(); 2].map(|()| SendPiece::new(Bytes::from_static(&[7; 1000]), &buffer, None)).into_iter();
        let mut first = pieces.next().unwrap();
        assert!(buffer.has_bytes() && !buffer.goes_on(1));
        first.advance(300);
        assert!(!buffer.goes_on(301));
        assert!(buffer.goes_on(300));
        assert!(!buffer.goes_on(1), "they count once");
        drop(first);
        assert!(buffer.has_bytes() && buffer.goes_on(700));
        drop(pieces);
        assert!(!buffer.has_bytes());
    }

    #[test]
    fn without_memory_one_piece_is_sent_at_a_time() {
        let budget = MemoryBudget::with_minimum(0, LEAST_ANSWER_MEMORY);
        let account = budget.account();
        let mut other = account.reservation();
        other.set(LEAST_ANSWER_MEMORY);
        let buffer = SharedSendBuffer::new(account);
        let Poll::Ready((bytes, grant)) = reserve(&buffer, PIECE) else { panic!("nothing is buffered") };
        assert_eq!(bytes, LEAST);
        assert!(reserve(&buffer, PIECE).is_pending());
        drop(grant);
        assert!(reserve(&buffer, PIECE).is_ready());
    }
}
