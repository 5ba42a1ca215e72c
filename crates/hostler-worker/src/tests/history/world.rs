//! A pool with its plan, its workers, their processes and its clients, in virtual time. Real are the pool, the plan, the lifecycles, the choice
//! of a worker to drain and the budget of boots.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{OccupancyLimits, Pool, PoolSettings};
use tokio::runtime::Runtime;
use tokio::time::{Instant, advance};

use super::clients::Client;
use super::process::{News, TestProcess};
use super::rules::{Checked, Coverage, ensure};
use super::steps::{Code, History};
use super::worker::{Order, Worker};
use crate::boot_gate::Turns;
use crate::budget::Budget;
use crate::lifecycle::{LifecycleEvent, PoolRole, SETTLED_AFTER};
use crate::rollout::{Plan, RolloutAction, RolloutEvent, WorkerReport, WorkerRole, WorkerTaskId};
use crate::settings::WorkerSettings;
use crate::snapshot::WorkerStatus;

/// More events than this in one history mean that it never comes to rest.
const MOST_EVENTS: usize = 50_000;
/// While a member gets no requests because it could not be reached, the pool is asked so often.
const GLANCE: Duration = Duration::from_millis(50);

/// The settings and the code of one release.
#[derive(Debug)]
pub struct Deploy {
    pub number: u64,
    pub settings: Arc<WorkerSettings>,
    pub code: Code,
}

pub struct World<'a> {
    runtime: &'a Runtime,
    pub pool: Pool<u64>,
    pub plan: Plan,
    pub workers: BTreeMap<WorkerTaskId, Worker>,
    pub reports: VecDeque<(WorkerTaskId, WorkerReport)>,
    pub processes: BTreeMap<u64, TestProcess>,
    pub clients: Vec<Client>,
    pub dice: fastrand::Rng,
    /// What boots from now on.
    pub deploy: Arc<Deploy>,
    /// What a failed restart goes back to.
    pub last_good: Arc<Deploy>,
    budget: Budget,
    /// Code of all releases below this number is known to work.
    pub proven: u64,
    /// Workers that wait for their turn to boot, and the numbers of these boots.
    pub lines: [VecDeque<(WorkerTaskId, u64)>; 2],
    pub has_room: bool,
    /// Processes fail by chance.
    pub is_flaky: bool,
    pub is_ending: bool,
    /// The releases of the restarts that have not ended.
    pub restarts: Vec<u64>,
    /// The last restart has replaced all workers.
    pub has_replaced: bool,
    pub wanted: usize,
    /// The least number of members, once all workers have joined.
    pub floor: usize,
    pub is_wild: bool,
    next_pid: u64,
    events: usize,
    pub seen: Coverage,
    /// The first rule that was broken.
    pub error: Option<String>,
}

impl<'a> World<'a> {
    pub fn new(history: &History, runtime: &'a Runtime) -> Self {
        let settings = Arc::new(history.settings.clone());
        let (wanted, spares) = (settings.count, settings.spares);
        let deploy = Arc::new(Deploy { number: 0, code: history.code, settings });
        let queue = PoolSettings {
            queue_limit: 1_000,
            policy: hostler_dispatch::Policy::Fifo,
            ..PoolSettings::default()
        };
        let mut world = Self {
            runtime,
            pool: Pool::new("history", queue),
            plan: Plan::default(),
            workers: BTreeMap::new(),
            reports: VecDeque::new(),
            processes: BTreeMap::new(),
            clients: vec![],
            dice: fastrand::Rng::with_seed(history.seed),
            budget: Budget::new(deploy.settings.boot_cpu, Instant::now()),
            last_good: deploy.clone(),
            deploy,
            proven: 0,
            lines: Default::default(),
            has_room: history.has_room,
            is_flaky: history.is_wild,
            is_ending: false,
            restarts: vec![],
            has_replaced: false,
            wanted,
            floor: 0,
            is_wild: history.is_wild,
            next_pid: 0,
            events: 0,
            seen: Coverage::default(),
            error: None,
        };
        world.decide(RolloutEvent::Count(wanted));
        world.decide(RolloutEvent::Spares(spares));
        world
    }

    /// Keeps the first rule that was broken.
    pub fn note(&mut self, checked: Checked) {
        if let Err(error) = checked {
            self.error.get_or_insert(error);
        }
    }

    pub fn is_restarting(&self) -> bool {
        self.plan.is_restarting()
    }

    pub fn line_of(&mut self, kind: Turns) -> &mut VecDeque<(WorkerTaskId, u64)> {
        &mut self.lines[kind as usize]
    }

    pub fn charge(&mut self, cost: Duration) {
        self.budget.take(cost, self.deploy.settings.boot_cpu, Instant::now());
    }

    pub fn owed(&mut self) -> Duration {
        self.budget.rest(self.deploy.settings.boot_cpu, Instant::now())
    }

    pub fn is_proven(&self, release: u64) -> bool {
        let is_settled = |worker: &Worker| {
            worker.status.release == release
                && worker.status.ready_at.is_some_and(|at| at.elapsed() >= SETTLED_AFTER)
        };
        self.proven > release || self.workers.values().any(is_settled)
    }

    pub fn report(&mut self, task: WorkerTaskId, report: WorkerReport) {
        self.reports.push_back((task, report));
    }

    pub fn order(&mut self, task: WorkerTaskId, order: Order) {
        if let Some(worker) = self.workers.get_mut(&task) {
            worker.orders.push_back(order);
        }
    }

    pub fn order_all(&mut self, order: &Order) {
        self.workers.values_mut().for_each(|worker| worker.orders.push_back(order.clone()));
    }

    pub fn with_process(&mut self, pid: Option<u64>, act: impl FnOnce(&mut TestProcess, Instant)) {
        if let Some(process) = pid.and_then(|pid| self.processes.get_mut(&pid)) {
            act(process, Instant::now());
        }
    }

    /// Starts a process. `None`: it could not be started.
    pub fn start_process(&mut self, code: Code) -> Option<u64> {
        if self.is_flaky && self.dice.u8(..) < 8 {
            return None;
        }
        self.next_pid += 1;
        let process = TestProcess::new(code, self.is_flaky, &mut self.dice, Instant::now());
        self.processes.insert(self.next_pid, process);
        Some(self.next_pid)
    }

    /// The plan decides, as `pool_supervisor` lets it.
    pub fn decide(&mut self, event: RolloutEvent) {
        let (plan, actions) = std::mem::take(&mut self.plan).step(event, Instant::now());
        self.plan = plan;
        for action in actions {
            match action {
                RolloutAction::Start { task, index, role } => self.start_worker(task, index, &role),
                RolloutAction::StepIn(task) => {
                    self.seen.step_ins += 1;
                    self.order(task, Order::StepIn);
                }
                RolloutAction::StepBack(task) => self.order(task, Order::StepBack),
                RolloutAction::Undrain(task) => self.order(task, Order::Undrain),
                RolloutAction::Retire { task, .. } => self.order(task, Order::Retire),
                RolloutAction::Reached(release) => self.reached(release),
                RolloutAction::Fail(_) => self.failed(),
                RolloutAction::KeepOld { .. } => {}
            }
        }
    }

    fn reached(&mut self, release: u64) {
        let is_one = self.restarts.iter().any(|one| *one <= release);
        self.note(ensure(is_one, || {
            format!("release {release} is reached, and no restart was ordered for it")
        }));
        self.restarts.retain(|one| *one > release);
        if release == self.plan.release() {
            self.seen.restarts += 1;
            self.last_good = self.deploy.clone();
            self.has_replaced = true;
        }
    }

    /// All restarts have failed. The reload takes its settings back.
    fn failed(&mut self) {
        self.seen.failed_restarts += u64::from(!self.is_ending);
        self.restarts.clear();
        self.deploy = self.last_good.clone();
        self.has_replaced = false;
        let settings = self.deploy.settings.clone();
        self.order_all(&Order::Adopt(settings));
    }

    fn start_worker(&mut self, task: WorkerTaskId, index: usize, role: &WorkerRole) {
        let role = match role {
            WorkerRole::Regular => PoolRole::Regular,
            WorkerRole::Successor(_) => PoolRole::Successor,
            WorkerRole::Spare => PoolRole::Spare,
        };
        let status = WorkerStatus::new(task, index, role, self.plan.release());
        let chance = fastrand::Rng::with_seed(self.dice.u64(..));
        let mut worker = Worker::new(status, self.deploy.settings.clone(), chance);
        self.ask_turn(&mut worker);
        self.workers.insert(task, worker);
    }

    /// Time passes, and everything happens that is due.
    pub fn pass(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while self.error.is_none() {
            self.deliver();
            let Some(next) = self.next_due().filter(|at| *at <= until) else { break };
            self.advance_to(next);
            self.fire();
            self.events += 1;
            self.note(ensure(self.events < MOST_EVENTS, || "it never comes to rest".into()));
        }
        self.advance_to(until);
        self.deliver();
    }

    fn next_due(&self) -> Option<Instant> {
        let limit = self.deploy.settings.hang_timeout;
        let processes = self.processes.values().filter_map(TestProcess::next);
        let clients = self.clients.iter().filter_map(|client| client.next(limit));
        let workers = self.workers.values().filter_map(|worker| worker.life.deadline());
        let all_members = OccupancyLimits { waiting: 0, members: usize::MAX, slots: 0 };
        let members = || self.pool.occupancy(all_members, |_| ()).members;
        let is_backed_off = || members().iter().any(|member| member.out && !member.left);
        let waits = self.clients.iter().any(Client::waits) && is_backed_off();
        let glance = waits.then(|| Instant::now() + GLANCE);
        let all = processes.chain(clients).chain(workers).chain(self.plan.deadline()).chain(glance);
        all.min()
    }

    fn advance_to(&self, at: Instant) {
        let time = at.saturating_duration_since(Instant::now());
        self.runtime.block_on(async {
            advance(time).await;
            // The tasks of the pool that wait for the end of an ejection.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Everything happens that is due now.
    fn fire(&mut self) {
        let now = Instant::now();
        let pids: Vec<_> = self.processes.keys().copied().collect();
        for pid in pids {
            while let Some(news) = self.processes.get_mut(&pid).and_then(|process| process.happens(now)) {
                self.happens(pid, news);
            }
        }
        let limit = self.deploy.settings.hang_timeout;
        for index in 0..self.clients.len() {
            self.clients[index].finish(now);
            if let Some(member) = self.clients[index].is_overdue(limit, now) {
                self.order_all(&Order::Hung(member));
            }
        }
        let due = |(task, worker): (&WorkerTaskId, &Worker)| {
            worker.life.deadline().is_some_and(|at| at <= now).then_some(*task)
        };
        let tasks: Vec<_> = self.workers.iter().filter_map(due).collect();
        for task in tasks {
            self.apply(task, LifecycleEvent::Tick);
        }
        if self.plan.deadline().is_some_and(|at| at <= now) {
            self.decide(RolloutEvent::Tick);
        }
        self.look();
    }

    /// A process does something.
    pub fn happens(&mut self, pid: u64, news: News) {
        if matches!(news, News::Exited { .. }) {
            self.processes.remove(&pid);
        }
        if matches!(news, News::Exited { .. } | News::Orphaned) {
            for client in self.clients.iter_mut().filter(|client| client.process() == Some(pid)) {
                client.breaks(&self.pool);
                self.seen.sent_again += u64::from(client.waits());
            }
        }
        if let Some(worker) = self.workers.values_mut().find(|worker| worker.running == Some(pid)) {
            worker.news.push_back((pid, news));
        }
    }
}
