//! Members that leave while they serve requests.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::{lease, pool, waiting};

fn poll(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
    future.poll(&mut Context::from_waker(Waker::noop()))
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
