//! Answers that were broken off because their clients did not take them: why, and how many. Knows no connection.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// What a client has done wrong with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slow {
    /// It took nothing for `server.send_timeout`.
    Stalled,
    /// It took less than `server.min_send_rate`.
    TooSlow,
    /// It took less than `server.min_slot_rate` while a worker waited: the spool has no room for more of its answer.
    SpoolFull,
}

impl Slow {
    const ALL: [Self; 3] = [Self::Stalled, Self::TooSlow, Self::SpoolFull];

    /// For the log.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Stalled => "client stalled",
            Self::TooSlow => "client too slow",
            Self::SpoolFull => "spool full",
        }
    }
}

/// Counters of all connections; they only grow.
#[derive(Debug, Default)]
pub struct CutAnswers([AtomicU64; 3]);

/// Counters of one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CutView {
    /// Took nothing for `server.send_timeout`.
    pub stalled: u64,
    /// Took less than `server.min_send_rate`.
    pub too_slow: u64,
    /// Took less than `server.min_slot_rate` while a worker waited.
    pub spool_full: u64,
}

impl CutAnswers {
    /// Counts an answer by what the log says of its end.
    pub fn count(&self, reason: Option<&'static str>) {
        let Some(reason) = reason else { return };
        if let Some(at) = Slow::ALL.iter().position(|slow| slow.reason() == reason) {
            self.0[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The figures of this moment.
    pub fn view(&self) -> CutView {
        let [stalled, too_slow, spool_full] = self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        CutView { stalled, too_slow, spool_full }
    }
}
