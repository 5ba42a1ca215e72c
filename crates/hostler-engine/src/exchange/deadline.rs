//! Deadlines that one coarse timer per thread checks, instead of two timers per request. Knows no requests.
//!
//! Setting a deadline takes two atomic operations. Fifty times a second the thread reads the clock. When the earliest deadline is due, it
//! checks all of them and wakes the tasks of those that are due. A deadline is up to two ticks late and never early: precise enough for
//! timeouts, not for pacing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use atomic_waker::AtomicWaker;
use slab::Slab;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, MissedTickBehavior, interval};

const TICK: Duration = Duration::from_millis(20);
const NEVER: u64 = u64::MAX;
/// Deadlines that need not be precise are due at multiples of this many milliseconds.
const COARSE: u64 = 100;
/// A tick that comes this many milliseconds after the one before: the process was held up.
const HELD_UP: u64 = 200;

/// A time at which an answer that has not begun is checked. The answer may still take until the deadline.
#[derive(Debug, Clone, Copy)]
pub struct LateCheck {
    /// The time of the check.
    pub at: Instant,
    pub until: Instant,
}

/// All deadlines of one thread.
#[derive(Clone)]
pub struct Sweep(Arc<SweepInner>);

struct SweepInner {
    epoch: Instant,
    /// Milliseconds since the epoch, as of the last tick. Reading the clock for every request would cost more.
    now: AtomicU64,
    /// No deadline is due before this. It may be too early.
    earliest: AtomicU64,
    entries: Mutex<Slab<Arc<DeadlineEntry>>>,
    first: Notify,
    /// Every task that waits for a deadline is to be woken.
    all_called: Notify,
}

#[derive(Default)]
struct DeadlineEntry {
    due: AtomicU64,
    waker: AtomicWaker,
}

impl Sweep {
    /// A sweep. It does nothing until [`run`](Self::run) is polled.
    #[expect(clippy::new_without_default, reason = "starting a clock is an act, not a default")]
    pub fn new() -> Self {
        Self(Arc::new(SweepInner {
            epoch: Instant::now(),
            now: AtomicU64::new(0),
            earliest: AtomicU64::new(NEVER),
            entries: Mutex::default(),
            first: Notify::new(),
            all_called: Notify::new(),
        }))
    }

    /// Checks deadlines for ever; sleeps while there are none.
    pub async fn run(self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.0.all_called.notified() => {
                    self.call_all();
                    continue;
                }
            }
            if self.was_held_up() {
                // After a SIGCONT the runtime runs its timers before it looks at its sockets. What has arrived meanwhile is not late.
                yield_now().await;
            }
            let now = self.read_clock();
            if now >= self.0.earliest.load(Ordering::Relaxed) {
                self.due(now).iter().for_each(|entry| entry.waker.wake());
            }
            if self.entries().is_empty() {
                self.0.first.notified().await;
                self.read_clock();
                ticks.reset();
            }
        }
    }

    /// A new deadline, not set.
    pub fn deadline(&self) -> Deadline {
        let entry = Arc::new(DeadlineEntry { due: AtomicU64::new(NEVER), waker: AtomicWaker::new() });
        let mut entries = self.entries();
        if entries.is_empty() {
            self.read_clock();
            self.0.first.notify_one();
        }
        let key = entries.insert(entry.clone());
        drop(entries);
        Deadline { sweep: self.clone(), key, entry }
    }

    /// Milliseconds on the sweep's clock, at most one tick old while there are deadlines.
    pub fn millis(&self) -> u64 {
        self.0.now.load(Ordering::Relaxed)
    }

    /// Wakes every task that waits for a deadline of this thread, so that it notices a drain. May be called from any thread. The sweep's
    /// own thread wakes the tasks, so it never does that in the middle of a task's turn. Hence a task that has seen no drain and then
    /// begins to wait in the same turn is woken, too.
    pub fn wake_all(&self) {
        self.0.all_called.notify_one();
    }

    fn call_all(&self) {
        let all: Vec<_> = self.entries().iter().map(|(_, entry)| entry.clone()).collect();
        all.iter().for_each(|entry| entry.waker.wake());
    }

    /// The entries that are due. They stay due until they are set again; the next check skips them.
    fn due(&self, now: u64) -> Vec<Arc<DeadlineEntry>> {
        let (mut due, mut earliest) = (Vec::new(), NEVER);
        for (_, entry) in self.entries().iter() {
            match entry.due.load(Ordering::Relaxed) {
                at if at <= now => due.push(entry.clone()),
                at => earliest = earliest.min(at),
            }
        }
        self.0.earliest.store(earliest, Ordering::Relaxed);
        due
    }

    /// Whether much time has passed since the clock was last read.
    fn was_held_up(&self) -> bool {
        millis(self.0.epoch.elapsed()).saturating_sub(self.millis()) >= HELD_UP
    }

    fn read_clock(&self) -> u64 {
        let now = millis(self.0.epoch.elapsed());
        self.0.now.store(now, Ordering::Relaxed);
        now
    }

    fn entries(&self) -> MutexGuard<'_, Slab<Arc<DeadlineEntry>>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One deadline. One task at a time may wait for it.
pub struct Deadline {
    sweep: Sweep,
    key: usize,
    entry: Arc<DeadlineEntry>,
}

impl Deadline {
    /// Due after `period`, up to two ticks late.
    pub fn set_after(&self, period: Duration) {
        self.set(self.sweep.0.now.load(Ordering::Relaxed) + millis(period) + millis(TICK));
    }

    /// Due `period` after a value of [`Sweep::millis`], up to two ticks late.
    pub fn set_after_millis(&self, began: u64, period: Duration) {
        self.set(began + millis(period) + millis(TICK));
    }

    /// Due after `period`, up to 120 ms late. Deadlines that many tasks set at different times are then due in the same tick, and the sweep
    /// checks all of them once.
    #[inline]
    pub fn set_roughly_after(&self, period: Duration) {
        let now = self.sweep.0.now.load(Ordering::Relaxed) + millis(TICK);
        self.set((now + millis(period)).div_ceil(COARSE) * COARSE);
    }

    /// Due at an instant, up to one tick late.
    pub fn set_at(&self, instant: Instant) {
        self.set(millis(instant.saturating_duration_since(self.sweep.0.epoch)) + 1);
    }

    fn set(&self, due: u64) {
        self.entry.due.store(due, Ordering::Relaxed);
        // Nearly always an earlier one is set already, and reading costs less than a locked change.
        if due < self.sweep.0.earliest.load(Ordering::Relaxed) {
            self.sweep.0.earliest.fetch_min(due, Ordering::Relaxed);
        }
    }

    /// Not due any more.
    pub fn clear(&self) {
        self.entry.due.store(NEVER, Ordering::Relaxed);
    }

    /// Not due any more, and drops the waker of the task that waited, when the deadline moves to another task.
    pub fn forget(&self) {
        self.clear();
        drop(self.entry.waker.take());
    }

    /// Ready once it is due.
    pub fn poll_due(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_due() {
            return Poll::Ready(());
        }
        self.entry.waker.register(cx.waker());
        Poll::Pending
    }

    /// For a transfer that does not move. Ready when it has not moved for `time_limit` since the first call after a `clear`.
    pub fn poll_stalled(&self, cx: &mut Context<'_>, time_limit: Duration) -> Poll<()> {
        if !self.is_set() {
            self.set_after(time_limit);
        }
        self.poll_due(cx)
    }

    /// True from a `set` to the next `clear`.
    pub fn is_set(&self) -> bool {
        self.entry.due.load(Ordering::Relaxed) != NEVER
    }

    /// True once it is due.
    pub fn is_due(&self) -> bool {
        self.entry.due.load(Ordering::Relaxed) <= self.sweep.0.now.load(Ordering::Relaxed)
    }

    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.sweep.entries().try_remove(self.key);
    }
}

fn millis(period: Duration) -> u64 {
    u64::try_from(period.as_millis()).unwrap_or(NEVER / 4).min(NEVER / 4)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_comes_soon_after_its_time_and_never_before() {
        let sweep = Sweep::new();
        tokio::spawn(sweep.clone().run());
        let deadline = sweep.deadline();
        for wait in [Duration::from_millis(5), Duration::from_millis(50), Duration::from_secs(75)] {
            let start = Instant::now();
            deadline.set_after(wait);
            poll_fn(|cx| deadline.poll_due(cx)).await;
            let took = start.elapsed();
            assert!(took >= wait && took <= wait + 3 * TICK, "{wait:?} took {took:?}");
            deadline.set_at(Instant::now() + wait);
            poll_fn(|cx| deadline.poll_due(cx)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rough_deadlines_are_due_together_and_never_early() {
        let sweep = Sweep::new();
        tokio::spawn(sweep.clone().run());
        let (one, other) = (sweep.deadline(), sweep.deadline());
        let start = Instant::now();
        one.set_roughly_after(Duration::from_millis(1010));
        tokio::time::advance(Duration::from_millis(30)).await;
        tokio::task::yield_now().await;
        other.set_roughly_after(Duration::from_millis(1010));
        poll_fn(|cx| one.poll_due(cx)).await;
        assert!(other.is_due());
        assert!((1040..1160).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_can_count_from_an_earlier_time() {
        let sweep = Sweep::new();
        tokio::spawn(sweep.clone().run());
        let deadline = sweep.deadline();
        let (began, start) = (sweep.millis(), Instant::now());
        tokio::time::advance(Duration::from_millis(500)).await;
        deadline.set_after_millis(began, Duration::from_secs(1));
        poll_fn(|cx| deadline.poll_due(cx)).await;
        assert!((1000..1060).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_sweep_reads_the_time_again() {
        let sweep = Sweep::new();
        tokio::spawn(sweep.clone().run());
        drop(sweep.deadline());
        tokio::time::advance(Duration::from_secs(3600)).await;
        let deadline = sweep.deadline();
        let start = Instant::now();
        deadline.set_after(Duration::from_secs(1));
        poll_fn(|cx| deadline.poll_due(cx)).await;
        assert!(start.elapsed() >= Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cleared_deadline_never_expires() {
        let sweep = Sweep::new();
        tokio::spawn(sweep.clone().run());
        let (deadline, other) = (sweep.deadline(), sweep.deadline());
        for set in [&deadline, &other] {
            set.set_after(Duration::from_millis(100));
        }
        deadline.clear();
        poll_fn(|cx| other.poll_due(cx)).await;
        assert!(!deadline.is_due());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_is_about_to_wait_is_woken_with_all_others() {
        let sweep = Sweep::new();
        tokio::spawn(sweep.clone().run());
        let (deadline, mut drains) = (sweep.deadline(), false);
        let noticed = poll_fn(|cx| {
            if drains {
                return Poll::Ready(());
            }
            // What another thread does after this task has looked, and before it waits.
            drains = true;
            sweep.wake_all();
            deadline.poll_due(cx)
        });
        assert!(timeout(Duration::from_secs(60), noticed).await.is_ok(), "it waits although all were woken");
    }

    #[tokio::test]
    async fn a_forgotten_deadline_drops_the_waker_that_waited_for_it() {
        struct Task;
        impl std::task::Wake for Task {
            fn wake(self: Arc<Self>) {}
        }
        let task = Arc::new(Task);
        let deadline = Sweep::new().deadline();
        let waker = task.clone().into();
        assert!(deadline.poll_due(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        assert_eq!(Arc::strong_count(&task), 2, "it is to be woken");
        deadline.forget();
        assert_eq!(Arc::strong_count(&task), 1);
    }
}
