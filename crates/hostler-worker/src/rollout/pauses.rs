//! When a worker may be recycled again: after a replacement that has failed, and after one that could not help. Knows no workers.

use std::time::Duration;

use tokio::time::Instant;

use crate::recycling::Reason;

/// How long no worker is recycled after a failed replacement. Doubles with each further failure ...
const PAUSE: Duration = Duration::from_secs(30);
/// ... this many times.
const DOUBLINGS: u32 = 5;
/// The pause for a worker that answers no requests, so it cannot wait longer.
const PAUSE_WITHOUT_SOCKET: Duration = Duration::from_secs(10);

/// The pauses of one pool.
#[derive(Clone, Debug, Default)]
pub(super) struct RecyclingPauses {
    /// Replacements in a row that have failed.
    failed: u32,
    again_at: Option<Instant>,
    /// How many workers of this code were replaced because they used too much memory from their start. Their successors will do the same.
    heavy: u32,
    heavy_again_at: Option<Instant>,
}

impl RecyclingPauses {
    /// Whether recycling for this reason must wait.
    pub fn hold_up(&self, reason: Reason, now: Instant) -> bool {
        let longest = if reason.gets_no_requests() { PAUSE_WITHOUT_SOCKET } else { Duration::MAX };
        let is_paused = |at: Instant| now < at && at - now <= longest;
        self.again_at.is_some_and(is_paused) || self.is_in_vain(reason, now)
    }

    /// Whether a replacement for this reason would not help, and there was such a replacement lately.
    pub fn is_in_vain(&self, reason: Reason, now: Instant) -> bool {
        reason.is_from_start() && self.heavy_again_at.is_some_and(|at| now < at)
    }

    /// A worker is recycled.
    pub fn begin(&mut self, reason: Reason, now: Instant) {
        if reason.is_from_start() {
            self.heavy_again_at = Some(now + pause_after(self.heavy));
            self.heavy = self.heavy.saturating_add(1);
        }
    }

    pub fn succeeded(&mut self) {
        self.failed = 0;
    }

    /// The replacement has failed. Returns the pause that follows.
    pub fn failed(&mut self, reason: Reason, now: Instant) -> Duration {
        let pause = if reason.gets_no_requests() { PAUSE_WITHOUT_SOCKET } else { pause_after(self.failed) };
        self.failed = self.failed.saturating_add(u32::from(!reason.gets_no_requests()));
        self.again_at = Some(now + pause);
        pause
    }

    /// Forgets the replacements that did not help: the next workers have other code or other settings.
    pub fn renew(&mut self) {
        (self.heavy, self.heavy_again_at) = (0, None);
    }
}

fn pause_after(times: u32) -> Duration {
    PAUSE * 2_u32.pow(times.min(DOUBLINGS))
}
