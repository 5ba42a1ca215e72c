//! Workers that stand by beside those that a pool has: when there are any, and when they step in. A part of the plan, and as pure.
//!
//! With `Spares::Auto` there is one spare while workers die often: from the second death within [`WINDOW`] until none has died for
//! [`CALM`]. Only a worker that was ready counts: where boots fail, a spare would not boot either.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Plan, RolloutAction, WorkerRole, WorkerTaskId};
use crate::settings::Spares;

/// Two deaths within this time are often ...
pub(crate) const WINDOW: Duration = Duration::from_secs(30);
const OFTEN: usize = 2;
/// ... and it is over when there was none for so long.
pub(crate) const CALM: Duration = Duration::from_secs(60);
/// Whoever runs a single worker may do so because there must not be two for long: state in memory, a lock on a file.
const FEWEST_FOR_AUTO: usize = 2;

/// The spares of one pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Reserve {
    wanted: Spares,
    spares: Vec<Spare>,
    /// The last deaths.
    deaths: VecDeque<Instant>,
    /// Until when deaths are taken to go on.
    alarmed_until: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Spare {
    task: WorkerTaskId,
    /// How many restarts had been ordered when it was hired.
    release: u64,
    ready: bool,
    /// It was told to step in.
    needed: bool,
}

impl Reserve {
    pub fn want(&mut self, wanted: Spares) {
        self.wanted = wanted;
    }

    /// A worker that was ready has died.
    pub fn note_death(&mut self, now: Instant) {
        self.deaths.push_back(now);
        if self.deaths.len() > OFTEN {
            self.deaths.pop_front();
        }
        let is_often = self.deaths.len() >= OFTEN && self.deaths.iter().all(|&at| at + WINDOW > now);
        if is_often || self.is_alarmed(now) {
            self.alarmed_until = Some(now + CALM);
        }
    }

    /// When the plan has to be looked at again because deaths have ceased.
    pub fn deadline(&self) -> Option<Instant> {
        self.alarmed_until.filter(|_| self.wanted == Spares::Auto)
    }

    /// It can step in, or it cannot any more.
    pub fn seen(&mut self, task: WorkerTaskId, ready: bool) {
        if let Some(spare) = self.spares.iter_mut().find(|spare| spare.task == task) {
            spare.ready = ready;
        }
    }

    /// It has to boot again, and stands by then.
    pub fn died(&mut self, task: WorkerTaskId) {
        if let Some(spare) = self.spares.iter_mut().find(|spare| spare.task == task) {
            (spare.ready, spare.needed) = (false, false);
        }
    }

    /// It is no spare any more; true if it was one.
    pub fn lose(&mut self, task: WorkerTaskId) -> bool {
        self.spares.extract_if(.., |spare| spare.task == task).count() > 0
    }

    /// All of them; none is a spare any more.
    pub fn dismiss(&mut self) -> impl Iterator<Item = WorkerTaskId> {
        std::mem::take(&mut self.spares).into_iter().map(|spare| spare.task)
    }

    fn is_alarmed(&self, now: Instant) -> bool {
        self.alarmed_until.is_some_and(|until| now < until)
    }

    fn count(&self, workers: usize, now: Instant) -> usize {
        match self.wanted {
            Spares::Fixed(count) => count,
            Spares::Auto => usize::from(workers >= FEWEST_FOR_AUTO && self.is_alarmed(now)),
        }
    }
}

impl Plan {
    /// As many spares as are wanted, and as many of them in the pool as workers are missing.
    pub(super) fn see_to_spares(&mut self, now: Instant) -> Vec<RolloutAction> {
        if self.stopping {
            return vec![];
        }
        let wanted = self.reserve.count(self.places.len(), now);
        let mut actions = self.dismiss_spares(wanted);
        // During a restart it is not yet known whether what would be booted works.
        while !self.restarting && self.reserve.spares.len() < wanted {
            let task = self.new_task();
            let index = self.places.len() + self.reserve.spares.len() + 1;
            let release = self.release;
            self.reserve.spares.push(Spare { task, release, ready: false, needed: false });
            actions.push(RolloutAction::Hire { task, index, role: WorkerRole::Spare });
        }
        let missing = self.places.iter().filter(|place| place.was_ready && !place.ready).count();
        actions.extend(self.reserve.step(missing));
        actions
    }

    /// Those that are too many, and those of an earlier generation once all workers are of the newest.
    fn dismiss_spares(&mut self, wanted: usize) -> Vec<RolloutAction> {
        let (oldest, restarting) = (self.oldest(), self.restarting);
        let spares = &mut self.reserve.spares;
        let outdated = spares.extract_if(.., |spare| !restarting && spare.release < oldest);
        let mut leaving: Vec<_> =
            outdated.map(|spare| (spare.task, "replaced by a new generation")).collect();
        let surplus = spares.drain(wanted.min(spares.len())..);
        leaving.extend(surplus.map(|spare| (spare.task, "no spare is needed any more")));
        let retire = |(task, why): (WorkerTaskId, &str)| RolloutAction::Retire { task, why: Arc::from(why) };
        leaving.into_iter().map(retire).collect()
    }
}

impl Reserve {
    /// As many as are `missing` step in, as far as there are so many.
    fn step(&mut self, missing: usize) -> Vec<RolloutAction> {
        let mut actions = vec![];
        let mut in_pool = self.spares.iter().filter(|spare| spare.needed).count();
        for spare in &mut self.spares {
            if in_pool < missing && spare.ready && !spare.needed {
                (spare.needed, in_pool) = (true, in_pool + 1);
                actions.push(RolloutAction::StepIn(spare.task));
            }
        }
        for spare in self.spares.iter_mut().rev() {
            if in_pool > missing && spare.needed {
                (spare.needed, in_pool) = (false, in_pool - 1);
                actions.push(RolloutAction::StepBack(spare.task));
            }
        }
        actions
    }
}
