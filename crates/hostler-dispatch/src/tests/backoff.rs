//! Members that could not be reached.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::time::{Instant, advance};

use super::*;
use crate::eject::MOST_FORGIVEN;
use crate::{CpuClock, CpuReading};

/// Lets the timers that are due run.
async fn pass(time: Duration) {
    advance(time).await;
    tokio::task::yield_now().await;
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_member_that_could_not_be_reached_gets_nothing_until_its_back_off_ends() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    lease(&pool).end(LeaseEnding::Unreachable);
    let mut request = waiting(&pool);
    assert!(pool.snapshot().members[0].figures.unreachable);

    pass(Duration::from_millis(79)).await;
    assert!(!request.woken());
    pass(Duration::from_millis(22)).await;
    assert!(request.woken());
    request.assert_served();
    assert_eq!(pool.snapshot().counters.member_failures, 1);
}

#[tokio::test(start_paused = true)]
async fn a_member_counts_as_unreachable_until_a_connection_was_made_or_a_minute_is_over() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let is_unreachable = || pool.snapshot().members[0].figures.unreachable;
    for _ in 0..3 {
        lease(&pool).end(LeaseEnding::Unreachable);
        pass(59 * SECOND).await;
        assert!(is_unreachable(), "no request came after its back-off");
    }
    lease(&pool).connected();
    assert!(!is_unreachable());
    lease(&pool).end(LeaseEnding::Unreachable);
    pass(60 * SECOND).await;
    assert!(!is_unreachable(), "it may be up again");
}

#[tokio::test(start_paused = true)]
async fn the_others_serve_while_one_is_ejected() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let _members = ["a", "b"].map(|name| pool.join(name, 1));
    lease(&pool).end(LeaseEnding::Unreachable);
    for _ in 0..3 {
        assert_eq!(*lease(&pool), "b");
    }
}

/// How long the member is ejected when its next request fails.
async fn ejection_after_failure(pool: &Pool<&'static str>) -> Duration {
    let start = Instant::now();
    lease(pool).end(LeaseEnding::Unreachable);
    let lease = tokio::time::timeout(60 * SECOND, pool.acquire(Claim::default())).await;
    drop(lease.expect("an ejection ends by itself"));
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_ejection_time_grows_with_each_failure_and_starts_again_after_an_answer() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let mut times = Vec::new();
    for _ in 0..8 {
        times.push(ejection_after_failure(&pool).await);
    }
    assert!(times[0] <= Duration::from_millis(101), "{times:?}");
    assert!(times[2] >= Duration::from_millis(320), "{times:?}");
    assert!(times[7] >= 4 * SECOND && times[7] <= 5 * SECOND + Duration::from_millis(1), "{times:?}");

    lease(&pool).reached();
    assert!(ejection_after_failure(&pool).await <= Duration::from_millis(101));
}

#[tokio::test(start_paused = true)]
async fn leases_that_failed_together_count_once() {
    let pool = pool(9);
    let _member = pool.join("a", 8);
    let together: Vec<_> = (0..8).map(|_| lease(&pool)).collect();
    let mut together = together.into_iter();
    together.next().unwrap().end(LeaseEnding::Unreachable);
    let mut request = waiting(&pool);
    pass(Duration::from_millis(101)).await;
    assert!(request.woken());
    // Granted before the ejection: says nothing about the member as it is now.
    together.for_each(|lease| lease.end(LeaseEnding::Unreachable));
    let trial = request.lease();
    trial.reached();
    drop(lease(&pool));
}

#[tokio::test(start_paused = true)]
async fn after_its_ejection_a_member_gets_one_request_before_it_gets_more() {
    let pool = pool(9);
    let _member = pool.join("a", 4);
    lease(&pool).end(LeaseEnding::Unreachable);
    let mut requests: Vec<_> = (0..3).map(|_| waiting(&pool)).collect();
    pass(SECOND).await;
    let trial = requests[0].lease();
    requests[1].assert_waits();
    trial.reached();
    let _second = requests[1].lease();
    let _third = requests[2].lease();
}

#[tokio::test(start_paused = true)]
async fn a_connection_to_a_member_ends_its_trial_unless_requests_have_timed_out_there() {
    for has_timed_out in [false, true] {
        let pool = pool(9);
        let _member = pool.join("a", 4);
        let failed = lease(&pool);
        if has_timed_out {
            assert_eq!(failed.strike(), None);
        }
        failed.end(LeaseEnding::Unreachable);
        let mut requests: Vec<_> = (0..3).map(|_| waiting(&pool)).collect();
        pass(SECOND).await;
        let trial = requests[0].lease();
        requests[1].assert_waits();
        trial.connected();
        if has_timed_out {
            requests[1].assert_waits();
            trial.reached();
        }
        let _second = requests[1].lease();
        let _third = requests[2].lease();
    }
}

#[tokio::test(start_paused = true)]
async fn a_trial_request_without_a_result_lets_the_next_request_try() {
    let pool = pool(9);
    let _member = pool.join("a", 4);
    lease(&pool).end(LeaseEnding::Unreachable);
    pass(SECOND).await;
    let trial = lease(&pool);
    let mut next = waiting(&pool);
    drop(trial);
    next.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_and_returns_is_served_before_later_ones() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let _members = ["dead", "alive"].map(|name| pool.join(name, 1));
    let mut dead = request(&pool);
    let (ticket, dead) = (dead.ticket(), dead.lease());
    let alive = lease(&pool);
    let mut later = waiting(&pool);
    dead.end(LeaseEnding::Unreachable);
    let mut again = of(pool.acquire(Claim::again(ticket)));
    again.assert_waits();
    drop(alive);
    assert_eq!(*again.lease(), "alive");
    later.assert_served();
}

#[test]
fn without_its_timer_an_ended_ejection_is_noticed_by_the_next_arrival_which_does_not_overtake() {
    let time = Duration::from_millis(1);
    let backoff = crate::BackoffSettings { min: time, max: time };
    let pool = Pool::new("test", PoolSettings { backoff, ..PoolSettings::default() });
    let _member = pool.join("a", 1);
    let (failed, mut first) = (lease(&pool), waiting(&pool));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { failed.end(LeaseEnding::Unreachable) });
    drop(runtime); // and the timer with it

    let start = Instant::now();
    while start.elapsed() <= time {
        std::hint::spin_loop();
    }
    first.assert_waits();
    let mut late = waiting(&pool);
    first.assert_served();
    late.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_member_that_closed_a_connection_gets_no_request_for_a_moment_and_the_others_go_on() {
    let pool = pool(9);
    let _members = ["dying", "alive"].map(|name| pool.join(name, 1));
    let mut dying = request(&pool);
    let (ticket, dying) = (dying.ticket(), dying.lease());
    assert_eq!(*dying, "dying");
    dying.end(LeaseEnding::HungUp);
    let mut again = of(pool.acquire(Claim::again(ticket)));
    assert_eq!(*again.lease(), "alive");
}

#[tokio::test(start_paused = true)]
async fn repeated_closing_ejects_a_member_no_longer_than_one_closing() {
    let pool = pool(9);
    let _member = pool.join("a", 2);
    for _ in 0..9 {
        let (one, other) = (lease(&pool), lease(&pool));
        one.end(LeaseEnding::HungUp);
        let mut request = waiting(&pool);
        pass(Duration::from_millis(51)).await;
        assert!(request.woken());
        request.assert_served();
        drop(other);
    }
    assert_eq!(pool.snapshot().counters.member_failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_closed_a_connection_still_counts_as_reachable() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let counted = || (pool.reachable_members(), pool.snapshot().members[0].figures.unreachable);
    lease(&pool).end(LeaseEnding::HungUp);
    let mut request = waiting(&pool);
    assert_eq!(counted(), (1, false));
    pass(Duration::from_millis(51)).await;
    request.lease().end(LeaseEnding::Unreachable);
    assert_eq!(counted(), (0, true));
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_a_member_clears_its_suspicion() {
    let pool = pool(9);
    let _member = pool.join("a", 2);
    let (one, other) = (lease(&pool), lease(&pool));
    one.end(LeaseEnding::HungUp);
    let mut request = waiting(&pool);
    other.reached();
    request.assert_served();
}

/// A main thread that waits for events, or does not.
#[derive(Default)]
struct WatchedThread(AtomicBool);

impl CpuClock for WatchedThread {
    fn read(&self) -> Option<CpuReading> {
        Some(CpuReading::default())
    }

    fn waits(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_closed_a_connection_gets_requests_as_soon_as_its_main_thread_shows_that_it_lives() {
    let pool = pool(9);
    let member = pool.join("a", 1);
    let thread = Arc::new(WatchedThread::default());
    member.measure(thread.clone());
    lease(&pool).end(LeaseEnding::HungUp);
    let mut request = waiting(&pool);
    pass(Duration::from_millis(30)).await;
    assert!(!request.woken(), "it may be about to die");
    thread.0.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        pass(Duration::from_millis(3)).await;
    }
    assert!(request.woken(), "it waits for events");
    request.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_living_member_that_closed_a_connection_and_cannot_be_reached_stays_out() {
    let pool = pool(9);
    let member = pool.join("a", 2);
    let thread = Arc::new(WatchedThread(true.into()));
    member.measure(thread);
    let (one, other) = (lease(&pool), lease(&pool));
    one.end(LeaseEnding::Unreachable);
    other.end(LeaseEnding::HungUp);
    let request = waiting(&pool);
    for _ in 0..10 {
        pass(Duration::from_millis(4)).await;
    }
    assert!(!request.woken());
}

#[tokio::test(start_paused = true)]
async fn a_living_member_that_only_closes_connections_gets_one_request_in_a_moment() {
    let pool = pool(9);
    let member = pool.join("a", 1);
    member.measure(Arc::new(WatchedThread(true.into())));
    let mut held = lease(&pool);
    for round in 0..2 {
        for _ in 0..MOST_FORGIVEN {
            held.end(LeaseEnding::HungUp);
            let mut request = waiting(&pool);
            for _ in 0..3 {
                pass(Duration::from_millis(3)).await;
            }
            assert!(request.woken(), "it may answer others, in round {round}");
            held = request.lease();
        }
        held.end(LeaseEnding::HungUp);
        let mut request = waiting(&pool);
        for _ in 0..10 {
            pass(Duration::from_millis(4)).await;
        }
        assert!(!request.woken(), "it answers nothing, in round {round}");
        for _ in 0..3 {
            pass(Duration::from_millis(10)).await;
        }
        held = request.lease();
        held.reached();
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_probably_lives_gets_requests_at_once_unless_it_answers_none_of_many() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    for round in 0..2 {
        for _ in 0..=MOST_FORGIVEN {
            lease(&pool).end(LeaseEnding::Unanswered);
        }
        let mut request = waiting(&pool);
        pass(Duration::from_millis(51)).await;
        assert!(request.woken(), "in round {round}");
        request.lease().reached();
    }
    assert_eq!(pool.snapshot().counters.member_failures, 0);
}

#[tokio::test(start_paused = true)]
async fn requests_that_a_living_member_ends_together_count_once() {
    let pool = pool(9);
    let _member = pool.join("a", 40);
    let held: Vec<_> = (0..40).map(|_| lease(&pool)).collect();
    pass(Duration::from_millis(1)).await;
    held.into_iter().for_each(|one| one.end(LeaseEnding::Unanswered));
    request(&pool).assert_served();
}
