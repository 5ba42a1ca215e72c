//! Supervises all workers of one pool. Knows of each worker only what its worker task publishes.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use hostler_dispatch::{MemberId, Pool};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::budget::{Boots, Budget};
use super::context::SupervisorContext;
use super::failed_boot::{self, FailedBoot, NeverReady};
use super::inspection::{InspectionEvent, InspectionKind, InspectionOrder};
use super::lifecycle::PoolRole;
use super::pool_supervisor::{PoolSupervisor, SupervisorCommand};
use super::rollout::{RestartError, Restarted};
use super::rotation::{Rotation, RotationOrder};
use super::scaling::{Resources, WorkerMemory};
use super::settings::{Probe, SettingsChange, WorkerAddress, WorkerFacts, WorkerSettings};
use super::shared::PoolShared;
use super::snapshot::{
    RolloutSnapshot, RolloutStatus, ScalingBoard, ScalingSnapshot, WorkerSnapshot, WorkerState, WorkerStatus,
};

/// A restart that [`Supervisor::restart_anew`] has ordered.
pub struct NewRestart {
    /// Completes when every worker has been replaced. Old ones may still finish their requests. Fails if the restart fails.
    pub replaced: oneshot::Receiver<()>,
    /// The result, when the last old worker has ended.
    pub ended: oneshot::Receiver<Result<Restarted, RestartError>>,
}

/// Keeps the workers of one pool alive until it is told to stop. Dropping it without a stop kills them.
pub struct Supervisor {
    settings: watch::Sender<Arc<WorkerSettings>>,
    board: watch::Receiver<Vec<WorkerStatus>>,
    rollout: watch::Receiver<RolloutStatus>,
    budget: Arc<Mutex<Budget>>,
    failed_boot: watch::Receiver<Option<Arc<FailedBoot>>>,
    scaling: Arc<ScalingBoard>,
    resources: Arc<Resources>,
    commands: mpsc::UnboundedSender<SupervisorCommand>,
}

impl Supervisor {
    /// Starts the workers on the current runtime. Each worker joins the pool when it is ready; `endpoint` makes the
    /// pool's endpoint from the worker's address.
    pub fn start<E: Send + Sync + 'static>(
        settings: WorkerSettings,
        pool: Pool<E>,
        endpoint: impl Fn(WorkerAddress, WorkerFacts) -> E + Send + Sync + 'static,
        probe: Arc<dyn Probe>,
        context: SupervisorContext,
    ) -> Self {
        let (board, watched) = watch::channel(vec![]);
        let (rollout, followed) = watch::channel(RolloutStatus::default());
        let (failed_boot, failures) = watch::channel(None);
        let (reports, reported) = mpsc::unbounded_channel();
        let (commands, commanded) = mpsc::unbounded_channel();
        let settings = watch::Sender::new(Arc::new(settings));
        let endpoint = Box::new(endpoint);
        let (concurrency, settings_of_pool) = (Arc::default(), settings.clone());
        let budget = Arc::new(Mutex::new(Budget::new(settings.borrow().boot_cpu, Instant::now())));
        let scaling: Arc<ScalingBoard> = Arc::default();
        let resources = Arc::clone(context.resources());
        let shared = PoolShared {
            settings: settings_of_pool,
            pool,
            endpoint,
            probe,
            context,
            board,
            concurrency,
            advised: Arc::default(),
            reports,
            budget: Arc::clone(&budget),
            cache_flushes: Arc::default(),
            scaling: Arc::clone(&scaling),
            restarting: AtomicBool::new(false),
            proven: AtomicU64::new(0),
            failed_boot,
            trusts_helpers: AtomicBool::new(false),
            first_ports: Mutex::default(),
            obstacle: Mutex::default(),
        };
        tokio::spawn(PoolSupervisor::new(shared, commanded, reported, rollout).run());
        let failed_boot = failures;
        Self {
            settings,
            board: watched,
            rollout: followed,
            budget,
            failed_boot,
            scaling,
            resources,
            commands,
        }
    }

    /// The figures of this moment, in the order of the worker numbers. Without spares.
    pub fn snapshot(&self) -> Vec<WorkerSnapshot> {
        self.snapshot_of(|status| !status.spare)
    }

    /// The figures of the spares, those in the pool included.
    pub fn spares(&self) -> Vec<WorkerSnapshot> {
        self.snapshot_of(|status| status.spare)
    }

    fn snapshot_of(&self, is_one: impl Fn(&WorkerStatus) -> bool) -> Vec<WorkerSnapshot> {
        let now = Instant::now();
        let board = self.board.borrow().clone();
        board.iter().filter(|status| is_one(status)).map(|status| status.snapshot(now)).collect()
    }

    /// The state of the restart in progress, or the result of the last one.
    pub fn rollout(&self) -> RolloutSnapshot {
        self.rollout.borrow().snapshot(Instant::now())
    }

    /// The cost of boots after deaths.
    pub fn boots(&self) -> Boots {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner).boots()
    }

    /// How many workers there should be, if Hostler finds the number.
    pub fn scaling(&self) -> Option<ScalingSnapshot> {
        self.scaling.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The memory for the workers of all pools of this Hostler.
    pub fn worker_memory(&self) -> WorkerMemory {
        self.resources.memory()
    }

    /// Replaces all workers, one at a time. Each new worker boots, gets ready and joins the pool; then the old one leaves
    /// and finishes its requests.
    ///
    /// If a new worker does not get ready, the restart ends there and the remaining old workers stay. The restart begins
    /// with the call and goes on if the future is dropped. A call during a restart joins that restart, but every worker
    /// that booted before the call is replaced.
    ///
    /// Errors: [`RestartError`], if not all workers were replaced.
    pub fn restart(&self) -> impl Future<Output = Result<Restarted, RestartError>> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        let sent = self.commands.send(SupervisorCommand::Restart(answer));
        async move {
            match sent {
                Ok(()) => answered.await.unwrap_or(Err(RestartError::Stopping)),
                Err(_) => Err(RestartError::Stopping),
            }
        }
    }

    /// Like [`Self::restart`], but a new worker that is booting for an earlier restart is dismissed: its code is not the newest.
    pub fn restart_anew(&self) -> NewRestart {
        let ((answer, ended), (reached, replaced)) = (oneshot::channel(), oneshot::channel());
        self.command(SupervisorCommand::RestartAnew { answer, reached });
        NewRestart { replaced, ended }
    }

    /// The last boot, if it has failed. `None` again when a worker has become ready since.
    pub fn failed_boot(&self) -> watch::Receiver<Option<Arc<FailedBoot>>> {
        self.failed_boot.clone()
    }

    /// Waits until one worker has failed to boot this often in a row, while no worker has ever worked. For ever if one has.
    pub async fn never_ready(&self, tries: u32) -> NeverReady {
        let hopeless =
            self.board.clone().wait_for(|board| failed_boot::is_hopeless(board, tries)).await.is_ok();
        let boots = failed_boot::failed_boots(&self.board.borrow());
        let last = self.failed_boot.borrow().clone();
        match last.filter(|_| hopeless) {
            Some(last) => NeverReady { boots, last },
            // All worker tasks have ended, because this Hostler stops.
            None => std::future::pending().await,
        }
    }

    /// Whether no worker works now and one has failed to boot this often in a row.
    pub fn does_not_boot(&self, tries: u32) -> bool {
        failed_boot::does_not_boot(&self.board.borrow(), tries)
    }

    /// Takes a profile or a heap snapshot of the worker with this number; without a number, of the busiest one. What comes of it is read from the
    /// channel. The inspection ends if the channel is dropped. A channel that ends without a result means that the workers are being stopped.
    pub fn inspect(&self, worker: Option<usize>, kind: InspectionKind) -> mpsc::Receiver<InspectionEvent> {
        let (order, events) = InspectionOrder::new(kind);
        self.command(SupervisorCommand::Inspect(worker, order));
        events
    }

    /// Takes one worker out of rotation, or puts it back. A worker that comes back first finishes its requests, for one second at most. A
    /// worker that dies or is replaced meanwhile is in rotation again after its boot.
    ///
    /// Errors: a sentence for the operator, if it is not possible for this worker now.
    pub fn rotate(
        &self,
        worker: usize,
        rotation: Rotation,
    ) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        self.command(SupervisorCommand::Rotate(RotationOrder { worker, rotation, answer }));
        async move { answered.await.unwrap_or_else(|_| Err("the workers are being stopped".into())) }
    }

    /// The pool ends soon: drained workers come back into rotation if no other one serves. Nothing else would serve the requests that wait.
    pub fn end_drains(&self) {
        self.command(SupervisorCommand::EndDrains);
    }

    /// Replaces one worker: a new one boots and takes over, then the old one finishes its requests and stops.
    pub fn replace(&self, worker: usize) {
        self.command(SupervisorCommand::Replace(worker));
    }

    /// Applies new settings as far as possible without a restart. Returns whether the rest needs a [`Self::restart`].
    ///
    /// A worker that crashes before that restart boots with the new settings. One that crashes during the restart boots
    /// with the settings that it was last ready with, because it is not known yet whether the new ones work.
    pub fn update(&self, settings: WorkerSettings) -> SettingsChange {
        let mut change = SettingsChange::None;
        self.settings.send_if_modified(|current| {
            change = current.change_to(&settings);
            if change != SettingsChange::None {
                *current = Arc::new(settings);
            }
            change != SettingsChange::None
        });
        change
    }

    /// Whether [`Self::update`] with these settings would need a [`Self::restart`]. Changes nothing.
    pub fn must_restart_for(&self, settings: &WorkerSettings) -> bool {
        self.settings.borrow().change_to(settings) == SettingsChange::NeedsRestart
    }

    /// Waits until one worker is ready. Returns false if all have stopped.
    pub async fn ready(&self) -> bool {
        self.until(|board| is_any_ready(board) || board.iter().all(is_stopped)).await;
        is_any_ready(&self.board.borrow())
    }

    /// Waits until every worker is ready. Returns false if one has stopped.
    pub async fn all_ready(&self) -> bool {
        self.until(|board| is_complete(board) || regulars(board).any(is_stopped)).await;
        is_complete(&self.board.borrow())
    }

    /// Takes the workers out of the pool and stops them gracefully. Returns when the last process is gone.
    pub async fn stop(&self) {
        self.command(SupervisorCommand::Stop);
        self.stopped().await;
    }

    /// Kills the workers. May be called during a [`Self::stop`].
    pub fn kill_now(&self) {
        self.command(SupervisorCommand::Kill);
    }

    /// Waits until no worker is left, after a [`Self::stop`] or [`Self::kill_now`] of any caller.
    pub async fn stopped(&self) {
        self.until(|board| board.iter().all(is_stopped)).await;
    }

    /// A request of this member has taken longer than `hang_timeout`. The worker is killed and replaced.
    pub fn hung(&self, member: MemberId) {
        self.command(SupervisorCommand::Hung(member));
    }

    fn command(&self, command: SupervisorCommand) {
        // An error means that all workers have stopped, so the command has no effect.
        let _ = self.commands.send(command);
    }

    async fn until(&self, is_so: impl FnMut(&Vec<WorkerStatus>) -> bool) {
        // An error means that all worker tasks have ended.
        let _ = self.board.clone().wait_for(is_so).await;
    }
}

fn is_any_ready(board: &[WorkerStatus]) -> bool {
    board.iter().any(|status| status.state == WorkerState::Ready)
}

/// Without successors on probation and without workers that leave.
fn regulars(board: &[WorkerStatus]) -> impl Iterator<Item = &WorkerStatus> {
    board.iter().filter(|status| status.role == PoolRole::Regular)
}

fn is_complete(board: &[WorkerStatus]) -> bool {
    regulars(board).all(|status| status.state == WorkerState::Ready)
}

fn is_stopped(status: &WorkerStatus) -> bool {
    status.state == WorkerState::Stopped
}
