//! How a worker is doing inside, as far as it is known at this moment; shared by who finds out and who shows it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The bits of a number that is none: nothing is known.
const UNKNOWN: u64 = u64::MAX;

/// The figures of one worker.
#[derive(Debug)]
pub(super) struct Vitals {
    /// The share of time that its event loop was at work, as bits.
    utilisation: AtomicU64,
}

impl Default for Vitals {
    fn default() -> Self {
        Self { utilisation: AtomicU64::new(UNKNOWN) }
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

    /// It has no requests, so it is not asked.
    pub fn rests(&self) {
        self.utilisation.store(UNKNOWN, Ordering::Relaxed);
    }
}
