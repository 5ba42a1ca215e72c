//! A sleeping pool calls for a member once, and keeps the requests that wait for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, advance};

use super::*;

/// How many times a member was called for. More than once between two looks counts as once.
fn requests_of(wake_requested: &Notify) -> usize {
    let mut notified = std::pin::pin!(wake_requested.notified());
    usize::from(notified.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready())
}

fn asleep(pool: &Pool<&'static str>) -> Arc<Notify> {
    let wake_requested = Arc::default();
    assert!(pool.fall_asleep(&wake_requested));
    wake_requested
}

#[test]
fn the_first_request_calls_for_a_member_and_all_get_their_slots_when_it_joins() {
    let pool = pool(9);
    let wake_requested = asleep(&pool);
    assert!(pool.is_asleep() && pool.snapshot().asleep);
    assert_eq!((requests_of(&wake_requested), pool.waking_since()), (0, None));
    let (mut first, mut second) = (waiting(&pool), waiting(&pool));
    assert_eq!(requests_of(&wake_requested), 1);
    assert!(pool.waking_since().is_some());
    let _third = waiting(&pool);
    assert_eq!(requests_of(&wake_requested), 0, "a member was called for already");

    let _member = pool.join("a", 2);
    assert_eq!(pool.waking_since(), None);
    first.assert_served();
    second.assert_served();
    pool.wake_up();
    assert!(!pool.is_asleep());
}

#[test]
fn a_pool_with_a_request_or_a_tunnel_does_not_fall_asleep() {
    let pool = pool(9);
    let member = pool.join("a", 1);
    let running = lease(&pool);
    assert!(!pool.fall_asleep(&Arc::default()));
    let tunnel = running.tunnel_guard();
    assert!(!pool.fall_asleep(&Arc::default()));
    drop(tunnel);
    pool.pause();
    let request = waiting(&pool);
    assert!(!pool.fall_asleep(&Arc::default()));
    drop(request);
    assert!(pool.fall_asleep(&Arc::default()));
    drop(member);
}

#[test]
fn a_request_between_the_decision_to_sleep_and_the_end_of_the_member_is_not_lost() {
    let pool = pool(9);
    let member = pool.join("a", 1);
    let wake_requested = asleep(&pool);
    // The member is still there and serves.
    let running = lease(&pool);
    let mut next = waiting(&pool);
    assert_eq!(requests_of(&wake_requested), 0);
    drop(member);
    assert_eq!(requests_of(&wake_requested), 1, "the request that waits has no member any more");
    drop(running);
    next.assert_waits();
    let _new = pool.join("b", 1);
    next.assert_served();
}

#[test]
fn the_queue_limit_holds_in_a_sleeping_pool() {
    let pool = pool(1);
    let _wake_requested = asleep(&pool);
    let _waits = waiting(&pool);
    request(&pool).assert_refused(AcquireError::QueueFull { limit: 1 });
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_member_uses_up_no_time_of_the_request() {
    let pool = pool(99);
    let second = Duration::from_secs(1);
    {
        // The pool knows how long its requests take.
        let _member = pool.join("a", 1);
        serve(&pool, 32, Duration::from_millis(100)).await;
    }
    let _wake_requested = asleep(&pool);
    let claim = || Claim { deadline: Some(Instant::now() + second), ..Claim::default() };
    let mut requests: Vec<_> = (0..9).map(|_| of(pool.acquire(claim()))).collect();
    requests.iter_mut().for_each(Request::assert_waits);
    advance(20 * second).await;
    let _member = pool.join("a", 9);
    requests.iter_mut().for_each(Request::assert_served);
    let counters = pool.snapshot().counters;
    assert_eq!((counters.expired, counters.refused_overload), (0, 0));
    assert_eq!(pool.paused_time(), 20 * second);
}

#[test]
fn a_paused_pool_calls_for_no_member_until_it_is_resumed() {
    let pool = pool(9);
    let wake_requested = asleep(&pool);
    pool.pause();
    let _request = waiting(&pool);
    assert_eq!(requests_of(&wake_requested), 0);
    pool.resume();
    assert_eq!(requests_of(&wake_requested), 1);
}
