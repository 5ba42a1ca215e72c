//! Fair pools whose requests end without an answer, by their members or their clients: which key pays for that, and how much.

use std::time::Duration;

use tokio::time::{Instant, advance};

use super::fair::{ask, fair_pool, take};
use super::*;
use crate::{FairKey, WorkKind};

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
    let running = of_kind(1).lease();
    let (mut one, mut twos) = (of_kind(1), [of_kind(2), of_kind(2)]);
    one.assert_waits();
    twos.iter_mut().for_each(Request::assert_waits);
    advance(Duration::from_millis(10)).await;
    running.end(LeaseEnding::Abandoned(Instant::now()));
    let running = twos[0].lease();
    advance(Duration::from_millis(50)).await;
    drop(running);
    // The first key has paid 100 ms although it held the slot for 10 ms, and the second one 50 ms.
    let running = twos[1].lease();
    assert!(!one.woken());
    drop(running);
    one.assert_served();
}
