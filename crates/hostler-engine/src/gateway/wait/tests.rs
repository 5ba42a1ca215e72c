//! How long a request waits for a slot, and why it is refused.

use std::collections::HashSet;
use std::iter::from_fn;
use std::net::Ipv4Addr;
use std::sync::Arc;

use hostler_dispatch::OccupancyLimits;
use hostler_wire::Address;
use tokio::time::sleep_until;

use super::*;
use crate::exchange::{Death, NoClient};
use crate::gateway::tests::{exchange, journal, request, seconds, target};
use crate::gateway::worker_hold::WorkerHold;
use crate::gateway::{Poison, PoisonSettings};

#[tokio::test(start_paused = true)]
async fn a_pause_of_the_pool_does_not_count_as_waiting() {
    let (target, mut exchange) = (target(), exchange());
    target.pool.pause();
    let (pool, meter) = (target.pool.clone(), target.meter.clone());
    let began = Instant::now();
    let operator = tokio::spawn(async move {
        sleep_until(began + seconds(20)).await;
        pool.resume();
        // The full time is left: the pause does not count.
        sleep_until(began + seconds(24)).await;
        let nowhere = Address::Unix("/nowhere".into());
        pool.join(Endpoint::new(nowhere.into(), "1".into(), meter, 1, None), 1)
    });
    let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
    let lease = queue_wait.slot(&mut exchange, &mut NoClient).await.unwrap();
    assert_eq!(lease.since() - began, seconds(24));
    assert_eq!(
        queue_wait.until() - began,
        seconds(50),
        "the pause does not count against the time of the answer"
    );
    drop(operator.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_another_fetch_counts_against_the_time_of_the_request() {
    let (target, mut exchange) = (target(), exchange());
    let wait_budget = WaitBudget::begin();
    tokio::time::advance(seconds(28)).await;
    let mut queue_wait = QueueWait::begin(&target, Priority::Normal, wait_budget);
    let refused = queue_wait.slot(&mut exchange, &mut NoClient).await;
    assert!(matches!(refused, Err(Refusal::NotStarted)), "{refused:?}");
    let left = queue_wait.until() - Instant::now();
    assert!(left <= Duration::ZERO, "{left:?}");
    let waited = wait_budget.began.elapsed();
    assert!((seconds(30)..seconds(31)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_a_request_at_most_one_more_request_timeout() {
    let (target, mut exchange) = (target(), exchange());
    target.pool.pause();
    let began = Instant::now();
    let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
    let refused = queue_wait.slot(&mut exchange, &mut NoClient).await;
    assert!(matches!(refused, Err(Refusal::NotStarted)), "{refused:?}");
    let waited = began.elapsed();
    assert!((seconds(35)..seconds(36)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_sleeping_pool_ends_with_the_wake_timeout() {
    for wake_timeout in [seconds(2), seconds(20), seconds(100)] {
        let (target, mut exchange) = (PoolTarget { wake_timeout, ..target() }, exchange());
        assert!(target.pool.fall_asleep(&Default::default()));
        let began = Instant::now();
        let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
        let refused = queue_wait.slot(&mut exchange, &mut NoClient).await;
        assert!(matches!(refused, Err(Refusal::WakeTimeout)), "{refused:?}");
        let waited = began.elapsed();
        assert!((wake_timeout..wake_timeout + seconds(1)).contains(&waited), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_a_pool_wakes_up_does_not_count_as_waiting() {
    let (target, mut exchange) = (PoolTarget { wake_timeout: seconds(60), ..target() }, exchange());
    assert!(target.pool.fall_asleep(&Default::default()));
    let (pool, meter) = (target.pool.clone(), target.meter.clone());
    let began = Instant::now();
    let owner = tokio::spawn(async move {
        sleep_until(began + seconds(50)).await;
        // It boots, but has no free slot yet.
        let nowhere = Address::Unix("/nowhere".into());
        let member = pool.join(Endpoint::new(nowhere.into(), "1".into(), meter, 1, None), 0);
        pool.wake_up();
        sleep_until(began + seconds(54)).await;
        member.set_slots(1);
        member
    });
    let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
    let lease = queue_wait.slot(&mut exchange, &mut NoClient).await.unwrap();
    assert_eq!(lease.since() - began, seconds(54));
    assert_eq!(queue_wait.until() - began, seconds(80), "30 s from the moment it was awake");
    drop(owner.await.unwrap());
}

/// A request of a path that holds a worker. Returns how long it waits until it is refused.
async fn wait_in_vain(target: &PoolTarget) -> Duration {
    let mut exchange = exchange();
    let began = Instant::now();
    target.poison.hold(&target.poison.identity(&exchange), WorkerHold::Blocks, began);
    exchange.is_suspect = true;
    let mut queue_wait = QueueWait::begin(target, Priority::Normal, WaitBudget::begin());
    let refused = queue_wait.turn(&mut exchange, &mut NoClient).await;
    assert!(matches!(refused, Err(Refusal::Suspect)), "{refused:?}");
    assert_eq!(target.poison.view().waiting, 0);
    assert_eq!(exchange.timings.queue_wait, began.elapsed());
    assert_eq!(exchange.timings.vain_wait, Some((began, Instant::now())));
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_turn_ends_with_the_queue_timeout() {
    for queue_timeout in [seconds(2), seconds(20)] {
        let target = PoolTarget { queue_timeout, ..target() };
        let waited = wait_in_vain(&target).await;
        assert!((queue_timeout..queue_timeout + seconds(1)).contains(&waited), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn beyond_a_thousand_that_wait_only_requests_that_may_have_killed_are_refused() {
    let settings = PoisonSettings { kills: 3, keep_off: seconds(60), ..PoisonSettings::OFF };
    let poison = Arc::new(Poison::new("app".into(), settings, journal(), None));
    let target = PoolTarget { poison: poison.clone(), ..target() };
    let mut trial = exchange();
    let death = |pid, alone| Death { pid, since: Instant::now(), at: Instant::now(), own: true, alone };
    poison.record(&poison.identity(&trial), &death(1, false), false);
    assert!(matches!(poison.enter(&mut trial, 9), Ok(Admission::Alone(_))));
    let mut other = exchange();
    let place_of = |client: u32| {
        other.client.ip = Ipv4Addr::from_bits(client).into();
        poison.take_place(&other)
    };
    let places: Vec<_> = (0..).map_while(place_of).collect();
    assert_eq!(places.len(), 1000);
    let turn = async || {
        let (mut exchange, began) = (exchange(), Instant::now());
        let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
        let outcome = queue_wait.turn(&mut exchange, &mut NoClient).await;
        assert!(exchange.turn.is_none());
        (outcome, began.elapsed())
    };
    let (outcome, waited) = turn().await;
    assert!(outcome.is_ok() && (seconds(2)..seconds(3)).contains(&waited), "{outcome:?} after {waited:?}");
    poison.record(&poison.identity(&trial), &death(2, true), true);
    let (outcome, waited) = turn().await;
    assert!(matches!(outcome, Err(Refusal::Suspect)) && waited < seconds(1), "{outcome:?} after {waited:?}");
}

#[tokio::test]
async fn one_client_does_not_take_all_places_of_requests_that_wait_for_their_turn() {
    let target = target();
    let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|client| request(client, ""));
    let places: Vec<_> = from_fn(|| target.poison.take_place(&one)).collect();
    assert_eq!((places.len(), target.poison.view().waiting), (500, 500));
    assert!(target.poison.take_place(&other).is_some());
    drop(places);
    assert_eq!(target.poison.view().waiting, 0);
    assert!(target.poison.take_place(&one).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_request_behind_a_hundred_that_wait_gets_its_turn_too() {
    let (target, mut trial, mut exchange) = (target(), exchange(), exchange());
    let poison = &target.poison;
    poison.hold(&poison.identity(&trial), WorkerHold::Waits, Instant::now());
    assert!(matches!(poison.enter(&mut trial, 9), Ok(Admission::Alone(_))));
    let _places: Vec<_> = (0..100).map(|_| poison.take_place(&trial)).collect();
    let (turn, began) = (trial.turn.take(), Instant::now());
    tokio::spawn(async move {
        sleep_until(began + seconds(3)).await;
        drop(turn);
    });
    exchange.is_suspect = true;
    let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
    queue_wait.turn(&mut exchange, &mut NoClient).await.unwrap();
    assert!(exchange.turn.is_some() && (seconds(3)..seconds(4)).contains(&began.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_could_block_the_last_member_waits_until_another_joins() {
    let target = target();
    let join = || {
        let nowhere = Address::Unix("/nowhere".into());
        target.pool.join(Endpoint::new(nowhere.into(), "1".into(), target.meter.clone(), 1, None), 1)
    };
    let _members = [join(), join()];
    let (blocking, mut exchange) = (request("192.0.2.1", ""), request("192.0.2.2", ""));
    target.poison.hold(&target.poison.identity(&blocking), WorkerHold::Blocks, Instant::now());
    exchange.is_suspect = true;
    let began = Instant::now();
    let spare = async {
        sleep_until(began + seconds(3)).await;
        join()
    };
    let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
    let mut client = NoClient;
    let turn = queue_wait.turn(&mut exchange, &mut client);
    let (_spare, outcome) = tokio::join!(spare, turn);
    outcome.unwrap();
    assert!(exchange.turn.is_some() && (seconds(3)..seconds(4)).contains(&began.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn a_blocked_member_that_has_left_is_not_one_of_those_that_serve() {
    let target = target();
    let join = || {
        let nowhere = Address::Unix("/nowhere".into());
        target.pool.join(Endpoint::new(nowhere.into(), "1".into(), target.meter.clone(), 1, None), 1)
    };
    let blocked = join();
    let _held = target.pool.acquire(Claim::default()).await.unwrap();
    let _successors = [join(), join()];
    blocked.gauge().set_blocked(true);
    drop(blocked);
    let (blocking, mut exchange) = (request("192.0.2.1", ""), request("192.0.2.2", ""));
    target.poison.hold(&target.poison.identity(&blocking), WorkerHold::Blocks, Instant::now());
    exchange.is_suspect = true;
    let began = Instant::now();
    let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
    queue_wait.turn(&mut exchange, &mut NoClient).await.unwrap();
    assert!(exchange.turn.is_some() && began.elapsed() < seconds(1));
}

#[tokio::test(start_paused = true)]
async fn the_turn_of_a_request_that_gets_no_slot_is_over() {
    let (target, mut exchange) = (target(), exchange());
    let identity = target.poison.identity(&exchange);
    target.poison.hold(&identity, WorkerHold::Waits, Instant::now());
    let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
    queue_wait.turn(&mut exchange, &mut NoClient).await.unwrap();
    assert!(exchange.turn.is_some());
    let refused = queue_wait.slot(&mut exchange, &mut NoClient).await;
    assert!(matches!(refused, Err(Refusal::NotStarted)), "{refused:?}");
    assert!(exchange.turn.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pause_does_not_count_in_the_wait_for_a_turn() {
    let target = target();
    target.pool.pause();
    let pool = target.pool.clone();
    tokio::spawn(async move {
        sleep_until(Instant::now() + seconds(20)).await;
        pool.resume();
    });
    let waited = wait_in_vain(&target).await;
    assert!((seconds(25)..seconds(26)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_turn_counts_against_the_time_for_a_slot() {
    let (target, mut exchange) = (target(), exchange());
    exchange.is_suspect = true;
    let identity = target.poison.identity(&exchange);
    target.poison.hold(&identity, WorkerHold::Blocks, Instant::now());
    let poison = target.poison.clone();
    tokio::spawn(async move {
        sleep_until(Instant::now() + seconds(3)).await;
        poison.release(&identity, WorkerHold::Blocks);
    });
    let began = Instant::now();
    let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
    queue_wait.turn(&mut exchange, &mut NoClient).await.unwrap();
    let refused = queue_wait.slot(&mut exchange, &mut NoClient).await;
    assert!(matches!(refused, Err(Refusal::NotStarted)), "{refused:?}");
    let waited = began.elapsed();
    assert!((seconds(5)..seconds(6)).contains(&waited), "{waited:?}");
    assert_eq!(exchange.timings.vain_wait, Some((began, began + waited)), "both waits");
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_route_are_of_one_kind_before_and_after_a_reload() {
    let target = target();
    // A reload makes each route anew: its name is equal, and lies at another address.
    let wait = async |route: &str| {
        let mut exchange = exchange();
        exchange.log_facts.route = Some(route.into());
        let mut queue_wait = QueueWait::begin(&target, Priority::Normal, WaitBudget::begin());
        queue_wait.slot(&mut exchange, &mut NoClient).await.map(drop)
    };
    let kinds = async {
        let limits = OccupancyLimits { waiting: 3, members: 0, slots: 0 };
        let waiting = target.pool.occupancy(limits, |_| ()).waiting;
        assert_eq!(waiting.len(), 3);
        waiting.iter().map(|request| request.kind).collect::<HashSet<_>>()
    };
    let (.., kinds) = tokio::join!(wait("a/*"), wait("a/*"), wait("b/*"), kinds);
    assert_eq!(kinds.len(), 2);
}
