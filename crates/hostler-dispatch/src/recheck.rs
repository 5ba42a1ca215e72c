//! A thread that asks pools whether a waiting request can begin now. Knows neither members nor requests.
//!
//! Nothing tells a pool that the event loop of a member has finished its work and waits for events again. So while
//! requests wait in a pool whose members' event loops are observed, this thread asks the pool again and again. A timer
//! of the runtime would do this once in a millisecond, which is several times as long as a short request takes.

#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// A pool is asked again after a part (1/8) of the time since it last gave a slot away, within these limits.
const AGAIN_AFTER: u32 = 8;
const AGAIN_LIMITS: (Duration, Duration) = (Duration::from_micros(30), Duration::from_millis(2));
/// How much later than asked the thread may wake up, in nanoseconds. The kernel's default is 50 microseconds.
#[cfg(target_os = "linux")]
const TIMER_SLACK: NonZeroU64 = NonZeroU64::MIN;

/// A pool that is asked.
pub(super) trait Recheck: Send + Sync {
    /// Gives slots to waiting requests.
    fn recheck(&self) -> Rechecked;
}

/// What came of it.
pub(super) enum Rechecked {
    /// Requests got slots, and others wait.
    Gave,
    /// Requests wait, and none got a slot.
    Waits,
    /// No request waits. The pool must be added again when one does.
    Empty,
}

/// Asks this pool until it has no waiting request.
pub(super) fn add(pool: Weak<dyn Recheck>) {
    static THREAD: LazyLock<Arc<Rechecks>> = LazyLock::new(|| {
        let rechecks = Arc::new(Rechecks::default());
        let of_thread = Arc::clone(&rechecks);
        // Without the thread, a request that waits gets the next slot that another request returns.
        let _ = thread::Builder::new().name("recheck".into()).spawn(move || of_thread.run());
        rechecks
    });
    THREAD.add(pool);
}

#[derive(Default)]
struct Rechecks {
    added: Mutex<Vec<Weak<dyn Recheck>>>,
    grown: Condvar,
}

struct Pending {
    pool: Weak<dyn Recheck>,
    /// When it last gave a slot away.
    since: Instant,
    next: Instant,
}

impl Rechecks {
    fn add(&self, pool: Weak<dyn Recheck>) {
        self.added.lock().unwrap_or_else(PoisonError::into_inner).push(pool);
        self.grown.notify_one();
    }

    fn run(&self) {
        // With the default the thread asks half as often. Other systems have no such setting.
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK));
        let mut pending = Vec::new();
        loop {
            self.take_added(&mut pending);
            let now = Instant::now();
            pending.retain_mut(|pool: &mut Pending| pool.next > now || pool.recheck(now));
        }
    }

    /// Waits until a pool is added or due, and takes those that were added.
    fn take_added(&self, pending: &mut Vec<Pending>) {
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let due = pending.iter().map(|pool| pool.next).min();
        while added.is_empty() {
            let Some(due) = due else {
                added = self.grown.wait(added).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            added = self.grown.wait_timeout(added, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let now = Instant::now();
        let next = now + AGAIN_LIMITS.0;
        pending.extend(added.drain(..).map(|pool| Pending { pool, since: now, next }));
    }
}

impl Pending {
    /// Returns false if the pool need not be asked again.
    fn recheck(&mut self, now: Instant) -> bool {
        match self.pool.upgrade().map(|pool| pool.recheck()) {
            None | Some(Rechecked::Empty) => return false,
            Some(Rechecked::Gave) => self.since = now,
            Some(Rechecked::Waits) => {}
        }
        let (least, most) = AGAIN_LIMITS;
        self.next = now + ((now - self.since) / AGAIN_AFTER).clamp(least, most);
        true
    }
}
