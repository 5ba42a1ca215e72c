//! One worker of a history: carries out what its real lifecycle decides, as `worker_task` does, with a process in virtual time.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use hostler_dispatch::{MemberId, Membership};
use tokio::time::Instant;

use super::process::News;
use super::rules::RememberedWorker;
use super::world::{Deploy, World};
use crate::boot_gate::Turns;
use crate::leaving::Leaving;
use crate::lifecycle::{Action, DeathReport, KillReason, Lifecycle, LifecycleEvent, LifecycleState};
use crate::rollout::{WorkerReport, WorkerTaskId};
use crate::settings::WorkerSettings;
use crate::snapshot::{WorkerState, WorkerStatus};

/// A command to one worker, on its way.
#[derive(Clone, Debug)]
pub enum Order {
    Stop,
    Kill,
    Retire,
    Hung(MemberId),
    StepIn,
    StepBack,
    Drain(Option<Duration>),
    Undrain,
    Snapshot(bool),
    Adopt(Arc<WorkerSettings>),
}

pub struct Worker {
    pub life: Lifecycle,
    /// What is published. Spares and successors are told apart by it, as in the program.
    pub status: WorkerStatus,
    pub orders: VecDeque<Order>,
    /// What it hears: of the boot with this number, or of the process with this number.
    pub news: VecDeque<(u64, News)>,
    /// The kind of the turn that it has.
    pub turn: Option<Turns>,
    pub running: Option<u64>,
    pub membership: Option<Membership<u64>>,
    pub leaving: Leaving,
    /// All that it has left has ended, and it does not know it yet.
    pub has_finished: bool,
    pub booted_with: Option<Arc<Deploy>>,
    known_good: Option<Arc<Deploy>>,
    served: bool,
    told_deaths: u64,
    /// What the rules remember.
    pub past: RememberedWorker,
}

impl Worker {
    pub fn new(status: WorkerStatus, settings: Arc<WorkerSettings>, chance: fastrand::Rng) -> Self {
        let role = status.role;
        Self {
            life: Lifecycle::new(settings, role, chance),
            orders: VecDeque::new(),
            news: VecDeque::new(),
            turn: None,
            running: None,
            membership: None,
            leaving: Leaving::default(),
            has_finished: false,
            booted_with: None,
            known_good: None,
            served: false,
            told_deaths: 0,
            past: RememberedWorker::of(role),
            status,
        }
    }

    /// Whether it has left the pool, and its last request has ended.
    pub fn has_finished(&mut self) -> bool {
        let ended = pin!(self.leaving.ended());
        self.has_finished |= ended.poll(&mut Context::from_waker(Waker::noop())).is_ready();
        self.has_finished
    }

    fn note_service(&mut self) {
        let load = self.membership.as_ref().and_then(|membership| membership.gauge().load());
        self.served |= load.is_some_and(|load| load.granted > 0);
    }

    fn leave(&mut self) {
        self.note_service();
        self.membership = None;
    }

    fn withdraw(&mut self) {
        self.note_service();
        self.membership.take().into_iter().for_each(|membership| self.leaving.add(membership));
        // The real task hears of an end before it leaves again.
        self.has_finished = false;
    }

    /// The event that follows from a command.
    pub fn understand(&mut self, order: Order) -> Option<LifecycleEvent> {
        match order {
            Order::Stop => Some(LifecycleEvent::Stop),
            Order::Kill => Some(LifecycleEvent::Kill),
            Order::Retire => Some(LifecycleEvent::Retire),
            Order::Hung(member) => {
                let current = self.membership.as_ref().map(Membership::id);
                (current == Some(member) || self.leaving.includes(member)).then_some(LifecycleEvent::Hung)
            }
            Order::StepIn => Some(LifecycleEvent::StepIn),
            Order::StepBack => Some(LifecycleEvent::StepBack),
            Order::Drain(length) => {
                Some(LifecycleEvent::Drain { until: length.map(|length| Instant::now() + length) })
            }
            Order::Undrain => Some(LifecycleEvent::Undrain),
            Order::Snapshot(true) => self.life.can_go_aside().then_some(LifecycleEvent::SetAside),
            Order::Snapshot(false) => Some(LifecycleEvent::PutBack),
            Order::Adopt(settings) => {
                self.life.adopt(settings);
                None
            }
        }
    }
}

impl World<'_> {
    /// A worker is told something.
    pub fn apply(&mut self, task: WorkerTaskId, event: LifecycleEvent) {
        let Some(mut worker) = self.workers.remove(&task) else { return };
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let (before, now) = (worker.life.state(), Instant::now());
            let (life, actions) = worker.life.clone().step(event, now);
            worker.life = life;
            let checked = worker.past.after(event, before, &worker.life, now);
            self.note(checked);
            self.settle(&mut worker, before);
            for action in actions {
                let checked = worker.past.acts(action, now);
                self.note(checked);
                next = self.perform(&mut worker, action).or(next);
            }
        }
        self.seen.add(std::mem::take(&mut worker.past.seen));
        self.publish(&mut worker);
        if worker.life.state() == LifecycleState::Stopped {
            self.report(task, WorkerReport::Ended { how: how_it_went(&worker) });
        } else {
            self.workers.insert(task, worker);
        }
    }

    fn settle(&mut self, worker: &mut Worker, before: LifecycleState) {
        let state = worker.life.state();
        if !matches!(state, LifecycleState::Booting { .. } | LifecycleState::Warming { .. }) {
            worker.turn = None;
        }
        let has_ended = matches!(
            state,
            LifecycleState::Queued | LifecycleState::BackingOff { .. } | LifecycleState::Stopped
        );
        if has_ended && before != state {
            (worker.membership, worker.leaving) = (None, Leaving::default());
            worker.has_finished = false;
            // A process that is dropped is killed.
            self.with_process(worker.running.take(), |process, now| process.killed(now));
        }
    }

    fn perform(&mut self, worker: &mut Worker, action: Action) -> Option<LifecycleEvent> {
        let running = worker.running;
        match action {
            Action::AskTurn => self.ask_turn(worker),
            Action::Spawn => return self.spawn(worker),
            Action::CheckHealth => self.will(running, News::Healthy),
            Action::WarmUp => self.will(running, News::Warmed),
            Action::Join => {
                if let Some(pid) = running {
                    worker.membership = Some(self.pool.join(pid, 1));
                }
            }
            Action::YieldTurn => worker.turn = None,
            Action::TakeOver => self.report(worker.status.task, WorkerReport::TookOver),
            Action::Leave => worker.leave(),
            Action::Withdraw => worker.withdraw(),
            Action::Diagnose if self.dice.bool() => return Some(LifecycleEvent::Diagnosed),
            Action::Diagnose => self.will(running, News::Diagnosed),
            Action::SayShutdown | Action::Terminate => {
                self.with_process(running, |process, now| process.told_to_end(now));
            }
            Action::Kill(why) => {
                if why != KillReason::Ordered {
                    worker.status.last_error = Some(format!("{why:?}"));
                }
                self.with_process(running, |process, now| process.killed(now));
            }
        }
        None
    }

    fn will(&mut self, pid: Option<u64>, what: News) {
        self.with_process(pid, |process, now| {
            if !process.is_hung || what == News::Diagnosed {
                process.will(what, now + process.slowness);
            }
        });
    }

    /// Asks the gate for a turn: in the line of those that are missing in the pool, or in that of the others.
    pub fn ask_turn(&mut self, worker: &mut Worker) {
        worker.status.generation += 1;
        let is_missing = worker.life.deaths() > 0 && worker.life.failed_boots() == 0;
        let kind = if is_missing { Turns::Returns } else { Turns::Starts };
        self.line_of(kind).push_back((worker.status.task, worker.status.generation));
    }

    fn spawn(&mut self, worker: &mut Worker) -> Option<LifecycleEvent> {
        let known = worker.known_good.clone().filter(|_| self.is_restarting());
        let deploy = known.unwrap_or_else(|| self.deploy.clone());
        worker.served = false;
        worker.booted_with = Some(deploy.clone());
        let release = worker.status.release;
        match self.start_process(deploy.code) {
            Some(pid) => {
                worker.running = Some(pid);
                None
            }
            None => {
                worker.status.last_error = Some("it could not be started".into());
                let proven = self.is_proven(release);
                worker.past.reports(DeathReport { proven, ..DeathReport::default() });
                Some(LifecycleEvent::SpawnFailed { proven })
            }
        }
    }

    /// The process of a worker is gone.
    pub fn exited(&mut self, task: WorkerTaskId, was_killed: bool) {
        let Some(worker) = self.workers.get_mut(&task) else { return };
        worker.leave();
        worker.running = None;
        let (state, release, served) = (worker.life.state(), worker.status.release, worker.served);
        if matches!(state, LifecycleState::Booting { .. } | LifecycleState::Warming { .. }) {
            worker.status.last_error = Some("it ended before it was ready".into());
            self.charge(Duration::from_millis(500));
        }
        if matches!(state, LifecycleState::Ready | LifecycleState::Standby) {
            self.report(task, WorkerReport::Left);
        }
        if served {
            self.proven = self.proven.max(release + 1);
        }
        let (proven, owed) = (self.is_proven(release), self.owed());
        let death = DeathReport { killed: was_killed, served, proven, owed };
        if let Some(worker) = self.workers.get_mut(&task) {
            worker.status.last_exit = Some(format!("exit, killed: {was_killed}"));
            worker.past.reports(death);
        }
        self.apply(task, LifecycleEvent::Exited(death));
    }

    fn publish(&mut self, worker: &mut Worker) {
        let before = worker.status.state;
        let state = WorkerState::from(worker.life.state());
        worker.status.state = state;
        worker.status.role = worker.life.role();
        worker.status.drain = worker.life.drain();
        worker.status.failed_boots = worker.life.failed_boots();
        let is_ready = matches!(state, WorkerState::Ready | WorkerState::Standby);
        match (is_ready, worker.status.ready_at) {
            (true, None) => {
                worker.status.ready_at = Some(Instant::now());
                if worker.life.deaths() > 0 {
                    self.charge(Duration::from_millis(300));
                }
                worker.known_good.clone_from(&worker.booted_with);
            }
            (false, Some(_)) if worker.running.is_none() => worker.status.ready_at = None,
            _ => {}
        }
        self.report_change(worker, before);
    }

    fn report_change(&mut self, worker: &mut Worker, before: WorkerState) {
        let can_serve = |state| matches!(state, WorkerState::Ready | WorkerState::Standby);
        let (task, state) = (worker.status.task, worker.status.state);
        if worker.life.deaths() > worker.told_deaths {
            worker.told_deaths = worker.life.deaths();
            let failed_boots = worker.life.failed_boots();
            self.report(task, WorkerReport::Died { failed_boots, how: how_it_went(worker) });
        } else if can_serve(before) && !can_serve(state) {
            let is_aside = state == WorkerState::OutOfRotation;
            self.report(task, if is_aside { WorkerReport::Aside } else { WorkerReport::Left });
        }
        if can_serve(state) && !can_serve(before) {
            self.report(task, WorkerReport::Ready);
        }
    }
}

fn how_it_went(worker: &Worker) -> String {
    let how = worker.status.last_error.as_ref().or(worker.status.last_exit.as_ref());
    how.cloned().unwrap_or_default()
}
