//! What the workers of one pool share, and the commands to them. Decides nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hostler_dispatch::{MemberId, Pool};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::budget::Budget;
use super::compile_cache::CacheFlushes;
use super::concurrency::ConcurrencyTuner;
use super::context::SupervisorContext;
use super::failed_boot::FailedBoot;
use super::inspection::InspectionOrder;
use super::lifecycle::SETTLED_AFTER;
use super::rollout::{WorkerReport, WorkerTaskId};
use super::rotation::Rotation;
use super::settings::{Probe, WorkerAddress, WorkerFacts, WorkerSettings};
use super::snapshot::{ScalingBoard, WorkerStatus};

/// A command to one worker.
#[derive(Clone, Debug)]
pub(super) enum WorkerCommand {
    Stop,
    /// The worker is not needed any more, for this reason. It finishes its requests and stops.
    Retire(Arc<str>),
    Kill,
    Hung(MemberId),
    /// Open Node's inspector: the predecessor, which had its address, is gone.
    OpenInspector,
    /// The spare takes the place of a missing worker.
    StepIn,
    /// The spare stands by.
    StepBack,
    /// A profile or a heap snapshot is taken of the worker.
    Inspect(InspectionOrder),
    /// The worker leaves the rotation, or comes back.
    Rotate(Rotation),
}

/// What the workers of one pool share.
pub(super) struct PoolShared<E> {
    /// The newest settings. Each boot uses what it finds here.
    pub settings: watch::Sender<Arc<WorkerSettings>>,
    pub pool: Pool<E>,
    pub endpoint: Box<dyn Fn(WorkerAddress, WorkerFacts) -> E + Send + Sync>,
    pub probe: Arc<dyn Probe>,
    pub context: SupervisorContext,
    pub board: watch::Sender<Vec<WorkerStatus>>,
    pub concurrency: Arc<ConcurrencyTuner>,
    /// Advice about the number of slots was logged.
    pub advised: Arc<AtomicBool>,
    pub reports: mpsc::UnboundedSender<(WorkerTaskId, WorkerReport)>,
    /// The CPU time that boots after deaths may still use.
    pub budget: Arc<Mutex<Budget>>,
    /// What the workers share about their compile cache.
    pub cache_flushes: Arc<CacheFlushes>,
    /// The number of workers, if it is not fixed.
    pub scaling: Arc<ScalingBoard>,
    /// A restart is in progress.
    pub restarting: AtomicBool,
    /// Code of all generations below this number is known to work. Generations are counted by the restarts ordered before
    /// them.
    pub proven: AtomicU64,
    /// The last boot, if it has failed.
    pub failed_boot: watch::Sender<Option<Arc<FailedBoot>>>,
    /// A process that another one of the app has started was the app, so the next one need not wait.
    pub trusts_helpers: AtomicBool,
    /// The ports of servers that had the requests only until a better server of the app came, such as one for metrics.
    pub first_ports: Mutex<BTreeSet<u16>>,
    /// A server of the app that Hostler does not use, as long as a worker with one lives.
    pub obstacle: Mutex<Option<Arc<str>>>,
}

impl<E> PoolShared<E> {
    /// A worker has a server that Hostler does not use; or it is gone.
    pub fn note_obstacle(&self, text: Option<&str>) {
        *self.obstacle.lock().unwrap_or_else(PoisonError::into_inner) = text.map(Arc::from);
    }

    pub fn first_ports(&self) -> MutexGuard<'_, BTreeSet<u16>> {
        self.first_ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn obstacle(&self) -> Option<String> {
        let obstacle = self.obstacle.lock().unwrap_or_else(PoisonError::into_inner);
        obstacle.as_deref().map(str::to_owned)
    }

    /// A boot after a death has used this much CPU time.
    pub fn charge(&self, cost: Duration) {
        self.with_budget(|budget, share| budget.take(cost, share, Instant::now()));
    }

    /// So many more workers have died.
    pub fn died(&self, deaths: u64) {
        self.with_budget(|budget, _| budget.died(deaths));
    }

    /// How long the next boot has to wait because of the CPU time of others.
    pub fn owed(&self) -> Duration {
        self.with_budget(|budget, share| budget.rest(share, Instant::now()))
    }

    /// Code of this generation works: a worker has had requests, or has been ready for a while.
    pub fn prove(&self, release: u64) {
        self.proven.fetch_max(release + 1, Ordering::Relaxed);
    }

    /// A worker that has ended, of any generation, had requests.
    pub fn has_worked(&self) -> bool {
        self.proven.load(Ordering::Relaxed) > 0
    }

    pub fn is_proven(&self, release: u64) -> bool {
        let is_settled = |place: &WorkerStatus| {
            place.release == release && place.ready_at.is_some_and(|at| at.elapsed() >= SETTLED_AFTER)
        };
        self.proven.load(Ordering::Relaxed) > release || self.board.borrow().iter().any(is_settled)
    }

    fn with_budget<T>(&self, act: impl FnOnce(&mut Budget, f64) -> T) -> T {
        let share = self.settings.borrow().boot_cpu;
        act(&mut self.budget.lock().unwrap_or_else(PoisonError::into_inner), share)
    }
}
