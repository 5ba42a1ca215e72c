//! Carries out the steps of a history, and checks how it ends.

use std::sync::Arc;
use std::time::Duration;

use super::clients::{Client, ClientState};
use super::process::News;
use super::rules::{Checked, Coverage, ensure};
use super::steps::{Code, Pick, Step, limits};
use super::worker::{Order, Worker};
use super::world::{Deploy, World};
use crate::lifecycle::{LifecycleState, PoolRole};
use crate::recycling::Reason;
use crate::rollout::{RolloutEvent, WorkerTaskId};
use crate::rotation::{self, Rotation};
use crate::settings::{Spares, WorkerSettings};
use crate::snapshot::WorkerStatus;

/// After the last step everything comes to rest within this time: the longest boots, rests and waits, one after the other.
const MOST_ROUNDS: usize = 200;
const ROUND: Duration = Duration::from_secs(5);
/// A stop takes no longer than this: the time of the longest `stop_timeout`, of a diagnosis, and of the wait for a killed process.
const LONGEST_STOP: Duration = Duration::from_secs(12);
/// In a history without disturbances no request takes longer, so that none counts as hung.
const LONGEST_IF_CALM: u64 = 900;

impl World<'_> {
    pub fn take(&mut self, step: &Step, is_wild: bool) {
        match *step {
            Step::Arrive(work) if !self.is_ending => {
                let work = if is_wild { work } else { work.min(LONGEST_IF_CALM) };
                self.clients.push(Client::new(&self.pool, Duration::from_millis(work)));
            }
            Step::Leave(pick) => {
                let waiting: Vec<_> =
                    (0..self.clients.len()).filter(|at| self.clients[*at].waits()).collect();
                if let Some(at) = waiting.get(pick % waiting.len().max(1)) {
                    self.clients.remove(*at);
                }
            }
            Step::Restart(code) => self.restart(code, RolloutEvent::Restart),
            Step::RestartAnew(code) => self.restart(code, RolloutEvent::RestartAnew),
            Step::Recycle(pick) => self.recycle(pick),
            Step::Stop { at_once } => self.stop(at_once),
            Step::Adopt(number) => {
                let WorkerSettings { start_timeout, stop_timeout, hang_timeout, .. } = limits(number);
                let settings = (*self.deploy.settings).clone();
                self.adopt(WorkerSettings { start_timeout, stop_timeout, hang_timeout, ..settings });
            }
            Step::Resize(count) if !self.is_ending => {
                self.wanted = count;
                self.decide(RolloutEvent::Count(count));
            }
            Step::Spares(spares) if !self.is_ending => {
                let settings = (*self.deploy.settings).clone();
                self.adopt(WorkerSettings { spares, ..settings });
                self.decide(RolloutEvent::Spares(spares));
            }
            Step::Pass(time) => self.pass(Duration::from_millis(time)),
            _ => self.disturb(step),
        }
        self.deliver();
    }

    fn disturb(&mut self, step: &Step) {
        match *step {
            Step::Crash(pick) | Step::OutOfMemory(pick) => {
                if let Some(pid) = self.process(pick) {
                    self.happens(pid, News::Exited { was_killed: matches!(step, Step::OutOfMemory(_)) });
                }
            }
            Step::Orphan(pick) => {
                if let Some(pid) = self.process(pick)
                    && let Some(process) = self.processes.get_mut(&pid).filter(|process| process.listens)
                {
                    process.is_orphan = true;
                    self.happens(pid, News::Orphaned);
                }
            }
            Step::Hang(pick) => {
                let pid = self.process(pick);
                self.with_process(pid, |process, _| process.hangs());
                let held = self.clients.iter_mut().filter(|client| pid.is_some() && client.process() == pid);
                held.for_each(Client::stands_still);
            }
            Step::Drain(pick, length) => self.drain(pick, length.map(Duration::from_millis)),
            Step::Undrain(pick) => self.order_one(pick, Order::Undrain),
            Step::Snapshot(pick, begins) => self.order_one(pick, Order::Snapshot(begins)),
            _ => {}
        }
    }

    /// A process that was not told to end.
    fn process(&self, pick: Pick) -> Option<u64> {
        let all: Vec<_> =
            self.processes.iter().filter(|(_, process)| !process.is_killed).map(|(pid, _)| *pid).collect();
        all.get(pick % all.len().max(1)).copied()
    }

    fn order_one(&mut self, pick: Pick, order: Order) {
        let tasks: Vec<_> = self.workers.keys().copied().collect();
        if let Some(task) = tasks.get(pick % tasks.len().max(1)) {
            self.order(*task, order);
        }
    }

    /// An operator drains a worker, if the program allows it.
    fn drain(&mut self, pick: Pick, length: Option<Duration>) {
        let mut board: Vec<WorkerStatus> =
            self.workers.values().map(|worker| worker.status.clone()).collect();
        board.sort_by_key(|place| place.index);
        let (number, force) = (1 + pick % self.wanted, pick > 32);
        let chosen = rotation::choose(&board, "history", number, Rotation::Out { length, force });
        if let Ok(task) = chosen {
            self.order(task, Order::Drain(length));
        }
    }

    fn restart(&mut self, code: Code, event: RolloutEvent) {
        if self.is_ending {
            return;
        }
        let settings = self.deploy.settings.clone();
        self.deploy = Arc::new(Deploy { number: self.plan.release() + 1, code, settings });
        self.restarts.push(self.plan.release() + 1);
        self.decide(event);
    }

    fn recycle(&mut self, pick: Pick) {
        let is_due = |worker: &Worker| {
            let state = worker.life.state();
            match worker.life.role() {
                PoolRole::Regular => state == LifecycleState::Ready,
                PoolRole::Spare => matches!(state, LifecycleState::Ready | LifecycleState::Standby),
                PoolRole::Successor | PoolRole::Retired => false,
            }
        };
        let due = self.workers.iter().filter(|(_, worker)| is_due(worker)).map(|(task, _)| *task);
        let due: Vec<WorkerTaskId> = due.collect();
        if let Some(task) = due.get(pick % due.len().max(1)).filter(|_| !self.is_ending) {
            self.decide(RolloutEvent::Due(*task, Reason::Inspected));
        }
    }

    fn adopt(&mut self, settings: WorkerSettings) {
        let settings = Arc::new(settings);
        let with = |deploy: &Deploy| {
            Arc::new(Deploy { number: deploy.number, code: deploy.code, settings: settings.clone() })
        };
        (self.deploy, self.last_good) = (with(&self.deploy), with(&self.last_good));
        self.order_all(&Order::Adopt(settings));
    }

    /// First the clients end that only wait, then the workers are told.
    fn stop(&mut self, at_once: bool) {
        if !std::mem::replace(&mut self.is_ending, true) {
            self.seen.stops += 1;
        }
        self.clients.retain(|client| !client.waits());
        self.decide(RolloutEvent::Stop);
        self.order_all(if at_once { &Order::Kill } else { &Order::Stop });
    }

    /// The last step was taken. Everything comes to rest, and then it ends.
    pub fn finish(&mut self) -> Coverage {
        if !self.is_ending {
            self.come_to_rest();
        }
        self.stop(false);
        self.pass(LONGEST_STOP);
        self.drain_messages();
        self.pass(LONGEST_STOP);
        let checked = self.has_ended();
        self.note(checked);
        self.seen
    }

    fn drain_messages(&mut self) {
        while self.error.is_none() && !self.is_still() {
            self.deliver();
        }
    }

    /// From now on nothing goes wrong any more.
    fn come_to_rest(&mut self) {
        self.is_flaky = false;
        self.drain_messages();
        self.order_all(&Order::Snapshot(false));
        self.order_all(&Order::Undrain);
        for _ in 0..MOST_ROUNDS {
            self.pass(ROUND);
            self.drain_messages();
            // A worker that has been taken aside since then.
            self.order_all(&Order::Snapshot(false));
            if self.error.is_some() || self.is_at_rest().is_ok() {
                break;
            }
        }
        let checked = self.is_at_rest();
        self.note(checked);
    }

    /// Each worker is ready, or its boots fail and it says why. No restart is left, and each request has one answer.
    fn is_at_rest(&self) -> Checked {
        ensure(self.restarts.is_empty() && !self.is_restarting(), || {
            format!("the restarts to {:?} have no end", self.restarts)
        })?;
        let works = self.deploy.code == Code::Works;
        for number in 1..=self.wanted {
            let place =
                |worker: &&Worker| worker.status.index == number && worker.life.role() == PoolRole::Regular;
            let mut place = self.workers.values().filter(place);
            let (Some(worker), None) = (place.next(), place.next()) else {
                return Err(format!("place {number} has not exactly one worker"));
            };
            let (state, status) = (worker.life.state(), &worker.status);
            let has_reason =
                status.failed_boots > 0 && status.last_error.as_ref().or(status.last_exit.as_ref()).is_some();
            ensure(state == LifecycleState::Ready || (!works && has_reason), || {
                format!(
                    "worker {number} is {state:?}, {} failed boots, {:?}",
                    status.failed_boots, status.last_error
                )
            })?;
            let code = worker.booted_with.as_ref().map(|deploy| (deploy.number, deploy.code));
            let is_right = code.is_some_and(|(number, code)| match self.has_replaced {
                true => number == self.deploy.number,
                false => code == Code::Works,
            });
            ensure(is_right || !works, || format!("worker {number} runs {code:?}"))?;
        }
        if !works {
            return Ok(());
        }
        let spares = match self.deploy.settings.spares {
            Spares::Fixed(count) => count,
            Spares::Auto => 0,
        };
        let (all, expected) = (self.workers.len(), self.wanted + spares);
        ensure(all == expected, || format!("{all} workers are there, and {expected} are wanted"))?;
        // One at a process that cannot be killed has no end.
        let is_stuck = |client: &Client| {
            let process = client.process().and_then(|pid| self.processes.get(&pid));
            process.is_some_and(|process| process.cannot_be_killed)
        };
        let unanswered =
            self.clients.iter().filter(|client| client.answers != 1 && !is_stuck(client)).count();
        ensure(unanswered == 0, || format!("{unanswered} requests have not exactly one answer"))
    }

    fn has_ended(&self) -> Checked {
        let left: Vec<_> =
            self.workers.values().map(|worker| (worker.status.index, worker.life.state())).collect();
        ensure(left.is_empty(), || format!("workers are left after the stop: {left:?}"))?;
        let processes = self.processes.iter().filter(|(_, process)| !process.cannot_be_killed);
        let processes: Vec<_> = processes.map(|(pid, _)| *pid).collect();
        ensure(processes.is_empty(), || format!("processes are left after the stop: {processes:?}"))?;
        let is_twice = self.clients.iter().any(|client| client.answers > 1);
        ensure(!is_twice, || "a request was answered twice".into())?;
        let is_lost = |client: &&Client| match &client.at {
            ClientState::Ended => client.answers != 1,
            // Its process cannot be killed, or the request has come back after the stop.
            ClientState::Served { lease, .. } => {
                !self.processes.get(&**lease).is_some_and(|process| process.cannot_be_killed)
            }
            ClientState::Waits(_) => false,
        };
        let lost = self.clients.iter().filter(is_lost).count();
        ensure(lost == 0, || format!("{lost} requests are lost"))
    }
}
