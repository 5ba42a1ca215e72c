//! A claim past its deadline gets no slot, whether the pool or the request notices first.

use std::time::Duration;

use tokio::time::{Instant, advance};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn until(pool: &Pool<&'static str>, time_limit: Duration) -> Request<&'static str> {
    of(pool.acquire(Claim { deadline: Some(Instant::now() + time_limit), ..Claim::default() }))
}

#[tokio::test(start_paused = true)]
async fn an_expired_request_gets_no_slot_even_before_its_task_runs() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let (mut late, mut patient) = (until(&pool, SECOND), until(&pool, 2 * SECOND));
    late.assert_waits();
    patient.assert_waits();
    advance(SECOND).await;
    drop(running);
    assert!(late.woken() && patient.woken());
    patient.assert_served();
    late.assert_refused(AcquireError::Expired);
    let counters = pool.snapshot().counters;
    assert_eq!((counters.expired, counters.left_queue, counters.granted), (1, 0, 2));
}

#[tokio::test(start_paused = true)]
async fn an_expired_request_gets_no_slot_even_if_one_is_free() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    until(&pool, Duration::ZERO).assert_refused(AcquireError::Expired);
    assert_eq!(pool.snapshot().counters.expired, 1);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_not_taken_before_the_deadline_goes_to_the_next() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let (mut asleep, mut next) = (until(&pool, SECOND), waiting(&pool));
    asleep.assert_waits();
    drop(running);
    next.assert_waits();
    advance(SECOND).await;
    asleep.assert_refused(AcquireError::Expired);
    next.assert_served();
    assert_eq!(pool.snapshot().in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_after_it_expired_is_counted_once() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut late = until(&pool, SECOND);
    late.assert_waits();
    advance(SECOND).await;
    drop(running);
    drop(late);
    let figures = pool.snapshot();
    assert_eq!((figures.counters.expired, figures.counters.left_queue), (1, 0));
    assert_eq!((figures.queue_length, figures.in_use), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_gives_up_counts_as_expired_if_its_time_is_over_and_else_as_one_that_left() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let _stuck = lease(&pool);
    let (mut late, mut left) = (until(&pool, SECOND), until(&pool, 2 * SECOND));
    late.assert_waits();
    left.assert_waits();
    advance(SECOND).await;
    drop((late, left));
    let figures = pool.snapshot();
    assert_eq!((figures.counters.expired, figures.counters.left_queue), (1, 1));
    assert_eq!((figures.queue_length, figures.in_use), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_pause_extends_all_deadlines() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut early = until(&pool, SECOND);
    early.assert_waits();
    pool.pause();
    advance(60 * SECOND).await;
    let mut during = until(&pool, SECOND);
    during.assert_waits();
    drop(running);
    advance(60 * SECOND).await;
    pool.resume();
    early.assert_served();
    during.assert_served();

    let running = lease(&pool);
    let mut after = until(&pool, SECOND);
    after.assert_waits();
    advance(SECOND).await;
    drop(running);
    after.assert_refused(AcquireError::Expired);
}
