//! Members on which requests time out, and members whose health check fails.

use std::task::Waker;
use std::time::Duration;

use tokio::time::advance;

use super::*;
use crate::{EjectSettings, MemberPreference, Membership};

const SECOND: Duration = Duration::from_secs(1);

fn pool_that_ejects(failures: u32) -> Pool<&'static str> {
    let eject = EjectSettings { failures, ..EjectSettings::default() };
    Pool::new("test", PoolSettings { eject, choice: MemberChoice::RoundRobin, ..PoolSettings::default() })
}

/// The next lease of this member. Leases of other members are returned.
fn lease_of(pool: &Pool<&'static str>, name: &str) -> Lease<&'static str> {
    (0..9).map(|_| lease(pool)).find(|lease| **lease == name).expect("it gets some")
}

fn is_ready(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_requests_time_out_is_ejected_longer_each_time_and_then_gets_one_trial_request() {
    let pool = pool_that_ejects(2);
    let _members = ["frozen", "alive"].map(|name| pool.join(name, 9));
    assert_eq!(lease_of(&pool, "frozen").strike(), None);
    let out = lease_of(&pool, "frozen").strike().expect("two in a row are one too many");
    assert!(out > 7 * SECOND && out <= 10 * SECOND, "{out:?}");
    assert!((0..9).all(|_| *lease(&pool) == "alive"));
    advance(10 * SECOND).await;
    let trial = lease_of(&pool, "frozen");
    assert!(trial.was_ejected());
    assert!((0..9).all(|_| *lease(&pool) == "alive"), "one at a time");
    let out = trial.strike().expect("one is enough now");
    assert!(out > 15 * SECOND, "{out:?}");
    drop(trial);
    let counters = pool.snapshot().counters;
    assert_eq!((counters.member_timeouts, counters.ejections), (3, 2));
    advance(20 * SECOND).await;
    let trial = lease_of(&pool, "frozen");
    assert!(trial.reached(), "an answer ends it");
    assert!(!lease_of(&pool, "frozen").was_ejected());
}

#[tokio::test(start_paused = true)]
async fn a_member_counts_as_ejected_only_while_it_gets_no_requests() {
    let pool = pool_that_ejects(1);
    let _members = ["frozen", "alive"].map(|name| pool.join(name, 9));
    let is_ejected = || pool.snapshot().members[0].figures.ejected;
    lease_of(&pool, "frozen").strike().unwrap();
    assert!(is_ejected());
    advance(10 * SECOND).await;
    assert!(!is_ejected(), "it gets the next request");
    let trial = lease_of(&pool, "frozen");
    assert!(is_ejected(), "it gets no other");
    drop(trial);
    assert!(!is_ejected(), "the client has left");
    let trial = lease_of(&pool, "frozen");
    trial.strike().unwrap();
    drop(trial);
    assert!(is_ejected(), "longer than the first time");
}

#[tokio::test(start_paused = true)]
async fn an_ejected_member_is_out_of_reach_only_if_its_last_connection_has_failed() {
    let pool = pool_that_ejects(1);
    let [frozen, _alive] = ["frozen", "alive"].map(|name| pool.join(name, 9));
    let out_of_reach = || (frozen.gauge().is_out_of_reach(), pool.cannot_reach(frozen.id()));
    lease_of(&pool, "frozen").strike().unwrap();
    assert_eq!(out_of_reach(), (Some(false), false), "it took the connection");
    advance(10 * SECOND).await;
    lease_of(&pool, "frozen").end(LeaseEnding::Unreachable);
    assert_eq!(out_of_reach(), (Some(true), true));
    advance(10 * SECOND).await;
    lease_of(&pool, "frozen").strike().unwrap();
    assert_eq!(out_of_reach(), (Some(false), false), "it took a connection again");
    advance(20 * SECOND).await;
    let connecting = lease_of(&pool, "frozen");
    connecting.strike().unwrap();
    connecting.end(LeaseEnding::Unreachable);
    assert_eq!(out_of_reach(), (Some(true), true), "the connection was not made in time");
    advance(40 * SECOND).await;
    lease_of(&pool, "frozen").reached();
    assert_eq!(out_of_reach(), (Some(false), false));
}

#[tokio::test(start_paused = true)]
async fn an_answer_clears_the_timeouts_and_timeouts_from_before_an_ejection_do_not_count() {
    let pool = pool_that_ejects(2);
    let _members = ["slow", "other"].map(|name| pool.join(name, 9));
    for _ in 0..5 {
        assert_eq!(lease_of(&pool, "slow").strike(), None);
        lease_of(&pool, "slow").reached();
    }
    let together: Vec<_> = (0..4).map(|_| lease_of(&pool, "slow")).collect();
    let out: Vec<_> = together.iter().filter_map(Lease::strike).collect();
    assert_eq!(out.len(), 1, "those that waited together are one ejection");
}

#[tokio::test(start_paused = true)]
async fn a_member_with_one_slot_is_ejected_by_one_timeout_and_one_member_always_stays() {
    let pool = pool_that_ejects(5);
    let _members = ["a", "b"].map(|name| pool.join(name, 1));
    let (a, b) = (lease(&pool), lease(&pool));
    assert!(a.strike().is_some());
    assert_eq!(b.strike(), None, "the last one stays");
    drop((a, b));
    assert_eq!(*lease(&pool), "b");
    let never = pool_that_ejects(0);
    let _members = ["a", "b"].map(|name| never.join(name, 1));
    assert_eq!(lease(&never).strike(), None);
}

/// A pool of two members, the first of which is ejected.
fn pool_with_an_ejected_member() -> (Pool<&'static str>, [Membership<&'static str>; 2]) {
    let pool = pool_that_ejects(1);
    let members = ["slow", "other"].map(|name| pool.join(name, 9));
    lease_of(&pool, "slow").strike().unwrap();
    (pool, members)
}

#[tokio::test(start_paused = true)]
async fn an_ejection_ends_when_no_other_member_gets_requests_any_more() {
    let (pool, [_slow, other]) = pool_with_an_ejected_member();
    drop(other);
    let trial = lease(&pool);
    assert!(*trial == "slow" && trial.was_ejected());
    let mut request = waiting(&pool);
    request.assert_waits();
    assert!(trial.reached());
    drop(trial);
    request.assert_served();
    let (pool, [_slow, other]) = pool_with_an_ejected_member();
    other.set_health(false);
    assert_eq!(*lease(&pool), "slow");
    let (pool, _members) = pool_with_an_ejected_member();
    lease_of(&pool, "other").end(LeaseEnding::Unreachable);
    assert_eq!(*lease(&pool), "slow");
    let (pool, [_slow, other]) = pool_with_an_ejected_member();
    let _third = pool.join("third", 9);
    drop(other);
    assert!((0..9).all(|_| *lease(&pool) == "third"), "while another one gets requests, it goes on");
}

#[tokio::test(start_paused = true)]
async fn the_last_member_is_not_tried_again_at_once_if_it_cannot_be_reached() {
    let (pool, [_slow, other]) = pool_with_an_ejected_member();
    advance(10 * SECOND).await;
    let trial = lease_of(&pool, "slow");
    drop(other);
    trial.end(LeaseEnding::Unreachable);
    waiting(&pool).assert_waits();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_repeated_is_no_trial_request() {
    let pool = pool_that_ejects(1);
    let _members = ["frozen", "alive"].map(|name| pool.join(name, 9));
    let out = lease_of(&pool, "frozen").strike().unwrap();
    advance(out).await;
    let once = Claim {
        preference: MemberPreference { cautious: true, ..MemberPreference::default() },
        ..Claim::default()
    };
    assert!((0..9).all(|_| *of(pool.acquire(once)).lease() == "alive"));
    advance(out).await;
    assert!((0..9).any(|_| *of(pool.acquire(once)).lease() == "frozen"), "not for ever");
}

#[tokio::test(start_paused = true)]
async fn requests_at_an_ejected_unhealthy_or_lost_member_are_notified() {
    let pool = pool_that_ejects(1);
    let [ejected, unfit, lost, alive] = ["ejected", "unfit", "lost", "alive"].map(|name| pool.join(name, 9));
    let waiting = ["ejected", "unfit", "lost", "alive"].map(|name| lease_of(&pool, name));
    let mut told = waiting.each_ref().map(|lease| Box::pin(lease.marked_down()));
    assert!(told.iter_mut().all(|told| !is_ready(told)));
    waiting[0].strike().unwrap();
    assert!(unfit.set_health(false));
    assert!(!unfit.set_health(false), "no news");
    drop(lost.give_up());
    assert_eq!(told.each_mut().map(is_ready), [true, true, true, false]);
    // A request that begins to wait later learns it at once.
    assert!(is_ready(&mut Box::pin(waiting[1].marked_down())));
    drop((waiting, ejected, alive));
}

#[tokio::test(start_paused = true)]
async fn requests_at_an_unhealthy_member_are_notified_also_after_it_has_answered_another() {
    let pool = pool_that_ejects(5);
    let [unfit, _alive] = ["unfit", "alive"].map(|name| pool.join(name, 9));
    let [late, waiting] = ["unfit", "unfit"].map(|name| lease_of(&pool, name));
    assert_eq!(late.strike(), None);
    unfit.set_health(false);
    late.reached();
    assert!(is_ready(&mut Box::pin(waiting.marked_down())));
    unfit.set_health(true);
    assert!(!is_ready(&mut Box::pin(waiting.marked_down())));
}

#[tokio::test(start_paused = true)]
async fn a_forgiven_member_is_marked_down_only_until_it_answers() {
    let pool = pool_that_ejects(1);
    let _members = ["a", "b"].map(|name| pool.join(name, 1));
    let (ejected, _busy) = (lease(&pool), lease(&pool));
    assert!(ejected.strike().is_some());
    drop(ejected);
    let forgiving = MemberPreference { forgiving: true, ..MemberPreference::default() };
    let again = of(pool.acquire(Claim { preference: forgiving, ..Claim::default() })).lease();
    assert!(!again.was_ejected());
    again.reached();
    assert!(!is_ready(&mut Box::pin(again.marked_down())));
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_member_gets_no_request_until_it_is_healthy() {
    let pool = pool(9);
    let member = pool.join("a", 1);
    member.set_health(false);
    let snapshot = pool.snapshot();
    assert!(snapshot.members[0].figures.unhealthy);
    let mut request = waiting(&pool);
    advance(60 * SECOND).await;
    request.assert_waits();
    member.set_health(true);
    request.assert_served();
    assert_eq!(pool.snapshot().counters.unhealthy, 1);
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_claim_keeps_other_requests_off_its_member() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let _members = ["a", "b"].map(|name| pool.join(name, 4));
    let neighbour = lease(&pool);
    let alone = Claim {
        preference: MemberPreference { alone: true, ..MemberPreference::default() },
        ..Claim::default()
    };
    let trial = of(pool.acquire(alone)).lease();
    assert_ne!(*trial, *neighbour, "a member without requests comes first");
    assert!(trial.is_alone(SECOND));
    let others: Vec<_> = (0..3).map(|_| lease(&pool)).collect();
    assert!(others.iter().all(|other| **other == *neighbour), "{others:?}");
    assert!(!neighbour.is_alone(SECOND));
    drop((others, trial));
    assert!(!neighbour.is_alone(SECOND), "it had company a moment ago");
    advance(SECOND).await;
    assert!(neighbour.is_alone(SECOND));
    let _all: Vec<_> = (0..7).map(|_| lease(&pool)).collect();
}

#[tokio::test(start_paused = true)]
async fn a_member_that_a_request_has_alone_can_be_shared_before_it_ends() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let _members = ["a", "b"].map(|name| pool.join(name, 2));
    let preference = MemberPreference { alone: true, ..MemberPreference::default() };
    let alone = || of(pool.acquire(Claim { preference, ..Claim::default() })).lease();
    let trial = alone();
    let _others = [lease(&pool), lease(&pool)];
    let mut request = waiting(&pool);
    trial.sharing()();
    request.assert_served();
    let share = trial.sharing();
    drop(trial);
    advance(SECOND).await;
    let _next = alone();
    share();
    waiting(&pool);
}

#[tokio::test(start_paused = true)]
async fn no_request_gets_the_only_member_exclusively() {
    let pool = pool(9);
    let _member = pool.join("a", 4);
    let alone = Claim {
        preference: MemberPreference { alone: true, ..MemberPreference::default() },
        ..Claim::default()
    };
    let _trial = of(pool.acquire(alone)).lease();
    drop(lease(&pool));
}
