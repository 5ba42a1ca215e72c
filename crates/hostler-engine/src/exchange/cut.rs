//! Answers that were cut because their clients did not take them: reasons and counts. Knows no connection.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Why an answer was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slow {
    /// The client took nothing for `server.send_timeout`.
    Stalled,
    /// The client took less than `server.min_send_rate`.
    TooSlow,
    /// A worker waited for the client, because the spool had no room for the answer, or Hostler held it only for this client. The client took
    /// less than `server.min_slot_rate`, or nothing for too long.
    HoldsWorker,
    /// The client held a large body of the cache while clients held too many of them. It took less than `server.min_slot_rate`, or nothing
    /// for too long.
    HoldsCache,
}

impl Slow {
    const ALL: [Self; 4] = [Self::Stalled, Self::TooSlow, Self::HoldsWorker, Self::HoldsCache];

    pub fn reason(self) -> &'static str {
        match self {
            Self::Stalled => "client stalled",
            Self::TooSlow => "client too slow",
            Self::HoldsWorker => "spool full",
            Self::HoldsCache => "cache full",
        }
    }
}

/// Counters of all connections. They only grow.
#[derive(Debug, Default)]
pub struct CutAnswers([AtomicU64; 4]);

/// The counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CutView {
    /// The client took nothing for `server.send_timeout`.
    pub stalled: u64,
    /// The client took less than `server.min_send_rate`.
    pub too_slow: u64,
    /// A worker waited for the client, which took less than `server.min_slot_rate`, or nothing for too long.
    pub spool_full: u64,
    /// The client held a large body of the cache while clients held too many of them, and took less than `server.min_slot_rate`, or nothing for
    /// too long.
    pub cache_full: u64,
}

impl CutAnswers {
    /// Counts an answer by the reason that the log gives for its end.
    pub fn count(&self, reason: Option<&'static str>) {
        let Some(reason) = reason else { return };
        if let Some(at) = Slow::ALL.iter().position(|slow| slow.reason() == reason) {
            self.0[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn view(&self) -> CutView {
        let [stalled, too_slow, spool_full, cache_full] =
            self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        CutView { stalled, too_slow, spool_full, cache_full }
    }
}
