//! Random histories with requests that are bound to members, checked against the rules that hold at every moment.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::advance;

use super::*;
use crate::{Acquire, Lease, MemberId, MemberPreference, Membership};

#[derive(Clone, Debug)]
enum Step {
    /// A request arrives. It may be bound to one of the members that ever joined.
    Arrive(Option<usize>),
    Unbind(usize),
    GiveUp(usize),
    Finish(usize),
    Join(usize),
    /// A member leaves, and serves its bound requests meanwhile or not.
    Part(usize, bool),
    Health(usize, bool),
    Resize(usize, usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::option::weighted(0.7, 0..6usize).prop_map(Step::Arrive),
        1 => (0..9usize).prop_map(Step::Unbind),
        1 => (0..9usize).prop_map(Step::GiveUp),
        5 => (0..9usize).prop_map(Step::Finish),
        2 => (1..3usize).prop_map(Step::Join),
        1 => ((0..4usize), any::<bool>()).prop_map(|(member, serves)| Step::Part(member, serves)),
        1 => ((0..4usize), any::<bool>()).prop_map(|(member, healthy)| Step::Health(member, healthy)),
        1 => ((0..4usize), (0..3usize)).prop_map(|(member, slots)| Step::Resize(member, slots)),
        1 => (1..3000u64).prop_map(Step::Pass),
    ]
}

type Waiting = Pin<Box<Acquire<&'static str>>>;

struct World {
    pool: Pool<&'static str>,
    members: Vec<Membership<&'static str>>,
    ids: Vec<MemberId>,
    waiting: Vec<(Option<MemberId>, Waiting)>,
    leases: Vec<Lease<&'static str>>,
}

fn take<T>(list: &mut Vec<T>, index: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(index % list.len()))
}

impl World {
    async fn apply(&mut self, step: Step) {
        match step {
            Step::Arrive(to) => {
                let bound = to.and_then(|index| self.ids.get(index).copied());
                let preference = MemberPreference { bound, ..MemberPreference::default() };
                let acquire = self.pool.acquire(Claim { preference, ..Claim::default() });
                self.waiting.push((bound, Box::pin(acquire)));
            }
            Step::Unbind(index) if !self.waiting.is_empty() => {
                let at = index % self.waiting.len();
                let (bound, acquire) = &mut self.waiting[at];
                *bound = None;
                acquire.as_mut().unbind();
            }
            Step::Unbind(_) => {}
            Step::GiveUp(index) => drop(take(&mut self.waiting, index)),
            Step::Finish(index) => drop(take(&mut self.leases, index)),
            Step::Join(slots) => {
                let member = self.pool.join("a", slots);
                self.ids.push(member.id());
                self.members.push(member);
            }
            Step::Part(index, serves) => {
                if let Some(member) = take(&mut self.members, index)
                    && serves
                {
                    drop(member.leave());
                }
            }
            Step::Health(index, healthy) => {
                if let Some(member) = self.members.get(index) {
                    member.set_health(healthy);
                }
            }
            Step::Resize(index, slots) => {
                if let Some(member) = self.members.get(index) {
                    member.set_slots(slots);
                }
            }
            Step::Pass(time) => {
                advance(Duration::from_millis(time)).await;
                // Any event makes the pool look again for members whose time is over.
                drop(self.pool.acquire(Claim::default()));
                self.pool.resume();
            }
        }
    }

    fn poll_all(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for (bound, mut acquire) in std::mem::take(&mut self.waiting) {
            match acquire.as_mut().poll(&mut context) {
                Poll::Pending => self.waiting.push((bound, acquire)),
                Poll::Ready(Ok(lease)) => self.leases.push(lease),
                Poll::Ready(Err(error)) => assert_eq!(error, AcquireError::QueueFull { limit: 8 }),
            }
        }
    }

    fn check(&self) {
        super::free_index::check(&self.pool);
        let figures = self.pool.snapshot();
        assert_eq!(figures.queue_length, self.waiting.len());
        assert_eq!(figures.in_use, self.leases.len());
        let members = || figures.members.iter().map(|member| member.figures);
        let is_free = |id: MemberId| members().any(|member| member.id == id && member.in_use < member.slots);
        let any_free = members().any(|member| !member.left && !member.unhealthy && is_free(member.id));
        for (bound, _) in &self.waiting {
            match bound.filter(|id| self.pool.takes_bound(*id)) {
                Some(id) => assert!(!is_free(id), "a request waits for a member with a free slot"),
                None => assert!(!any_free, "a request waits for any member while a slot is free"),
            }
        }
    }
}

async fn live(steps: Vec<Step>) {
    let settings = PoolSettings {
        queue_limit: 8,
        bound_drain: Duration::from_secs(2),
        policy: crate::Policy::Fifo,
        ..PoolSettings::default()
    };
    let pool = Pool::new("test", settings);
    let mut world = World { pool, members: vec![], ids: vec![], waiting: vec![], leases: vec![] };
    for step in steps {
        world.apply(step).await;
        world.poll_all();
        world.check();
    }
    let World { pool, members, waiting, leases, .. } = world;
    drop((waiting, leases));
    let figures = pool.snapshot();
    assert_eq!((figures.in_use, figures.queue_length), (0, 0));
    drop(members);
    assert!(pool.snapshot().members.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_request_waits_while_a_slot_for_it_is_free(steps in prop::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(live(steps));
    }
}
