//! What has come of a body on its way into memory, how far its readers are, and how much more may be taken. Knows no source.

use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::Bytes;
use hostler_cache::BodyShare;
use hostler_wire::Fields;
use slab::Slab;

/// How many bytes are taken from the source at once.
pub(super) const PIECE: usize = 64 * 1024;
/// While clients hold too many bytes of other bodies, a longer body is not kept in memory.
pub(super) const MOST_WHEN_OVER: usize = 256 * 1024;

/// Why a body is incomplete, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut(pub Arc<str>);

/// What has come of a body, and who reads it.
#[derive(Default)]
pub(super) struct FillState {
    /// The longest body that is kept in memory, in bytes.
    pub most: usize,
    /// The bytes from position `base` on.
    pub body: Vec<u8>,
    /// The position of the first byte of `body` in the whole body. 0 as long as the body fits.
    pub base: usize,
    /// Counts the bytes. None if they are counted elsewhere.
    pub share: Option<BodyShare>,
    /// The bytes that were reserved at the beginning. They count as fitting later too, because `Cache-Status` may have
    /// said that the response is stored.
    pub reserved: usize,
    pub is_too_large: bool,
    pub readers: Slab<Reader>,
    /// How many bytes had come when the last reader left.
    pub unread_from: usize,
    pub end: Option<BodyEnd>,
}

/// How a body has ended.
pub(super) enum BodyEnd {
    /// The bytes stay here for readers that have not finished.
    Whole(Bytes, Option<Arc<Fields>>),
    ReadWithoutStoring(Option<Arc<Fields>>),
    Cut(Cut),
}

/// A reader with its position.
pub(super) struct Reader {
    pub at: usize,
    /// The task that reads.
    pub waker: Option<Waker>,
    /// The reader has read all that has come, and waits for more.
    pub waits: bool,
}

/// How much may be taken from the source.
pub(super) enum Room {
    For(usize),
    None,
    /// No reader is left.
    Unwanted,
}

impl FillState {
    pub fn extend(&mut self, piece: &[u8]) {
        self.body.extend_from_slice(piece);
        if let Some(share) = &mut self.share {
            share.grow(self.body.len() as u64);
        }
    }

    /// True if the last piece makes the body too large.
    pub fn is_too_large_now(&mut self) -> bool {
        let is_over = self.share.as_ref().is_some_and(BodyShare::is_over);
        if is_over && self.body.len() > MOST_WHEN_OVER.max(self.reserved) {
            self.most = self.most.min(MOST_WHEN_OVER);
        }
        !self.is_too_large && self.body.len() > self.most
    }

    pub fn room(&mut self) -> Room {
        let most = self.most;
        if !self.is_too_large {
            // One byte more than fits is enough to know that the body does not fit.
            return Room::For(most + 1 - self.body.len());
        }
        let Some(slowest) = self.readers.iter().map(|(_, reader)| reader.at).min() else {
            return Room::Unwanted;
        };
        let come = self.come();
        // A reader of a part may begin behind the bytes that have come.
        let at = slowest.min(come);
        self.forget(at - self.base);
        match most.max(1).saturating_sub(come - at) {
            0 => Room::None,
            room => Room::For(room),
        }
    }

    pub fn come(&self) -> usize {
        match &self.end {
            Some(BodyEnd::Whole(body, _)) => body.len(),
            _ => self.base + self.body.len(),
        }
    }

    /// Drops the first bytes, which all readers have read. The rest is moved only when it is smaller than the dropped part.
    fn forget(&mut self, read: usize) {
        if read >= self.body.len() / 2 {
            self.body.drain(..read);
            self.base += read;
            if self.body.capacity() > 2 * self.body.len().max(PIECE) {
                self.body.shrink_to(PIECE);
            }
            if let Some(share) = &mut self.share {
                share.shrink(self.body.len() as u64);
            }
        }
    }

    /// The tasks of the readers that wait, or of `all`.
    pub fn wakers(&mut self, all: bool) -> Vec<Waker> {
        let meant = self.readers.iter_mut().map(|(_, reader)| reader).filter(|reader| all || reader.waits);
        meant.filter_map(|reader| reader.waker.take()).collect()
    }
}

impl Reader {
    pub fn note_task(&mut self, cx: &Context<'_>, waits: bool) {
        self.waits = waits;
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
        }
    }
}
