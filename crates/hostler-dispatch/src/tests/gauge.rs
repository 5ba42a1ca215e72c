//! The load of a member, whether it is blocked, and the hold on its slots.

use std::time::Duration;

use tokio::time::{Instant, advance};

use super::{Request, lease, of, pool, request, serve, waiting};
use crate::Claim;

#[tokio::test(start_paused = true)]
async fn the_time_of_all_leases_adds_up_also_while_they_run() {
    let pool = pool(10);
    let member = pool.join("a", 3);
    let gauge = member.gauge();
    let (first, second) = (lease(&pool), lease(&pool));
    advance(Duration::from_secs(2)).await;
    drop(first);
    advance(Duration::from_secs(3)).await;
    let load = gauge.load().unwrap();
    assert_eq!((load.lease_time, load.in_use, load.granted), (Duration::from_secs(7), 1, 2));
    drop(second);
    advance(Duration::from_secs(5)).await;
    assert_eq!(gauge.load().unwrap().lease_time, Duration::from_secs(7));
}

#[test]
fn a_gauge_reads_the_queue_length_and_changes_the_slots() {
    let pool = pool(10);
    let member = pool.join("a", 1);
    let gauge = member.gauge();
    let _busy = lease(&pool);
    let mut next = waiting(&pool);
    let load = gauge.load().unwrap();
    assert_eq!((load.slots, load.waiting, load.queued), (1, 1, 1));
    gauge.set_slots(2);
    next.assert_served();
}

#[test]
fn requests_that_wait_all_the_time_show_that_slots_are_short() {
    let pool = pool(10);
    let member = pool.join("a", 1);
    let gauge = member.gauge();
    let before = gauge.load().unwrap();
    let busy = lease(&pool);
    assert!(!gauge.load().unwrap().is_short_since(&before));
    let mut next = waiting(&pool);
    let waits = gauge.load().unwrap();
    assert!(waits.is_short_since(&before) && waits.is_short_since(&waits));
    drop(busy);
    next.assert_served();
    let served = gauge.load().unwrap();
    assert!(served.is_short_since(&before) && !served.is_short_since(&waits), "it has waited since `before`");
}

#[test]
fn a_gauge_of_a_removed_member_reads_nothing() {
    let pool = pool(10);
    let member = pool.join("a", 1);
    let gauge = member.gauge();
    let busy = lease(&pool);
    drop(member);
    assert_eq!(gauge.load().unwrap().in_use, 1);
    assert!(gauge.hold().is_none());
    drop(busy);
    assert!(gauge.load().is_none() && gauge.hold().is_none());
}

#[test]
fn a_member_on_hold_gets_no_request_and_afterwards_the_waiting_one() {
    let pool = pool(10);
    let member = pool.join("a", 2);
    let hold = member.gauge().hold().unwrap();
    assert!(member.gauge().hold().is_none(), "one hold at a time");
    let mut request = waiting(&pool);
    let other = pool.join("b", 1);
    assert_eq!(*request.lease(), "b");
    drop(other);
    let mut request = waiting(&pool);
    drop(hold);
    assert!(request.woken());
    assert_eq!(*request.lease(), "a");
}

#[tokio::test(start_paused = true)]
async fn after_a_pause_a_burst_that_finds_the_only_member_on_hold_is_not_refused() {
    let pool = pool(10);
    let member = pool.join("a", 1);
    serve(&pool, 16, Duration::from_millis(20)).await;
    advance(Duration::from_secs(60)).await;
    let hold = member.gauge().hold().unwrap();
    let deadline = Some(Instant::now() + Duration::from_secs(5));
    let mut burst: Vec<_> =
        (0..3).map(|_| of(pool.acquire(Claim { deadline, ..Claim::default() }))).collect();
    burst.iter_mut().for_each(Request::assert_waits);
    drop(hold);
    burst.iter_mut().for_each(Request::assert_served);
}

#[test]
fn a_blocked_member_gets_requests_only_while_all_members_are_blocked() {
    let pool = pool(10);
    let (blocked, other) = (pool.join("blocked", 4), pool.join("other", 1));
    blocked.gauge().set_blocked(true);
    let busy = lease(&pool);
    assert_eq!(*busy, "other");
    let mut next = waiting(&pool);
    drop(busy);
    assert_eq!(*next.lease(), "other");

    let busy = lease(&pool);
    let mut next = waiting(&pool);
    other.gauge().set_blocked(true);
    assert_eq!(*next.lease(), "blocked");
    other.gauge().set_blocked(false);
    let mut next = waiting(&pool);
    drop(other);
    assert_eq!(*next.lease(), "blocked", "the only one");
    drop(busy);

    let _another = pool.join("another", 1);
    let _busy = lease(&pool);
    let mut next = waiting(&pool);
    blocked.gauge().set_blocked(false);
    assert_eq!(*next.lease(), "blocked", "its loop turns again");
}

#[test]
fn a_blocked_member_that_has_left_counts_until_its_last_lease_has_ended() {
    let pool = pool(10);
    let blocked = pool.join("blocked", 1);
    let held = lease(&pool);
    blocked.gauge().set_blocked(true);
    let (first, second) = (pool.join("first", 1), pool.join("second", 1));
    drop(blocked);
    assert_eq!((pool.members(), pool.members_and_blocked()), (2, 3));
    drop(second);
    assert_eq!((pool.members(), pool.members_and_blocked()), (1, 1), "it may have replaced the other one");
    let _second = pool.join("second", 1);
    drop(held);
    assert_eq!((pool.members(), pool.members_and_blocked()), (2, 2));
    drop(first);
}

#[test]
fn a_hold_does_not_overtake_a_waiting_request() {
    let pool = pool(10);
    let (member, other) = (pool.join("a", 1), pool.join("b", 1));
    let (first, second) = (lease(&pool), lease(&pool));
    assert!(member.gauge().hold().is_none(), "it has a request");
    let mut next = waiting(&pool);
    assert!(other.gauge().hold().is_none(), "a request waits");
    drop((first, second));
    next.assert_served();
    assert!(member.gauge().hold().is_some() && other.gauge().hold().is_some());
    request(&pool).assert_served();
}

#[test]
fn a_request_that_ends_before_a_quarter_of_those_that_came_earlier_has_passed_them() {
    let pool = pool(10);
    let member = pool.join("a", 20);
    let gauge = member.gauge();
    let mut earlier: Vec<_> = (0..10).map(|_| lease(&pool)).collect();
    let (quick, slow) = (lease(&pool), lease(&pool));
    drop(earlier.remove(0));
    drop(quick);
    assert_eq!(gauge.take_most_passed(), 9);
    assert_eq!(gauge.take_most_passed(), 0, "it was taken");
    drop(earlier.drain(..7));
    drop(slow);
    assert_eq!(gauge.take_most_passed(), 0, "nine of eleven had ended");
}
