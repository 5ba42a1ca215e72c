//! How a worker is doing inside, as far as it is known at this moment; shared by who finds out and who shows it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The bits of a number that is none: nothing is known.
const UNKNOWN: u64 = u64::MAX;

/// The figures of one worker.
#[derive(Debug)]
pub(super) struct Vitals {
    /// The share of time that its event loop was at work, as bits.
    utilisation: AtomicU64,
    /// Times that it has collected garbage because it was asked to.
    collections: AtomicU64,
    /// The microseconds that this took.
    collecting: AtomicU64,
}

impl Default for Vitals {
    fn default() -> Self {
        Self {
            utilisation: AtomicU64::new(UNKNOWN),
            collections: AtomicU64::new(0),
            collecting: AtomicU64::new(0),
        }
    }
}

impl Vitals {
    pub fn utilisation(&self) -> Option<f64> {
        let bits = self.utilisation.load(Ordering::Relaxed);
        (bits != UNKNOWN).then(|| f64::from_bits(bits))
    }

    pub fn works(&self, utilisation: f64) {
        self.utilisation.store(utilisation.to_bits(), Ordering::Relaxed);
    }

    /// How often garbage was collected, and how long that took in all.
    pub fn collections(&self) -> (u64, Duration) {
        let micros = self.collecting.load(Ordering::Relaxed);
        (self.collections.load(Ordering::Relaxed), Duration::from_micros(micros))
    }

    pub fn collected(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(0);
        self.collecting.fetch_add(micros, Ordering::Relaxed);
        self.collections.fetch_add(1, Ordering::Relaxed);
    }

    /// It has no requests, so it is not asked.
    pub fn rests(&self) {
        self.utilisation.store(UNKNOWN, Ordering::Relaxed);
    }
}
