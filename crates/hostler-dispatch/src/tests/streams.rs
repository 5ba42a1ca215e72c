//! Streams: which member gets them, how many it may have, and how they end.

use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::{CpuClock, CpuReading};

fn pool_of(max_streams: usize) -> Pool<&'static str> {
    Pool::new("test", PoolSettings { max_streams, ..PoolSettings::default() })
}

fn for_stream(pool: &Pool<&'static str>) -> Request<&'static str> {
    of(pool.acquire(Claim { long_lived: Some(LongLived::Stream), ..Claim::default() }))
}

/// A stream that was claimed as one.
fn stream(pool: &Pool<&'static str>) -> Lease<&'static str> {
    let mut lease = for_stream(pool).lease();
    assert!(lease.begin_stream());
    lease
}

#[test]
fn a_stream_leaves_the_slot_to_others() {
    let pool = pool(10);
    let _member = pool.join("a", 1);
    let mut answer = lease(&pool);
    let mut next = waiting(&pool);
    assert!(!answer.is_stream() && answer.begin_stream() && answer.is_stream());
    next.assert_served();
    let figures = pool.snapshot();
    assert_eq!((figures.in_use, figures.streams, figures.tunnels, figures.counters.streams), (0, 1, 0, 1));
    answer.end(LeaseEnding::Finished(Instant::now()));
    assert_eq!((pool.snapshot().in_use, pool.snapshot().streams), (0, 0));
    drop(stream(&pool));
    assert_eq!(
        (pool.snapshot().in_use, pool.snapshot().streams, pool.snapshot().counters.streams),
        (0, 0, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_stream_is_no_time_of_a_slot() {
    let pool = pool(10);
    let member = pool.join("a", 1);
    for _ in 0..16 {
        let mut answer = lease(&pool);
        tokio::time::advance(Duration::from_millis(10)).await;
        assert!(answer.begin_stream());
        tokio::time::advance(Duration::from_secs(3600)).await;
    }
    assert_eq!(pool.snapshot().service_time, Some(Duration::from_millis(10)));
    assert_eq!(member.gauge().load().unwrap().lease_time, Duration::from_millis(160));
}

#[test]
fn streams_and_tunnels_go_to_the_member_with_the_fewest_of_both() {
    for choice in [MemberChoice::Warm, MemberChoice::RoundRobin, MemberChoice::LeastBusy] {
        let pool = pool_with(choice);
        let _members = ["a", "b", "c"].map(|name| pool.join(name, 9));
        let tunnel = Claim { long_lived: Some(LongLived::Tunnel), ..Claim::default() };
        let tunnel_guard = of(pool.acquire(tunnel)).lease().tunnel_guard();
        let (one, to_be) = (stream(&pool), for_stream(&pool).lease());
        let mut names = [*tunnel_guard, *one, *to_be];
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c"], "{choice}");
    }
}

#[test]
fn over_the_limit_a_claim_for_a_stream_is_refused_and_a_request_is_not() {
    let pool = pool_of(1);
    let _members = ["a", "b"].map(|name| pool.join(name, 2));
    let (first, second) = (stream(&pool), for_stream(&pool).lease());
    for_stream(&pool).assert_refused(AcquireError::TooManyStreams);
    request(&pool).assert_served();
    assert_eq!(pool.snapshot().counters.refused_streams, 1);
    // An answer that was no stream after all, and a stream that has ended, make room.
    drop(second);
    let _again = stream(&pool);
    drop(first);
    let _and_again = stream(&pool);
    for_stream(&pool).assert_refused(AcquireError::TooManyStreams);
}

#[test]
fn a_stream_that_was_not_claimed_keeps_its_slot_if_its_member_has_too_many() {
    let pool = pool_of(1);
    let _member = pool.join("a", 2);
    let _open = stream(&pool);
    let mut answer = lease(&pool);
    assert!(!answer.begin_stream());
    assert!(!answer.is_stream());
    let figures = pool.snapshot();
    assert_eq!((figures.in_use, figures.streams, figures.counters.refused_streams), (1, 1, 1));
    drop(answer);
    assert_eq!((pool.snapshot().in_use, pool.snapshot().streams), (0, 1));
}

#[test]
fn a_member_that_leaves_tells_its_streams_and_has_not_left_before_they_end() {
    let pool = pool(10);
    let old = pool.join("old", 1);
    let answer = stream(&pool);
    let mut dismissed = pin!(answer.dismissed());
    let is_ready = |future: Pin<&mut dyn Future<Output = ()>>| {
        future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    };
    assert!(!is_ready(dismissed.as_mut()));
    let mut left = pin!(old.leave());
    assert!(is_ready(dismissed.as_mut()) && !is_ready(left.as_mut()));
    assert_eq!(pool.snapshot().members.len(), 1);
    drop(answer);
    assert!(is_ready(left.as_mut()));
    assert_eq!(pool.snapshot().members.len(), 0);
}

#[test]
fn a_member_that_breaks_a_stream_off_gets_nothing_for_a_moment() {
    let pool = pool(10);
    let member = pool.join("a", 1);
    let gauge = member.gauge();
    let answer = stream(&pool);
    assert!(gauge.load().unwrap().is_in_use() && gauge.hold().is_none());
    answer.end(LeaseEnding::HungUp);
    assert!(!gauge.load().unwrap().is_in_use());
    assert_eq!((pool.snapshot().in_use, pool.snapshot().streams), (0, 0));
    request(&pool).assert_waits();
}

#[tokio::test(start_paused = true)]
async fn a_member_that_breaks_one_stream_off_after_another_gets_requests_after_a_moment() {
    let pool = pool(10);
    let _member = pool.join("a", 1);
    let mut streams: Vec<_> = (0..5).map(|_| stream(&pool)).collect();
    streams.pop().unwrap().end(LeaseEnding::HungUp);
    let mut request = waiting(&pool);
    for broken in streams {
        tokio::time::advance(Duration::from_millis(12)).await;
        broken.end(LeaseEnding::HungUp);
        assert!(!request.woken());
    }
    tokio::time::advance(Duration::from_millis(4)).await;
    tokio::task::yield_now().await;
    assert!(request.woken(), "the moment of the first one is over");
    request.assert_served();
}

/// A main thread that does not wait for events, and counts the looks at it.
#[derive(Default)]
struct CountedThread(AtomicUsize);

impl CpuClock for CountedThread {
    fn read(&self) -> Option<CpuReading> {
        Some(CpuReading::default())
    }

    fn waits(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst);
        false
    }
}

#[tokio::test(start_paused = true)]
async fn the_main_thread_of_a_member_that_breaks_all_its_streams_off_is_looked_at_for_one_of_them() {
    let pool = pool(10);
    let member = pool.join("a", 1);
    let thread = Arc::new(CountedThread::default());
    member.measure(thread.clone());
    let streams: Vec<_> = (0..100).map(|_| stream(&pool)).collect();
    thread.0.store(0, Ordering::SeqCst);
    streams.into_iter().for_each(|broken| broken.end(LeaseEnding::HungUp));
    for _ in 0..30 {
        tokio::time::advance(Duration::from_millis(2)).await;
        tokio::task::yield_now().await;
    }
    let looks = thread.0.load(Ordering::SeqCst);
    assert!((1..=25).contains(&looks), "every 2 ms for 50 ms, and not {looks} times");
}

#[test]
fn a_stream_is_alone_if_its_member_has_nothing_else() {
    let pool = pool(10);
    let _member = pool.join("a", 3);
    let one = stream(&pool);
    assert!(one.is_alone(Duration::ZERO));
    let other = stream(&pool);
    assert!(!one.is_alone(Duration::ZERO));
    drop(other);
    let request = lease(&pool);
    assert!(!one.is_alone(Duration::ZERO));
    drop(request);
    assert!(one.is_alone(Duration::ZERO));
}
