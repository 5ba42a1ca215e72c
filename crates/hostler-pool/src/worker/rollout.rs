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
pub(super) use words::{Action, Cause, Event, Heard, KeeperId, Role};

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
struct Seat {
    keeper: KeeperId,
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
    seat: usize,
    successor: KeeperId,
    release: u64,
    cause: Cause,
    /// How many times it has died after it was ready.
    losses: u32,
}

/// What is to become of a pool's workers. As many as are wanted have a seat, and besides there are spares, and at most one
/// successor or one that leaves after its replacement.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    seats: Vec<Seat>,
    replacement: Option<Replacement>,
    /// Who was replaced last, until it has ended.
    leaving: Option<KeeperId>,
    /// How many restarts have been ordered.
    release: u64,
    /// How many of them have been told to be through, or to have failed.
    told: u64,
    restarting: bool,
    stopping: bool,
    next_keeper: u64,
    failed_recyclings: u32,
    recycles_again_at: Option<Instant>,
    /// How many times workers of the oldest generation have died after they were ready, since a replacement began.
    losses_of_old: u32,
    reserve: Reserve,
}

impl Plan {
    /// What happened at `now`, and what it means. An event that means nothing now changes nothing.
    pub fn step(mut self, event: Event, now: Instant) -> (Self, Vec<Action>) {
        let mut actions = match event {
            _ if self.stopping => vec![],
            Event::Restart => self.restart(),
            Event::Count(count) => self.resize(count),
            Event::Due(keeper, reason) => self.recycle(keeper, reason, now),
            Event::Heard(keeper, Heard::TookOver) => self.took_over(keeper),
            Event::Heard(keeper, Heard::Ended { how }) => self.ended(keeper, how, now),
            Event::Heard(keeper, Heard::Ready) => self.seen(keeper, true),
            Event::Heard(keeper, Heard::Left) => self.seen(keeper, false),
            Event::Heard(keeper, Heard::Died { failed_boots, how }) => {
                self.died(keeper, failed_boots, how, now)
            }
            Event::Spares(wanted) => {
                self.reserve.want(wanted);
                vec![]
            }
            Event::Tick => vec![],
            Event::Stop => self.stop(),
        };
        actions.extend(self.advance());
        actions.extend(self.see_to_spares(now));
        (self, actions)
    }

    /// When [`Event::Tick`] is due.
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
        self.replacement.as_ref().map(|replacement| replacement.seat + 1)
    }

    /// How many workers are of the newest generation, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        let new = self.seats.iter().filter(|seat| seat.release == self.release).count();
        (new, self.seats.len())
    }

    fn restart(&mut self) -> Vec<Action> {
        self.release += 1;
        self.restarting = true;
        self.forget_losses();
        vec![]
    }

    /// What follows from where things stand: news for those who wait, and the next replacement, unless one is under way.
    fn advance(&mut self) -> Vec<Action> {
        let mut actions = vec![];
        if !self.restarting || self.stopping || self.leaving.is_some() {
            return actions;
        }
        let oldest = self.oldest();
        if oldest > self.told {
            self.told = oldest;
            actions.push(Action::Reached(oldest));
        }
        if oldest == self.release {
            self.restarting = false;
        } else if self.replacement.is_none()
            // A new worker that has died since is waited for, so that one bad generation does not take over everywhere.
            && self.seats.iter().all(|seat| seat.ready || seat.release == oldest)
            && let Some(seat) = self.seats.iter().position(|seat| seat.release == oldest)
        {
            actions.push(self.replace(seat, Cause::Restart));
        }
        actions
    }

    /// The generation of which nobody is left soon.
    fn oldest(&self) -> u64 {
        self.seats.iter().map(|seat| seat.release).min().unwrap_or(self.release)
    }

    fn replace(&mut self, seat: usize, cause: Cause) -> Action {
        let successor = self.new_keeper();
        let (release, losses) = (self.release, 0);
        self.replacement = Some(Replacement { seat, successor, release, cause: cause.clone(), losses });
        Action::Hire { keeper: successor, index: seat + 1, role: Role::Successor(cause) }
    }

    fn forget_losses(&mut self) {
        self.losses_of_old = 0;
        self.seats.iter_mut().for_each(|seat| seat.losses = 0);
    }

    fn took_over(&mut self, keeper: KeeperId) -> Vec<Action> {
        let Some(replacement) = self.replacement.take_if(|replacement| replacement.successor == keeper)
        else {
            return vec![];
        };
        let Some(seat) = self.seats.get_mut(replacement.seat) else { return vec![] };
        let Replacement { release, losses, .. } = replacement;
        let new = Seat { keeper, release, ready: true, was_ready: true, losses };
        let old = std::mem::replace(seat, new);
        let why = match replacement.cause {
            Cause::Restart => "replaced by a new generation".into(),
            Cause::Recycled(reason) => {
                self.failed_recyclings = 0;
                format!("recycled: {reason}").into()
            }
        };
        self.leaving = Some(old.keeper);
        vec![Action::Retire { keeper: old.keeper, why }]
    }

    fn ended(&mut self, keeper: KeeperId, how: String, now: Instant) -> Vec<Action> {
        self.leaving.take_if(|leaving| *leaving == keeper);
        self.reserve.lose(keeper);
        let Some(replacement) = self.replacement.take_if(|replacement| replacement.successor == keeper)
        else {
            return vec![];
        };
        self.give_up(replacement, how, now)
    }

    /// The successor is none any more; all stays as it was.
    fn give_up(&mut self, replacement: Replacement, how: String, now: Instant) -> Vec<Action> {
        let worker = replacement.seat + 1;
        match replacement.cause {
            Cause::Restart if replacement.losses > MOST_LOSSES => {
                let (replaced, total) = self.progress();
                self.fail(RestartError::Unstable { worker, how, replaced, total })
            }
            Cause::Restart => {
                let (replaced, total) = self.progress();
                self.fail(RestartError::Boot { worker, how, replaced, total })
            }
            Cause::Recycled(reason) => {
                let pause = RECYCLING_PAUSE * 2_u32.pow(self.failed_recyclings.min(DOUBLINGS));
                self.failed_recyclings += 1;
                self.recycles_again_at = Some(now + pause);
                vec![Action::KeepOld { index: worker, reason, how, pause }]
            }
        }
    }

    fn fail(&mut self, error: RestartError) -> Vec<Action> {
        self.restarting = false;
        self.told = self.release;
        vec![Action::Fail(error)]
    }

    fn seen(&mut self, keeper: KeeperId, ready: bool) -> Vec<Action> {
        if let Some(seat) = self.seats.iter_mut().find(|seat| seat.keeper == keeper) {
            seat.ready = ready;
            seat.was_ready |= ready;
        }
        self.reserve.seen(keeper, ready);
        vec![]
    }

    fn died(&mut self, keeper: KeeperId, failed_boots: u32, how: String, now: Instant) -> Vec<Action> {
        self.seen(keeper, false);
        self.reserve.died(keeper);
        if failed_boots == 0 {
            self.reserve.note_death(now);
        }
        let oldest = self.oldest();
        let bound = self.losses_of_old + MOST_LOSSES;
        let loss = u32::from(failed_boots == 0);
        if let Some(replacement) = self.replacement.as_mut().filter(|one| one.successor == keeper) {
            replacement.losses += loss;
            return if replacement.losses > bound { self.dismiss_successor(how, now) } else { vec![] };
        }
        let Some(index) = self.seats.iter().position(|seat| seat.keeper == keeper) else { return vec![] };
        let seat = &mut self.seats[index];
        if seat.release <= oldest {
            self.losses_of_old += loss;
            return vec![];
        }
        seat.losses += loss;
        let bound = self.losses_of_old + MOST_LOSSES_OF_PROVEN;
        if self.restarting && (failed_boots >= HOPELESS || seat.losses > bound) {
            return self.stop_restart(index + 1, how);
        }
        vec![]
    }

    /// A successor has died too often.
    fn dismiss_successor(&mut self, how: String, now: Instant) -> Vec<Action> {
        let Some(replacement) = self.replacement.take() else { return vec![] };
        let why: Arc<str> = "it keeps dying".into();
        let mut actions = vec![Action::Retire { keeper: replacement.successor, why }];
        actions.extend(self.give_up(replacement, how, now));
        actions
    }

    /// A worker of the new generation has died too often after it had taken over.
    fn stop_restart(&mut self, worker: usize, how: String) -> Vec<Action> {
        let why: Arc<str> = "its generation keeps dying".into();
        let successor = self.replacement.take().map(|replacement| replacement.successor);
        let mut actions: Vec<_> =
            successor.map(|keeper| Action::Retire { keeper, why }).into_iter().collect();
        let (replaced, total) = self.progress();
        actions.extend(self.fail(RestartError::Unstable { worker, how, replaced, total }));
        actions
    }

    fn recycle(&mut self, keeper: KeeperId, reason: Reason, now: Instant) -> Vec<Action> {
        if self.reserve.lose(keeper) {
            // Nothing depends on it: another is hired at once, if one is still wanted.
            let why = format!("recycled: {reason}").into();
            return vec![Action::Retire { keeper, why }];
        }
        let is_busy = self.restarting || self.replacement.is_some() || self.leaving.is_some();
        if is_busy || self.recycles_again_at.is_some_and(|at| now < at) {
            return vec![];
        }
        match self.seats.iter().position(|seat| seat.keeper == keeper) {
            Some(seat) => {
                self.forget_losses();
                vec![self.replace(seat, Cause::Recycled(reason))]
            }
            None => vec![],
        }
    }

    fn resize(&mut self, count: usize) -> Vec<Action> {
        let mut actions = vec![];
        if count != self.seats.len() {
            // Their numbers come after those of the workers.
            let why: Arc<str> = "the number of workers changes".into();
            let spares = self.reserve.dismiss();
            actions.extend(spares.map(|keeper| Action::Retire { keeper, why: why.clone() }));
        }
        while self.seats.len() < count {
            let keeper = self.new_keeper();
            let release = self.release;
            self.seats.push(Seat { keeper, release, ready: false, was_ready: false, losses: 0 });
            actions.push(Action::Hire { keeper, index: self.seats.len(), role: Role::Regular });
        }
        let why: Arc<str> = "fewer workers are wanted".into();
        let superfluous = self.replacement.take_if(|replacement| replacement.seat >= count);
        let superfluous = superfluous.map(|replacement| replacement.successor);
        let dismissed = self.seats.drain(count.min(self.seats.len())..).map(|seat| seat.keeper);
        let dismissed = dismissed.chain(superfluous);
        actions.extend(dismissed.map(|keeper| Action::Retire { keeper, why: why.clone() }));
        actions
    }

    fn stop(&mut self) -> Vec<Action> {
        self.stopping = true;
        self.replacement = None;
        if self.restarting { self.fail(RestartError::Stopping) } else { vec![] }
    }

    fn new_keeper(&mut self) -> KeeperId {
        self.next_keeper += 1;
        KeeperId(self.next_keeper)
    }
}

#[cfg(test)]
mod tests;
