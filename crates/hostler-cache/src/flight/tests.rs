//! What waiting requests get when leaders or other waiting requests leave.

use super::alone::MOST_ALONE;
use super::*;

const NOW: Tick = Tick(1_000_000);

fn flights() -> Arc<Flights<u32>> {
    Flights::new(5000)
}

fn lead(flights: &Arc<Flights<u32>>) -> Flight<u32> {
    match flights.join(b"key", NOW) {
        FlightRole::Leader(flight) => flight,
        _ => panic!("another request leads already"),
    }
}

fn follow(flights: &Arc<Flights<u32>>) -> FlightWait<u32> {
    match flights.join(b"key", NOW) {
        FlightRole::Follower(waiting) => waiting,
        _ => panic!("no request leads"),
    }
}

async fn is_shared(waiting: FlightWait<u32>) -> u32 {
    match waiting.await {
        FlightResult::Shared(answer) => answer,
        FlightResult::Alone | FlightResult::Lead(_) => panic!("nothing was shared"),
    }
}

async fn leads(waiting: FlightWait<u32>) -> Flight<u32> {
    match waiting.await {
        FlightResult::Lead(flight) => flight,
        FlightResult::Alone | FlightResult::Shared(_) => panic!("it was not handed on"),
    }
}

#[tokio::test]
async fn all_waiting_requests_get_what_the_leader_has_fetched() {
    let flights = flights();
    let leader = lead(&flights);
    let waiting: Vec<_> = (0..500).map(|_| follow(&flights)).collect();
    leader.settle(FlightOutcome::Shared(7), NOW);
    for one in waiting {
        assert_eq!(is_shared(one).await, 7);
    }
    assert_eq!(flights.count(), 0);
}

#[tokio::test]
async fn no_request_joins_a_void_flight_and_those_that_wait_already_get_its_result() {
    let flights = flights();
    let early = lead(&flights);
    let (first, second) = (follow(&flights), follow(&flights));
    let FlightRole::Leader(late) = flights.join_unless(b"key", NOW, |begun, _, _| begun == NOW) else {
        panic!("it joined the void flight");
    };
    let third = follow(&flights);
    drop(early);
    let early = leads(first).await;
    early.arrive(&1);
    assert_eq!(is_shared(second).await, 1);
    early.settle(FlightOutcome::Shared(1), NOW);
    let fourth = follow(&flights);
    late.settle(FlightOutcome::Shared(2), NOW);
    assert_eq!((is_shared(third).await, is_shared(fourth).await), (2, 2));
    assert_eq!(flights.count(), 0);
}

#[test]
fn no_request_reads_a_void_answer_that_is_arriving() {
    let flights = flights();
    let early = lead(&flights);
    early.arrive(&1);
    assert!(matches!(flights.join_unless(b"key", NOW, |_, _, _| false), FlightRole::Arriving(1)));
    let FlightRole::Leader(late) = flights.join_unless(b"key", NOW, |_, arriving, _| arriving == Some(&1))
    else {
        panic!("it joined the void flight");
    };
    drop(early);
    let _waiting = follow(&flights);
    drop(late);
}

#[tokio::test]
async fn a_leader_that_leaves_hands_on_to_the_first_request_that_still_waits() {
    let flights = flights();
    let leader = lead(&flights);
    let (first, second, third) = (follow(&flights), follow(&flights), follow(&flights));
    drop(first);
    drop(leader);
    let second = leads(second).await;
    second.settle(FlightOutcome::Shared(2), NOW);
    assert_eq!(is_shared(third).await, 2);
}

#[tokio::test]
async fn a_lead_given_to_a_request_that_leaves_goes_to_the_next() {
    let flights = flights();
    let leader = lead(&flights);
    let (first, second) = (follow(&flights), follow(&flights));
    drop(leader);
    // It leads now, but has not polled yet.
    drop(first);
    drop(leads(second).await);
    assert_eq!(flights.count(), 0);
}

#[test]
fn thousands_of_requests_that_left_are_passed_over_without_a_deep_stack() {
    let flights = flights();
    let leader = lead(&flights);
    let waiting: Vec<_> = (0..100_000).map(|_| follow(&flights)).collect();
    drop(waiting);
    drop(leader);
    assert_eq!(flights.count(), 0);
}

#[test]
fn a_flight_keeps_hardly_more_requests_than_still_wait() {
    for is_first_patient in [false, true] {
        let flights = flights();
        let _leader = lead(&flights);
        let _patient = is_first_patient.then(|| follow(&flights));
        for _ in 0..10_000 {
            drop(follow(&flights));
        }
        let shard = flights.shard_of(b"key");
        let Some(FlightProgress::Waiting(waiting)) =
            shard.flights.get(&b"key"[..]).map(|flight| &flight.progress)
        else {
            panic!("it has ended");
        };
        assert!(waiting.len() < 100, "{} places", waiting.len());
    }
}

#[tokio::test]
async fn after_an_unshareable_answer_each_request_fetches_for_itself_for_some_seconds() {
    let flights = flights();
    let leader = lead(&flights);
    let waiting = follow(&flights);
    leader.settle(FlightOutcome::Alone, NOW);
    assert!(matches!(waiting.await, FlightResult::Alone));
    assert!(matches!(flights.join(b"key", Tick(NOW.0 + 4999)), FlightRole::Alone));
    assert!(matches!(flights.join(b"other", NOW), FlightRole::Leader(_)));
    assert!(matches!(flights.join(b"key", Tick(NOW.0 + 5000)), FlightRole::Leader(_)));
}

/// The key cannot be shared. Returns when its time is over.
fn unshareable(flights: &Arc<Flights<u32>>) -> Tick {
    lead(flights).settle(FlightOutcome::Alone, NOW);
    Tick(NOW.0 + 5000)
}

#[test]
fn no_request_waits_for_the_one_that_finds_out_whether_a_key_can_be_shared_now() {
    let flights = flights();
    let mut now = unshareable(&flights);
    for _ in 0..100 {
        let FlightRole::Leader(slow) = flights.join(b"key", now) else { panic!("one finds out") };
        for later in [0, 4999, 5000, 60_000] {
            now = Tick(now.0 + later);
            assert!(matches!(flights.join(b"key", now), FlightRole::Alone), "after {later} ms");
        }
        slow.settle(FlightOutcome::Alone, now);
        assert!(matches!(flights.join(b"key", now), FlightRole::Alone));
        now = Tick(now.0 + 5000);
    }
    let much_later = Tick(now.0 + RECALL_MS);
    let FlightRole::Leader(_first) = flights.join(b"key", much_later) else { panic!("it was forgotten") };
    assert!(matches!(flights.join(b"key", much_later), FlightRole::Follower(_)));
}

#[test]
fn a_key_that_can_be_shared_after_all_has_one_fetch_for_all_again() {
    let (flights, due) = (flights(), Tick(NOW.0 + 5000));
    for ending in 0..3 {
        assert_eq!(unshareable(&flights), due);
        match (ending, flights.join(b"key", due)) {
            (0, FlightRole::Leader(flight)) => flight.settle(FlightOutcome::Shared(7), due),
            (1, FlightRole::Leader(flight)) => flight.arrive(&7),
            (2, FlightRole::Leader(_)) => flights.share_again(b"key"),
            _ => panic!("one finds out"),
        }
        let _leader = lead(&flights);
        drop(follow(&flights));
    }
}

#[test]
fn the_list_of_unshareable_keys_is_bounded() {
    let flights = flights();
    for at in 0..(SHARDS * MOST_ALONE * 2) {
        let FlightRole::Leader(flight) = flights.join(&at.to_ne_bytes(), NOW) else { panic!("a new key") };
        flight.settle(FlightOutcome::Alone, NOW);
    }
    let held: usize = flights.shards.iter().map(|shard| lock(shard).alone.len()).sum();
    assert!(held <= SHARDS * MOST_ALONE, "{held}");
}

#[test]
fn an_unshareable_key_is_remembered_without_its_bytes() {
    let flights = flights();
    let leader = lead(&flights);
    let key = Arc::downgrade(&leader.key);
    leader.settle(FlightOutcome::Alone, NOW);
    assert!(matches!(flights.join(b"key", NOW), FlightRole::Alone));
    assert!(key.upgrade().is_none());
}

#[tokio::test]
async fn waiting_works_across_threads() {
    let flights = flights();
    let leader = lead(&flights);
    let waiting = follow(&flights);
    let other = std::thread::spawn(move || leader.settle(FlightOutcome::Shared(1), NOW));
    assert_eq!(is_shared(waiting).await, 1);
    other.join().unwrap();
}

#[tokio::test]
async fn an_arriving_answer_serves_waiting_requests_and_those_that_join_before_its_end() {
    let flights = flights();
    let leader = lead(&flights);
    let waiting = follow(&flights);
    leader.arrive(&7);
    assert_eq!(is_shared(waiting).await, 7);
    assert!(matches!(flights.join(b"key", NOW), FlightRole::Arriving(7)));
    leader.settle(FlightOutcome::Shared(7), NOW);
    drop(lead(&flights));
    let next = lead(&flights);
    next.arrive(&8);
    drop(next);
    assert_eq!(flights.count(), 0);
}

#[tokio::test]
async fn after_one_failure_requests_wait_for_the_next_fetch_and_after_two_they_stop_waiting() {
    let flights = flights();
    let leader = lead(&flights);
    let (first, mut second) = (follow(&flights), follow(&flights));
    leader.settle(FlightOutcome::Failed, NOW);
    let heir = leads(first).await;
    let late = follow(&flights);
    assert!(futures_pending(&mut second).await, "it waits on");
    heir.settle(FlightOutcome::Failed, NOW);
    for one in [second, late] {
        assert!(matches!(one.await, FlightResult::Alone));
    }
    // The first failure is not remembered, so the next one counts as a first failure again.
    let (leader, waiting) = (lead(&flights), follow(&flights));
    leader.settle(FlightOutcome::Failed, NOW);
    leads(waiting).await.settle(FlightOutcome::Shared(1), NOW);
    assert_eq!(flights.count(), 0);
}

#[tokio::test]
async fn a_request_that_leaves_counts_as_no_failure_and_clears_none() {
    let flights = flights();
    let leader = lead(&flights);
    let (first, second, third) = (follow(&flights), follow(&flights), follow(&flights));
    leader.settle(FlightOutcome::Failed, NOW);
    drop(leads(first).await);
    leads(second).await.settle(FlightOutcome::Failed, NOW);
    assert!(matches!(third.await, FlightResult::Alone));
}

#[test]
fn a_failure_without_a_waiting_request_ends_the_flight() {
    let flights = flights();
    lead(&flights).settle(FlightOutcome::Failed, NOW);
    assert_eq!(flights.count(), 0);
}

async fn futures_pending(waiting: &mut FlightWait<u32>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *waiting).poll(cx).is_pending())).await
}
