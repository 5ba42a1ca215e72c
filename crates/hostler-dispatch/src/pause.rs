//! The times in which a pool gives no slots: it is paused, or it sleeps. Knows nothing of the waiting requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Whether a pool is paused or sleeps, and for how long it has done so in all.
#[derive(Debug, Default)]
pub(super) struct Pause {
    /// Paused by a command.
    paused: bool,
    sleep: Option<Sleep>,
    /// The sleeping pool has no member.
    empty: bool,
    since: Option<Instant>,
    before: Duration,
}

/// One moment on two clocks.
#[derive(Clone, Copy)]
pub(super) struct Now {
    /// Real time. Ejections end by it.
    pub real: Instant,
    /// The pool's time, which stops during pauses. Time limits of requests end by it.
    pub served: Instant,
}

/// A pool that may be without members on purpose.
#[derive(Debug)]
struct Sleep {
    /// Notified when a request needs a member.
    wake_requested: Arc<Notify>,
    requested_at: Option<Instant>,
}

impl Pause {
    /// Whether a command has paused the pool.
    pub fn is_on(&self) -> bool {
        self.paused
    }

    /// The moment on both clocks.
    pub fn at(&self, now: Instant) -> Now {
        let was_never_on = self.since.is_none() && self.before.is_zero();
        Now { real: now, served: if was_never_on { now } else { now - self.total(now) } }
    }

    pub fn begin(&mut self, now: Instant) {
        self.paused = true;
        self.settle(now);
    }

    pub fn end(&mut self, now: Instant) {
        self.paused = false;
        self.settle(now);
    }

    /// The sum of all times in which the pool was paused or slept without a member, including the present one. Times that
    /// overlap count once.
    pub fn total(&self, now: Instant) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// As [`Self::total`]. `None`: the pool is paused, or sleeps without a member.
    pub fn ended(&self) -> Option<Duration> {
        self.since.is_none().then_some(self.before)
    }

    /// From now on the pool sleeps. The first request that finds no member notifies `wake_requested`.
    pub fn fall_asleep(&mut self, wake_requested: Arc<Notify>) {
        self.sleep = Some(Sleep { wake_requested, requested_at: None });
    }

    pub fn wake_up(&mut self, now: Instant) {
        self.sleep = None;
        self.settle(now);
    }

    pub fn is_asleep(&self) -> bool {
        self.sleep.is_some()
    }

    /// Since when a member is called for that has not joined yet.
    pub fn waking_since(&self) -> Option<Instant> {
        self.sleep.as_ref().filter(|_| self.empty)?.requested_at
    }

    /// Tells whether the sleeping pool has no member (`empty`).
    pub fn note_members(&mut self, empty: bool, now: Instant) {
        self.empty = empty;
        self.settle(now);
    }

    /// What the caller must notify now because a request needs a member. At most once for each sleep.
    pub fn request_wake(&mut self, now: Instant) -> Option<Arc<Notify>> {
        let is_due = |sleep: &&mut Sleep| self.empty && !self.paused && sleep.requested_at.is_none();
        let sleep = self.sleep.as_mut().filter(is_due)?;
        sleep.requested_at = Some(now);
        Some(Arc::clone(&sleep.wake_requested))
    }

    fn settle(&mut self, now: Instant) {
        if self.paused || (self.sleep.is_some() && self.empty) {
            self.since.get_or_insert(now);
        } else {
            self.before = self.total(now);
            self.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_and_a_sleep_at_the_same_time_count_once() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut pause = Pause::default();
        pause.fall_asleep(Arc::default());
        pause.note_members(true, start);
        pause.begin(start + second);
        assert!(pause.request_wake(start + second).is_none(), "a paused pool needs no member");
        pause.wake_up(start + 2 * second);
        pause.end(start + 3 * second);
        assert_eq!(pause.total(start + 9 * second), 3 * second);
    }
}
