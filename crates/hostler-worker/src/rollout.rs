//! The plan of one pool's workers as a pure state machine: which worker tasks to start and which to retire. It knows no
//! process and no pool; the lifecycle of each worker decides about that worker.
//!
//! One worker is replaced at a time. Its successor boots, joins and passes its probation; then the old worker retires;
//! when that has ended, the next replacement begins. So a pool never needs memory for more than one additional worker,
//! besides its spares. If a successor fails, the old worker stays.
//!
//! A request that kills workers says nothing about the new code, because old workers die over it as well. So the deaths
//! of a new worker that was ready end a restart only when it has more than [`MOST_LOSSES`] deaths more than all old workers
//! together. Example: 8 deaths of a new worker and 2 of old ones end it.

mod pauses;
mod place;
mod spares;
mod words;

use std::sync::Arc;

use tokio::time::Instant;

use super::recycling::Reason;

use pauses::RecyclingPauses;
use place::{Replacement, WorkerPlace, first_ordered, in_rotation, next_outdated, reached};
use spares::{Reserve, Workers};
pub use words::{Reached, RestartError, Restarted};
pub(super) use words::{ReplaceCause, RolloutAction, RolloutEvent, WorkerReport, WorkerRole, WorkerTaskId};

/// This many failed boots in a row of a new worker stop the rollout.
const MOST_FAILED_BOOTS: u32 = 3;
/// After it was ready, a new worker may have this many deaths more than all old workers together ...
const MOST_LOSSES: u32 = 5;
/// ... and after its probation this many more, because it has shown that it works. Also, the fewer old workers are left,
/// the more of the requests that kill workers go to new ones.
const MOST_LOSSES_OF_PROVEN: u32 = 20;

/// The plan of a pool's workers: one place for each wanted worker, the spares, and at most one successor or one worker
/// that leaves after its replacement.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    places: Vec<WorkerPlace>,
    replacement: Option<Replacement>,
    /// The worker that was replaced last, until it has ended.
    leaving: Option<WorkerTaskId>,
    /// How many restarts have been ordered.
    release: u64,
    /// How many of them have been reported as done or failed.
    told: u64,
    restarting: bool,
    stopping: bool,
    next_task: u64,
    pauses: RecyclingPauses,
    /// How many times old workers (if all are of one generation, all) have died after they were ready, since the replacement began.
    losses_of_old: u32,
    reserve: Reserve,
}

impl Plan {
    /// Takes an event at `now`. Returns the new plan and the actions that follow. An event that has no meaning now
    /// changes nothing.
    pub fn step(mut self, event: RolloutEvent, now: Instant) -> (Self, Vec<RolloutAction>) {
        let mut actions = match event {
            _ if self.stopping => vec![],
            RolloutEvent::Restart => self.restart(),
            RolloutEvent::RestartAnew => self.restart_anew(),
            RolloutEvent::Count(count) => self.resize(count),
            RolloutEvent::Due(task, reason) => self.recycle(task, reason, now),
            RolloutEvent::Heard(task, WorkerReport::NotListening(reason)) => self.recycle(task, reason, now),
            RolloutEvent::Heard(task, WorkerReport::TookOver) => self.took_over(task),
            RolloutEvent::Heard(task, WorkerReport::Ended { how }) => self.ended(task, how, now),
            RolloutEvent::Heard(task, WorkerReport::Ready) => self.seen(task, true),
            RolloutEvent::Heard(task, WorkerReport::Left) => self.seen(task, false),
            RolloutEvent::Heard(task, WorkerReport::Aside) => self.aside(task),
            RolloutEvent::Heard(task, WorkerReport::Blocked(blocked)) => self.block(task, blocked, now),
            RolloutEvent::Heard(task, WorkerReport::Died { failed_boots, how }) => {
                self.died(task, failed_boots, how, now)
            }
            RolloutEvent::Spares(wanted) => {
                self.reserve.want(wanted);
                vec![]
            }
            RolloutEvent::Tick => vec![],
            RolloutEvent::Stop => self.stop(),
        };
        actions.extend(self.advance());
        actions.extend(self.obey());
        actions.extend(self.adjust_spares(now));
        (self, actions)
    }

    /// When [`RolloutEvent::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.reserve.deadline().filter(|_| !self.stopping)
    }

    /// How many restarts have been ordered.
    pub fn release(&self) -> u64 {
        self.release
    }

    pub fn is_restarting(&self) -> bool {
        self.restarting
    }

    /// How many workers are of the newest generation, and how many workers there are.
    pub fn progress(&self) -> Reached {
        reached(&self.places, self.release)
    }

    /// The worker that is being replaced.
    pub fn replacing(&self) -> Option<usize> {
        self.replacement.as_ref().map(|replacement| replacement.place + 1)
    }

    fn restart(&mut self) -> Vec<RolloutAction> {
        if planted!(LostRestart) && self.restarting {
            return vec![];
        }
        self.release += 1;
        self.restarting = true;
        self.forget_losses();
        self.pauses.renew();
        vec![]
    }

    fn restart_anew(&mut self) -> Vec<RolloutAction> {
        let why: Arc<str> = "there is newer code".into();
        let outdated = self.replacement.take().map(|replacement| replacement.successor);
        self.restart();
        outdated.map(|task| RolloutAction::Retire { task, why }).into_iter().collect()
    }

    /// What follows from the current state: reports about ended restarts, and the next replacement if none is in
    /// progress.
    fn advance(&mut self) -> Vec<RolloutAction> {
        let mut actions = vec![];
        if !self.restarting || self.stopping || self.leaving.is_some() {
            return actions;
        }
        let oldest = self.oldest();
        if oldest > self.told {
            self.told = oldest;
            actions.push(RolloutAction::Reached(oldest));
        }
        if oldest == self.release {
            self.restarting = false;
        } else if self.replacement.is_none()
            && let Some(place) = next_outdated(&self.places, self.release)
        {
            if planted!(OldLeavesFirst) {
                actions.push(RolloutAction::Retire { task: self.places[place].task, why: "planted".into() });
            }
            actions.push(self.replace(place, ReplaceCause::Restart));
        }
        actions
    }

    /// The oldest generation that still has a worker.
    fn oldest(&self) -> u64 {
        self.places.iter().map(|place| place.release).min().unwrap_or(self.release)
    }

    fn replace(&mut self, place: usize, cause: ReplaceCause) -> RolloutAction {
        let successor = self.new_task();
        self.replacement = Some(Replacement::new(place, successor, self.release, cause.clone()));
        RolloutAction::Start { task: successor, index: place + 1, role: WorkerRole::Successor(cause) }
    }

    fn forget_losses(&mut self) {
        self.losses_of_old = 0;
        self.places.iter_mut().for_each(|place| place.losses = 0);
    }

    fn took_over(&mut self, task: WorkerTaskId) -> Vec<RolloutAction> {
        let Some(replacement) = self.replacement.take_if(|replacement| replacement.successor == task) else {
            return vec![];
        };
        let Some(place) = self.places.get_mut(replacement.place) else { return vec![] };
        let Replacement { release, losses, .. } = replacement;
        let new = WorkerPlace { ready: true, was_ready: true, losses, ..WorkerPlace::new(task, release) };
        let old = std::mem::replace(place, new);
        let why = match replacement.cause {
            ReplaceCause::Restart => "replaced by a restart".into(),
            ReplaceCause::Recycled(reason) => {
                self.pauses.succeeded();
                format!("recycled: {reason}").into()
            }
        };
        self.leaving = Some(old.task);
        vec![RolloutAction::Retire { task: old.task, why }]
    }

    fn ended(&mut self, task: WorkerTaskId, how: String, now: Instant) -> Vec<RolloutAction> {
        self.leaving.take_if(|leaving| *leaving == task);
        self.reserve.lose(task);
        if planted!(FailedTakesOver) {
            return self.took_over(task);
        }
        let replacement = self.replacement.take_if(|replacement| replacement.successor == task);
        replacement.map(|replacement| self.give_up(replacement, how, now)).unwrap_or_default()
    }

    /// The replacement ends without success, and the old worker stays.
    fn give_up(&mut self, replacement: Replacement, how: String, now: Instant) -> Vec<RolloutAction> {
        let worker = replacement.place + 1;
        match replacement.cause {
            // A worker of an earlier restart says nothing about the code and the settings of the newest one, which replaces all workers.
            ReplaceCause::Restart if replacement.release < self.release => vec![],
            ReplaceCause::Restart => {
                // By all restarts that are in progress.
                let reached = reached(&self.places, self.told + 1);
                self.fail(match replacement.losses > MOST_LOSSES {
                    true => RestartError::Unstable { worker, how, reached },
                    false => RestartError::Boot { worker, how, reached },
                })
            }
            ReplaceCause::Recycled(reason) => {
                let pause = self.pauses.failed(reason, now);
                vec![RolloutAction::KeepOld { index: worker, reason, how, pause }]
            }
        }
    }

    fn fail(&mut self, error: RestartError) -> Vec<RolloutAction> {
        self.restarting = false;
        self.told = self.release;
        vec![RolloutAction::Fail(error)]
    }

    fn seen(&mut self, task: WorkerTaskId, ready: bool) -> Vec<RolloutAction> {
        if let Some(place) = self.places.iter_mut().find(|place| place.task == task) {
            place.seen(ready);
        }
        self.reserve.seen(task, ready);
        vec![]
    }

    /// An operator decides when it comes back, which may be never.
    fn aside(&mut self, task: WorkerTaskId) -> Vec<RolloutAction> {
        self.seen(task, false);
        let place = self.places.iter_mut().find(|place| place.task == task);
        place.into_iter().for_each(|place| place.aside = true);
        vec![]
    }

    fn block(&mut self, task: WorkerTaskId, blocked: bool, now: Instant) -> Vec<RolloutAction> {
        if let Some(place) = self.places.iter_mut().find(|place| place.task == task) {
            place.blocked = blocked;
            self.reserve.note_block(now);
        }
        vec![]
    }

    fn died(
        &mut self,
        task: WorkerTaskId,
        failed_boots: u32,
        how: String,
        now: Instant,
    ) -> Vec<RolloutAction> {
        self.seen(task, false);
        self.reserve.died(task);
        if failed_boots == 0 {
            self.reserve.note_death(now);
        }
        let oldest = self.oldest();
        let bound = self.losses_of_old + MOST_LOSSES;
        let loss = u32::from(failed_boots == 0);
        if let Some(replacement) = self.replacement.as_mut().filter(|one| one.successor == task) {
            replacement.losses += loss;
            return if replacement.losses > bound { self.dismiss_successor(how, now) } else { vec![] };
        }
        let Some(index) = self.places.iter().position(|place| place.task == task) else { return vec![] };
        let place = &mut self.places[index];
        if place.release <= oldest || place.release < self.release {
            self.losses_of_old += loss;
            return vec![];
        }
        place.losses += loss;
        let bound = self.losses_of_old + MOST_LOSSES_OF_PROVEN;
        if self.restarting && (failed_boots >= MOST_FAILED_BOOTS || place.losses > bound) {
            return self.stop_restart(index + 1, how);
        }
        vec![]
    }

    /// The successor has died too often.
    fn dismiss_successor(&mut self, how: String, now: Instant) -> Vec<RolloutAction> {
        let Some(replacement) = self.replacement.take() else { return vec![] };
        let why: Arc<str> = "it keeps dying".into();
        let mut actions = vec![RolloutAction::Retire { task: replacement.successor, why }];
        actions.extend(self.give_up(replacement, how, now));
        actions
    }

    /// A new worker has died too often after its probation.
    fn stop_restart(&mut self, worker: usize, how: String) -> Vec<RolloutAction> {
        let why: Arc<str> = "the new workers keep dying".into();
        let successor = self.replacement.take().map(|replacement| replacement.successor);
        let mut actions: Vec<_> =
            successor.map(|task| RolloutAction::Retire { task, why }).into_iter().collect();
        let reached = reached(&self.places, self.told + 1);
        let error = RestartError::Unstable { worker, how, reached };
        actions.extend(self.fail(error));
        actions
    }

    fn recycle(&mut self, task: WorkerTaskId, reason: Reason, now: Instant) -> Vec<RolloutAction> {
        let serves_on = self.reserve.is_indispensable(task) && !reason.gets_no_requests();
        if serves_on || self.pauses.is_in_vain(reason, now) {
            return vec![];
        }
        if self.reserve.lose(task) {
            self.pauses.begin(reason, now);
            // The pool does not need it, so another starts at once if one is still wanted.
            return vec![RolloutAction::Retire { task, why: format!("recycled: {reason}").into() }];
        }
        let Some(place) = self.places.iter().position(|place| place.task == task) else { return vec![] };
        if reason == Reason::Inspected {
            self.places[place].ordered = true;
            return vec![];
        }
        if self.is_busy() || self.pauses.hold_up(reason, now) {
            return vec![];
        }
        self.pauses.begin(reason, now);
        vec![self.recycle_now(place, reason)]
    }

    fn recycle_now(&mut self, place: usize, reason: Reason) -> RolloutAction {
        self.forget_losses();
        self.replace(place, ReplaceCause::Recycled(reason))
    }

    /// Begins a replacement that an operator has ordered, if no other is in progress. It does not wait for the pauses of recycling.
    fn obey(&mut self) -> Option<RolloutAction> {
        let waits = self.stopping || self.is_busy();
        let place = if waits { None } else { first_ordered(&mut self.places) };
        place.map(|place| self.recycle_now(place, Reason::Inspected))
    }

    fn is_busy(&self) -> bool {
        self.restarting || self.replacement.is_some() || self.leaving.is_some()
    }

    fn resize(&mut self, count: usize) -> Vec<RolloutAction> {
        let mut actions = vec![];
        if count != self.places.len() {
            // The numbers of spares come after those of the workers, so spares with the old numbers leave.
            let why: Arc<str> = "the number of workers changes".into();
            let spares = self.reserve.dismiss();
            actions.extend(spares.map(|task| RolloutAction::Retire { task, why: why.clone() }));
        }
        while self.places.len() < count {
            let task = self.new_task();
            let release = self.release;
            self.places.push(WorkerPlace::new(task, release));
            actions.push(RolloutAction::Start { task, index: self.places.len(), role: WorkerRole::Regular });
        }
        let why: Arc<str> = "fewer workers are wanted".into();
        let superfluous = self.replacement.take_if(|replacement| replacement.place >= count);
        let superfluous = superfluous.map(|replacement| replacement.successor);
        let before = in_rotation(&self.places);
        let dismissed = self.places.drain(count.min(self.places.len())..).map(|place| place.task);
        let dismissed = dismissed.chain(superfluous);
        actions.extend(dismissed.map(|task| RolloutAction::Retire { task, why: why.clone() }));
        if before > 0 && in_rotation(&self.places) == 0 {
            // Only drained workers are left. They were drained because others served, so they come back.
            actions.extend(self.places.iter().map(|place| RolloutAction::Undrain(place.task)));
        }
        actions
    }

    fn adjust_spares(&mut self, now: Instant) -> Vec<RolloutAction> {
        if self.stopping {
            return vec![];
        }
        let workers = Workers {
            wanted: self.places.len(),
            missing: self.places.iter().filter(|place| place.is_missing()).count(),
            oldest: self.oldest(),
            release: self.release,
            restarting: self.restarting,
        };
        self.reserve.adjust(&workers, now, || WorkerTaskId::next(&mut self.next_task))
    }

    fn stop(&mut self) -> Vec<RolloutAction> {
        self.stopping = true;
        self.replacement = None;
        if self.restarting { self.fail(RestartError::Stopping) } else { vec![] }
    }

    fn new_task(&mut self) -> WorkerTaskId {
        WorkerTaskId::next(&mut self.next_task)
    }
}

#[cfg(test)]
mod tests;
