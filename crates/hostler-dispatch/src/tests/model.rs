//! Random histories, checked against the rules that hold at every moment.

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::{Instant, advance};

use super::*;
use crate::{FairKey, Membership, Policy, Priority, Ticket, TunnelGuard};

const MAX_TUNNELS: usize = 2;

#[derive(Clone, Debug)]
enum Step {
    /// A request of this class arrives. It waits at most this many milliseconds, and may be for a tunnel.
    Arrive(Priority, Option<u64>, bool),
    /// Gives up a wait.
    Leave(usize),
    /// Ends a lease.
    Finish(usize),
    /// Turns a lease into a tunnel.
    TunnelGuard(usize),
    /// Ends a tunnel.
    EndTunnel(usize),
    /// Ends a lease; the request comes back with its ticket.
    Return(usize),
    /// Polls one request, so that handed slots are taken in any order.
    Poll(usize),
    Join(usize),
    Part(usize),
    Resize(usize, usize),
    Pause,
    Resume,
    /// This many milliseconds pass. No timer of a request fires.
    Pass(u64),
}

fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![1 => Just(Priority::High), 4 => Just(Priority::Normal), 1 => Just(Priority::Low)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (priority(), prop::option::of(1..400u64), prop::bool::weighted(0.3))
            .prop_map(|(class, time_limit, tunnel)| Step::Arrive(class, time_limit, tunnel)),
        1 => (0..9usize).prop_map(Step::TunnelGuard),
        1 => (0..9usize).prop_map(Step::EndTunnel),
        2 => (0..9usize).prop_map(Step::Leave),
        4 => (0..9usize).prop_map(Step::Finish),
        1 => (0..9usize).prop_map(Step::Return),
        3 => (0..9usize).prop_map(Step::Poll),
        1 => (0..3usize).prop_map(Step::Join),
        1 => (0..4usize).prop_map(Step::Part),
        1 => ((0..4usize), (0..3usize)).prop_map(|(member, slots)| Step::Resize(member, slots)),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        3 => (1..200u64).prop_map(Step::Pass),
    ]
}

struct World {
    pool: Pool<&'static str>,
    members: Vec<Membership<&'static str>>,
    waiting: Vec<Waiting>,
    leases: Vec<(Claim, Lease<&'static str>)>,
    tunnel_guards: Vec<TunnelGuard<&'static str>>,
    policy: Policy,
    keys: u64,
    arrived: u64,
    /// From the first pause on, deadlines are later by the pauses.
    was_paused: bool,
    /// A member left with slots that were handed over and not taken. Their requests wait again, behind those that already
    /// hold a slot.
    taken_back: bool,
}

struct Waiting {
    ticket: Ticket,
    claim: Claim,
    request: Request<&'static str>,
}

/// The entry that `index` selects, modulo the length.
fn take<T>(list: &mut Vec<T>, index: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(index % list.len()))
}

impl World {
    fn arrive(&mut self, claim: Claim) {
        let acquire = self.pool.acquire(claim);
        self.waiting.push(Waiting { ticket: acquire.ticket(), claim, request: of(acquire) });
        self.poll(self.waiting.len() - 1);
    }

    fn poll(&mut self, index: usize) {
        if let Poll::Ready(answer) = self.waiting[index].request.poll() {
            let claim = self.waiting.remove(index).claim;
            self.end(claim, answer);
        }
    }

    fn end(&mut self, claim: Claim, answer: Result<Lease<&'static str>, AcquireError>) {
        match answer {
            Ok(lease) => {
                let in_time =
                    self.was_paused || claim.deadline.is_none_or(|deadline| Instant::now() < deadline);
                assert!(in_time, "a slot after the deadline");
                self.leases.push((claim, lease));
            }
            Err(AcquireError::Expired) => {
                assert!(
                    claim.deadline.is_some_and(|deadline| deadline <= Instant::now()),
                    "expired too early"
                );
            }
            Err(_) => {}
        }
    }

    async fn apply(&mut self, step: Step) {
        match step {
            Step::Arrive(priority, time_limit, tunnel) => {
                let deadline = time_limit.map(|time| Instant::now() + Duration::from_millis(time));
                let long_lived = tunnel.then_some(LongLived::Tunnel);
                self.arrived += 1;
                let fair = Some(FairKey::of(self.arrived % self.keys.max(1)));
                self.arrive(Claim { priority, deadline, long_lived, fair, ..Claim::default() });
            }
            Step::Pause => {
                self.was_paused = true;
                self.pool.pause();
            }
            Step::Resume => self.pool.resume(),
            Step::Pass(time) => advance(Duration::from_millis(time)).await,
            Step::Leave(index) => drop(take(&mut self.waiting, index)),
            Step::Finish(index) => drop(take(&mut self.leases, index)),
            Step::Return(index) => {
                if let Some((claim, lease)) = take(&mut self.leases, index) {
                    let claim = Claim { ticket: Some(lease.ticket()), deadline: None, ..claim };
                    drop(lease);
                    // A request that got its slot before the ticket came back was first.
                    self.check_order();
                    self.arrive(claim);
                }
            }
            Step::TunnelGuard(index) => {
                let all = std::mem::take(&mut self.leases);
                let (mut candidates, others): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|(claim, _)| claim.long_lived.is_some());
                self.tunnel_guards
                    .extend(take(&mut candidates, index).map(|(_, lease)| lease.tunnel_guard()));
                self.leases = [others, candidates].into_iter().flatten().collect();
            }
            Step::EndTunnel(index) => drop(take(&mut self.tunnel_guards, index)),
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
        super::free_index::check(&self.pool);
        self.pool.shared.lock().queue.check_fair();
        let figures = self.pool.snapshot();
        let handed = figures.in_use - self.leases.len();
        assert!(figures.queue_length + handed <= self.waiting.len(), "no request is counted twice");
        let members = || figures.members.iter().map(|member| member.figures);
        let free = members().any(|member| !member.left && member.in_use < member.slots);
        assert!(
            !free || figures.paused || figures.queue_length == 0,
            "no request waits while a slot is free"
        );
        for member in members() {
            let has_work = member.in_use > 0 || member.tunnels > 0;
            assert!(!member.left || has_work, "a member that left stays only to finish");
            assert!(member.tunnels <= MAX_TUNNELS, "a limit");
        }
        assert_eq!(figures.tunnels, self.tunnel_guards.len());
    }

    /// Polls all waiting requests, the newest first. Returns whether any wait has ended.
    fn poll_all(&mut self, granted: &mut Vec<(Priority, Ticket)>) -> bool {
        let all = std::mem::take(&mut self.waiting);
        let before = all.len();
        for mut waiting in all.into_iter().rev() {
            match waiting.request.poll() {
                Poll::Pending => self.waiting.push(waiting),
                Poll::Ready(answer) => {
                    if answer.is_ok() {
                        granted.push((waiting.claim.priority, waiting.ticket));
                    }
                    self.end(waiting.claim, answer);
                }
            }
        }
        self.waiting.reverse();
        self.waiting.len() < before
    }

    /// The requests served now must be exactly the oldest of their class, in any order of polling.
    fn check_order(&mut self) {
        let mut granted = Vec::new();
        // A slot that one request takes too late goes to another, which may have been polled before.
        while self.poll_all(&mut granted) {}
        let figures = self.pool.snapshot();
        let handed = figures.in_use - self.leases.len();
        assert_eq!(
            figures.queue_length + handed,
            self.waiting.len(),
            "everybody waits or has been handed one"
        );
        if std::mem::take(&mut self.taken_back) || self.policy != Policy::Fifo || self.keys > 1 {
            return;
        }
        for class in Priority::ALL {
            let served = granted.iter().filter(|(priority, _)| *priority == class).map(|(_, ticket)| ticket);
            let waits = self.waiting.iter().filter(|waiting| waiting.claim.priority == class);
            if let (Some(served), Some(waits)) = (served.max(), waits.map(|waiting| &waiting.ticket).min()) {
                assert!(served <= waits, "{served:?} was served before {waits:?}");
            }
        }
    }
}

/// Runs one history and checks the rules on the way.
async fn live(steps: Vec<Step>, pause: usize, policy: Policy, keys: u64) {
    let pool = Pool::new(
        "test",
        PoolSettings {
            queue_limit: 6,
            policy,
            fair: keys > 0,
            max_tunnels: MAX_TUNNELS,
            ..PoolSettings::default()
        },
    );
    let members = vec![pool.join("a", 2)];
    let (waiting, leases, tunnel_guards) = (vec![], vec![], vec![]);
    let (arrived, taken_back, was_paused) = (0, false, false);
    let mut world = World {
        pool,
        members,
        waiting,
        leases,
        tunnel_guards,
        policy,
        keys,
        arrived,
        taken_back,
        was_paused,
    };
    for (index, step) in steps.into_iter().enumerate() {
        world.apply(step).await;
        world.check();
        if index % pause == 0 {
            world.check_order();
            world.check();
        }
    }
    let World { pool, members, waiting, leases, tunnel_guards, .. } = world;
    drop((waiting, leases, tunnel_guards));
    let figures = pool.snapshot();
    assert_eq!((figures.in_use, figures.queue_length, figures.tunnels), (0, 0, 0));
    drop(members);
    assert!(pool.snapshot().members.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_slot_is_lost_or_given_twice_and_order_is_kept(
        steps in prop::collection::vec(step(), 1..120),
        pause in 1..12usize,
        policy in prop_oneof![Just(Policy::Fifo), Just(Policy::Adaptive)],
        // 0: the pool is not fair. 1: all claims have the same key, so a fair pool serves them in order of arrival.
        keys in 0..4u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(live(steps, pause, policy, keys));
    }
}
