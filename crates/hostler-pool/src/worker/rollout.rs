//! The plan of one pool's workers as a pure machine: whom to hire and whom to retire, given what happened. It knows no
//! process and no pool; what becomes of each worker is its lifecycle's business.
//!
//! One worker is replaced at a time: its successor boots, joins and stands the test, only then the old one retires,
//! and only when that has ended the next replacement begins: a pool never needs memory for more than one worker too
//! many. A successor that fails leaves all as it was.

mod words;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::recycling::Reason;

pub use words::RestartError;
pub(super) use words::{Action, Cause, Event, Heard, KeeperId};

/// A worker of the new generation that has died so many times in a row stops the rollout.
const HOPELESS: u32 = 3;
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
}

/// A replacement that is under way.
#[derive(Clone, Debug)]
struct Replacement {
    seat: usize,
    successor: KeeperId,
    release: u64,
    cause: Cause,
}

/// What is to become of a pool's workers. As many as are wanted have a seat, and besides there is at most one successor
/// or one that leaves after its replacement.
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
            Event::Heard(keeper, Heard::Down { crashes, how }) => self.down(keeper, crashes, how),
            Event::Stop => self.stop(),
        };
        actions.extend(self.advance());
        (self, actions)
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
        self.replacement = Some(Replacement { seat, successor, release: self.release, cause: cause.clone() });
        Action::Hire { keeper: successor, index: seat + 1, replaces: Some(cause) }
    }

    fn took_over(&mut self, keeper: KeeperId) -> Vec<Action> {
        let Some(replacement) = self.replacement.take_if(|replacement| replacement.successor == keeper)
        else {
            return vec![];
        };
        let Some(seat) = self.seats.get_mut(replacement.seat) else { return vec![] };
        let old = std::mem::replace(seat, Seat { keeper, release: replacement.release, ready: true });
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
        let Some(replacement) = self.replacement.take_if(|replacement| replacement.successor == keeper)
        else {
            return vec![];
        };
        let worker = replacement.seat + 1;
        match replacement.cause {
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
        }
        vec![]
    }

    fn down(&mut self, keeper: KeeperId, crashes: u32, how: String) -> Vec<Action> {
        self.seen(keeper, false);
        let is_new = |seat: &Seat| seat.keeper == keeper && seat.release > self.oldest();
        let worker = self.seats.iter().position(is_new).map(|seat| seat + 1);
        match worker {
            Some(worker) if self.restarting && crashes >= HOPELESS => {
                let why: Arc<str> = "its generation keeps dying".into();
                let successor = self.replacement.take().map(|replacement| replacement.successor);
                let mut actions: Vec<_> =
                    successor.map(|keeper| Action::Retire { keeper, why }).into_iter().collect();
                let (replaced, total) = self.progress();
                actions.extend(self.fail(RestartError::Unstable { worker, how, replaced, total }));
                actions
            }
            _ => vec![],
        }
    }

    fn recycle(&mut self, keeper: KeeperId, reason: Reason, now: Instant) -> Vec<Action> {
        let is_busy = self.restarting || self.replacement.is_some() || self.leaving.is_some();
        if is_busy || self.recycles_again_at.is_some_and(|at| now < at) {
            return vec![];
        }
        match self.seats.iter().position(|seat| seat.keeper == keeper) {
            Some(seat) => vec![self.replace(seat, Cause::Recycled(reason))],
            None => vec![],
        }
    }

    fn resize(&mut self, count: usize) -> Vec<Action> {
        let mut actions = vec![];
        while self.seats.len() < count {
            let keeper = self.new_keeper();
            self.seats.push(Seat { keeper, release: self.release, ready: false });
            actions.push(Action::Hire { keeper, index: self.seats.len(), replaces: None });
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
