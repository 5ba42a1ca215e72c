//! The index of free slots and the sums, compared with a plain look at each member after every step of random histories.

use std::cmp::Reverse;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::{Instant, advance};

use super::*;
use crate::chooser::Chooser;
use crate::free_index::SeatOrder;
use crate::member::MemberState;
use crate::roster::Roster;
use crate::totals::Totals;
use crate::{EjectSettings, EventLoop, Hold, MemberId, MemberPreference, Membership, Tried, TunnelGuard};

/// The member that a pool must choose: the rules in the simplest code.
struct Scan<'a, E> {
    roster: &'a Roster<E>,
    settings: &'a PoolSettings,
    last: Option<MemberId>,
    kind: Option<LongLived>,
    now: Instant,
}

impl<E> Scan<'_, E> {
    fn place(&self, preference: &MemberPreference) -> Option<usize> {
        let MemberPreference { wanted, only, near, tried, alone, cautious, spread, .. } = *preference;
        let this = |id: MemberId| self.among(spread, |state| state.member.id == id);
        if let Some(only) = only {
            return this(only);
        }
        let is_new = |state: &MemberState<E>| !tried.contains(state.member.id);
        wanted
            .and_then(this)
            .or_else(|| if alone { self.among(spread, |state| state.in_use == 0) } else { None })
            .or_else(|| {
                let is_sure = |state: &MemberState<E>| !state.is_wary(self.now) && is_new(state);
                if cautious { self.among(spread, is_sure) } else { None }
            })
            .or_else(|| if near { self.among(spread, |state| state.near && is_new(state)) } else { None })
            .or_else(|| self.among(spread, is_new))
            .or_else(|| self.among(spread, |_| true))
    }

    fn among(&self, spread: bool, fits: impl Fn(&MemberState<E>) -> bool) -> Option<usize> {
        let is_free = |state: &MemberState<E>| {
            let has_room = self.kind.is_none_or(|kind| state.has_room_for(kind, self.settings));
            state.may_have_free_slot(self.now) && has_room && fits(state)
        };
        let free = || self.roster.states().iter().enumerate().filter(|(_, state)| is_free(state));
        let chosen = match self.settings.choice {
            _ if spread || self.kind.is_some() => {
                free().min_by_key(|(_, state)| (state.all_long_lived(), state.in_use, state.last_used))
            }
            MemberChoice::Warm => free().min_by_key(|(_, state)| (state.in_use, Reverse(state.last_used))),
            MemberChoice::RoundRobin => {
                free().find(|(_, state)| Some(state.member.id) > self.last).or_else(|| free().next())
            }
            MemberChoice::LeastBusy => free().min_by(|(_, a), (_, b)| {
                let (left, right) = (a.in_use * b.slots, b.in_use * a.slots);
                left.cmp(&right).then(a.last_used.cmp(&b.last_used))
            }),
        };
        chosen.map(|(place, _)| place)
    }
}

/// Compares the index and the sums of a pool with a look at each member.
pub(super) fn check<E>(pool: &Pool<E>) {
    let mut state = pool.shared.lock();
    let (settings, now) = (state.settings, Instant::now());
    let mut totals = Totals::default();
    for member_state in state.roster.states() {
        totals.replace(Totals::default(), Totals::of(member_state, &settings));
    }
    assert_eq!(*state.roster.totals(), totals);
    let roster = &mut state.roster;
    roster.advance(now);
    let ids: Vec<_> = roster.states().iter().map(|state| Some(state.member.id)).chain([None]).collect();
    for preference in preferences(&ids) {
        for kind in [None, Some(LongLived::Tunnel), Some(LongLived::Stream)] {
            let spreads = kind.is_some() || preference.spread;
            roster.prepare(SeatOrder { spreads, near: false });
            roster.prepare(SeatOrder { spreads, near: preference.near });
            for last in &ids {
                let (roster, settings, last) = (&*roster, &settings, *last);
                let chosen = Chooser { roster, settings, last, kind, now }.place(&preference);
                let expected = Scan { roster, settings, last, kind, now }.place(&preference);
                assert_eq!(chosen, expected, "{preference:?} {kind:?} after {last:?}");
            }
        }
    }
}

fn preferences(ids: &[Option<MemberId>]) -> Vec<MemberPreference> {
    let any = MemberPreference::default();
    let mut tried = Tried::default();
    ids.iter().rev().flatten().take(2).for_each(|id| tried.add(*id));
    let first = ids[0];
    let base = [
        any,
        MemberPreference { near: true, ..any },
        MemberPreference { tried, ..any },
        MemberPreference { near: true, tried, cautious: true, ..any },
        MemberPreference { alone: true, ..any },
        MemberPreference { cautious: true, ..any },
        MemberPreference { wanted: first, ..any },
        MemberPreference { only: first, ..any },
    ];
    base.into_iter().flat_map(|one| [one, MemberPreference { spread: true, ..one }]).collect()
}

/// An event loop that a step of a history sets: the CPU time that it has used, or [`BUSY`].
#[derive(Default)]
struct TestLoop(AtomicU64);

const BUSY: u64 = u64::MAX;

impl EventLoop for TestLoop {
    fn cpu_if_waiting(&self) -> Option<Duration> {
        let cpu = self.0.load(Ordering::SeqCst);
        (cpu != BUSY).then(|| Duration::from_micros(cpu))
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A request for a member of this number among those that ever joined, or for any.
    Arrive {
        preference: u8,
        member: Option<usize>,
        kind: Option<LongLived>,
    },
    Poll(usize),
    Leave(usize),
    Sent(usize),
    /// A lease ends in one of three ways.
    End(usize, u8),
    Strike(usize),
    Reached(usize),
    Tunnel(usize),
    EndTunnel(usize),
    BeginStream(usize),
    /// A member joins: with slots, near, or with an observed event loop.
    Join(usize, u8),
    Part(usize, bool),
    Resize(usize, usize),
    Health(usize, bool),
    Hold(usize),
    EndHold(usize),
    /// A loop computes, or has used this much CPU time more.
    Loop(usize, Option<u64>),
    Settings(MemberChoice, usize),
    Pause(bool),
    Pass(u64),
}

fn kind() -> impl Strategy<Value = Option<LongLived>> {
    prop_oneof![4 => Just(None), 1 => Just(Some(LongLived::Tunnel)), 1 => Just(Some(LongLived::Stream))]
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0..9usize;
    let arrive = (any::<u8>(), prop::option::weighted(0.3, 0..6usize), kind());
    prop_oneof![
        12 => arrive.prop_map(|(preference, member, kind)| Step::Arrive { preference, member, kind }),
        4 => which().prop_map(Step::Poll),
        1 => which().prop_map(Step::Leave),
        3 => which().prop_map(Step::Sent),
        8 => (which(), 0..6u8).prop_map(|(lease, how)| Step::End(lease, how)),
        2 => which().prop_map(Step::Strike),
        2 => which().prop_map(Step::Reached),
        1 => which().prop_map(Step::Tunnel),
        1 => which().prop_map(Step::EndTunnel),
        1 => which().prop_map(Step::BeginStream),
        3 => ((0..4usize), (0..4u8)).prop_map(|(slots, how)| Step::Join(slots, how)),
        1 => (which(), any::<bool>()).prop_map(|(member, serves)| Step::Part(member, serves)),
        1 => (which(), 0..4usize).prop_map(|(member, slots)| Step::Resize(member, slots)),
        1 => (which(), any::<bool>()).prop_map(|(member, healthy)| Step::Health(member, healthy)),
        1 => which().prop_map(Step::Hold),
        1 => which().prop_map(Step::EndHold),
        3 => (which(), prop::option::of(0..2000u64)).prop_map(|(member, cpu)| Step::Loop(member, cpu)),
        1 => (choice(), 1..4usize).prop_map(|(choice, most)| Step::Settings(choice, most)),
        1 => prop::bool::weighted(0.3).prop_map(Step::Pause),
        6 => prop_oneof![1..100u64, 1000..100_000u64, 1_000_000..30_000_000u64].prop_map(Step::Pass),
    ]
}

fn choice() -> impl Strategy<Value = MemberChoice> {
    prop_oneof![Just(MemberChoice::Warm), Just(MemberChoice::RoundRobin), Just(MemberChoice::LeastBusy)]
}

type Name = &'static str;

struct World {
    pool: Pool<Name>,
    members: Vec<(Membership<Name>, Arc<TestLoop>)>,
    ids: Vec<MemberId>,
    waiting: Vec<Request<Name>>,
    leases: Vec<Lease<Name>>,
    tunnels: Vec<TunnelGuard<Name>>,
    holds: Vec<Hold<Name>>,
}

fn take<T>(list: &mut Vec<T>, index: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(index % list.len()))
}

fn settings(choice: MemberChoice, most: usize) -> PoolSettings {
    let eject = EjectSettings { failures: 2, min: Duration::from_secs(1), ..EjectSettings::default() };
    PoolSettings { choice, max_tunnels: most, max_streams: most + 1, eject, ..PoolSettings::default() }
}

impl World {
    fn new() -> Self {
        let pool = Pool::new("test", settings(MemberChoice::Warm, 2));
        let (members, ids, waiting, leases) = Default::default();
        Self { pool, members, ids, waiting, leases, tunnels: vec![], holds: vec![] }
    }

    fn arrive(&mut self, preference: u8, member: Option<usize>, kind: Option<LongLived>) {
        let has = |bit: u8| preference & (1 << bit) != 0;
        let member = member.and_then(|index| self.ids.get(index).copied());
        let (bound, only, wanted) = match preference >> 6 {
            0 => (member, None, None),
            1 => (None, member, None),
            _ => (None, None, member),
        };
        let preference = MemberPreference {
            bound,
            only,
            wanted,
            near: has(0),
            spread: has(1),
            cautious: has(2),
            alone: has(3) && has(4),
            forgiving: has(3) && has(5),
            ..MemberPreference::default()
        };
        let request = of(self.pool.acquire(Claim { long_lived: kind, preference, ..Claim::default() }));
        self.waiting.push(request);
        self.poll(self.waiting.len() - 1);
    }

    fn poll(&mut self, index: usize) {
        if let Poll::Ready(answer) = self.waiting[index].poll() {
            self.waiting.remove(index);
            self.leases.extend(answer.ok());
        }
    }

    fn with_lease(&mut self, index: usize, act: impl FnOnce(&mut Lease<Name>)) {
        let count = self.leases.len();
        if count > 0 {
            act(&mut self.leases[index % count]);
        }
    }

    fn with_member(&mut self, index: usize, act: impl FnOnce(&mut (Membership<Name>, Arc<TestLoop>))) {
        let count = self.members.len();
        if count > 0 {
            act(&mut self.members[index % count]);
        }
    }

    fn join(&mut self, slots: usize, how: u8) {
        let event_loop = Arc::new(TestLoop::default());
        let member = match how {
            0 | 1 => self.pool.join("plain", slots),
            2 => self.pool.join_near("near", slots),
            _ => self.pool.join_observed("observed", slots + 1, event_loop.clone()),
        };
        self.ids.push(member.id());
        self.members.push((member, event_loop));
    }

    fn end(&mut self, index: usize, how: u8) {
        let Some(lease) = take(&mut self.leases, index) else { return };
        match how {
            0 => lease.end(LeaseEnding::Unreachable),
            1 => lease.end(LeaseEnding::HungUp),
            2 => drop(lease),
            _ => lease.end(LeaseEnding::Finished(Instant::now())),
        }
    }

    fn tunnel(&mut self, index: usize) {
        if let Some(lease) = take(&mut self.leases, index) {
            match lease.is_stream() {
                true => drop(lease),
                false => self.tunnels.push(lease.tunnel_guard()),
            }
        }
    }

    async fn apply(&mut self, step: Step) {
        match step {
            Step::Arrive { preference, member, kind } => self.arrive(preference, member, kind),
            Step::Poll(index) if !self.waiting.is_empty() => self.poll(index % self.waiting.len()),
            Step::Poll(_) => {}
            Step::Leave(index) => drop(take(&mut self.waiting, index)),
            Step::Sent(index) => self.with_lease(index, |lease| lease.sent()),
            Step::End(index, how) => self.end(index, how),
            Step::Strike(index) => self.with_lease(index, |lease| _ = lease.strike()),
            Step::Reached(index) => self.with_lease(index, |lease| _ = lease.reached()),
            Step::Tunnel(index) => self.tunnel(index),
            Step::EndTunnel(index) => drop(take(&mut self.tunnels, index)),
            Step::BeginStream(index) => self.with_lease(index, |lease| {
                _ = !lease.is_stream() && lease.begin_stream();
            }),
            Step::Join(slots, how) => self.join(slots, how),
            Step::Part(index, serves) => {
                if let Some((member, _)) = take(&mut self.members, index) {
                    if serves { drop(member.leave()) } else { drop(member) }
                }
            }
            Step::Resize(index, slots) => self.with_member(index, |(member, _)| member.set_slots(slots)),
            Step::Health(index, healthy) => {
                self.with_member(index, |(member, _)| _ = member.set_health(healthy));
            }
            Step::Hold(index) => {
                let mut hold = None;
                self.with_member(index, |(member, _)| hold = member.gauge().hold());
                self.holds.extend(hold);
            }
            Step::EndHold(index) => drop(take(&mut self.holds, index)),
            Step::Loop(index, cpu) => self.with_member(index, |(_, event_loop)| {
                let used = event_loop.0.load(Ordering::SeqCst);
                let used = if used == BUSY { 0 } else { used };
                event_loop.0.store(cpu.map_or(BUSY, |more| used + more), Ordering::SeqCst);
            }),
            Step::Settings(choice, most) => self.pool.update(settings(choice, most)),
            Step::Pause(true) => self.pool.pause(),
            Step::Pause(false) => self.pool.resume(),
            Step::Pass(micros) => advance(Duration::from_micros(micros)).await,
        }
    }
}

async fn live(steps: Vec<Step>) {
    let mut world = World::new();
    world.join(2, 0);
    for step in steps {
        world.apply(step).await;
        check(&world.pool);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_index_and_a_look_at_each_member_find_the_same_member(steps in prop::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(live(steps));
    }
}

#[test]
fn a_pool_of_thousands_takes_turns_and_finds_the_last_free_slot() {
    let pool =
        Pool::new("test", PoolSettings { choice: MemberChoice::RoundRobin, ..PoolSettings::default() });
    let _members: Vec<_> = (0..3000).map(|_| pool.join("a", 1)).collect();
    let leases: Vec<_> = (0..2999).map(|_| lease(&pool)).collect();
    let ids: Vec<_> = leases.iter().map(Lease::member).collect();
    assert!(ids.is_sorted(), "in turn");
    let last = lease(&pool);
    assert!(last.member() > ids[2998]);
    waiting(&pool).assert_waits();
}

#[test]
fn each_endpoint_is_visited_once_however_many_there_are() {
    let pool = pool(9);
    let _members: Vec<_> = (0..200).map(|_| pool.join("a", 1)).collect();
    let visits = AtomicUsize::new(0);
    pool.each_endpoint(|_| _ = visits.fetch_add(1, Ordering::SeqCst));
    assert_eq!(visits.load(Ordering::SeqCst), 200);
}
