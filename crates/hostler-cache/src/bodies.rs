//! Counts the bytes of bodies: those that are stored, those that are on their way into the store, and those that have left it
//! and that clients still read. Knows no entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

/// A shorter body is not counted once it is complete. Each connection may hold this much of its responses in any case, and most entries are
/// short: to count them would itself take much memory.
const LEAST_COUNTED: usize = 16 * 1024;

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

    /// Whether clients hold so much that slow ones must give it up. Half of `limit` is for the store, the other half for clients; clients are a crowd
    /// if they hold more than half of theirs.
    pub fn is_crowded(&self) -> bool {
        self.used() > self.limit / 4 * 3
    }

    /// How many bytes are used.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }
}

impl BodyShare {
    /// How many bytes it counts.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts at least this many bytes from now on. It cannot fail, as they are there already.
    pub fn grow(&mut self, bytes: u64) {
        let more = bytes.saturating_sub(self.bytes);
        self.memory.used.fetch_add(more, Relaxed);
        self.bytes += more;
    }

    /// Counts only this many bytes from now on.
    pub fn shrink(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        self.memory.used.fetch_sub(less, Relaxed);
        self.bytes -= less;
    }

    /// Whether more bytes are used than the limit allows.
    pub fn is_over(&self) -> bool {
        self.memory.used() > self.memory.limit
    }

    /// The complete body. Its bytes count as long as one of its readers or the store has it.
    pub fn own(mut self, body: impl Into<Bytes>) -> Bytes {
        let body = body.into();
        if body.len() < LEAST_COUNTED {
            return body;
        }
        let length = body.len() as u64;
        self.shrink(length);
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
        let memory = BodyMemory::new(100_000);
        let mut share = memory.share(40_000).unwrap();
        assert!(memory.share(70_000).is_none() && memory.share(u64::MAX).is_none());
        share.grow(30_000);
        assert_eq!((memory.used(), memory.is_crowded()), (40_000, false));
        share.grow(120_000);
        assert_eq!((memory.used(), memory.is_crowded(), share.is_over()), (120_000, true, true));
        let stored = share.own(vec![b'x'; 50_000]);
        assert_eq!((memory.used(), stored.len()), (50_000, 50_000));
        let part = stored.slice(1..2);
        drop(stored);
        assert_eq!(memory.used(), 50_000);
        drop(part);
        assert_eq!(memory.used(), 0);
        drop(memory.share(100_000).unwrap());
        assert_eq!(memory.used(), 0);
        let short = memory.share(10).unwrap().own("short");
        assert_eq!((memory.used(), &*short), (0, &b"short"[..]));
    }
}
