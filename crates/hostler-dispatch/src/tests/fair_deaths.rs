//! Fair pools whose members end requests without an answer: which key pays for that.

use std::time::Duration;

use tokio::time::advance;

use super::fair::{ask, fair_pool, take};
use super::*;

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
