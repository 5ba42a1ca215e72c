//! A body on its way into memory: filled from one source at the source's speed, and read by any number of readers at their own speeds.
//! Knows no members and no clients.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use atomic_waker::AtomicWaker;
use bytes::Bytes;
use hostler_cache::BodyShare;
use hostler_wire::{Fields, turn};

use super::fill_state::{BodyEnd, Cut, FillState, MOST_WHEN_OVER, PIECE, Reader, Room};

/// How many pieces are taken before other tasks of the thread run.
const RUN: usize = 8;

/// The source of a body.
pub trait BodyFeed: Send {
    /// Appends some of the body, at most about `max` bytes; `true` when the body is complete.
    fn poll_body(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>, max: usize) -> Poll<Result<bool, Cut>>;

    /// The trailers of a complete body.
    fn trailers(&self) -> Option<&Fields>;
}

/// The result of filling.
#[derive(Debug, PartialEq, Eq)]
pub enum FillOutcome {
    /// All of it has come and fits into memory.
    Whole(Bytes),
    /// It does not fit. It goes on to its readers if it is filled further.
    TooLarge,
    /// All of it has come and was read, but it did not fit.
    ReadWithoutStoring,
    /// It broke off.
    Cut(Cut),
    /// No reader is left, and it does not fit or does not end soon.
    Unwanted,
}

/// A body on its way into memory. A body that does not fit still reaches all its readers, at the speed of the slowest one.
pub struct IncomingBody {
    state: Mutex<FillState>,
    /// The task that fills it, to be woken when there is room.
    filler: AtomicWaker,
}

impl IncomingBody {
    /// An empty body. Up to `most` bytes fit.
    pub fn new(most: usize) -> Arc<Self> {
        Self::begun(FillState { most, ..FillState::default() })
    }

    /// As [`Self::new`], with a share that counts the bytes of the body.
    pub fn counted(most: usize, share: BodyShare) -> Arc<Self> {
        let reserved = share.bytes() as usize;
        Self::begun(FillState { most, reserved, share: Some(share), ..FillState::default() })
    }

    fn begun(state: FillState) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(state), filler: AtomicWaker::new() })
    }

    /// A reader from the first byte. None if that byte is gone or the body broke off.
    pub fn reading(self: &Arc<Self>) -> Option<BodyReading> {
        let mut state = self.state();
        if state.is_too_large || matches!(state.end, Some(BodyEnd::Cut(_))) {
            return None;
        }
        let key = state.readers.insert(Reader { at: 0, waker: None, waits: false });
        Some(BodyReading { incoming_body: self.clone(), key, until: None, trailers: None })
    }

    /// A complete body.
    pub fn full(body: Bytes) -> Arc<Self> {
        let incoming_body = Self::new(body.len());
        incoming_body.state().end = Some(BodyEnd::Whole(body, None));
        incoming_body
    }

    /// Takes what the source has now. None if the source has more to come.
    pub fn begin(&self, source: &mut impl BodyFeed) -> Option<FillOutcome> {
        // The next call registers its own waker.
        match self.poll_fill(&mut Context::from_waker(Waker::noop()), source, &mut Vec::new()) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// Takes what the source has now, and wakes the task when there is more to do.
    pub(super) fn poll_fill(
        &self,
        cx: &mut Context<'_>,
        source: &mut impl BodyFeed,
        piece: &mut Vec<u8>,
    ) -> Poll<FillOutcome> {
        self.filler.register(cx.waker());
        for _ in 0..RUN {
            let room = match self.state().room() {
                Room::For(room) => room,
                Room::None => return Poll::Pending,
                Room::Unwanted => return Poll::Ready(FillOutcome::Unwanted),
            };
            piece.clear();
            // Without the lock, so that readers can read meanwhile.
            let ended = match ready!(source.poll_body(cx, piece, room.min(PIECE))) {
                Ok(ended) => ended,
                Err(cut) => return Poll::Ready(self.end(Err(cut))),
            };
            let is_too_large_now = self.take(piece);
            if ended {
                return Poll::Ready(self.end(Ok(source.trailers().cloned().map(Arc::new))));
            }
            if is_too_large_now {
                return Poll::Ready(FillOutcome::TooLarge);
            }
        }
        turn::end(cx);
        Poll::Pending
    }

    /// How many bytes have come.
    pub fn come(&self) -> usize {
        self.state().come()
    }

    /// How many bytes have come since the last reader left. None: it has readers.
    pub fn unread(&self) -> Option<usize> {
        let state = self.state();
        state.readers.is_empty().then(|| state.come() - state.unread_from)
    }

    /// Cuts a body that no one reads. False if it has ended, or if a reader has come meanwhile.
    pub(super) fn cut_unread(&self) -> bool {
        let mut state = self.state();
        let is_unread = state.readers.is_empty() && state.end.is_none();
        if is_unread {
            state.end = Some(BodyEnd::Cut(Cut("no client reads it".into())));
        }
        is_unread
    }

    /// Cuts a body whose filling has stopped before its end.
    pub(super) fn give_up(&self) {
        if self.state().end.is_none() {
            self.end(Err(Cut("filling it was given up".into())));
        }
    }

    /// The body does not fit into memory.
    pub fn is_too_large(&self) -> bool {
        self.state().is_too_large
    }

    /// The body does not fit because clients hold too many bytes of other bodies.
    pub fn has_given_way(&self) -> bool {
        let state = self.state();
        state.is_too_large && state.most == MOST_WHEN_OVER
    }

    /// True if the piece makes the body too large.
    fn take(&self, piece: &[u8]) -> bool {
        let mut state = self.state();
        state.extend(piece);
        let is_too_large_now = state.is_too_large_now();
        state.is_too_large |= is_too_large_now;
        // From now on the slowest reader holds up the others. So readers that do not wait for bytes are woken, too.
        let wakers = state.wakers(is_too_large_now);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        is_too_large_now
    }

    fn end(&self, end: Result<Option<Arc<Fields>>, Cut>) -> FillOutcome {
        let mut state = self.state();
        let outcome = match end {
            Ok(trailers) if state.is_too_large => {
                state.end = Some(BodyEnd::ReadWithoutStoring(trailers));
                FillOutcome::ReadWithoutStoring
            }
            Ok(trailers) => {
                let body = std::mem::take(&mut state.body).into_boxed_slice();
                let body = match state.share.take() {
                    Some(share) => share.own(body),
                    None => Bytes::from(body),
                };
                state.end = Some(BodyEnd::Whole(body.clone(), trailers));
                FillOutcome::Whole(body)
            }
            Err(cut) => {
                state.end = Some(BodyEnd::Cut(cut.clone()));
                FillOutcome::Cut(cut)
            }
        };
        let wakers = state.wakers(false);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        outcome
    }

    fn state(&self) -> MutexGuard<'_, FillState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The position of one reader.
pub struct BodyReading {
    incoming_body: Arc<IncomingBody>,
    key: usize,
    /// The end of the part that is wanted. None for the end of the body.
    until: Option<usize>,
    trailers: Option<Arc<Fields>>,
}

impl BodyReading {
    /// Reads only this part. The body must be at least that long.
    pub fn only(mut self, part: std::ops::Range<usize>) -> Self {
        if let Some(reader) = self.incoming_body.state().readers.get_mut(self.key) {
            reader.at = part.start;
        }
        self.until = Some(part.end);
        self
    }

    /// Appends at most `max` bytes to `into`; `true` when the body is complete.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, Cut>> {
        let mut guard = self.incoming_body.state();
        let state = &mut *guard;
        let reader = state.readers.get_mut(self.key).expect("invariant: a reader stays until it is dropped");
        let (come, trailers) = match &state.end {
            None => (&state.body[..], None),
            Some(BodyEnd::Whole(body, trailers)) => (&body[..], Some(trailers)),
            Some(BodyEnd::ReadWithoutStoring(trailers)) => (&state.body[..], Some(trailers)),
            Some(BodyEnd::Cut(cut)) => return Poll::Ready(Err(cut.clone())),
        };
        let end = state.base + come.len();
        let until = self.until.unwrap_or(end).min(end);
        let from = reader.at.min(until);
        let piece = &come[from - state.base..until - state.base];
        let piece = &piece[..piece.len().min(max)];
        into.extend_from_slice(piece);
        reader.at = reader.at.max(from + piece.len());
        if reader.at >= until && (trailers.is_some() || self.until.is_some_and(|until| reader.at >= until)) {
            self.trailers = trailers.cloned().flatten();
            return Poll::Ready(Ok(true));
        }
        reader.note_task(cx, piece.is_empty());
        if piece.is_empty() {
            return Poll::Pending;
        }
        let has_made_room = state.is_too_large;
        drop(guard);
        if has_made_room {
            self.incoming_body.filler.wake();
        }
        Poll::Ready(Ok(false))
    }

    /// How many bytes of the body have come, also before the part that this reader wants.
    pub fn come(&self) -> usize {
        self.incoming_body.come()
    }

    /// Whether filling waits for this reader.
    pub fn holds_up(&self) -> bool {
        self.incoming_body.is_too_large()
    }

    /// All of the body is in memory.
    pub fn has_all(&self) -> bool {
        matches!(self.incoming_body.state().end, Some(BodyEnd::Whole(..)))
    }

    /// Waits for the end of the body without reading it. Fails if the body does not fit, because it would be fetched for no reader.
    pub async fn is_there(self) -> Result<(), Cut> {
        poll_fn(|cx| {
            let mut state = self.incoming_body.state();
            match &state.end {
                Some(BodyEnd::Cut(cut)) => return Poll::Ready(Err(cut.clone())),
                Some(BodyEnd::Whole(..) | BodyEnd::ReadWithoutStoring(_)) => return Poll::Ready(Ok(())),
                None if state.is_too_large => {
                    return Poll::Ready(Err(Cut("it does not fit into the cache".into())));
                }
                None => {}
            }
            if let Some(reader) = state.readers.get_mut(self.key) {
                reader.note_task(cx, true);
            }
            Poll::Pending
        })
        .await
    }

    /// The trailers of a complete body.
    pub fn trailers(&self) -> Option<&Fields> {
        self.trailers.as_deref()
    }
}

impl Drop for BodyReading {
    fn drop(&mut self) {
        let mut state = self.incoming_body.state();
        state.readers.try_remove(self.key);
        if state.readers.is_empty() {
            state.unread_from = state.come();
        }
        drop(state);
        self.incoming_body.filler.wake();
    }
}

#[cfg(test)]
mod tests;
