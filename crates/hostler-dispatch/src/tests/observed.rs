//! Members whose event loops are observed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, advance, timeout};

use super::{Request, lease, of, pool, request, waiting};
use crate::{Claim, EventLoop, Membership, Pool, PoolSettings, Priority};

/// An event loop that a test controls: the CPU time that it has used, or [`BUSY`].
#[derive(Default)]
struct TestLoop(AtomicU64);

const BUSY: u64 = u64::MAX;

impl TestLoop {
    fn computes(&self) {
        self.0.store(BUSY, Ordering::SeqCst);
    }

    /// It waits after it has used this much CPU time in all.
    fn waits(&self, cpu_millis: u64) {
        self.0.store(cpu_millis, Ordering::SeqCst);
    }
}

impl EventLoop for TestLoop {
    fn cpu_if_waiting(&self) -> Option<Duration> {
        let cpu_millis = self.0.load(Ordering::SeqCst);
        (cpu_millis != BUSY).then(|| Duration::from_millis(cpu_millis))
    }
}

fn observed(most: usize) -> (Pool<&'static str>, Membership<&'static str>, Arc<TestLoop>) {
    let pool = pool(100);
    let event_loop = Arc::new(TestLoop::default());
    let event_loop_of_pool: Arc<dyn EventLoop> = event_loop.clone();
    let member = pool.join_observed("worker", most, event_loop_of_pool);
    (pool, member, event_loop)
}

async fn gets_a_slot(request: &Request<&'static str>) {
    let woken = async {
        while !request.woken() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), woken).await.expect("a slot");
}

#[tokio::test]
async fn a_request_waits_until_the_loop_waits_for_events() {
    let (pool, _member, event_loop) = observed(9);
    event_loop.computes();
    let first = lease(&pool);
    first.sent();
    let mut second = waiting(&pool);
    event_loop.waits(5);
    // Nothing tells the pool, so it must look again by itself.
    gets_a_slot(&second).await;
    second.assert_served();
    drop(first);
}

#[tokio::test]
async fn a_request_that_was_given_and_not_sent_keeps_the_next_one_waiting() {
    let (pool, _member, event_loop) = observed(9);
    event_loop.waits(0);
    let first = lease(&pool);
    let mut second = waiting(&pool);
    second.assert_waits();
    event_loop.waits(1);
    first.sent();
    gets_a_slot(&second).await;
    second.assert_served();
}

#[tokio::test]
async fn an_observed_member_gets_no_more_than_its_limit() {
    let (pool, _member, event_loop) = observed(2);
    let mut leases = Vec::new();
    for cpu_millis in 0..2 {
        event_loop.waits(cpu_millis);
        let given = timeout(Duration::from_secs(60), pool.acquire(Claim::default())).await;
        let lease = given.expect("a slot").unwrap();
        lease.sent();
        leases.push(lease);
    }
    event_loop.waits(9);
    let mut third = request(&pool);
    assert!(matches!(third.poll(), Poll::Pending));
    leases.pop();
    gets_a_slot(&third).await;
    third.assert_served();
}

#[tokio::test]
async fn fixed_slots_take_the_place_of_the_observation() {
    let (pool, member, event_loop) = observed(9);
    event_loop.computes();
    let first = lease(&pool);
    first.sent();
    let mut second = waiting(&pool);
    member.set_slots(2);
    second.assert_served();
    member.gauge().observe(9, event_loop);
    waiting(&pool);
}

#[tokio::test]
async fn a_loop_that_runs_for_no_request_limits_none() {
    let (pool, _member, event_loop) = observed(9);
    event_loop.waits(1);
    let mut leases = vec![lease(&pool)];
    leases[0].sent();
    // Another process of the member has answered it.
    leases[0].reached();
    while leases.len() < 9 {
        let given = timeout(Duration::from_secs(60), pool.acquire(Claim::default())).await;
        leases.push(given.expect("a slot").unwrap());
        leases.last().unwrap().sent();
    }
    waiting(&pool);
}

#[tokio::test]
async fn a_slot_that_is_returned_unused_does_not_close_the_member() {
    let (pool, _member, event_loop) = observed(9);
    event_loop.waits(1);
    let stream = lease(&pool);
    stream.sent();
    event_loop.waits(2);
    let unused = request(&pool);
    gets_a_slot_at_once_or_later(unused).await;
    // The loop has not run since: nothing was sent.
    let next = request(&pool);
    gets_a_slot_at_once_or_later(next).await;
}

#[tokio::test]
async fn a_request_that_ends_without_an_answer_has_passed_none() {
    let (pool, member, event_loop) = observed(9);
    let mut cpu_millis = 0;
    for is_answered in [false, true] {
        let mut leases = Vec::new();
        for _ in 0..3 {
            cpu_millis += 1;
            event_loop.waits(cpu_millis);
            let given = timeout(Duration::from_secs(60), pool.acquire(Claim::default())).await;
            leases.push(given.expect("a slot").unwrap());
            leases.last().unwrap().sent();
        }
        let last = leases.pop().unwrap();
        if is_answered {
            last.reached();
        }
        drop(last);
        assert_eq!(member.gauge().take_most_passed(), if is_answered { 2 } else { 0 });
    }
}

/// How many requests of 1 ms a worker gets at once when eight of this class have waited for 200 ms.
async fn burst(settings: PoolSettings, priority: Priority) -> usize {
    let (pool, _member, event_loop) = observed(1000);
    pool.update(PoolSettings { queue_limit: 100, ..settings });
    for cpu_millis in 1..40 {
        let lease = lease(&pool);
        lease.sent();
        advance(Duration::from_millis(10)).await;
        event_loop.waits(cpu_millis);
    }
    event_loop.computes();
    let running = lease(&pool);
    running.sent();
    let claim = || Claim { priority, ..Claim::default() };
    let mut waits: Vec<_> = (0..8).map(|_| of(pool.acquire(claim()))).collect();
    waits.iter_mut().for_each(Request::assert_waits);
    advance(Duration::from_millis(200)).await;
    event_loop.waits(40);
    // The thread that asks again knows no paused clock.
    pool.shared.redispatch();
    waits.iter().filter(|request| request.woken()).count()
}

#[tokio::test(start_paused = true)]
async fn only_requests_that_no_new_one_goes_past_are_given_in_longer_bursts() {
    let settings = PoolSettings::default();
    assert_eq!(burst(settings, Priority::Normal).await, 4, "a twentieth of the wait, and 4 ms at most");
    assert_eq!(burst(settings, Priority::Low).await, 1, "one of a higher class may come");
    assert_eq!(
        burst(PoolSettings { fair: true, ..settings }, Priority::Normal).await,
        1,
        "one of another key"
    );
}

/// Takes a slot, and returns it without a request.
async fn gets_a_slot_at_once_or_later(mut request: Request<&'static str>) {
    if request.poll().is_pending() {
        gets_a_slot(&request).await;
        request.assert_served();
    }
}

/// A burst finds the event loop at work and no request under way. That says nothing about how many requests the worker can have.
#[tokio::test(start_paused = true)]
async fn a_burst_on_a_worker_that_had_few_requests_is_not_refused() {
    const WAITS: Duration = Duration::from_millis(200);
    let claim = || Claim { deadline: Some(Instant::now() + Duration::from_secs(5)), ..Claim::default() };
    let (pool, _member, event_loop) = observed(1000);
    let mut cpu_millis = 0;
    for _ in 0..40 {
        let lease = lease(&pool);
        lease.sent();
        advance(WAITS).await;
        drop(lease);
        cpu_millis += 1;
        event_loop.waits(cpu_millis);
    }
    // The first ones make the pool's judgement begin.
    for waiting in [2, 28] {
        event_loop.computes();
        let mut held = vec![lease(&pool)];
        held[0].sent();
        let mut burst: Vec<_> = (0..waiting).map(|_| of(pool.acquire(claim()))).collect();
        burst.iter_mut().for_each(Request::assert_waits);
        assert_eq!(pool.snapshot().counters.refused_overload, 0);
        for request in &mut burst {
            // A millisecond of work for each request, then the loop waits and the next one comes.
            advance(Duration::from_millis(1)).await;
            cpu_millis += 1;
            event_loop.waits(cpu_millis);
            gets_a_slot(request).await;
            held.push(request.lease());
            held.last().unwrap().sent();
        }
        advance(WAITS).await;
        drop(held);
        advance(Duration::from_secs(10)).await;
    }
}
