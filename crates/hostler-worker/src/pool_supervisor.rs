//! Starts and retires the worker tasks of one pool as its plan decides, and reports to the plan what happened. Decides
//! nothing itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hostler_dispatch::MemberId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::inspection::{self, InspectionOrder};
use super::lifecycle::PoolRole;
use super::log::{WorkerEvent, WorkerLog};
use super::recycling::{HeavyStart, LOOK, Reason};
use super::recycling_watch::RecyclingWatch;
use super::rollout::{
    Plan, Reached, ReplaceCause, RestartError, Restarted, RolloutAction, RolloutEvent, WorkerReport,
    WorkerRole, WorkerTaskId,
};
use super::rotation::{self, Rotation, RotationOrder};
use super::scaling::{Scaled, Scaler};
use super::settings::{Recycling, WorkerSettings};
use super::shared::{PoolShared, WorkerCommand};
use super::snapshot::{RolloutStatus, WorkerState, WorkerStatus};
use super::worker_task::{WorkerSpec, WorkerTask};

/// A command from the program.
#[derive(Debug)]
pub(super) enum SupervisorCommand {
    Stop,
    Kill,
    Hung(MemberId),
    Restart(oneshot::Sender<Result<Restarted, RestartError>>),
    RestartAnew { answer: oneshot::Sender<Result<Restarted, RestartError>>, reached: oneshot::Sender<()> },
    Inspect(Option<usize>, InspectionOrder),
    Rotate(RotationOrder),
    EndDrains,
    Replace(usize),
}

pub(super) struct PoolSupervisor<E> {
    shared: Arc<PoolShared<E>>,
    plan: Plan,
    settings: watch::Receiver<Arc<WorkerSettings>>,
    commands: mpsc::UnboundedReceiver<SupervisorCommand>,
    reports: mpsc::UnboundedReceiver<(WorkerTaskId, WorkerReport)>,
    tasks: BTreeMap<WorkerTaskId, mpsc::UnboundedSender<WorkerCommand>>,
    /// How many times a worker of each number has been started.
    starts: Vec<Arc<AtomicU64>>,
    waiting: Vec<RestartWaiter>,
    rollout: watch::Sender<RolloutStatus>,
    looks: Interval,
    recycling_watch: RecyclingWatch,
    /// The worker task that was told to open the inspector, and its start.
    inspected: Option<(WorkerTaskId, u64)>,
    scaler: Scaler,
    /// The `Supervisor` was dropped: no more commands come.
    abandoned: bool,
    ending: bool,
}

/// A caller that waits for the end of a restart.
struct RestartWaiter {
    release: u64,
    since: Instant,
    answer: oneshot::Sender<Result<Restarted, RestartError>>,
    /// Hears when every worker has been replaced, also while old ones finish their requests.
    reached: Option<oneshot::Sender<()>>,
}

impl<E: Send + Sync + 'static> PoolSupervisor<E> {
    /// Starts the first workers.
    pub fn new(
        shared: PoolShared<E>,
        commands: mpsc::UnboundedReceiver<SupervisorCommand>,
        reports: mpsc::UnboundedReceiver<(WorkerTaskId, WorkerReport)>,
        rollout: watch::Sender<RolloutStatus>,
    ) -> Self {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut settings = shared.settings.subscribe();
        let spares = settings.borrow_and_update().spares;
        let scaler = Scaler::new(&shared);
        let count = scaler.count();
        let mut pool_supervisor = Self {
            shared: Arc::new(shared),
            plan: Plan::default(),
            settings,
            commands,
            reports,
            tasks: BTreeMap::new(),
            starts: vec![],
            waiting: vec![],
            rollout,
            looks,
            recycling_watch: RecyclingWatch::default(),
            inspected: None,
            scaler,
            abandoned: false,
            ending: false,
        };
        pool_supervisor.decide(RolloutEvent::Count(count));
        pool_supervisor.decide(RolloutEvent::Spares(spares));
        pool_supervisor
    }

    /// Runs until all workers have stopped.
    pub async fn run(mut self) {
        while !self.ending || !self.tasks.is_empty() {
            let recycles = !self.ending && self.settings.borrow().recycling != Recycling::default();
            let deadline = self.plan.deadline();
            tokio::select! {
                biased;
                command = self.commands.recv(), if !self.abandoned => self.obey(command),
                Some((task, heard)) = self.reports.recv() => {
                    if matches!(heard, WorkerReport::Ended { .. }) {
                        self.tasks.remove(&task);
                    }
                    self.scaler.heard(&self.shared, &heard);
                    self.decide(RolloutEvent::Heard(task, heard));
                }
                Ok(()) = self.settings.changed() => {
                    let spares = self.settings.borrow_and_update().spares;
                    if self.settings.borrow().recycling.max_memory.is_none() {
                        self.show_heavy_start(None);
                    }
                    let scaled = self.scaler.adopt(&self.shared);
                    self.rescale(scaled);
                    self.decide(RolloutEvent::Spares(spares));
                }
                call = self.scaler.next(), if !self.ending => {
                    let scaled = self.scaler.act(&self.shared, call);
                    self.rescale(scaled);
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.decide(RolloutEvent::Tick);
                }
                _ = self.looks.tick(), if recycles => self.look(),
            }
        }
    }

    /// The pool has another number of workers from now on.
    fn rescale(&mut self, scaled: Option<Scaled>) {
        let Some(Scaled { workers, why }) = scaled else { return };
        self.log(0).event(WorkerEvent::Scaled { workers, why: why.to_string() });
        self.decide(RolloutEvent::Count(workers));
    }

    fn obey(&mut self, command: Option<SupervisorCommand>) {
        match command {
            Some(SupervisorCommand::Restart(answer) | SupervisorCommand::RestartAnew { answer, .. })
                if self.ending =>
            {
                drop(answer.send(Err(RestartError::Stopping)))
            }
            Some(SupervisorCommand::Restart(answer)) => {
                self.restart(RolloutEvent::Restart, answer, None);
            }
            Some(SupervisorCommand::RestartAnew { answer, reached }) => {
                self.restart(RolloutEvent::RestartAnew, answer, Some(reached));
            }
            Some(SupervisorCommand::Hung(member)) => self.order_all(&WorkerCommand::Hung(member)),
            Some(SupervisorCommand::Inspect(worker, order)) => self.inspect(worker, order),
            Some(SupervisorCommand::Rotate(order)) => self.rotate(order),
            Some(SupervisorCommand::EndDrains) => self.end_drains(),
            Some(SupervisorCommand::Replace(worker)) => self.replace(worker),
            Some(SupervisorCommand::Stop) => self.end(&WorkerCommand::Stop),
            Some(SupervisorCommand::Kill) => self.end(&WorkerCommand::Kill),
            None => {
                self.abandoned = true;
                self.end(&WorkerCommand::Kill);
            }
        }
    }

    fn inspect(&self, worker: Option<usize>, order: InspectionOrder) {
        let chosen =
            inspection::choose(&self.shared.board.borrow(), self.shared.pool.name(), worker, order.kind);
        match chosen {
            Ok(task) => {
                self.shared.board.send_modify(|board| inspection::show(board, task, order.kind));
                self.order(task, WorkerCommand::Inspect(order));
            }
            Err(why) => order.refuse(why),
        }
    }

    fn rotate(&self, RotationOrder { worker, rotation, answer }: RotationOrder) {
        let chosen = rotation::choose(&self.shared.board.borrow(), self.shared.pool.name(), worker, rotation);
        let told = chosen.map(|task| {
            self.shared.board.send_modify(|board| rotation::show(board, task, rotation));
            self.order(task, WorkerCommand::Rotate(rotation));
        });
        // The caller may have left.
        let _ = answer.send(told);
    }

    fn end_drains(&self) {
        if !rotation::has_server(&self.shared.board.borrow()) {
            self.order_all(&WorkerCommand::Rotate(Rotation::In));
        }
    }

    /// Replaces one worker, as if it was due for recycling.
    fn replace(&mut self, worker: usize) {
        let task = inspection::regular(&self.shared.board.borrow(), worker).map(|place| place.task);
        if let Some(task) = task {
            self.decide(RolloutEvent::Due(task, Reason::Inspected));
        }
    }

    fn restart(
        &mut self,
        event: RolloutEvent,
        answer: oneshot::Sender<Result<Restarted, RestartError>>,
        reached: Option<oneshot::Sender<()>>,
    ) {
        if !self.plan.is_restarting() {
            let workers = self.plan.progress().total;
            self.log(0).event(WorkerEvent::RestartBegan { workers });
            self.rollout.send_modify(|rollout| rollout.since = Some(Instant::now()));
        }
        let release = self.plan.release() + 1;
        self.waiting.push(RestartWaiter { release, since: Instant::now(), answer, reached });
        self.decide(event);
    }

    fn end(&mut self, order: &WorkerCommand) {
        self.ending = true;
        self.decide(RolloutEvent::Stop);
        self.order_all(order);
    }

    fn decide(&mut self, event: RolloutEvent) {
        let (plan, actions) = std::mem::take(&mut self.plan).step(event, Instant::now());
        self.plan = plan;
        // Publish the result before the callers learn that the restart has ended.
        let Reached { replaced: done, total, .. } = self.plan.progress();
        let replacing = self.plan.replacing();
        self.shared.restarting.store(self.plan.is_restarting(), Ordering::Relaxed);
        self.rollout.send_modify(|rollout| {
            (rollout.done, rollout.total, rollout.replacing) = (done, total, replacing);
        });
        for action in actions {
            self.perform(action);
        }
        if done == total {
            for reached in self.waiting.iter_mut().filter_map(|waiting| waiting.reached.take()) {
                // A caller that has left needs no answer.
                let _ = reached.send(());
            }
        }
        self.pass_inspector();
    }

    /// The worker that serves as the first one opens the inspector, as soon as no other has its address.
    fn pass_inspector(&mut self) {
        if self.settings.borrow().development.inspector.is_none() {
            return;
        }
        let newest = {
            let board = self.shared.board.borrow();
            let mut first = board.iter().filter(|place| place.index == 1);
            match (first.next(), first.next()) {
                (Some(only), None) if only.state == WorkerState::Ready => Some((only.task, only.generation)),
                _ => None,
            }
        };
        if let Some((task, _)) = newest
            && newest != self.inspected
        {
            self.inspected = newest;
            self.order(task, WorkerCommand::OpenInspector);
        }
    }

    fn perform(&mut self, action: RolloutAction) {
        match action {
            RolloutAction::Start { task, index, role } => self.start_worker(task, index, role),
            RolloutAction::StepIn(task) => self.order(task, WorkerCommand::StepIn),
            RolloutAction::StepBack(task) => self.order(task, WorkerCommand::StepBack),
            RolloutAction::Undrain(task) => self.order(task, WorkerCommand::Rotate(Rotation::In)),
            RolloutAction::Retire { task, why } => self.order(task, WorkerCommand::Retire(why)),
            RolloutAction::Reached(release) => self.reached(release),
            RolloutAction::Fail(error) => {
                self.log(0).event(WorkerEvent::RestartFailed { why: error.to_string() });
                self.close_rollout(Err(error.to_string()));
                for waiting in self.waiting.drain(..) {
                    let _ = waiting.answer.send(Err(error.clone()));
                }
            }
            RolloutAction::KeepOld { index, reason, how, pause } => {
                let reason = reason.to_string();
                self.log(index).event(WorkerEvent::NotRecycled { reason, how, pause });
            }
        }
    }

    fn start_worker(&mut self, task: WorkerTaskId, index: usize, role: WorkerRole) {
        while self.starts.len() < index {
            self.starts.push(Arc::default());
        }
        let before = |board: &[_]| {
            let predecessor = board.iter().rfind(|place: &&WorkerStatus| place.index == index);
            predecessor.and_then(|place| place.recycled.clone())
        };
        let spec = WorkerSpec {
            task,
            index,
            role: match role {
                WorkerRole::Regular => PoolRole::Regular,
                WorkerRole::Successor(_) => PoolRole::Successor,
                WorkerRole::Spare => PoolRole::Spare,
            },
            release: self.plan.release(),
            starts: Arc::clone(&self.starts[index - 1]),
            recycled: match role {
                WorkerRole::Successor(ReplaceCause::Recycled(reason)) => Some(reason.to_string().into()),
                _ => before(&self.shared.board.borrow()),
            },
        };
        if spec.role == PoolRole::Spare {
            self.log(index).event(WorkerEvent::SpareStarted);
        }
        let (orders, received) = mpsc::unbounded_channel();
        let started = WorkerTask::new(Arc::clone(&self.shared), spec, received);
        self.shared.board.send_modify(|board| {
            let place = board.partition_point(|place| place.index <= index);
            board.insert(place, started.status());
        });
        self.tasks.insert(task, orders);
        tokio::spawn(started.run());
    }

    /// All workers are at least of this generation.
    fn reached(&mut self, release: u64) {
        let workers = self.plan.progress().total;
        if release == self.plan.release() {
            let since = self.rollout.borrow().since;
            let took = since.map_or(Duration::ZERO, |since| since.elapsed());
            let done = WorkerEvent::RestartDone { workers, took };
            self.close_rollout(Ok(done.to_string()));
            self.log(0).event(done);
        }
        for waiting in self.waiting.extract_if(.., |waiting| waiting.release <= release) {
            let _ = waiting.answer.send(Ok(Restarted { workers, took: waiting.since.elapsed() }));
        }
    }

    fn close_rollout(&self, result: Result<String, String>) {
        self.rollout.send_modify(|rollout| {
            rollout.since = None;
            rollout.last = Some((Instant::now(), result));
        });
    }

    /// Finds workers that are due for recycling.
    fn look(&mut self) {
        let limits = self.settings.borrow().recycling;
        let members = self.shared.pool.snapshot().members;
        let requests = |place: &WorkerStatus| {
            let member = members.iter().find(|member| Some(member.figures.id) == place.member);
            place.earlier_requests + member.map_or(0, |member| member.figures.granted)
        };
        let due = self.recycling_watch.due(limits, &self.shared.board.borrow(), requests);
        self.show_heavy_start(self.recycling_watch.heavy_start());
        for (task, reason) in due {
            self.decide(RolloutEvent::Due(task, reason));
        }
    }

    fn show_heavy_start(&self, heavy_start: Option<HeavyStart>) {
        self.rollout.send_modify(|rollout| rollout.heavy_start = heavy_start);
    }

    fn order(&self, task: WorkerTaskId, order: WorkerCommand) {
        if let Some(orders) = self.tasks.get(&task) {
            // A worker task that has ended meanwhile needs no command.
            let _ = orders.send(order);
        }
    }

    fn order_all(&self, order: &WorkerCommand) {
        for orders in self.tasks.values() {
            let _ = orders.send(order.clone());
        }
    }

    fn log(&self, worker: usize) -> WorkerLog {
        WorkerLog { sink: self.shared.context.log(), pool: self.shared.pool.name().into(), worker }
    }
}
