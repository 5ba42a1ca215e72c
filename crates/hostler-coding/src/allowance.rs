//! Limits the cost of encoding: its memory in all and for one client, and its share of each thread's time. Knows no encoder.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// A thread that spends more than 1/2 of its time on encoding does not start to encode further responses.
const SHARE: u32 = 2;
/// After an idle time, this much may be spent at once.
const BURST: Duration = Duration::from_millis(50);

/// The memory of all encoders, and counters of what they have done.
#[derive(Debug)]
pub struct EncoderMemory {
    most: AtomicU64,
    used: AtomicU64,
    encoded: AtomicU64,
    spared: AtomicU64,
    bytes_before: AtomicU64,
    bytes_after: AtomicU64,
}

/// The counters and costs of encoding, for the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Responses that were encoded, or are being encoded.
    pub encoded: u64,
    /// Responses that were sent without a coding, because encoding had used up its memory or its share of the thread.
    pub spared: u64,
    /// Bytes of the encoded responses before encoding.
    pub bytes_before: u64,
    /// Bytes of the encoded responses after encoding.
    pub bytes_after: u64,
    /// Bytes of memory that the encoders may use now.
    pub memory: u64,
}

impl EncoderMemory {
    /// A limit of this many bytes.
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

    /// Changes the limit in bytes, from now on.
    pub fn resize(&self, most: u64) {
        self.most.store(most, Relaxed);
    }

    /// The figures of this moment.
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

/// The memory of those encoders of one client that last as long as the client reads.
#[derive(Debug, Clone, Default)]
pub struct ClientEncoders(Arc<AtomicU64>);

/// The share of one thread.
#[derive(Debug)]
pub struct Allowance {
    memory: Arc<EncoderMemory>,
    /// The time that was spent and is not earned back yet, and when it was computed.
    debt: Mutex<(Duration, Instant)>,
}

impl Allowance {
    /// The share of a thread that has spent nothing.
    pub fn new(memory: Arc<EncoderMemory>) -> Arc<Self> {
        Arc::new(Self { memory, debt: Mutex::new((Duration::ZERO, Instant::now())) })
    }

    /// The permission to encode one response with this many bytes of memory. With `client`, the encoder lasts as long as
    /// that client reads: all such encoders of a client may have as much memory as is free after that, so one client
    /// alone may have half. `None` if there is not enough memory or time.
    pub fn grant(self: &Arc<Self>, memory: u64, client: Option<&ClientEncoders>) -> Option<MemoryGrant> {
        let used = self.memory.used.fetch_add(memory, Relaxed) + memory;
        let held = client.map_or(0, |client| client.0.fetch_add(memory, Relaxed) + memory);
        let grant = MemoryGrant { allowance: self.clone(), memory, client: client.cloned() };
        if used + held > self.memory.most.load(Relaxed) || self.spend(Duration::ZERO) > BURST {
            self.memory.spared.fetch_add(1, Relaxed);
            return None;
        }
        self.memory.encoded.fetch_add(1, Relaxed);
        Some(grant)
    }

    /// Adds this time and returns the debt.
    fn spend(&self, time: Duration) -> Duration {
        let now = Instant::now();
        let mut debt = self.debt.lock().unwrap_or_else(PoisonError::into_inner);
        let earned = (now - debt.1) / SHARE;
        *debt = (debt.0.saturating_sub(earned) + time, now);
        debt.0
    }
}

/// The permission to encode one response. Dropping it returns the memory.
#[derive(Debug)]
pub struct MemoryGrant {
    allowance: Arc<Allowance>,
    memory: u64,
    /// The client that has the memory as long as it reads.
    client: Option<ClientEncoders>,
}

impl MemoryGrant {
    /// A piece was encoded: the time that took, and its bytes before and after.
    pub(super) fn spent(&self, time: Duration, before: usize, after: usize) {
        self.allowance.spend(time);
        self.allowance.memory.bytes_before.fetch_add(before as u64, Relaxed);
        self.allowance.memory.bytes_after.fetch_add(after as u64, Relaxed);
    }
}

impl Drop for MemoryGrant {
    fn drop(&mut self) {
        self.allowance.memory.used.fetch_sub(self.memory, Relaxed);
        if let Some(client) = &self.client {
            client.0.fetch_sub(self.memory, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn without_memory_an_answer_is_not_encoded() {
        let memory = Arc::new(EncoderMemory::new(2 * MIB));
        let (one, other) = (Allowance::new(memory.clone()), Allowance::new(memory.clone()));
        let first = one.grant(MIB, None).unwrap();
        let _second = other.grant(MIB, None).unwrap();
        assert!(one.grant(1, None).is_none());
        drop(first);
        assert!(other.grant(MIB, None).is_some());
        assert_eq!(memory.usage(), Usage { encoded: 3, spared: 1, memory: MIB, ..Usage::default() });
        memory.resize(MIB);
        assert!(one.grant(1, None).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn encoders_that_wait_for_one_client_leave_half_of_the_memory_to_others() {
        let memory = Arc::new(EncoderMemory::new(10));
        let allowance = Allowance::new(memory.clone());
        let (one, other) = (ClientEncoders::default(), ClientEncoders::default());
        let held: Vec<_> = (0..10).map_while(|_| allowance.grant(1, Some(&one))).collect();
        assert_eq!(held.len(), 5);
        assert!(allowance.grant(1, Some(&other)).is_some());
        let short: Vec<_> = (0..10).map_while(|_| allowance.grant(1, None)).collect();
        assert_eq!(short.len(), 5, "those that wait for no client may have all");
        drop((held, short));
        assert!(allowance.grant(5, Some(&one)).is_some());
        assert_eq!(memory.usage().memory, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_over_its_cpu_budget_encodes_nothing_new_until_the_budget_refills() {
        let allowance = Allowance::new(Arc::new(EncoderMemory::new(MIB)));
        let grant = allowance.grant(1, None).unwrap();
        grant.spent(BURST, 1000, 100);
        assert!(allowance.grant(1, None).is_some());
        grant.spent(Duration::from_millis(10), 1000, 100);
        assert!(allowance.grant(1, None).is_none());
        advance(Duration::from_millis(19)).await;
        assert!(allowance.grant(1, None).is_none());
        advance(Duration::from_millis(1)).await;
        assert!(allowance.grant(1, None).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn each_thread_has_its_own_budget() {
        let memory = Arc::new(EncoderMemory::new(MIB));
        let (one, other) = (Allowance::new(memory.clone()), Allowance::new(memory));
        one.grant(1, None).unwrap().spent(BURST * 2, 1, 1);
        assert!(one.grant(1, None).is_none());
        assert!(other.grant(1, None).is_some());
    }
}
