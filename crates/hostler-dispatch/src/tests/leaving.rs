//! How long members have been there, and members that leave while they serve requests.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::advance;

use super::{lease, pool, waiting};

fn poll(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn the_figures_of_a_member_tell_how_long_ago_it_joined() {
    let pool = pool(10);
    let _old = pool.join("old", 2);
    advance(Duration::from_secs(5)).await;
    let _new = pool.join("new", 2);
    advance(Duration::from_secs(1)).await;
    let ages: Vec<_> = pool.snapshot().members.iter().map(|member| member.figures.joined.as_secs()).collect();
    assert_eq!(ages, [6, 1]);
}

#[test]
fn leaving_takes_as_long_as_the_last_lease() {
    let pool = pool(10);
    let old = pool.join("old", 2);
    let (first, second) = (lease(&pool), lease(&pool));
    let mut left = pin!(old.leave());
    assert_eq!(poll(left.as_mut()), Poll::Pending);
    drop(first);
    assert_eq!(poll(left.as_mut()), Poll::Pending);
    drop(second);
    assert_eq!(poll(left.as_mut()), Poll::Ready(()));
    assert_eq!(pool.snapshot().members.len(), 0);
}

#[test]
fn a_leaving_member_gets_no_request_even_before_the_future_is_polled() {
    let pool = pool(10);
    let old = pool.join("old", 2);
    let busy = lease(&pool);
    let left = old.leave();
    let mut request = waiting(&pool);
    drop(busy);
    request.assert_waits();
    let _new = pool.join("new", 1);
    assert_eq!(*request.lease(), "new");
    drop(left);
}

#[test]
fn a_granted_slot_that_is_not_taken_does_not_delay_leaving() {
    let pool = pool(10);
    let old = pool.join("old", 1);
    let busy = lease(&pool);
    let mut request = waiting(&pool);
    drop(busy);
    let mut left = pin!(old.leave());
    assert_eq!(poll(left.as_mut()), Poll::Ready(()));
    request.assert_waits();
}

#[test]
fn an_idle_member_has_left_at_once() {
    let pool = pool(10);
    let mut left = pin!(pool.join("old", 1).leave());
    assert_eq!(poll(left.as_mut()), Poll::Ready(()));
}
