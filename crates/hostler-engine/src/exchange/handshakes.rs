//! Counts the results of TLS handshakes and PROXY headers. Knows no sockets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// Counters of all threads. They only grow.
#[derive(Debug, Default)]
pub struct Handshakes {
    /// Completed without an earlier session. Counted apart from those with one: a difference of two counters that are read one after the
    /// other could become smaller, and Prometheus takes that for a new process.
    full: AtomicU64,
    resumed: AtomicU64,
    /// A lock is cheap compared with a failed handshake.
    failed: Mutex<BTreeMap<&'static str, u64>>,
}

/// The counters at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct HandshakesView {
    /// Completed TLS handshakes.
    pub completed: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Connections that ended before their first request, by reason.
    pub failed: BTreeMap<&'static str, u64>,
}

impl Handshakes {
    pub fn count(&self, resumed: bool) {
        let count = if resumed { &self.resumed } else { &self.full };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_failed(&self, reason: &'static str) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    }

    pub fn view(&self) -> HandshakesView {
        let resumed = self.resumed.load(Ordering::Relaxed);
        HandshakesView {
            completed: self.full.load(Ordering::Relaxed) + resumed,
            resumed,
            failed: self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_handshake_never_counts_as_a_full_one() {
        let handshakes = Handshakes::default();
        handshakes.count(false);
        std::thread::scope(|scope| {
            let counting = scope.spawn(|| (0..100_000).for_each(|_| handshakes.count(true)));
            while !counting.is_finished() {
                let view = handshakes.view();
                assert_eq!(view.completed - view.resumed, 1);
            }
        });
        let view = handshakes.view();
        assert_eq!((view.completed, view.resumed), (100_001, 100_000));
    }
}
