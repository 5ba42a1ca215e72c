//! The rules of a pool and its workers that hold at every moment.

use tokio::time::Instant;

use super::process::TestProcess;
use super::rules::{Checked, ensure};
use super::steps::Code;
use super::worker::{Order, Worker};
use super::world::World;
use crate::lifecycle::{LifecycleState, PoolRole};

impl World<'_> {
    /// The clients ask for their slots. Then the rules are checked that hold at every moment.
    pub fn look(&mut self) {
        let now = Instant::now();
        for index in 0..self.clients.len() {
            let Self { clients, pool, processes, .. } = self;
            let accepts = |pid| {
                let process: Option<&TestProcess> = processes.get(&pid);
                (process.is_some_and(TestProcess::accepts), process.is_some_and(|process| process.is_hung))
            };
            if let Some(member) = clients[index].ask(pool, now, accepts) {
                self.seen.served += 1;
                let owner = self.workers.values().find(|worker| {
                    worker.membership.as_ref().is_some_and(|membership| membership.id() == member)
                });
                let is_ready = owner.is_some_and(|owner| owner.life.state() == LifecycleState::Ready);
                self.note(ensure(is_ready, || {
                    format!("request {index} got a slot of {member}, which is not in rotation")
                }));
            }
        }
        let checked = self.check();
        self.note(checked);
    }

    fn check(&mut self) -> Checked {
        let members = self.workers.values().filter(|worker| worker.membership.is_some()).count();
        for (task, worker) in &self.workers {
            let (state, is_member) = (worker.life.state(), worker.membership.is_some());
            ensure(is_member == (state == LifecycleState::Ready), || {
                format!("worker task {} is {state:?}, and is in the pool: {is_member}", task.0)
            })?;
        }
        let in_pool = self.pool.find_all(|_| true).len();
        ensure(in_pool == members, || {
            format!("the pool has {in_pool} members, and {members} workers have joined")
        })?;
        if self.is_wild || self.is_ending {
            return Ok(());
        }
        let has_member = |number: usize| {
            let works = |worker: &&Worker| {
                worker.booted_with.as_ref().is_some_and(|deploy| deploy.code == Code::Works)
            };
            let mut all = self.workers.values().filter(|worker| worker.membership.is_some()).filter(works);
            all.any(|one| one.status.index == number && one.life.role() == PoolRole::Regular)
        };
        if (1..=self.wanted).all(has_member) {
            self.floor = self.wanted;
        }
        ensure(members >= self.floor, || {
            format!("{members} workers are in the pool, of {} that were there before the restart", self.floor)
        })?;
        // A successor that was dismissed may still be ending.
        let counts = |worker: &&Worker| {
            let retires = worker.orders.iter().any(|order| matches!(order, Order::Retire));
            let is_dismissed = retires || worker.life.role() == PoolRole::Retired;
            let is_dismissed = is_dismissed && !worker.past.was_regular;
            worker.running.is_some() && !worker.status.spare && !is_dismissed
        };
        let living = self.workers.values().filter(counts).count();
        ensure(living <= self.wanted + 1, || {
            format!("{living} processes for {} workers: more than one replacement at a time", self.wanted)
        })
    }
}
