//! Hires and retires the keepers of one pool as its plan says, and tells the plan what became of them.
//! It decides nothing itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::crew::{Crew, Order};
use super::keeper::{Keeper, Post};
use super::lifecycle::Standing;
use super::log::{WorkerEvent, WorkerLog};
use super::recycling::{self, Reason, Wear};
use super::rollout::{Action, Cause, Event, Heard, KeeperId, Plan, RestartError, Role};
use super::settings::{Recycling, Spares, WorkerSettings};
use super::snapshot::{RolloutStatus, WorkerState, resident_bytes};
use super::supervisor::Restarted;
use crate::dispatch::MemberId;

/// What the program may command.
#[derive(Debug)]
pub(super) enum Command {
    Stop,
    Kill,
    Hung(MemberId),
    Restart(oneshot::Sender<Result<Restarted, RestartError>>),
}

pub(super) struct Foreman<E> {
    crew: Arc<Crew<E>>,
    plan: Plan,
    settings: watch::Receiver<Arc<WorkerSettings>>,
    commands: mpsc::UnboundedReceiver<Command>,
    reports: mpsc::UnboundedReceiver<(KeeperId, Heard)>,
    keepers: BTreeMap<KeeperId, mpsc::UnboundedSender<Order>>,
    /// How many times a worker of each number has been started.
    births: Vec<Arc<AtomicU64>>,
    waiting: Vec<Waiting>,
    rollout: watch::Sender<RolloutStatus>,
    looks: Interval,
    /// The supervisor was dropped: no more commands.
    abandoned: bool,
    ending: bool,
}

/// How many workers there are to be, and how many spares.
fn wanted(settings: &WorkerSettings) -> (usize, Spares) {
    (settings.count, settings.spares)
}

/// Somebody who waits for the end of a restart.
struct Waiting {
    release: u64,
    since: Instant,
    answer: oneshot::Sender<Result<Restarted, RestartError>>,
}

impl<E: Send + Sync + 'static> Foreman<E> {
    /// Hires the first workers.
    pub fn new(
        crew: Crew<E>,
        commands: mpsc::UnboundedReceiver<Command>,
        reports: mpsc::UnboundedReceiver<(KeeperId, Heard)>,
        rollout: watch::Sender<RolloutStatus>,
    ) -> Self {
        let mut looks = interval(recycling::LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut settings = crew.settings.subscribe();
        let (count, spares) = wanted(&settings.borrow_and_update());
        let mut foreman = Self {
            crew: Arc::new(crew),
            plan: Plan::default(),
            settings,
            commands,
            reports,
            keepers: BTreeMap::new(),
            births: vec![],
            waiting: vec![],
            rollout,
            looks,
            abandoned: false,
            ending: false,
        };
        foreman.decide(Event::Count(count));
        foreman.decide(Event::Spares(spares));
        foreman
    }

    /// Until all have been stopped.
    pub async fn run(mut self) {
        while !self.ending || !self.keepers.is_empty() {
            let recycles = !self.ending && self.settings.borrow().recycling != Recycling::default();
            let deadline = self.plan.deadline(Instant::now());
            tokio::select! {
                biased;
                command = self.commands.recv(), if !self.abandoned => self.obey(command),
                Some((keeper, heard)) = self.reports.recv() => {
                    if matches!(heard, Heard::Ended { .. }) {
                        self.keepers.remove(&keeper);
                    }
                    self.decide(Event::Heard(keeper, heard));
                }
                Ok(()) = self.settings.changed() => {
                    let (count, spares) = wanted(&self.settings.borrow_and_update());
                    self.decide(Event::Count(count));
                    self.decide(Event::Spares(spares));
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.decide(Event::Tick);
                }
                _ = self.looks.tick(), if recycles => self.look(),
            }
        }
    }

    fn obey(&mut self, command: Option<Command>) {
        match command {
            Some(Command::Restart(answer)) if self.ending => drop(answer.send(Err(RestartError::Stopping))),
            Some(Command::Restart(answer)) => {
                if !self.plan.is_restarting() {
                    let workers = self.plan.progress().1;
                    self.log(0).event(WorkerEvent::RestartBegan { workers });
                    self.rollout.send_modify(|rollout| rollout.since = Some(Instant::now()));
                }
                let release = self.plan.release() + 1;
                self.waiting.push(Waiting { release, since: Instant::now(), answer });
                self.decide(Event::Restart);
            }
            Some(Command::Hung(member)) => self.order_all(&Order::Hung(member)),
            Some(Command::Stop) => self.end(&Order::Stop),
            Some(Command::Kill) => self.end(&Order::Kill),
            None => {
                self.abandoned = true;
                self.end(&Order::Kill);
            }
        }
    }

    fn end(&mut self, order: &Order) {
        self.ending = true;
        self.decide(Event::Stop);
        self.order_all(order);
    }

    fn decide(&mut self, event: Event) {
        let (plan, actions) = std::mem::take(&mut self.plan).step(event, Instant::now());
        self.plan = plan;
        // Before anybody is told that a restart has ended.
        let (done, total) = self.plan.progress();
        let replacing = self.plan.replacing();
        self.crew.restarting.store(self.plan.is_restarting(), Ordering::Relaxed);
        self.rollout.send_modify(|rollout| {
            (rollout.done, rollout.total, rollout.replacing) = (done, total, replacing);
        });
        for action in actions {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Hire { keeper, index, role } => self.hire(keeper, index, role),
            Action::StepIn(keeper) => self.order(keeper, Order::StepIn),
            Action::StepBack(keeper) => self.order(keeper, Order::StepBack),
            Action::Retire { keeper, why } => self.order(keeper, Order::Retire(why)),
            Action::Reached(release) => self.reached(release),
            Action::Fail(error) => {
                self.log(0).event(WorkerEvent::RestartFailed { why: error.to_string() });
                self.close_rollout(Err(error.to_string()));
                for waiting in self.waiting.drain(..) {
                    let _ = waiting.answer.send(Err(error.clone()));
                }
            }
            Action::KeepOld { index, reason, how, pause } => {
                let reason = reason.to_string();
                self.log(index).event(WorkerEvent::NotRecycled { reason, how, pause });
            }
        }
    }

    fn hire(&mut self, keeper: KeeperId, index: usize, role: Role) {
        while self.births.len() < index {
            self.births.push(Arc::default());
        }
        let before = |board: &[_]| {
            let predecessor = board.iter().rfind(|place: &&super::snapshot::Status| place.index == index);
            predecessor.and_then(|place| place.recycled.clone())
        };
        let post = Post {
            keeper,
            index,
            standing: match role {
                Role::Regular => Standing::Regular,
                Role::Successor(_) => Standing::Successor,
                Role::Spare => Standing::Spare,
            },
            release: self.plan.release(),
            births: Arc::clone(&self.births[index - 1]),
            recycled: match role {
                Role::Successor(Cause::Recycled(reason)) => Some(reason.to_string().into()),
                _ => before(&self.crew.board.borrow()),
            },
        };
        if post.standing == Standing::Spare {
            self.log(index).event(WorkerEvent::SpareHired);
        }
        let (orders, received) = mpsc::unbounded_channel();
        let hired = Keeper::new(Arc::clone(&self.crew), post, received);
        self.crew.board.send_modify(|board| {
            let place = board.partition_point(|place| place.index <= index);
            board.insert(place, hired.status());
        });
        self.keepers.insert(keeper, orders);
        tokio::spawn(hired.run());
    }

    /// All workers are at least of this generation.
    fn reached(&mut self, release: u64) {
        let workers = self.plan.progress().1;
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

    /// Who has had its time.
    fn look(&mut self) {
        let limits = self.settings.borrow().recycling;
        let due: Vec<_> = {
            let members = self.crew.pool.snapshot().members;
            let board = self.crew.board.borrow();
            let at_work = board.iter().filter(|place| match place.standing {
                Standing::Regular => place.state == WorkerState::Ready,
                Standing::Spare => matches!(place.state, WorkerState::Ready | WorkerState::Standby),
                Standing::Successor | Standing::Retired => false,
            });
            at_work
                .filter_map(|place| {
                    let member = members.iter().find(|member| Some(member.id) == place.member);
                    let reason: Option<Reason> = recycling::reason(
                        limits,
                        Wear {
                            requests: member.map_or(0, |member| member.granted),
                            age: place.started.map_or(Duration::ZERO, |started| started.elapsed()),
                            memory: place
                                .pid
                                .filter(|_| limits.max_memory.is_some())
                                .and_then(resident_bytes),
                            share: place.share,
                        },
                    );
                    Some((place.keeper, reason?))
                })
                .collect()
        };
        for (keeper, reason) in due {
            self.decide(Event::Due(keeper, reason));
        }
    }

    fn order(&self, keeper: KeeperId, order: Order) {
        if let Some(orders) = self.keepers.get(&keeper) {
            // One that has ended by itself meanwhile needs no orders.
            let _ = orders.send(order);
        }
    }

    fn order_all(&self, order: &Order) {
        for orders in self.keepers.values() {
            let _ = orders.send(order.clone());
        }
    }

    fn log(&self, worker: usize) -> WorkerLog {
        WorkerLog { sink: self.crew.yard.log(), pool: self.crew.pool.name().into(), worker }
    }
}
