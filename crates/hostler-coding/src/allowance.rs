//! What encoding may cost: memory in all, and a share of each thread's time. Knows no encoder.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// While more than every second instant of a thread goes into encoding, it takes on no more of it.
const SHARE: u32 = 2;
/// So much may be spent at once, after a time in which nothing was.
const BURST: Duration = Duration::from_millis(50);

/// The memory of all encoders, and what they have done.
#[derive(Debug)]
pub struct EncoderMemory {
    most: AtomicU64,
    used: AtomicU64,
    encoded: AtomicU64,
    spared: AtomicU64,
    bytes_before: AtomicU64,
    bytes_after: AtomicU64,
}

/// What encoding has done and costs, for the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Answers that were encoded, or are being.
    pub encoded: u64,
    /// Answers that went out as they are, because encoding had its share of memory or of the thread.
    pub spared: u64,
    /// Bytes of those that were encoded.
    pub bytes_before: u64,
    /// What came of them.
    pub bytes_after: u64,
    /// Bytes that the encoders may be using.
    pub memory: u64,
}

impl EncoderMemory {
    /// Room for so many bytes.
    pub fn new(most: u64) -> Self {
        let zero = AtomicU64::default;
        Self {
            most: most.into(),
            used: zero(),
            encoded: zero(),
            spared: zero(),
            bytes_before: zero(),
            bytes_after: zero(),
        }
    }

    /// Room for more from here on, or for less.
    pub fn resize(&self, most: u64) {
        self.most.store(most, Relaxed);
    }

    /// As of now.
    pub fn usage(&self) -> Usage {
        Usage {
            encoded: self.encoded.load(Relaxed),
            spared: self.spared.load(Relaxed),
            bytes_before: self.bytes_before.load(Relaxed),
            bytes_after: self.bytes_after.load(Relaxed),
            memory: self.used.load(Relaxed),
        }
    }
}

/// One thread's part.
#[derive(Debug)]
pub struct Allowance {
    memory: Arc<EncoderMemory>,
    /// What was spent and not yet earned again, and when that was so.
    debt: Mutex<(Duration, Instant)>,
}

impl Allowance {
    /// A thread that has spent nothing.
    pub fn new(memory: Arc<EncoderMemory>) -> Arc<Self> {
        Arc::new(Self { memory, debt: Mutex::new((Duration::ZERO, Instant::now())) })
    }

    /// Leave to encode one answer; none while there is neither memory nor time for it.
    pub fn grant(self: &Arc<Self>, memory: u64) -> Option<MemoryGrant> {
        let used = self.memory.used.fetch_add(memory, Relaxed) + memory;
        let grant = MemoryGrant { allowance: self.clone(), memory };
        if used > self.memory.most.load(Relaxed) || self.spend(Duration::ZERO) > BURST {
            self.memory.spared.fetch_add(1, Relaxed);
            return None;
        }
        self.memory.encoded.fetch_add(1, Relaxed);
        Some(grant)
    }

    /// What is owed after this.
    fn spend(&self, time: Duration) -> Duration {
        let now = Instant::now();
        let mut debt = self.debt.lock().unwrap_or_else(PoisonError::into_inner);
        let earned = (now - debt.1) / SHARE;
        *debt = (debt.0.saturating_sub(earned) + time, now);
        debt.0
    }
}

/// Leave to encode one answer.
#[derive(Debug)]
pub struct MemoryGrant {
    allowance: Arc<Allowance>,
    memory: u64,
}

impl MemoryGrant {
    /// A piece was encoded: how long that took, and what came of what.
    pub(super) fn spent(&self, time: Duration, before: usize, after: usize) {
        self.allowance.spend(time);
        self.allowance.memory.bytes_before.fetch_add(before as u64, Relaxed);
        self.allowance.memory.bytes_after.fetch_add(after as u64, Relaxed);
    }
}

impl Drop for MemoryGrant {
    fn drop(&mut self) {
        self.allowance.memory.used.fetch_sub(self.memory, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_memory_left_goes_without() {
        let memory = Arc::new(EncoderMemory::new(2 * MIB));
        let (one, other) = (Allowance::new(memory.clone()), Allowance::new(memory.clone()));
        let first = one.grant(MIB).unwrap();
        let _second = other.grant(MIB).unwrap();
        assert!(one.grant(1).is_none());
        drop(first);
        assert!(other.grant(MIB).is_some());
        assert_eq!(memory.usage(), Usage { encoded: 3, spared: 1, memory: MIB, ..Usage::default() });
        memory.resize(MIB);
        assert!(one.grant(1).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_has_spent_its_share_encodes_nothing_new_until_it_has_earned_it_again() {
        let allowance = Allowance::new(Arc::new(EncoderMemory::new(MIB)));
        let grant = allowance.grant(1).unwrap();
        grant.spent(BURST, 1000, 100);
        assert!(allowance.grant(1).is_some());
        grant.spent(Duration::from_millis(10), 1000, 100);
        assert!(allowance.grant(1).is_none());
        advance(Duration::from_millis(19)).await;
        assert!(allowance.grant(1).is_none());
        advance(Duration::from_millis(1)).await;
        assert!(allowance.grant(1).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn threads_owe_for_themselves() {
        let memory = Arc::new(EncoderMemory::new(MIB));
        let (one, other) = (Allowance::new(memory.clone()), Allowance::new(memory));
        one.grant(1).unwrap().spent(BURST * 2, 1, 1);
        assert!(one.grant(1).is_none());
        assert!(other.grant(1).is_some());
    }
}
