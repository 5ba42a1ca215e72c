//! A thread that asks pools whether a waiting request can begin now. Knows neither members nor requests.
//!
//! Nothing tells a pool that the event loop of a member has finished its work and waits for events again. So while
//! requests wait in a pool whose members' event loops are observed, this thread asks the pool again and again. A timer
//! of the runtime would do this once in a millisecond, which is several times as long as a short request takes.

use std::io;
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// A pool is asked again after a part (1/8) of the time since it last gave a slot away, within these limits, and not before one of its members
/// can begin a request.
const AGAIN_AFTER: u32 = 8;
const AGAIN_LIMITS: (Duration, Duration) = (Duration::from_micros(30), Duration::from_millis(2));
/// The system is not asked for the thread again before this time is over.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// How much later than asked the thread may wake up, in nanoseconds. The kernel's default is 50 microseconds.
#[cfg(target_os = "linux")]
const TIMER_SLACK: NonZeroU64 = NonZeroU64::MIN;

/// A pool that is asked.
pub(super) trait Recheck: Send + Sync {
    /// Gives slots to waiting requests.
    fn recheck(&self) -> Rechecked;
}

/// The result of [`Recheck::recheck`].
pub(super) enum Rechecked {
    /// Requests still wait. `gave`: some requests got slots. `not_before`: until then no member can begin a request. `None`: that is not
    /// known.
    Waits { gave: bool, not_before: Option<Instant> },
    /// No request waits. The pool must be added again when one does.
    Empty,
}

/// Asks this pool until it has no waiting request. False if the system refuses the thread: then a request that waits gets the next slot that
/// another request returns, and the pool must be added again.
pub(super) fn add(pool: Weak<dyn Recheck>) -> bool {
    static RECHECKS: LazyLock<Arc<Rechecks>> = LazyLock::new(Arc::default);
    let start = |run: ThreadMain| thread::Builder::new().name("recheck".into()).spawn(run).map(drop);
    let has_thread = RECHECKS.has_thread(Instant::now(), start);
    if has_thread {
        RECHECKS.add(pool);
    }
    has_thread
}

type ThreadMain = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Rechecks {
    added: Mutex<Vec<Weak<dyn Recheck>>>,
    grown: Condvar,
    thread: Mutex<RecheckThread>,
}

#[derive(Clone, Copy, Default)]
enum RecheckThread {
    #[default]
    NotNeeded,
    Runs,
    /// At the limit of threads (`pids.max`, `ulimit -u`).
    Refused(Instant),
}

struct Pending {
    pool: Weak<dyn Recheck>,
    /// When it last gave a slot away.
    since: Instant,
    next: Instant,
}

impl Rechecks {
    /// Whether the thread runs. If it does not, `start` starts it, but not again so soon after the system has refused it.
    fn has_thread(self: &Arc<Self>, now: Instant, start: impl FnOnce(ThreadMain) -> io::Result<()>) -> bool {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        match *thread {
            RecheckThread::Runs => return true,
            RecheckThread::Refused(at) if now.saturating_duration_since(at) < REFUSED_FOR => return false,
            RecheckThread::Refused(_) | RecheckThread::NotNeeded => {}
        }
        let of_thread = Arc::clone(self);
        let started = start(Box::new(move || of_thread.run()));
        *thread = if started.is_ok() { RecheckThread::Runs } else { RecheckThread::Refused(now) };
        started.is_ok()
    }

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
        let Some(Rechecked::Waits { gave, not_before }) = self.pool.upgrade().map(|pool| pool.recheck())
        else {
            return false;
        };
        if gave {
            self.since = now;
        }
        let (least, most) = AGAIN_LIMITS;
        let soon = now + ((now - self.since) / AGAIN_AFTER).clamp(least, most);
        self.next = not_before.map_or(soon, |at| at.clamp(soon, now + most));
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::time::advance;

    use super::*;

    /// A pool that tells when it is asked.
    struct Told(mpsc::Sender<()>);

    impl Recheck for Told {
        fn recheck(&self) -> Rechecked {
            let _ = self.0.send(());
            Rechecked::Empty
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_the_system_has_refused_is_started_later() {
        let rechecks = Arc::new(Rechecks::default());
        assert!(!rechecks.has_thread(Instant::now(), |_| Err(io::ErrorKind::WouldBlock.into())));
        assert!(!rechecks.has_thread(Instant::now(), |_| panic!("the system was asked again at once")));
        advance(REFUSED_FOR).await;
        assert!(rechecks.has_thread(Instant::now(), |run| thread::Builder::new().spawn(run).map(drop)));
        assert!(rechecks.has_thread(Instant::now(), |_| panic!("a second thread")));
        let (sender, told) = mpsc::channel();
        let pool: Arc<dyn Recheck> = Arc::new(Told(sender));
        rechecks.add(Arc::downgrade(&pool));
        told.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}
