//! The plan of one pool's workers as a pure machine: whom to hire and whom to retire, given what happened. It knows no
//! process and no pool; what becomes of each worker is its lifecycle's business.
//!
//! One worker is replaced at a time: its successor boots, joins and stands the test, only then the old one retires,
//! and only when that has ended the next replacement begins: a pool never needs memory for more than one worker too
//! many, besides its spares. A successor that fails leaves all as it was.
//!
//! A request that kills workers says nothing about the code that is rolled out: the old workers die over it as well. So a new
//! worker that dies after it was ready ends a restart only when it has died [`MOST_LOSSES`] times more than all old ones did meanwhile.

mod spares;
mod words;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::recycling::Reason;

use spares::Reserve;
pub use words::RestartError;
pub(super) use words::{ReplaceCause, RolloutAction, RolloutEvent, WorkerReport, WorkerRole, WorkerTaskId};

/// A worker of the new generation whose boots have failed so many times in a row stops the rollout.
const HOPELESS: u32 = 3;
/// So many times more than all old workers a new one may die after it was ready ...
const MOST_LOSSES: u32 = 5;
/// ... and so many times once it has taken over: then it has shown that it works, and the fewer old ones are left, the more of the requests that
/// end workers come to new ones.
const MOST_LOSSES_OF_PROVEN: u32 = 20;
/// How long no worker is recycled after a replacement that has failed; doubled with each further one ...
const RECYCLING_PAUSE: Duration = Duration::from_secs(30);
/// ... so many times.
const DOUBLINGS: u32 = 5;

/// The place of one worker; its number is its position.
#[derive(Clone, Debug)]
struct WorkerPlace {
    task: WorkerTaskId,
    /// How many restarts had been ordered when it was hired.
    release: u64,
    ready: bool,
    /// It has been ready before.
    was_ready: bool,
    /// How many times it has died after it was ready, since a replacement began.
    losses: u32,
}

/// A replacement that is under way.
#[derive(Clone, Debug)]
struct Replacement {
    place: usize,
    successor: WorkerTaskId,
    release: u64,
    cause: ReplaceCause,
    /// How many times it has died after it was ready.
    losses: u32,
}

/// What is to become of a pool's workers. As many as are wanted have a place, and besides there are spares, and at most one
/// successor or one that leaves after its replacement.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    places: Vec<WorkerPlace>,
    replacement: Option<Replacement>,
    /// Who was replaced last, until it has ended.
    leaving: Option<WorkerTaskId>,
    /// How many restarts have been ordered.
    release: u64,
    /// How many of them have been told to be through, or to have failed.
    told: u64,
    restarting: bool,
    stopping: bool,
    next_task: u64,
    failed_recyclings: u32,
    recycles_again_at: Option<Instant>,
    /// How many times workers of the oldest generation have died after they were ready, since a replacement began.
    losses_of_old: u32,
    reserve: Reserve,
}

impl Plan {
    /// What happened at `now`, and what it means. An event that means nothing now changes nothing.
    pub fn step(mut self, event: RolloutEvent, now: Instant) -> (Self, Vec<RolloutAction>) {
        let mut actions = match event {
            _ if self.stopping => vec![],
            RolloutEvent::Restart => self.restart(),
            RolloutEvent::Count(count) => self.resize(count),
            RolloutEvent::Due(task, reason) => self.recycle(task, reason, now),
            RolloutEvent::Heard(task, WorkerReport::TookOver) => self.took_over(task),
            RolloutEvent::Heard(task, WorkerReport::Ended { how }) => self.ended(task, how, now),
            RolloutEvent::Heard(task, WorkerReport::Ready) => self.seen(task, true),
            RolloutEvent::Heard(task, WorkerReport::Left) => self.seen(task, false),
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
        actions.extend(self.see_to_spares(now));
        (self, actions)
    }

    /// When [`RolloutEvent::Tick`] is due.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        self.reserve.deadline().filter(|&at| at > now && !self.stopping)
    }

    /// How many restarts have been ordered.
    pub fn release(&self) -> u64 {
        self.release
    }

    pub fn is_restarting(&self) -> bool {
        self.restarting
    }

    /// Which worker is being replaced.
    pub fn replacing(&self) -> Option<usize> {
        self.replacement.as_ref().map(|replacement| replacement.place + 1)
    }

    /// How many workers are of the newest generation, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        let new = self.places.iter().filter(|place| place.release == self.release).count();
        (new, self.places.len())
    }

    fn restart(&mut self) -> Vec<RolloutAction> {
        self.release += 1;
        self.restarting = true;
        self.forget_losses();
        vec![]
    }

    /// What follows from where things stand: news for those who wait, and the next replacement, unless one is under way.
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
            // A new worker that has died since is waited for, so that one bad generation does not take over everywhere.
            && self.places.iter().all(|place| place.ready || place.release == oldest)
            && let Some(place) = self.places.iter().position(|place| place.release == oldest)
        {
            actions.push(self.replace(place, ReplaceCause::Restart));
        }
        actions
    }

    /// The generation of which nobody is left soon.
    fn oldest(&self) -> u64 {
        self.places.iter().map(|place| place.release).min().unwrap_or(self.release)
    }

    fn replace(&mut self, place: usize, cause: ReplaceCause) -> RolloutAction {
        let successor = self.new_task();
        let (release, losses) = (self.release, 0);
        self.replacement = Some(Replacement { place, successor, release, cause: cause.clone(), losses });
        RolloutAction::Hire { task: successor, index: place + 1, role: WorkerRole::Successor(cause) }
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
        let new = WorkerPlace { task, release, ready: true, was_ready: true, losses };
        let old = std::mem::replace(place, new);
        let why = match replacement.cause {
            ReplaceCause::Restart => "replaced by a new generation".into(),
            ReplaceCause::Recycled(reason) => {
                self.failed_recyclings = 0;
                format!("recycled: {reason}").into()
            }
        };
        self.leaving = Some(old.task);
        vec![RolloutAction::Retire { task: old.task, why }]
    }

    fn ended(&mut self, task: WorkerTaskId, how: String, now: Instant) -> Vec<RolloutAction> {
        self.leaving.take_if(|leaving| *leaving == task);
        self.reserve.lose(task);
        let Some(replacement) = self.replacement.take_if(|replacement| replacement.successor == task) else {
            return vec![];
        };
        self.give_up(replacement, how, now)
    }

    /// The successor is none any more; all stays as it was.
    fn give_up(&mut self, replacement: Replacement, how: String, now: Instant) -> Vec<RolloutAction> {
        let worker = replacement.place + 1;
        match replacement.cause {
            ReplaceCause::Restart if replacement.losses > MOST_LOSSES => {
                let (replaced, total) = self.progress();
                self.fail(RestartError::Unstable { worker, how, replaced, total })
            }
            ReplaceCause::Restart => {
                let (replaced, total) = self.progress();
                self.fail(RestartError::Boot { worker, how, replaced, total })
            }
            ReplaceCause::Recycled(reason) => {
                let pause = RECYCLING_PAUSE * 2_u32.pow(self.failed_recyclings.min(DOUBLINGS));
                self.failed_recyclings += 1;
                self.recycles_again_at = Some(now + pause);
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
            place.ready = ready;
            place.was_ready |= ready;
        }
        self.reserve.seen(task, ready);
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
        if place.release <= oldest {
            self.losses_of_old += loss;
            return vec![];
        }
        place.losses += loss;
        let bound = self.losses_of_old + MOST_LOSSES_OF_PROVEN;
        if self.restarting && (failed_boots >= HOPELESS || place.losses > bound) {
            return self.stop_restart(index + 1, how);
        }
        vec![]
    }

    /// A successor has died too often.
    fn dismiss_successor(&mut self, how: String, now: Instant) -> Vec<RolloutAction> {
        let Some(replacement) = self.replacement.take() else { return vec![] };
        let why: Arc<str> = "it keeps dying".into();
        let mut actions = vec![RolloutAction::Retire { task: replacement.successor, why }];
        actions.extend(self.give_up(replacement, how, now));
        actions
    }

    /// A worker of the new generation has died too often after it had taken over.
    fn stop_restart(&mut self, worker: usize, how: String) -> Vec<RolloutAction> {
        let why: Arc<str> = "its generation keeps dying".into();
        let successor = self.replacement.take().map(|replacement| replacement.successor);
        let mut actions: Vec<_> =
            successor.map(|task| RolloutAction::Retire { task, why }).into_iter().collect();
        let (replaced, total) = self.progress();
        actions.extend(self.fail(RestartError::Unstable { worker, how, replaced, total }));
        actions
    }

    fn recycle(&mut self, task: WorkerTaskId, reason: Reason, now: Instant) -> Vec<RolloutAction> {
        if self.reserve.lose(task) {
            // Nothing depends on it: another is hired at once, if one is still wanted.
            let why = format!("recycled: {reason}").into();
            return vec![RolloutAction::Retire { task, why }];
        }
        let is_busy = self.restarting || self.replacement.is_some() || self.leaving.is_some();
        if is_busy || self.recycles_again_at.is_some_and(|at| now < at) {
            return vec![];
        }
        match self.places.iter().position(|place| place.task == task) {
            Some(place) => {
                self.forget_losses();
                vec![self.replace(place, ReplaceCause::Recycled(reason))]
            }
            None => vec![],
        }
    }

    fn resize(&mut self, count: usize) -> Vec<RolloutAction> {
        let mut actions = vec![];
        if count != self.places.len() {
            // Their numbers come after those of the workers.
            let why: Arc<str> = "the number of workers changes".into();
            let spares = self.reserve.dismiss();
            actions.extend(spares.map(|task| RolloutAction::Retire { task, why: why.clone() }));
        }
        while self.places.len() < count {
            let task = self.new_task();
            let release = self.release;
            self.places.push(WorkerPlace { task, release, ready: false, was_ready: false, losses: 0 });
            actions.push(RolloutAction::Hire { task, index: self.places.len(), role: WorkerRole::Regular });
        }
        let why: Arc<str> = "fewer workers are wanted".into();
        let superfluous = self.replacement.take_if(|replacement| replacement.place >= count);
        let superfluous = superfluous.map(|replacement| replacement.successor);
        let dismissed = self.places.drain(count.min(self.places.len())..).map(|place| place.task);
        let dismissed = dismissed.chain(superfluous);
        actions.extend(dismissed.map(|task| RolloutAction::Retire { task, why: why.clone() }));
        actions
    }

    fn stop(&mut self) -> Vec<RolloutAction> {
        self.stopping = true;
        self.replacement = None;
        if self.restarting { self.fail(RestartError::Stopping) } else { vec![] }
    }

    fn new_task(&mut self) -> WorkerTaskId {
        self.next_task += 1;
        WorkerTaskId(self.next_task)
    }
}

#[cfg(test)]
mod tests;
