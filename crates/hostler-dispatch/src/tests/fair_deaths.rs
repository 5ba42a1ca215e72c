//! Fair pools whose requests end without an answer, by their members or their clients: which key pays for that, and how much.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::{Instant, advance};

use super::fair::{ask, fair_pool, take};
use super::*;
use crate::{FairKey, Payer, SlotCost, WorkKind};

#[tokio::test(start_paused = true)]
async fn a_key_pays_for_no_death_over_a_request_that_was_not_processed() {
    let pool = fair_pool(99);
    let _members = [pool.join("a", 1), pool.join("b", 1)];
    let (unread, running) = (take(&pool, 1), take(&pool, 2));
    let (mut first, mut second) = (ask(&pool, 1), ask(&pool, 2));
    advance(Duration::from_millis(500)).await;
    unread.end(LeaseEnding::Unprocessed);
    assert!(!first.woken(), "its member gets no request for a moment");
    drop(running);
    // Both keys have used 500 ms, so the older request is next.
    first.assert_served();
    second.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_clients_leave_pays_what_such_requests_cost_on_average() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    let of_kind = |key: u64| {
        let kind = Some(WorkKind::of(7));
        of(pool.acquire(Claim { fair: Some(FairKey::of(key)), kind, ..Claim::default() }))
    };
    for _ in 0..20 {
        let lease = of_kind(9).lease();
        advance(Duration::from_millis(100)).await;
        drop(lease);
    }
    let (mut running, payer) = (of_kind(1).lease(), Arc::<GivenUp>::default());
    running.charge_to(payer.clone(), 0);
    let (mut one, mut twos) = (of_kind(1), [of_kind(2), of_kind(2)]);
    one.assert_waits();
    twos.iter_mut().for_each(Request::assert_waits);
    advance(Duration::from_millis(10)).await;
    running.end(LeaseEnding::Abandoned(Instant::now()));
    let told: Vec<_> = payer.0.lock().unwrap().iter().map(|(_, besides)| besides.as_millis()).collect();
    assert!(matches!(told[..], [89..=90]), "{told:?}");
    let running = twos[0].lease();
    advance(Duration::from_millis(50)).await;
    drop(running);
    // The first key has paid 100 ms although it held the slot for 10 ms, and the second one 50 ms.
    let running = twos[1].lease();
    assert!(!one.woken());
    drop(running);
    one.assert_served();
}

/// Keeps for how long the slots of requests were held that their clients gave up, and what their keys were charged besides.
#[derive(Default)]
struct GivenUp(Mutex<Vec<(Duration, Duration)>>);

impl Payer for GivenUp {
    fn pay(&self, _: u64, _: SlotCost) {}

    fn pay_besides(&self, _: Duration) {}

    fn pay_early(&self, held: Duration, besides: Duration) {
        self.0.lock().unwrap().push((held, besides));
    }
}

#[tokio::test(start_paused = true)]
async fn the_payer_is_told_of_a_request_that_its_client_gives_up() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 2);
    let payer = Arc::<GivenUp>::default();
    let [mut given_up, mut fine] = [take(&pool, 1), take(&pool, 1)];
    given_up.charge_to(payer.clone(), 0);
    fine.charge_to(payer.clone(), 0);
    advance(Duration::from_millis(7)).await;
    given_up.end(LeaseEnding::Abandoned(Instant::now()));
    fine.end(LeaseEnding::Finished(Instant::now()));
    assert_eq!(*payer.0.lock().unwrap(), [(Duration::from_millis(7), Duration::ZERO)]);
}

#[tokio::test(start_paused = true)]
async fn requests_that_their_clients_give_up_cost_no_less_the_more_there_are() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    for _ in 0..20 {
        let lease = take(&pool, 9);
        advance(Duration::from_millis(100)).await;
        drop(lease);
    }
    let payer = Arc::<GivenUp>::default();
    // No request of this kind has ever ended as it should.
    let claim = Claim { fair: Some(FairKey::of(1)), kind: Some(WorkKind::of(7)), ..Claim::default() };
    for _ in 0..100 {
        let mut lease = of(pool.acquire(claim)).lease();
        lease.charge_to(payer.clone(), 0);
        advance(Duration::from_millis(1)).await;
        lease.end(LeaseEnding::Abandoned(Instant::now()));
    }
    let besides: Vec<_> = payer.0.lock().unwrap().iter().map(|(_, besides)| besides.as_millis()).collect();
    assert!(besides.iter().all(|besides| matches!(besides, 98..=99)), "{besides:?}");
}
