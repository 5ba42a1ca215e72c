//! What the task of one worker knows of it. Decides nothing.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hostler_dispatch::{MemberId, Membership};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::inspection::Inspection;
use crate::boot_gate::BootTurn;
use crate::cpus::CpuUser;
use crate::leaving::Leaving;
use crate::lifecycle::{Lifecycle, PoolRole};
use crate::log::WorkerLog;
use crate::news::{NewsReceiver, NewsSender};
use crate::rollout::WorkerTaskId;
use crate::running::{PortInUse, RunningProcess};
use crate::settings::WorkerSettings;
use crate::shared::{PoolShared, WorkerCommand};
use crate::snapshot::WorkerStatus;
use crate::start_files::StartLook;

/// What a new worker task gets.
pub struct WorkerSpec {
    pub task: WorkerTaskId,
    /// The worker's number.
    pub index: usize,
    pub role: PoolRole,
    /// How many restarts had been ordered when it was started.
    pub release: u64,
    /// How many times a worker of this number has been started, by any worker task.
    pub starts: Arc<AtomicU64>,
    /// Why a worker of this number was last recycled.
    pub recycled: Option<Arc<str>>,
}

/// The state of one worker's task.
pub struct WorkerTask<E> {
    pub(super) shared: Arc<PoolShared<E>>,
    pub(super) settings: watch::Receiver<Arc<WorkerSettings>>,
    pub(super) starts: Arc<AtomicU64>,
    pub(super) log: WorkerLog,
    pub(super) life: Lifecycle,
    /// Its process has had a request.
    pub(super) served: bool,
    /// The settings of the current boot.
    pub(super) booted_with: Option<Arc<WorkerSettings>>,
    /// The settings of the last boot that got ready.
    pub(super) known_good: Option<Arc<WorkerSettings>>,
    /// How many of its deaths were reported to the pool supervisor.
    pub(super) told_deaths: u64,
    /// Published after each change. Also holds what is to be published later.
    pub(super) status: WorkerStatus,
    pub(super) orders: mpsc::UnboundedReceiver<WorkerCommand>,
    /// The pool supervisor is gone: no more commands come.
    pub(super) abandoned: bool,
    pub(super) news_receiver: NewsReceiver,
    pub(super) news_sender: NewsSender,
    pub(super) asking: JoinSet<()>,
    pub(super) turn: Option<BootTurn>,
    /// What the last look at the files of a boot has found.
    pub(super) looked: Option<StartLook>,
    pub(super) running: Option<RunningProcess>,
    /// The last error of its last process says that this port was in use.
    pub(super) port_in_use: Option<PortInUse>,
    /// The CPUs of its process.
    pub(super) cpu: Option<CpuUser>,
    pub(super) membership: Option<Membership<E>>,
    pub(super) leaving: Leaving,
    /// The profile or heap snapshot that is being taken.
    pub(super) inspection: Option<Inspection>,
}

impl<E: Send + Sync + 'static> WorkerTask<E> {
    pub fn new(
        shared: Arc<PoolShared<E>>,
        spec: WorkerSpec,
        orders: mpsc::UnboundedReceiver<WorkerCommand>,
    ) -> Self {
        let log =
            WorkerLog { sink: shared.context.log(), pool: shared.pool.name().into(), worker: spec.index };
        let (news_sender, news_receiver) = NewsSender::pair(0);
        let mut settings = shared.settings.subscribe();
        let current = settings.borrow_and_update().clone();
        let mut status = WorkerStatus::new(spec.task, spec.index, spec.role, spec.release);
        status.recycled = spec.recycled;
        Self {
            settings,
            starts: spec.starts,
            log,
            life: Lifecycle::new(current, spec.role, fastrand::Rng::new()),
            served: false,
            booted_with: None,
            known_good: None,
            told_deaths: 0,
            status,
            orders,
            abandoned: false,
            news_receiver,
            news_sender,
            asking: JoinSet::new(),
            turn: None,
            looked: None,
            running: None,
            port_in_use: None,
            cpu: None,
            membership: None,
            leaving: Leaving::default(),
            inspection: None,
            shared,
        }
    }

    /// The status before the worker runs.
    pub fn status(&self) -> WorkerStatus {
        self.status.clone()
    }

    /// Its member in the pool, also after it has retired.
    pub(super) fn member(&self) -> Option<MemberId> {
        self.membership.as_ref().map(Membership::id).or(self.leaving.newest())
    }
}
