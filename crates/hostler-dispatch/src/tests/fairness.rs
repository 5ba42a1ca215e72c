//! The order of arrival, the queue limit, and leaving the queue.

use std::time::Duration;

use super::*;
use crate::Priority;

#[test]
fn a_free_slot_is_granted_at_once() {
    let pool = pool(0);
    let _member = pool.join("a", 1);
    assert_eq!(*lease(&pool), "a");
}

#[test]
fn a_full_queue_is_refused_at_once_and_a_slot_given_back_goes_to_the_longest_waiting() {
    let pool = pool(2);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let (mut first, mut second) = (waiting(&pool), waiting(&pool));
    request(&pool).assert_refused(AcquireError::QueueFull { limit: 2 });

    drop(running);
    assert!(first.woken() && !second.woken());
    second.assert_waits();
    first.assert_served();
    second.assert_served();
    let figures = pool.snapshot().counters;
    assert_eq!((figures.granted, figures.queued, figures.refused_full), (3, 2, 1));
}

#[test]
fn a_new_request_does_not_overtake_one_whose_granted_slot_is_not_yet_taken() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut first = waiting(&pool);
    drop(running);
    let mut late = waiting(&pool);
    first.assert_served();
    late.assert_served();
}

#[test]
fn a_request_that_leaves_is_removed_from_the_queue_at_once() {
    let pool = pool(2);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let (first, mut second) = (waiting(&pool), waiting(&pool));
    drop(first);
    assert_eq!(pool.snapshot().queue_length, 1);
    let _third = waiting(&pool);
    drop(running);
    second.assert_served();
    assert_eq!(pool.snapshot().counters.left_queue, 1);
}

#[test]
fn a_crowd_that_left_a_stuck_pool_leaves_no_queue_entries() {
    let pool = pool(10);
    let _member = pool.join("a", 1);
    let _stuck = lease(&pool);
    let _patient = waiting(&pool);
    for _ in 0..50_000 {
        let _crowd: Vec<_> = (0..9).map(|_| waiting(&pool)).collect();
        assert_eq!(pool.snapshot().queue_length, 10);
    }
    assert_eq!(pool.snapshot().queue_length, 1);
    assert_eq!(pool.snapshot().counters.left_queue, 450_000);
}

#[test]
fn a_granted_slot_that_is_not_taken_goes_to_the_next_request() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let (first, mut second) = (waiting(&pool), waiting(&pool));
    drop(running);
    assert!(first.woken());
    drop(first);
    assert!(second.woken());
    second.assert_served();
    assert_eq!(pool.snapshot().in_use, 0);
}

#[test]
fn a_returning_ticket_keeps_its_place_and_does_not_count_against_the_limit() {
    let pool = pool(1);
    let _member = pool.join("a", 1);
    let mut early = request(&pool);
    let (ticket, early) = (early.ticket(), early.lease());
    let mut late = waiting(&pool);
    drop(early);
    let blocking = late.lease();

    let mut later = waiting(&pool);
    let mut again = of(pool.acquire(Claim::again(ticket)));
    again.assert_waits();
    assert_eq!(pool.snapshot().queue_length, 2);
    request(&pool).assert_refused(AcquireError::QueueFull { limit: 1 });

    drop(blocking);
    assert!(again.woken() && !later.woken());
    again.assert_served();
    later.assert_served();
}

#[test]
fn a_ticket_used_twice_gives_two_places() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let mut running = request(&pool);
    let (ticket, running) = (running.ticket(), running.lease());
    let (mut one, mut other) =
        (of(pool.acquire(Claim::again(ticket))), of(pool.acquire(Claim::again(ticket))));
    one.assert_waits();
    other.assert_waits();
    drop(running);
    one.assert_served();
    other.assert_served();
}

#[test]
fn a_new_member_serves_waiting_requests_and_one_with_more_slots_serves_more() {
    let pool = pool(9);
    let (mut first, mut second, mut third) = (waiting(&pool), waiting(&pool), waiting(&pool));
    let member = pool.join("a", 1);
    let _one = first.lease();
    second.assert_waits();
    member.set_slots(2);
    let _two = second.lease();
    third.assert_waits();
    member.set_slots(1);
    drop(_one);
    third.assert_waits();
    drop(_two);
    third.assert_served();
}

#[test]
fn a_member_that_has_left_gets_nothing_and_is_forgotten_when_its_last_lease_ends() {
    let pool = pool(9);
    let member = pool.join("a", 2);
    let running = lease(&pool);
    drop(member);
    let _waits = waiting(&pool);
    let figures = pool.snapshot();
    assert_eq!((figures.slots, figures.in_use, figures.members[0].figures.left), (1, 1, true));
    drop(running);
    assert!(pool.snapshot().members.is_empty());
}

#[test]
fn a_slot_granted_at_a_member_that_left_is_not_taken() {
    let pool = pool(9);
    let leaving = pool.join("leaving", 1);
    let running = lease(&pool);
    let mut first = waiting(&pool);
    let mut second = waiting(&pool);
    drop(running);
    drop(leaving);
    first.assert_waits();
    assert_eq!((pool.snapshot().in_use, pool.snapshot().queue_length), (0, 2));

    let _other = pool.join("other", 1);
    second.assert_waits();
    assert_eq!(*first.lease(), "other");
}

#[test]
fn closing_ends_every_wait_and_running_leases_end_by_themselves() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut first = waiting(&pool);
    pool.close();
    assert!(first.woken());
    first.assert_refused(AcquireError::Closed);
    request(&pool).assert_refused(AcquireError::Closed);
    drop(running);
    assert_eq!((pool.snapshot().in_use, pool.snapshot().queue_length), (0, 0));
}

#[test]
fn a_lower_limit_does_not_affect_waiting_requests() {
    let pool = pool(9);
    let mut first = waiting(&pool);
    pool.update(PoolSettings { queue_limit: 0, ..PoolSettings::default() });
    request(&pool).assert_refused(AcquireError::QueueFull { limit: 0 });
    let _member = pool.join("a", 1);
    first.assert_served();
}

#[tokio::test(start_paused = true)]
async fn more_than_the_limit_may_wait_if_the_pool_serves_so_many_in_the_time_of_a_burst() {
    let (second, tenth) = (Duration::from_secs(1), Duration::from_millis(100));
    let pool = pool(4);
    pool.update(PoolSettings { queue_limit: 4, burst: second, ..PoolSettings::default() });
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let waits: Vec<_> = (0..4).map(|_| waiting(&pool)).collect();
    request(&pool).assert_refused(AcquireError::QueueFull { limit: 4 });
    drop((waits, running));
    serve(&pool, 50, tenth).await;
    // Ten requests a second.
    let _running = lease(&pool);
    let mut waits: Vec<_> = (0..10).map(|_| waiting(&pool)).collect();
    request(&pool).assert_refused(AcquireError::QueueFull { limit: 10 });
    assert!(pool.refuse_early(Priority::Normal, None).is_some());
    pool.update(PoolSettings { queue_limit: 4, burst: 60 * second, ..PoolSettings::default() });
    waits.extend((10..40).map(|_| waiting(&pool)));
    assert_eq!(pool.snapshot().queue_limit, 40, "ten times the limit");
    request(&pool).assert_refused(AcquireError::QueueFull { limit: 40 });
}

#[test]
fn the_last_registered_waker_is_woken() {
    let pool = pool(9);
    let mut request = waiting(&pool);
    let before = std::mem::take(&mut request.wakes);
    request.assert_waits();
    let _member = pool.join("a", 1);
    assert!(request.woken());
    assert_eq!(before.0.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_wait_counts_from_the_first_arrival_also_after_a_retry() {
    let pool = pool(9);
    let member = pool.join("a", 1);
    let mut running = request(&pool);
    let (ticket, running) = (running.ticket(), running.lease());
    tokio::time::advance(Duration::from_secs(2)).await;
    drop(running);
    drop(member);
    let mut again = of(pool.acquire(Claim::again(ticket)));
    again.assert_waits();
    let json = serde_json::to_value(pool.snapshot()).unwrap();
    assert_eq!(json["oldest_wait_ms"], 2000);
}
