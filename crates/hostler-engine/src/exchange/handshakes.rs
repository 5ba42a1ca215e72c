//! Counts the results of TLS handshakes and PROXY headers. Knows no sockets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// Counters of all threads. They only grow.
#[derive(Debug, Default)]
pub struct Handshakes {
    completed: AtomicU64,
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
        self.completed.fetch_add(1, Ordering::Relaxed);
        if resumed {
            self.resumed.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn count_failed(&self, reason: &'static str) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    }

    pub fn view(&self) -> HandshakesView {
        HandshakesView {
            completed: self.completed.load(Ordering::Relaxed),
            resumed: self.resumed.load(Ordering::Relaxed),
            failed: self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
