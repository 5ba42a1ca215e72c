//! What the pools of one Hostler share: the memory for their workers, and the CPU. Knows no policy of a pool.
//!
//! A pool that wants another worker asks for room. It grows by as many as there is room for. If a request waits in a pool that is asleep, and
//! there is no room, the pool that has been without a request for the longest time is asked to shrink, and the request waits until memory
//! was freed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::machine::{Machine, MachineLook};
use crate::process_files::own_bytes;
use crate::snapshot::{WorkerState, WorkerStatus};

/// The default share of the machine's memory for workers, in percent. The rest is for Hostler, files, and the system.
const DEFAULT_PERCENT: u64 = 80;
/// What a worker of an unknown app takes. Node alone takes about a half of it.
const UNKNOWN_WORKER: u64 = 48 << 20;
/// A pool is asked to shrink for another only after this time without a request.
const IDLE_ENOUGH: Duration = Duration::from_secs(2);
/// The measured memory of a process counts for this time. Hundreds of pools may wait for memory, and each of them asks for all processes four
/// times a second.
const MEASURED_FOR: Duration = Duration::from_secs(1);

/// The memory for all workers, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerMemory {
    /// `server.worker_memory`, or its default.
    pub limit: u64,
    /// What the workers have for themselves now, without the program file that all share.
    pub used: u64,
}

/// What all pools share.
#[derive(Debug)]
pub struct Resources {
    /// Bytes for all workers.
    limit: AtomicU64,
    tenants: Mutex<Vec<Weak<Tenant>>>,
    freed: watch::Sender<()>,
    machine: Mutex<Machine>,
    measurements: Mutex<Measurements>,
}

/// One pool, as the others see it.
#[derive(Debug)]
pub struct Tenant {
    board: watch::Receiver<Vec<WorkerStatus>>,
    /// Since when it has workers that it does not need.
    idle_since: Mutex<Option<Instant>>,
    /// What one of its workers takes, as measured last.
    of_worker: AtomicU64,
    /// Another pool needs its memory.
    pub evicted: Notify,
}

/// What processes have for themselves, as measured lately.
#[derive(Debug)]
struct Measurements {
    /// Measures one process in bytes. `None`: it has ended.
    measure: fn(u32) -> Option<u64>,
    /// When each was measured, and its bytes then. By its number, and by whether it boots: soon after that it takes more.
    known: BTreeMap<(u32, bool), (Instant, u64)>,
}

/// The memory of a pool.
#[derive(Clone, Copy, Debug, Default)]
struct TenantMemory {
    used: u64,
    /// The part of it that becomes free soon, because workers are stopping.
    leaving: u64,
}

impl Resources {
    /// `limit` is in bytes. `None`: a share of the machine's memory.
    pub fn new(limit: Option<u64>) -> Self {
        Self {
            limit: AtomicU64::new(limit.unwrap_or_else(default_limit)),
            tenants: Mutex::default(),
            freed: watch::Sender::new(()),
            machine: Mutex::new(Machine::new()),
            measurements: Mutex::new(Measurements { measure: own_bytes, known: BTreeMap::new() }),
        }
    }

    /// Changes the limit, as in [`Self::new`].
    pub fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or_else(default_limit), Ordering::Relaxed);
        self.memory_was_freed();
    }

    /// The limit, and what all workers use of it.
    pub fn memory(&self) -> WorkerMemory {
        WorkerMemory { limit: self.limit.load(Ordering::Relaxed), used: self.sum(&self.tenants()).used }
    }

    /// Adds a pool. It stays as long as the returned value is kept.
    pub fn enter(&self, board: watch::Receiver<Vec<WorkerStatus>>) -> Arc<Tenant> {
        let tenant = Arc::new(Tenant {
            board,
            idle_since: Mutex::default(),
            of_worker: AtomicU64::new(UNKNOWN_WORKER),
            evicted: Notify::new(),
        });
        let mut tenants = lock(&self.tenants);
        tenants.retain(|other| other.strong_count() > 0);
        tenants.push(Arc::downgrade(&tenant));
        tenant
    }

    /// For how many of these additional workers of this pool there is memory.
    pub fn fitting(&self, asks: &Tenant, workers: usize) -> usize {
        self.fitting_beside(self.sum(&self.tenants()).used, asks, workers)
    }

    /// The same beside workers that use so many bytes.
    fn fitting_beside(&self, used: u64, asks: &Tenant, workers: usize) -> usize {
        // A limit that is too low for a single worker must not stop every app.
        if used == 0 {
            return workers;
        }
        let left = self.limit.load(Ordering::Relaxed).saturating_sub(used);
        usize::try_from(left / asks.of_worker.load(Ordering::Relaxed).max(1))
            .map_or(workers, |fit| fit.min(workers))
    }

    /// Whether there is memory for the first worker of this pool, which a request waits for. If not, the pool that is idle for the longest
    /// time is asked to shrink, unless workers are stopping whose memory is enough.
    pub fn make_room(&self, asks: &Arc<Tenant>, now: Instant) -> bool {
        let tenants = self.tenants();
        let TenantMemory { used, leaving } = self.sum(&tenants);
        if self.fitting_beside(used, asks, 1) > 0 {
            return true;
        }
        let after = used.saturating_add(asks.of_worker.load(Ordering::Relaxed)) - leaving;
        if after > self.limit.load(Ordering::Relaxed) {
            let others = tenants.iter().filter(|tenant| !Arc::ptr_eq(tenant, asks));
            let idle = others.filter_map(|tenant| Some((tenant.idle_since(now)?, tenant)));
            if let Some((_, tenant)) = idle.min_by_key(|(since, _)| *since) {
                tenant.evicted.notify_one();
            }
        }
        false
    }

    /// A worker has ended.
    pub fn memory_was_freed(&self) {
        self.freed.send_replace(());
    }

    /// Changes whenever a worker has ended.
    pub fn freed(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }

    /// What is free on the machine.
    pub fn look(&self, now: Instant) -> MachineLook {
        lock(&self.machine).look(now)
    }

    fn tenants(&self) -> Vec<Arc<Tenant>> {
        lock(&self.tenants).iter().filter_map(Weak::upgrade).collect()
    }

    /// The memory of all these pools.
    fn sum(&self, tenants: &[Arc<Tenant>]) -> TenantMemory {
        let (mut measurements, now) = (lock(&self.measurements), Instant::now());
        measurements.forget_old(now);
        tenants.iter().fold(TenantMemory::default(), |sum, tenant| {
            let one = tenant.memory(&mut measurements, now);
            TenantMemory { used: sum.used + one.used, leaving: sum.leaving + one.leaving }
        })
    }
}

impl Measurements {
    fn forget_old(&mut self, now: Instant) {
        self.known.retain(|_, (at, _)| now.saturating_duration_since(*at) < MEASURED_FOR);
    }

    /// What this process has. 0: it has ended.
    fn of(&mut self, pid: u32, boots: bool, now: Instant) -> u64 {
        let measure = self.measure;
        let (_, bytes) = self.known.entry((pid, boots)).or_insert_with(|| (now, measure(pid).unwrap_or(0)));
        *bytes
    }
}

impl Tenant {
    /// Notes how long the pool has had workers that it does not need. `None`: it needs all.
    pub fn set_idle(&self, since: Option<Instant>) {
        *lock(&self.idle_since) = since;
    }

    /// Measures what one worker takes.
    pub fn measure(&self) {
        let pids: Vec<u32> = {
            let board = self.board.borrow();
            board
                .iter()
                .filter(|place| place.state == WorkerState::Ready)
                .filter_map(|place| place.pid)
                .collect()
        };
        if let Some(largest) = pids.into_iter().filter_map(own_bytes).max() {
            self.of_worker.store(largest, Ordering::Relaxed);
        }
    }

    fn idle_since(&self, now: Instant) -> Option<Instant> {
        lock(&self.idle_since).filter(|since| now.saturating_duration_since(*since) >= IDLE_ENOUGH)
    }

    /// Workers that boot count as what they will take.
    fn memory(&self, measurements: &mut Measurements, now: Instant) -> TenantMemory {
        let expected = self.of_worker.load(Ordering::Relaxed);
        let workers: Vec<_> = self.board.borrow().iter().map(|place| (place.state, place.pid)).collect();
        workers.into_iter().fold(TenantMemory::default(), |sum, (state, pid)| {
            let boots = matches!(state, WorkerState::Booting | WorkerState::Warming);
            let own = pid.map_or(0, |pid| measurements.of(pid, boots, now));
            let (used, leaving) = match state {
                WorkerState::Booting | WorkerState::Warming => (own.max(expected), 0),
                WorkerState::Ready | WorkerState::Standby | WorkerState::OutOfRotation => (own, 0),
                WorkerState::Retiring | WorkerState::Stopping => (own, own),
                WorkerState::BackingOff | WorkerState::Stopped => (0, 0),
            };
            TenantMemory { used: sum.used + used, leaving: sum.leaving + leaving }
        })
    }
}

fn default_limit() -> u64 {
    Machine::memory().map_or(u64::MAX, |memory| memory / 100 * DEFAULT_PERCENT)
}

/// No code that can panic runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::time::advance;

    use super::*;
    use crate::lifecycle::PoolRole;
    use crate::rollout::WorkerTaskId;

    /// A pool with workers that boot, so that each takes [`UNKNOWN_WORKER`].
    fn board(workers: u64) -> (watch::Sender<Vec<WorkerStatus>>, watch::Receiver<Vec<WorkerStatus>>) {
        let places = (1..=workers).map(|task| WorkerStatus::new(WorkerTaskId(task), 1, PoolRole::Regular, 0));
        watch::channel(places.collect())
    }

    async fn is_evicted(tenant: &Tenant) -> bool {
        tokio::select! {
            biased;
            () = tenant.evicted.notified() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn the_pool_that_is_idle_for_the_longest_time_makes_room() {
        let resources = Resources::new(Some(UNKNOWN_WORKER * 3));
        let (boards, watched): (Vec<_>, Vec<_>) = [1, 1, 1, 0].map(board).into_iter().unzip();
        let pools: Vec<_> = watched.into_iter().map(|board| resources.enter(board)).collect();
        let (now, second) = (Instant::now() + 10 * IDLE_ENOUGH, Duration::from_secs(1));
        pools[1].set_idle(Some(now - 5 * second));
        pools[2].set_idle(Some(now - 4 * second));
        let (limit, used) = (UNKNOWN_WORKER * 3, UNKNOWN_WORKER * 3);
        assert_eq!(resources.memory(), WorkerMemory { limit, used });
        assert_eq!(resources.fitting(&pools[3], 1), 0);
        assert!(!is_evicted(&pools[1]).await, "a pool that only grows takes no workers of another one");
        assert!(!resources.make_room(&pools[3], now));
        assert!(is_evicted(&pools[1]).await);
        assert!(!is_evicted(&pools[0]).await && !is_evicted(&pools[2]).await);

        let mut freed = resources.freed();
        boards[1].send_modify(Vec::clear);
        resources.memory_was_freed();
        assert!(freed.has_changed().unwrap());
        freed.mark_unchanged();
        assert_eq!(resources.fitting(&pools[3], 2), 1, "one of the two");
        assert!(resources.make_room(&pools[3], now));
        resources.set_limit(Some(UNKNOWN_WORKER * 2));
        pools[2].set_idle(Some(now - second));
        assert!(!resources.make_room(&pools[3], now));
        assert!(!is_evicted(&pools[2]).await, "it has had a request a moment ago");
    }

    #[tokio::test(start_paused = true)]
    async fn pools_that_wait_for_memory_do_not_measure_all_processes_at_each_look() {
        static MEASURED: AtomicUsize = AtomicUsize::new(0);
        fn measure(_: u32) -> Option<u64> {
            MEASURED.fetch_add(1, Ordering::Relaxed);
            Some(UNKNOWN_WORKER)
        }
        let measured = || MEASURED.load(Ordering::Relaxed);
        let resources = Resources {
            measurements: Mutex::new(Measurements { measure, known: BTreeMap::new() }),
            ..Resources::new(Some(UNKNOWN_WORKER * 3))
        };
        let (boards, watched): (Vec<_>, Vec<_>) = [1, 1, 1].map(board).into_iter().unzip();
        let _serving: Vec<_> = watched.into_iter().map(|board| resources.enter(board)).collect();
        for (pid, board) in (1..).zip(&boards) {
            board.send_modify(|places| (places[0].pid, places[0].state) = (Some(pid), WorkerState::Ready));
        }
        let waiting: Vec<_> = (0..100).map(|_| resources.enter(board(0).1)).collect();
        let look = || waiting.iter().all(|pool| !resources.make_room(pool, Instant::now()));
        assert!(look());
        assert_eq!(measured(), 3);
        advance(MEASURED_FOR).await;
        assert!(look());
        assert_eq!(measured(), 6, "they may have grown");
        boards[0].send_modify(|places| places[0].state = WorkerState::Warming);
        assert!(look());
        assert_eq!(measured(), 7, "what a worker takes while it boots is another figure");
    }

    #[test]
    fn a_limit_that_is_too_low_for_one_worker_stops_no_single_app() {
        let resources = Resources::new(Some(1));
        let (_board, watched) = board(0);
        let pool = resources.enter(watched);
        assert!(resources.make_room(&pool, Instant::now()));
        assert_eq!(resources.fitting(&pool, 2), 2);
    }
}
