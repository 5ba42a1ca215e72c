//! A paused pool gives no slot and loses no request.

use std::time::Duration;

use tokio::time::advance;

use super::*;

#[test]
fn a_paused_pool_grants_no_slot_and_serves_all_in_order_afterwards() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    pool.pause();
    assert!(pool.is_paused() && pool.snapshot().paused);
    let (mut first, mut second) = (waiting(&pool), waiting(&pool));
    let _another = pool.join("b", 0);
    first.assert_waits();

    pool.resume();
    assert!(!pool.is_paused());
    assert!(first.woken() && !second.woken());
    second.assert_waits();
    first.assert_served();
    second.assert_served();
}

#[test]
fn a_lease_that_ends_during_a_pause_leaves_its_slot_free_for_later() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    pool.pause();
    let mut request = waiting(&pool);
    drop(running);
    request.assert_waits();
    assert_eq!(pool.snapshot().in_use, 0);
    pool.resume();
    request.assert_served();
}

#[test]
fn a_slot_granted_before_the_pause_is_taken() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut request = waiting(&pool);
    drop(running);
    pool.pause();
    assert_eq!(pool.snapshot().in_use, 1);
    request.assert_served();
}

#[test]
fn a_paused_pool_queues_up_to_its_limit() {
    let pool = pool(1);
    let _member = pool.join("a", 1);
    pool.pause();
    let _waits = waiting(&pool);
    request(&pool).assert_refused(AcquireError::QueueFull { limit: 1 });
}

#[test]
fn a_request_that_leaves_during_a_pause_leaves_the_queue() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    pool.pause();
    let (first, mut second) = (waiting(&pool), waiting(&pool));
    drop(first);
    assert_eq!(pool.snapshot().queue_length, 1);
    pool.resume();
    second.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_not_overloaded_while_it_is_paused() {
    let pool = pool(1000);
    let _member = pool.join("a", 1);
    serve(&pool, 20, Duration::from_millis(100)).await;
    let _running = lease(&pool);
    let in_time = || {
        let deadline = Some(tokio::time::Instant::now() + Duration::from_secs(5));
        of(pool.acquire(Claim { deadline, ..Claim::default() }))
    };
    // The member is not new any more.
    in_time().assert_waits();
    advance(Duration::from_secs(2)).await;
    let mut all: Vec<_> = (0..60).map(|_| in_time()).collect();
    all.iter_mut().for_each(|request| _ = request.poll());
    assert!(pool.snapshot().overloaded);
    pool.pause();
    assert!(!pool.snapshot().overloaded, "it refuses nothing because of that");
    pool.resume();
    assert!(pool.snapshot().overloaded);
}

#[tokio::test(start_paused = true)]
async fn the_paused_time_includes_earlier_pauses_and_the_running_one() {
    let pool = pool(9);
    assert_eq!(pool.paused_time(), Duration::ZERO);
    for _ in 0..2 {
        pool.pause();
        advance(Duration::from_secs(3)).await;
        pool.pause();
        advance(Duration::from_secs(1)).await;
        pool.resume();
        pool.resume();
        advance(Duration::from_secs(60)).await;
    }
    assert_eq!(pool.paused_time(), Duration::from_secs(8));
    pool.pause();
    advance(Duration::from_secs(1)).await;
    assert_eq!(pool.paused_time(), Duration::from_secs(9));
}
