//! Counts the bytes of bodies: those that are stored, those that are on their way into the store, and those that have left it
//! and that clients still read. Knows no entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

/// The memory of all bodies of a cache.
#[derive(Debug)]
pub struct BodyMemory {
    limit: u64,
    used: AtomicU64,
}

/// A part of the memory, which is free again when it is dropped.
#[derive(Debug)]
pub struct BodyShare {
    memory: Arc<BodyMemory>,
    bytes: u64,
}

impl BodyMemory {
    /// Memory for this many bytes.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0) })
    }

    /// A share for a body of this length. `None`: too much is used.
    pub fn share(self: &Arc<Self>, bytes: u64) -> Option<BodyShare> {
        let fits = |used: u64| used.checked_add(bytes).filter(|all| *all <= self.limit);
        self.used.fetch_update(Relaxed, Relaxed, fits).ok()?;
        Some(BodyShare { memory: Arc::clone(self), bytes })
    }

    /// How many bytes are used.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }
}

impl BodyShare {
    /// Counts at least this many bytes from now on. It cannot fail, as they are there already.
    pub fn grow(&mut self, bytes: u64) {
        let more = bytes.saturating_sub(self.bytes);
        self.memory.used.fetch_add(more, Relaxed);
        self.bytes += more;
    }

    /// The complete body. Its bytes count as long as one of its readers or the store has it.
    pub fn own(mut self, body: impl Into<Bytes>) -> Bytes {
        let body = body.into();
        let length = body.len() as u64;
        self.memory.used.fetch_sub(self.bytes.saturating_sub(length), Relaxed);
        self.bytes = self.bytes.min(length);
        self.grow(length);
        Bytes::from_owner(CountedBody { body, _share: self })
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Relaxed);
    }
}

struct CountedBody {
    body: Bytes,
    _share: BodyShare,
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_counts_until_its_last_reader_is_done() {
        let memory = BodyMemory::new(10);
        let mut share = memory.share(4).unwrap();
        assert!(memory.share(7).is_none() && memory.share(u64::MAX).is_none());
        share.grow(3);
        assert_eq!(memory.used(), 4);
        share.grow(12);
        assert_eq!(memory.used(), 12);
        let stored = share.own("12345");
        assert_eq!((memory.used(), &*stored), (5, &b"12345"[..]));
        let part = stored.slice(1..2);
        drop(stored);
        assert_eq!(memory.used(), 5);
        drop(part);
        assert_eq!(memory.used(), 0);
        drop(memory.share(10).unwrap());
        assert_eq!(memory.used(), 0);
    }
}
