//! A body on its way into memory: poured from one source at that one's speed, read by any number, each at his own. Knows neither
//! members nor clients.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use atomic_waker::AtomicWaker;
use bytes::Bytes;
use hostler_wire::Fields;
use slab::Slab;

/// What is taken from the source at a time.
const PIECE: usize = 64 * 1024;
/// Pieces that are taken before everybody else on the thread has his turn.
const RUN: usize = 8;

/// Where a body comes from.
pub trait BodyFeed: Send {
    /// Appends some of it, at most about `max` bytes; `true` when it is complete.
    fn poll_body(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>, max: usize) -> Poll<Result<bool, Cut>>;

    /// The trailers of one that is complete.
    fn trailers(&self) -> Option<&Fields>;
}

/// Why there is no more of a body than has come, in words for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut(pub Arc<str>);

/// What has become of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Poured {
    /// All of it has come, and can be kept.
    Whole(Bytes),
    /// It is more than can be kept, and goes on if it is poured on.
    TooLarge,
    /// All of it has come and gone: it was more than can be kept.
    Passed,
    /// It broke off.
    Cut(Cut),
    /// It is more than can be kept, and nobody reads it any more.
    Unwanted,
}

/// A body on its way into memory. What is larger than can be kept still reaches whoever was first, at his speed then; the others
/// as long as they are not in the way.
pub struct IncomingBody {
    most: usize,
    state: Mutex<FillState>,
    /// Whoever pours, to be told of room.
    pourer: AtomicWaker,
}

#[derive(Default)]
struct FillState {
    /// What has come, from the byte `base` on.
    body: Vec<u8>,
    /// 0 unless it is too large.
    base: usize,
    is_too_large: bool,
    readers: Slab<Reader>,
    end: Option<BodyEnd>,
}

enum BodyEnd {
    /// The body is kept here, for those who have not read it all.
    Whole(Bytes, Option<Arc<Fields>>),
    Passed(Option<Arc<Fields>>),
    Cut(Cut),
}

struct Reader {
    at: usize,
    waker: Option<Waker>,
    /// The others do not wait for him.
    may_be_left_behind: bool,
}

/// What may be taken from the source.
enum Room {
    For(usize),
    None,
    /// Nobody is there for whom it would be.
    Unwanted,
}

impl IncomingBody {
    /// Nothing yet; up to `most` bytes can be kept.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default(), pourer: AtomicWaker::new() })
    }

    /// A reader at the beginning; none once that is gone, or the rest will not come.
    pub fn reading(self: &Arc<Self>) -> Option<BodyReading> {
        let mut state = self.state();
        if state.is_too_large || matches!(state.end, Some(BodyEnd::Cut(_))) {
            return None;
        }
        let may_be_left_behind = !state.readers.is_empty();
        let key = state.readers.insert(Reader { at: 0, waker: None, may_be_left_behind });
        Some(BodyReading { incoming_body: self.clone(), key, until: None, trailers: None })
    }

    /// A body that is there already.
    pub fn full(body: Bytes) -> Arc<Self> {
        let incoming_body = Self::new(body.len());
        incoming_body.state().end = Some(BodyEnd::Whole(body, None));
        incoming_body
    }

    /// Pours what has come; none where more is to come.
    pub fn begin(&self, source: &mut impl BodyFeed) -> Option<Poured> {
        // Whoever goes on asks anew to be woken.
        match self.poll_pour(&mut Context::from_waker(Waker::noop()), source, &mut Vec::new()) {
            Poll::Ready(poured) => Some(poured),
            Poll::Pending => None,
        }
    }

    /// Leave to pour; once that is given up, nothing more will come.
    pub fn pouring(&self) -> Pouring<'_> {
        Pouring(self)
    }

    fn poll_pour(
        &self,
        cx: &mut Context<'_>,
        source: &mut impl BodyFeed,
        piece: &mut Vec<u8>,
    ) -> Poll<Poured> {
        self.pourer.register(cx.waker());
        for _ in 0..RUN {
            let room = match self.state().room(self.most) {
                Room::For(room) => room,
                Room::None => return Poll::Pending,
                Room::Unwanted => return Poll::Ready(Poured::Unwanted),
            };
            piece.clear();
            // Not under the lock: others read what there is meanwhile.
            let ended = match ready!(source.poll_body(cx, piece, room.min(PIECE))) {
                Ok(ended) => ended,
                Err(cut) => return Poll::Ready(self.end(Err(cut))),
            };
            let is_too_large_now = self.take(piece);
            if ended {
                return Poll::Ready(self.end(Ok(source.trailers().cloned().map(Arc::new))));
            }
            if is_too_large_now {
                return Poll::Ready(Poured::TooLarge);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Bytes that have come.
    pub fn come(&self) -> usize {
        let state = self.state();
        match &state.end {
            Some(BodyEnd::Whole(body, _)) => body.len(),
            _ => state.base + state.body.len(),
        }
    }

    /// It has turned out to be more than can be kept.
    pub fn is_too_large(&self) -> bool {
        self.state().is_too_large
    }

    /// True if that makes it too large.
    fn take(&self, piece: &[u8]) -> bool {
        let mut state = self.state();
        state.body.extend_from_slice(piece);
        let is_too_large_now = !state.is_too_large && state.body.len() > self.most;
        state.is_too_large |= is_too_large_now;
        let wakers = state.wakers();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        is_too_large_now
    }

    fn end(&self, end: Result<Option<Arc<Fields>>, Cut>) -> Poured {
        let mut state = self.state();
        let poured = match end {
            Ok(trailers) if state.is_too_large => {
                state.end = Some(BodyEnd::Passed(trailers));
                Poured::Passed
            }
            Ok(trailers) => {
                let body = Bytes::from(std::mem::take(&mut state.body).into_boxed_slice());
                state.end = Some(BodyEnd::Whole(body.clone(), trailers));
                Poured::Whole(body)
            }
            Err(cut) => {
                state.end = Some(BodyEnd::Cut(cut.clone()));
                Poured::Cut(cut)
            }
        };
        let wakers = state.wakers();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        poured
    }

    fn state(&self) -> MutexGuard<'_, FillState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to pour.
pub struct Pouring<'f>(&'f IncomingBody);

impl Pouring<'_> {
    /// Pours the source for as long as there is nothing to say of it.
    pub async fn pour(&self, source: &mut impl BodyFeed) -> Poured {
        let mut piece = Vec::new();
        poll_fn(|cx| self.0.poll_pour(cx, source, &mut piece)).await
    }
}

/// Whoever reads is told, why ever nobody pours any more.
impl Drop for Pouring<'_> {
    fn drop(&mut self) {
        if self.0.state().end.is_none() {
            self.0.end(Err(Cut("it came to no end".into())));
        }
    }
}

impl FillState {
    fn room(&mut self, most: usize) -> Room {
        if !self.is_too_large {
            // One byte more than can be kept tells that it cannot be.
            return Room::For(most + 1 - self.body.len());
        }
        loop {
            let slowest = self.readers.iter().min_by_key(|(_, reader)| reader.at);
            let Some((key, &Reader { at, may_be_left_behind, .. })) = slowest else { return Room::Unwanted };
            let come = self.base + self.body.len();
            // Who wants a part only may wait for what has not come yet.
            let at = at.min(come);
            self.forget(at - self.base);
            let kept = come - at;
            if kept < most.max(1) {
                return Room::For(most.max(1) - kept);
            }
            if !may_be_left_behind {
                return Room::None;
            }
            let waker = self.readers.remove(key).waker;
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// The first bytes have been read by all; what is left is moved only where it is less than what goes.
    fn forget(&mut self, read: usize) {
        if read >= self.body.len() / 2 {
            self.body.drain(..read);
            self.base += read;
        }
    }

    fn wakers(&mut self) -> Vec<Waker> {
        self.readers.iter_mut().filter_map(|(_, reader)| reader.waker.take()).collect()
    }
}

/// One reader's place in a filling.
pub struct BodyReading {
    incoming_body: Arc<IncomingBody>,
    key: usize,
    /// Where the part ends that he wants; none for the end.
    until: Option<usize>,
    trailers: Option<Arc<Fields>>,
}

impl BodyReading {
    /// Reads on from there, and no further than that: of a body of which at least so much is to come.
    pub fn only(mut self, part: std::ops::Range<usize>) -> Self {
        if let Some(reader) = self.incoming_body.state().readers.get_mut(self.key) {
            reader.at = part.start;
        }
        self.until = Some(part.end);
        self
    }

    /// Appends some of the body, at most `max` bytes, to `into`; `true` when it is complete.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, Cut>> {
        let mut guard = self.incoming_body.state();
        let state = &mut *guard;
        let Some(reader) = state.readers.get_mut(self.key) else {
            return Poll::Ready(Err(Cut("it was too large to be kept for a slow reader".into())));
        };
        let (come, trailers) = match &state.end {
            None => (&state.body[..], None),
            Some(BodyEnd::Whole(body, trailers)) => (&body[..], Some(trailers)),
            Some(BodyEnd::Passed(trailers)) => (&state.body[..], Some(trailers)),
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
        if piece.is_empty() {
            reader.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let has_made_room = state.is_too_large;
        drop(guard);
        if has_made_room {
            self.incoming_body.pourer.wake();
        }
        Poll::Ready(Ok(false))
    }

    /// Whoever pours waits for this reader.
    pub fn holds_up(&self) -> bool {
        let state = self.incoming_body.state();
        let is_first = state.readers.get(self.key).is_some_and(|reader| !reader.may_be_left_behind);
        state.is_too_large && is_first
    }

    /// Waits for the end of a body that nobody reads. One that is more than can be kept is not waited for: it would be fetched for
    /// nobody.
    pub async fn is_there(self) -> Result<(), Cut> {
        poll_fn(|cx| {
            let mut state = self.incoming_body.state();
            match &state.end {
                Some(BodyEnd::Cut(cut)) => return Poll::Ready(Err(cut.clone())),
                Some(BodyEnd::Whole(..) | BodyEnd::Passed(_)) => return Poll::Ready(Ok(())),
                None if state.is_too_large => {
                    return Poll::Ready(Err(Cut("it is more than can be kept".into())));
                }
                None => {}
            }
            if let Some(reader) = state.readers.get_mut(self.key) {
                reader.waker = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// The trailers of a body that is complete.
    pub fn trailers(&self) -> Option<&Fields> {
        self.trailers.as_deref()
    }
}

impl Drop for BodyReading {
    fn drop(&mut self) {
        let mut state = self.incoming_body.state();
        let left = state.readers.try_remove(self.key);
        if left.is_some_and(|reader| !reader.may_be_left_behind)
            && let Some((_, next)) = state.readers.iter_mut().next()
        {
            next.may_be_left_behind = false;
        }
        drop(state);
        self.incoming_body.pourer.wake();
    }
}

#[cfg(test)]
mod tests;
