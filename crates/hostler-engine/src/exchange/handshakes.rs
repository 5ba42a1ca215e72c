//! What came of connections before their first request: TLS handshakes and PROXY headers. Knows no sockets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// Counters of all threads; they only grow.
#[derive(Debug, Default)]
pub struct Handshakes {
    completed: AtomicU64,
    resumed: AtomicU64,
    /// Failures cost their clients more than a lock costs us.
    failed: Mutex<BTreeMap<&'static str, u64>>,
}

/// Counters of one moment.
#[derive(Debug, Clone, Serialize)]
pub struct HandshakesView {
    /// TLS handshakes.
    pub completed: u64,
    /// Those of them by which a client was recognised.
    pub resumed: u64,
    /// Connections that ended before their first request could come, by reason.
    pub failed: BTreeMap<&'static str, u64>,
}

impl Handshakes {
    /// One has been completed.
    pub fn count(&self, resumed: bool) {
        self.completed.fetch_add(1, Ordering::Relaxed);
        if resumed {
            self.resumed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One has failed.
    pub fn count_failed(&self, reason: &'static str) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    }

    /// The figures of this moment.
    pub fn view(&self) -> HandshakesView {
        HandshakesView {
            completed: self.completed.load(Ordering::Relaxed),
            resumed: self.resumed.load(Ordering::Relaxed),
            failed: self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
