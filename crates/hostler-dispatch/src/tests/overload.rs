//! What the queue does under load, in virtual time. docs/concepts/overload.md quotes the printed figures.

use std::time::Duration;

use super::simulation::World;
use super::workload::Holding;
use super::*;
use crate::{MemberPreference, Membership, Policy, PoolSnapshot, Priority, WorkKind};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const TIME_LIMIT: Duration = Duration::from_secs(5);

const HOLDINGS: [Holding; 3] =
    [Holding::Fixed(Duration::from_millis(20)), Holding::Exponential(Duration::from_millis(20)), UNEVEN];

/// Nineteen of twenty take 4 ms, the others 100 ms.
const UNEVEN: Holding = Holding::Either(Duration::from_millis(4), 0.05, Duration::from_millis(100));

#[tokio::test(start_paused = true)]
async fn while_the_pool_keeps_up_no_request_is_refused_and_order_is_by_arrival() {
    for holding in HOLDINGS {
        for load in [0.5, 0.8, 0.95] {
            let mut world = World::new(Policy::Adaptive, 4, holding, TIME_LIMIT);
            world.pour(load, 30 * SECOND, Priority::Normal);
            world.run(None).await;
            assert_eq!(world.refusals(), 0, "{holding:?} at {load}");
            assert!(world.is_in_order(), "{holding:?} at {load}");
        }
    }
}

/// Twice the capacity for 30 s, then half of it for 10 s.
async fn flooded(policy: Policy, slots: usize, holding: Holding) -> World {
    let mut world = World::new(policy, slots, holding, TIME_LIMIT);
    world.pour(2.0, 30 * SECOND, Priority::Normal);
    world.run(Some(30 * SECOND)).await;
    world.pour(0.5, 10 * SECOND, Priority::Normal);
    world.run(Some(SECOND)).await;
    let was_overloaded = world.pool.snapshot().overloaded;
    world.run(None).await;
    println!(
        "{policy:?}, {slots} slots, {holding:?}: goodput {:.3}, p50 {:?}, p99 {:?}; a second later p99 {:?}",
        world.goodput(Duration::ZERO, 30 * SECOND),
        world.latency(0.5, Duration::ZERO, 30 * SECOND),
        world.latency(0.99, Duration::ZERO, 30 * SECOND),
        world.latency(0.99, 31 * SECOND, 41 * SECOND),
    );
    assert!(!was_overloaded, "{policy:?}, {holding:?}: still overloaded a second after the end");
    world
}

#[tokio::test(start_paused = true)]
async fn under_twice_its_capacity_the_pool_answers_at_full_rate_and_recovers_within_a_second() {
    let four_ms = [Holding::Fixed(4 * MS), Holding::Exponential(4 * MS)].map(|holding| (2, holding));
    for (slots, holding) in HOLDINGS.map(|holding| (4, holding)).into_iter().chain(four_ms) {
        let world = flooded(Policy::Adaptive, slots, holding).await;
        let goodput = world.goodput(Duration::ZERO, 30 * SECOND);
        assert!(goodput >= 0.95, "{holding:?}: {goodput}");
        let slowest = world.latency(0.99, Duration::ZERO, 30 * SECOND);
        assert!(slowest < TIME_LIMIT / 4, "{holding:?}: {slowest:?}");
        assert!(world.is_in_order());
        assert_eq!(world.pool.snapshot().counters.overloads, 1);
        let after = world.latency(0.99, 31 * SECOND, 41 * SECOND);
        assert!(after < 150 * MS, "{holding:?}: {after:?}");
        let late = world.stories.iter().filter(|story| story.arrived > 31 * SECOND);
        assert_eq!(late.filter(|story| story.refused.is_some()).count(), 0, "{holding:?}");
        assert_eq!(world.pool.snapshot().queue_length, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_queue_and_a_hung_worker_cost_no_more_than_their_share() {
    let mut world = World::new(Policy::Adaptive, 4, Holding::Exponential(20 * MS), TIME_LIMIT);
    world.pool.update(PoolSettings { queue_limit: 100, ..PoolSettings::default() });
    let _hung = lease(&world.pool);
    world.pour(1.5, 30 * SECOND, Priority::Normal);
    world.run(Some(30 * SECOND)).await;
    let (goodput, slowest) = (
        world.goodput(Duration::ZERO, 30 * SECOND) * 4.0 / 3.0,
        world.latency(0.99, Duration::ZERO, 30 * SECOND),
    );
    println!("one of 4 hangs: goodput {goodput:.3}, p99 {slowest:?}");
    assert!(goodput >= 0.95, "{goodput}");
    assert!(slowest < TIME_LIMIT / 4, "{slowest:?}");
}

#[tokio::test(start_paused = true)]
async fn the_slots_of_unhealthy_members_do_not_hide_an_overload() {
    let mut world = World::new(Policy::Adaptive, 2, Holding::Exponential(20 * MS), TIME_LIMIT);
    let unhealthy = [world.pool.join((), 1), world.pool.join((), 1)];
    unhealthy.iter().for_each(|member| _ = member.set_health(false));
    world.pour(2.0, 30 * SECOND, Priority::Normal);
    world.run(Some(30 * SECOND)).await;
    let slowest = world.latency(0.99, Duration::ZERO, 30 * SECOND);
    assert!(slowest < TIME_LIMIT / 3, "{slowest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_grows_because_members_are_lost_is_no_overload() {
    let mut refusals = [0, 0];
    for (refused, members_are_lost) in refusals.iter_mut().zip([false, true]) {
        let mut world = World::new(Policy::Adaptive, 4, Holding::Fixed(20 * MS), TIME_LIMIT);
        world.pour(1.6, 6 * SECOND, Priority::Normal);
        for _ in 0..12 {
            world.run(Some(SECOND / 2)).await;
            if members_are_lost {
                world.replace_a_member();
            }
        }
        world.run(None).await;
        *refused = world.refusals();
    }
    assert!(refusals[0] > 0, "with the same members it is one");
    assert_eq!(refusals[1], 0, "all waiting requests can be served in time");
}

#[tokio::test(start_paused = true)]
async fn routes_with_service_times_two_thousand_times_apart_share_a_pool_fairly() {
    let holding = Holding::Either(MS, 0.05, 2 * SECOND);
    let mut world = World::new(Policy::Adaptive, 16, holding, TIME_LIMIT);
    world.pour(0.8, 30 * SECOND, Priority::Normal);
    world.run(None).await;
    assert_eq!(world.refusals(), 0);
    assert!(world.is_in_order());

    let mut goodputs = [Policy::Adaptive, Policy::Fifo].map(|_| 0.0);
    for (goodput, policy) in goodputs.iter_mut().zip([Policy::Adaptive, Policy::Fifo]) {
        let mut world = World::new(policy, 16, holding, TIME_LIMIT);
        world.pour(2.0, 30 * SECOND, Priority::Normal);
        world.run(Some(30 * SECOND)).await;
        *goodput = world.goodput(Duration::ZERO, 30 * SECOND);
        println!(
            "{policy:?}, 1 ms or 2 s: goodput {goodput:.3}, p50 {:?}",
            world.latency(0.5, Duration::ZERO, 30 * SECOND)
        );
    }
    assert!(goodputs[0] > goodputs[1] - 0.05, "{goodputs:?}");
}

#[tokio::test(start_paused = true)]
async fn with_arrival_order_alone_most_answers_would_be_late() {
    for holding in HOLDINGS {
        let world = flooded(Policy::Fifo, 4, holding).await;
        assert!(world.is_in_order());
        assert_eq!(world.pool.snapshot().counters.overloads, 0);
        let goodput = world.goodput(Duration::ZERO, 30 * SECOND);
        assert!(goodput < 0.9, "{holding:?}: {goodput}");
        assert!(world.latency(0.5, Duration::ZERO, 30 * SECOND) > TIME_LIMIT * 9 / 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_that_drains_in_time_loses_no_request_and_is_served_in_order() {
    let holding = Holding::Fixed(20 * MS);
    for (count, time) in [(100, Duration::ZERO), (200, 300 * MS), (400, SECOND)] {
        for warm in [false, true] {
            let mut world = World::new(Policy::Adaptive, 2, holding, TIME_LIMIT);
            if warm {
                world.pour(0.9, 5 * SECOND, Priority::Normal);
                world.run(None).await;
            }
            if time.is_zero() {
                world.burst(count);
            } else {
                world.pour(count as f64 / world.capacity() / time.as_secs_f64(), time, Priority::Normal);
            }
            world.run(None).await;
            assert_eq!(world.refusals(), 0, "{count} in {time:?}");
            assert!(world.is_in_order(), "{count} in {time:?}");
            assert!(world.stories.iter().all(|story| story.is_good()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn clients_in_a_closed_loop_are_all_served() {
    for (clients, slots) in [(20, 1), (64, 1), (100, 2), (1000, 1)] {
        let mut world = World::new(Policy::Adaptive, slots, Holding::Exponential(4 * MS), TIME_LIMIT);
        world.comes_again = true;
        world.burst(clients);
        world.run(Some(10 * SECOND)).await;
        assert_eq!(world.refusals(), 0, "{clients} clients");
    }
}

#[tokio::test(start_paused = true)]
async fn the_low_class_is_refused_first_and_still_gets_its_share() {
    let mut world = World::new(Policy::Adaptive, 4, Holding::Fixed(20 * MS), TIME_LIMIT);
    world.pour(0.7, 20 * SECOND, Priority::High);
    world.pour(1.3, 20 * SECOND, Priority::Low);
    world.run(None).await;
    let of = |priority| world.stories.iter().filter(move |story| story.priority == priority);
    assert_eq!(of(Priority::High).filter(|story| story.refused.is_some()).count(), 0);
    assert!(of(Priority::High).all(|story| story.wait().is_some_and(|wait| wait < 100 * MS)));
    assert!(of(Priority::Low).filter(|story| story.is_good()).count() > 900);
    assert!(world.goodput(Duration::ZERO, 20 * SECOND) >= 0.95);
}

#[tokio::test(start_paused = true)]
async fn a_class_recovers_while_a_lower_one_is_still_overloaded() {
    let mut world = World::new(Policy::Adaptive, 4, Holding::Exponential(20 * MS), TIME_LIMIT);
    world.pour(2.0, 20 * SECOND, Priority::Low);
    world.pour(2.0, 5 * SECOND, Priority::High);
    world.run(Some(6 * SECOND)).await;
    let served_before = world.served.len();
    world.pour(0.8, 10 * SECOND, Priority::High);
    world.run(Some(10 * SECOND)).await;
    assert!(world.pool.snapshot().overloaded);
    let high: Vec<_> = world.served[served_before..]
        .iter()
        .filter(|index| world.stories[**index].priority == Priority::High)
        .collect();
    assert!(high.len() > 1000 && high.is_sorted(), "{} of 1600", high.len());
}

/// A pool of one slot that knows its service time: 20 ms.
async fn measured() -> (World, Duration) {
    let mut world = World::new(Policy::Adaptive, 1, Holding::Fixed(20 * MS), TIME_LIMIT);
    world.burst(20);
    world.run(None).await;
    (world, 20 * MS)
}

#[tokio::test(start_paused = true)]
async fn the_service_time_is_measured_and_unknown_at_first() {
    let cold = World::new(Policy::Adaptive, 1, Holding::Fixed(20 * MS), TIME_LIMIT);
    assert_eq!(cold.pool.snapshot().service_time, None);
    let (world, service) = measured().await;
    assert_eq!(world.pool.snapshot().service_time, Some(service));
}

#[tokio::test(start_paused = true)]
async fn a_hung_member_does_not_count_in_the_service_time() {
    let (world, service) = measured().await;
    let second = world.pool.join((), 1);
    let (_busy, hung) = (lease(&world.pool), lease(&world.pool));
    let _waits = waiting(&world.pool);
    tokio::time::advance(60 * SECOND).await;
    drop(second);
    drop(hung);
    assert_eq!(world.pool.snapshot().service_time, Some(service));
}

#[tokio::test(start_paused = true)]
async fn when_no_slot_becomes_free_in_time_only_as_many_requests_wait_as_there_are_slots() {
    let (world, _) = measured().await;
    let pool = &world.pool;
    let stuck = lease(pool);
    tokio::time::advance(TIME_LIMIT).await;
    let patient = || {
        of(pool
            .acquire(Claim { deadline: Some(tokio::time::Instant::now() + TIME_LIMIT), ..Claim::default() }))
    };
    let mut first = patient();
    first.assert_waits();
    patient().assert_refused(AcquireError::Overloaded);
    assert_eq!(pool.snapshot().counters.refused_overload, 1);
    drop(stuck);
    first.assert_served();
    drop(patient().lease());
}

/// A pool of one slot that is in use. It knows that kind 1 takes 1 ms and kind 2 takes 101 ms.
async fn with_two_kinds() -> (Pool<()>, Membership<()>, Lease<()>) {
    let pool = Pool::new("test", PoolSettings { queue_limit: 1000, ..PoolSettings::default() });
    let member = pool.join((), 1);
    for _ in 0..20 {
        for (kind, time) in [(1, MS), (2, 101 * MS)] {
            let lease = of_kind(&pool, kind).lease();
            tokio::time::advance(time).await;
            drop(lease);
        }
    }
    let busy = lease(&pool);
    // The member is not new any more.
    of_kind(&pool, 1).assert_waits();
    tokio::time::advance(2 * SECOND).await;
    (pool, member, busy)
}

fn of_kind(pool: &Pool<()>, kind: u64) -> Request<()> {
    let deadline = Some(tokio::time::Instant::now() + TIME_LIMIT);
    of(pool.acquire(Claim { kind: Some(WorkKind::of(kind)), deadline, ..Claim::default() }))
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_judged_by_what_its_requests_cost_and_not_by_their_number() {
    let (pool, _member, _busy) = with_two_kinds().await;
    let mut fast: Vec<_> = (0..60).map(|_| of_kind(&pool, 1)).collect();
    fast.iter_mut().for_each(Request::assert_waits);
    drop(fast);
    let mut slow: Vec<_> = (0..50).map(|_| of_kind(&pool, 2)).collect();
    slow.iter_mut().for_each(Request::assert_waits);
    of_kind(&pool, 2).assert_refused(AcquireError::Overloaded);
    let figures = pool.snapshot();
    assert_eq!((figures.overloaded, figures.counters.overloads), (true, 1));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_has_just_joined_or_left_makes_no_overload() {
    let (pool, member, busy) = with_two_kinds().await;
    let second = pool.join((), 0);
    let mut all: Vec<_> = (0..60).map(|_| of_kind(&pool, 2)).collect();
    all.iter_mut().for_each(Request::assert_waits);
    drop((all, second, member, busy));
    assert_eq!(pool.snapshot().counters.overloads, 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_time_limit_is_never_refused_because_of_overload() {
    let (pool, _member, _busy) = with_two_kinds().await;
    let patient = || of(pool.acquire(Claim { kind: Some(WorkKind::of(2)), ..Claim::default() }));
    let mut all: Vec<_> = (0..200).map(|_| patient()).collect();
    all.iter_mut().for_each(Request::assert_waits);
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_their_own_member_are_judged_by_its_queue() {
    let (pool, member, _busy) = with_two_kinds().await;
    let bound = || {
        let deadline = Some(tokio::time::Instant::now() + TIME_LIMIT);
        let preference = MemberPreference { bound: Some(member.id()), ..MemberPreference::default() };
        of(pool.acquire(Claim { preference, deadline, ..Claim::default() }))
    };
    // The mean is 51 ms.
    let mut all: Vec<_> = (0..99).map(|_| bound()).collect();
    all.iter_mut().for_each(Request::assert_waits);
    bound().assert_refused(AcquireError::Overloaded);
    of_kind(&pool, 1).assert_waits();
}

#[tokio::test(start_paused = true)]
async fn an_overload_of_tunnels_that_wait_for_room_ends_when_none_waits() {
    let (world, _) = measured().await;
    let pool = &world.pool;
    pool.update(PoolSettings { max_tunnels: 1, queue_limit: 1000, ..PoolSettings::default() });
    let tunnel = || {
        let deadline = Some(tokio::time::Instant::now() + TIME_LIMIT);
        of(pool.acquire(Claim { long_lived: Some(LongLived::Tunnel), deadline, ..Claim::default() }))
    };
    let _open = tunnel().lease().tunnel_guard();
    let with_room = pool.join((), 1);
    let _busy = [lease(pool), lease(pool)].into_iter().find(|lease| lease.member() == with_room.id());
    // The member is not new any more.
    tunnel().assert_waits();
    tokio::time::advance(2 * SECOND).await;
    let mut all = Vec::new();
    while !pool.snapshot().overloaded {
        let mut next = tunnel();
        let _ = next.poll();
        all.push(next);
    }
    drop(all);
    tokio::time::advance(SECOND).await;
    // The last one waits for longer than the target.
    let mut again: Vec<_> = (0..20).map(|_| tunnel()).collect();
    again.iter_mut().for_each(Request::assert_waits);
}

/// One request in 10 ms waits for its own member, which serves one in 20 ms, or in 9 ms.
async fn of_one_member(service: Duration) -> (PoolSnapshot<()>, Duration) {
    let (world, _) = measured().await;
    let (pool, began) = (&world.pool, tokio::time::Instant::now());
    let preference = MemberPreference { bound: Some(pool.rank(|()| 0).first.unwrap()), ..Default::default() };
    let (mut waiting, mut busy, mut longest) = (std::collections::VecDeque::new(), None, Duration::ZERO);
    let mut free_at = began;
    for number in 0..1500 {
        let comes = began + 10 * MS * number;
        while free_at <= comes {
            tokio::time::advance(free_at.saturating_duration_since(tokio::time::Instant::now())).await;
            busy = None;
            let Some((mut next, since)) = waiting.pop_front() else { break };
            let next: &mut Request<()> = &mut next;
            busy = Some(next.lease());
            longest = longest.max(free_at.saturating_duration_since(since));
            free_at += service;
        }
        tokio::time::advance(comes.saturating_duration_since(tokio::time::Instant::now())).await;
        let mut request =
            of(pool.acquire(Claim { preference, deadline: Some(comes + TIME_LIMIT), ..Claim::default() }));
        match request.poll() {
            std::task::Poll::Pending => waiting.push_back((request, comes)),
            std::task::Poll::Ready(Ok(lease)) => (busy, free_at) = (Some(lease), comes + service),
            std::task::Poll::Ready(Err(error)) => assert_eq!(error, AcquireError::Overloaded),
        }
    }
    drop(busy);
    (pool.snapshot(), longest)
}

#[tokio::test(start_paused = true)]
async fn an_overload_of_requests_that_wait_for_their_own_member_begins_before_they_are_too_late() {
    let (figures, longest) = of_one_member(20 * MS).await;
    assert_eq!(figures.counters.overloads, 1);
    assert!(figures.counters.refused_overload > 500, "{}", figures.counters.refused_overload);
    assert!(longest < TIME_LIMIT / 3, "{longest:?}");
    let (figures, _) = of_one_member(9 * MS).await;
    assert_eq!((figures.counters.overloads, figures.counters.refused_overload), (0, 0));
}
