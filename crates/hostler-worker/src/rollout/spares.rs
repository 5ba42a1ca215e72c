//! The spares: workers that stand by, ready, outside the pool. Decides when there are spares and when they join the pool.
//! As pure as the plan, and knows of it only how the workers are.
//!
//! With `Spares::Auto` there is one spare while workers die often or are blocked: from the second death within [`WINDOW`], or the first block,
//! until no worker has died or was blocked for [`CALM`] and none is missing. Only the death of a worker that was ready counts: where boots fail,
//! a spare would not boot either.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::words::{RolloutAction, WorkerRole, WorkerTaskId};
use crate::settings::Spares;

/// Two deaths within this time count as often ...
pub(crate) const WINDOW: Duration = Duration::from_secs(30);
const OFTEN: usize = 2;
/// ... and workers no longer die often after this time without a death and without a block.
pub(crate) const CALM: Duration = Duration::from_secs(60);
/// With a single worker there is no automatic spare: the app may not allow two workers for long (state in memory, a lock
/// on a file).
const FEWEST_FOR_AUTO: usize = 2;

/// The spares of one pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Reserve {
    wanted: Spares,
    spares: Vec<Spare>,
    /// The times of the last deaths.
    deaths: VecDeque<Instant>,
    /// Until when workers count as dying often, or one as blocked.
    alarmed_until: Option<Instant>,
}

/// What decides about the spares: how the workers of the pool are.
pub(super) struct Workers {
    /// How many workers are wanted.
    pub wanted: usize,
    /// How many of them have been ready and are not, or are blocked.
    pub missing: usize,
    /// The oldest generation that still has a worker.
    pub oldest: u64,
    /// The newest generation.
    pub release: u64,
    /// A restart is in progress.
    pub restarting: bool,
}

#[derive(Clone, Debug)]
struct Spare {
    task: WorkerTaskId,
    /// Its worker number.
    index: usize,
    /// How many restarts had been ordered when the spare was started.
    release: u64,
    ready: bool,
    /// It was told to join the pool.
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

    /// A worker is blocked, or is not any more.
    pub fn note_block(&mut self, now: Instant) {
        self.alarmed_until = Some(now + CALM);
    }

    /// When to look at the plan again, because workers no longer die often.
    pub fn deadline(&self) -> Option<Instant> {
        self.alarmed_until.filter(|_| self.wanted == Spares::Auto)
    }

    /// A spare has become ready, or is not ready any more.
    pub fn seen(&mut self, task: WorkerTaskId, ready: bool) {
        if let Some(spare) = self.spares.iter_mut().find(|spare| spare.task == task) {
            spare.ready = ready;
        }
    }

    /// A spare has died. It boots again and then stands by.
    pub fn died(&mut self, task: WorkerTaskId) {
        if let Some(spare) = self.spares.iter_mut().find(|spare| spare.task == task) {
            (spare.ready, spare.needed) = (false, false);
        }
    }

    /// The worker is no spare any more. Returns true if it was one.
    pub fn lose(&mut self, task: WorkerTaskId) -> bool {
        self.spares.extract_if(.., |spare| spare.task == task).count() > 0
    }

    /// Removes and returns the spares that stand in for no worker.
    pub fn dismiss(&mut self) -> impl Iterator<Item = WorkerTaskId> {
        let idle: Vec<_> = self.spares.extract_if(.., |spare| !spare.needed).collect();
        idle.into_iter().map(|spare| spare.task)
    }

    /// Whether this spare stands in for a missing worker and no other spare is ready to do so. If it were replaced, its successor might fail to
    /// boot, like the missing worker.
    pub fn is_indispensable(&self, task: WorkerTaskId) -> bool {
        let stands_in = self.spares.iter().any(|spare| spare.task == task && spare.needed);
        stands_in && !self.spares.iter().any(|spare| spare.ready && !spare.needed)
    }

    fn is_alarmed(&self, now: Instant) -> bool {
        self.alarmed_until.is_some_and(|until| now < until)
    }

    fn count(&self, workers: &Workers, now: Instant) -> usize {
        let is_needed = || self.spares.iter().any(|spare| spare.needed);
        // It may boot still, or again.
        let will_be_needed = || workers.missing > 0 && !self.spares.is_empty();
        match self.wanted {
            // A pool that sleeps has no process at all.
            Spares::Fixed(_) if workers.wanted == 0 => 0,
            Spares::Fixed(count) => count,
            // A spare stays until the missing worker is back: its boots may fail, or its event loop stand still, for longer than the alarm lasts.
            Spares::Auto if workers.wanted < FEWEST_FOR_AUTO => 0,
            Spares::Auto => usize::from(self.is_alarmed(now) || is_needed() || will_be_needed()),
        }
    }
}

impl Reserve {
    /// Starts as many spares as are wanted, and lets as many of them join the pool as workers are missing. `new_task` numbers
    /// the tasks of new spares.
    pub fn adjust(
        &mut self,
        workers: &Workers,
        now: Instant,
        mut new_task: impl FnMut() -> WorkerTaskId,
    ) -> Vec<RolloutAction> {
        // Only then: a deadline that has passed unseen is still due.
        self.alarmed_until.take_if(|until| *until <= now);
        let wanted = self.count(workers, now);
        let mut actions = self.dismiss_superfluous(wanted, workers);
        // During a restart it is not known yet whether the new code works, so no spare is started.
        while !workers.restarting && self.spares.len() < wanted {
            let task = new_task();
            let index = self.free_index(workers.wanted);
            self.spares.push(Spare { task, index, release: workers.release, ready: false, needed: false });
            actions.push(RolloutAction::Start { task, index, role: WorkerRole::Spare });
        }
        actions.extend(self.step(workers.missing));
        actions
    }

    /// The first number after those of the workers that no other spare has. The first spare may have been recycled, and the second one not.
    fn free_index(&self, workers: usize) -> usize {
        let mut index = workers + 1;
        while self.spares.iter().any(|spare| spare.index == index) {
            index += 1;
        }
        index
    }

    /// Retires the spares that are too many, those whose number a worker has got and, once all workers are of the newest generation, those of
    /// an earlier one.
    fn dismiss_superfluous(&mut self, wanted: usize, workers: &Workers) -> Vec<RolloutAction> {
        let spares = &mut self.spares;
        let outdated = spares.extract_if(.., |spare| !workers.restarting && spare.release < workers.oldest);
        let mut leaving: Vec<_> = outdated.map(|spare| (spare.task, "replaced by a restart")).collect();
        // A spare that stood in for a worker when the pool grew can have the number of a new worker.
        let namesakes = spares.extract_if(.., |spare| !spare.needed && spare.index <= workers.wanted);
        leaving.extend(namesakes.map(|spare| (spare.task, "the number of workers changes")));
        let surplus = spares.drain(wanted.min(spares.len())..);
        leaving.extend(surplus.map(|spare| (spare.task, "no spare is needed any more")));
        let retire = |(task, why): (WorkerTaskId, &str)| RolloutAction::Retire { task, why: Arc::from(why) };
        leaving.into_iter().map(retire).collect()
    }

    /// Tells as many spares to join the pool as workers are `missing`, if there are enough.
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
