//! The picture of a pool: which requests wait, and since when each slot is held.

use std::time::Duration;

use tokio::time::{Instant, advance};

use super::{lease, of, pool, waiting};
use crate::{Claim, MemberPreference, Occupancy, OccupancyLimits, Pool, WorkKind};

fn limits(waiting: usize, members: usize, slots: usize) -> OccupancyLimits {
    OccupancyLimits { waiting, members, slots }
}

fn taken(pool: &Pool<&'static str>) -> Occupancy<&'static str> {
    pool.occupancy(limits(10, 10, 10), |endpoint| *endpoint)
}

#[tokio::test(start_paused = true)]
async fn each_slot_in_use_is_shown_with_its_time_and_kind_until_it_is_returned() {
    let (pool, kind) = (pool(10), WorkKind::of(7));
    let _member = pool.join("a", 2);
    let began = Instant::now();
    let first = of(pool.acquire(Claim { kind: Some(kind), ..Claim::default() })).lease();
    advance(Duration::from_secs(1)).await;
    let second = lease(&pool);
    let [member] = &taken(&pool).members[..] else { panic!("one member") };
    let held: Vec<_> = member.held.iter().map(|held| (held.since - began, held.kind)).collect();
    assert_eq!(held, [(Duration::ZERO, Some(kind)), (Duration::from_secs(1), None)]);
    assert_eq!((member.in_use, member.slots), (2, 2));

    drop(first);
    let held = taken(&pool).members[0].held.clone();
    assert_eq!(held.iter().map(|held| held.since - began).collect::<Vec<_>>(), [Duration::from_secs(1)]);
    drop(second);
    assert!(taken(&pool).members[0].held.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_requests_that_have_waited_longest_are_shown() {
    let pool = pool(10);
    let _member = pool.join("a", 1);
    let began = Instant::now();
    let _busy = lease(&pool);
    let mut requests = Vec::new();
    for _ in 0..3 {
        advance(Duration::from_secs(1)).await;
        requests.push(waiting(&pool));
    }
    let picture = pool.occupancy(limits(2, 10, 10), |_| ());
    let arrived: Vec<_> = picture.waiting.iter().map(|waiting| (waiting.arrived - began).as_secs()).collect();
    assert_eq!((picture.queue_length, &arrived[..]), (3, &[1, 2][..]));
}

#[tokio::test(start_paused = true)]
async fn the_requests_that_have_waited_longest_are_shown_whichever_members_they_are_bound_to() {
    let pool = pool(10);
    let [a, b] = ["a", "b"].map(|name| pool.join(name, 1));
    let began = Instant::now();
    let _busy = [lease(&pool), lease(&pool)];
    let mut requests = Vec::new();
    for member in [b.id(), a.id(), a.id()] {
        advance(Duration::from_secs(1)).await;
        let preference = MemberPreference { bound: Some(member), ..MemberPreference::default() };
        let mut request = of(pool.acquire(Claim { preference, ..Claim::default() }));
        request.assert_waits();
        requests.push(request);
    }
    let picture = pool.occupancy(limits(2, 10, 10), |_| ());
    let arrived: Vec<_> = picture.waiting.iter().map(|waiting| (waiting.arrived - began).as_secs()).collect();
    assert_eq!(arrived, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn long_lists_are_cut_and_the_counts_are_whole() {
    let pool = pool(10);
    let _members = [pool.join("a", 5), pool.join("b", 5)];
    let _leases: Vec<_> = (0..10).map(|_| lease(&pool)).collect();
    let picture = pool.occupancy(limits(0, 1, 3), |_| ());
    assert_eq!((picture.members.len(), picture.member_count), (1, 2));
    assert_eq!((picture.members[0].held.len(), picture.members[0].in_use), (3, 5));
}

#[tokio::test(start_paused = true)]
async fn of_many_slots_those_in_use_longest_are_shown() {
    let pool = pool(10);
    let _member = pool.join("a", 10);
    let began = Instant::now();
    let early: Vec<_> = (0..4).map(|_| lease(&pool)).collect();
    let _long = lease(&pool);
    drop(early);
    advance(Duration::from_secs(1)).await;
    let _late: Vec<_> = (0..4).map(|_| lease(&pool)).collect();
    let picture = pool.occupancy(limits(0, 1, 2), |_| ());
    let since = picture.members[0].held.iter().map(|held| (held.since - began).as_secs());
    assert_eq!(since.min(), Some(0), "the long request is among them");
}
