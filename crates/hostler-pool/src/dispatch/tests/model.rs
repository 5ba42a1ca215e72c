//! Random histories against what must hold at every moment.

use proptest::prelude::*;

use super::*;
use crate::dispatch::{Membership, Ticket};

#[derive(Clone, Debug)]
enum Step {
    Arrive,
    /// Gives up a wait.
    Leave(usize),
    /// Ends a lease.
    Finish(usize),
    /// Ends a lease and comes back with its ticket.
    Return(usize),
    /// Polls one waiter, so that hand-overs are taken in any order.
    Poll(usize),
    Join(usize),
    Part(usize),
    Resize(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Arrive),
        2 => (0..9usize).prop_map(Step::Leave),
        4 => (0..9usize).prop_map(Step::Finish),
        1 => (0..9usize).prop_map(Step::Return),
        3 => (0..9usize).prop_map(Step::Poll),
        1 => (0..3usize).prop_map(Step::Join),
        1 => (0..4usize).prop_map(Step::Part),
        1 => ((0..4usize), (0..3usize)).prop_map(|(member, slots)| Step::Resize(member, slots)),
    ]
}

struct World {
    pool: Pool<&'static str>,
    members: Vec<Membership<&'static str>>,
    waiting: Vec<(Ticket, Request<&'static str>)>,
    leases: Vec<Lease<&'static str>>,
    /// A member left with slots that were handed over and not taken: who lost one waits again, behind those
    /// who hold theirs already.
    taken_back: bool,
}

/// The one that `index` means, wrapping around.
fn take<T>(list: &mut Vec<T>, index: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(index % list.len()))
}

impl World {
    fn arrive(&mut self, ticket: Option<Ticket>) {
        let acquire = self.pool.acquire(Claim { ticket, ..Claim::default() });
        let entry = (acquire.ticket(), of(acquire));
        self.waiting.push(entry);
        self.poll(self.waiting.len() - 1);
    }

    fn poll(&mut self, index: usize) {
        if let Poll::Ready(answer) = self.waiting[index].1.poll() {
            self.waiting.remove(index);
            self.leases.extend(answer);
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Arrive => self.arrive(None),
            Step::Leave(index) => drop(take(&mut self.waiting, index)),
            Step::Finish(index) => drop(take(&mut self.leases, index)),
            Step::Return(index) => {
                if let Some(ticket) = take(&mut self.leases, index).map(|lease| lease.ticket()) {
                    // Who was handed a slot before the ticket came back was first.
                    self.check_order();
                    self.arrive(Some(ticket));
                }
            }
            Step::Poll(index) if !self.waiting.is_empty() => self.poll(index % self.waiting.len()),
            Step::Poll(_) => {}
            Step::Join(slots) => self.members.push(self.pool.join("a", slots)),
            Step::Part(index) => {
                self.taken_back |= self.pool.snapshot().in_use > self.leases.len();
                drop(take(&mut self.members, index));
            }
            Step::Resize(index, slots) => {
                if let Some(member) = self.members.get(index) {
                    member.set_slots(slots);
                }
            }
        }
    }

    fn check(&self) {
        let figures = self.pool.snapshot();
        let handed = figures.in_use - self.leases.len();
        assert_eq!(
            figures.queue_length + handed,
            self.waiting.len(),
            "everybody waits or has been handed one"
        );
        let free = figures.members.iter().any(|member| !member.left && member.in_use < member.slots);
        assert!(!free || figures.queue_length == 0, "nobody waits while a slot is free");
        for member in &figures.members {
            assert!(!member.left || member.in_use > 0, "one that left stays only to finish");
        }
    }

    /// Those who are served now must be exactly the ones that came first, whoever is polled first.
    fn check_order(&mut self) {
        let mut rest = Vec::new();
        let mut granted = Vec::new();
        for (ticket, mut request) in std::mem::take(&mut self.waiting).into_iter().rev() {
            match request.poll() {
                Poll::Pending => rest.push((ticket, request)),
                Poll::Ready(answer) => {
                    granted.push(ticket);
                    self.leases.extend(answer);
                }
            }
        }
        rest.reverse();
        self.waiting = rest;
        if std::mem::take(&mut self.taken_back) {
            return;
        }
        let last_served = granted.iter().max();
        let first_waiting = self.waiting.iter().map(|(ticket, _)| ticket).min();
        if let (Some(served), Some(waits)) = (last_served, first_waiting) {
            assert!(served <= waits, "{served:?} was served before {waits:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_slot_is_lost_or_given_twice_and_order_is_kept(
        steps in prop::collection::vec(step(), 1..120),
        pause in 1..12usize,
    ) {
        let pool = pool(6);
        let members = vec![pool.join("a", 2)];
        let mut world = World { pool, members, waiting: vec![], leases: vec![], taken_back: false };
        for (index, step) in steps.into_iter().enumerate() {
            world.apply(step);
            world.check();
            if index % pause == 0 {
                world.check_order();
                world.check();
            }
        }
        let World { pool, members, waiting, leases, .. } = world;
        drop((waiting, leases));
        prop_assert_eq!(pool.snapshot().in_use, 0);
        prop_assert_eq!(pool.snapshot().queue_length, 0);
        drop(members);
        prop_assert!(pool.snapshot().members.is_empty());
    }
}
