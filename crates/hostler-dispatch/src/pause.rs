//! The sum of the pauses of a pool. Knows nothing of the waiting requests.

use std::time::Duration;

use tokio::time::Instant;

/// Whether a pool is paused, and for how long it has been paused in all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    since: Option<Instant>,
    before: Duration,
}

impl Pause {
    pub fn is_on(&self) -> bool {
        self.since.is_some()
    }

    pub fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    pub fn end(&mut self, now: Instant) {
        self.before = self.total(now);
        self.since = None;
    }

    /// The sum of all pauses, including a running one.
    pub fn total(&self, now: Instant) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}
