//! Slots for second tries: at another member, and never at the cost of a request that waits.

use super::*;

#[test]
fn a_second_try_gets_a_slot_at_another_member_only() {
    let pool = pool(9);
    let a = pool.join("a", 2);
    let first = lease(&pool);
    assert!(pool.acquire_elsewhere(&Claim::default(), first.member()).is_none(), "there is no other member");
    let b = pool.join("b", 1);
    let second = pool.acquire_elsewhere(&Claim::default(), first.member()).unwrap();
    assert_eq!((*first, *second), ("a", "b"));
    assert!(
        pool.acquire_elsewhere(&Claim::default(), first.member()).is_none(),
        "the other one has no free slot"
    );
    assert_eq!(pool.snapshot().in_use, 2);
    drop(second);
    assert_eq!(pool.snapshot().in_use, 1);
    drop((a, b));
}

#[test]
fn a_second_try_gets_no_slot_while_requests_wait_or_the_pool_is_paused_or_closed() {
    let pool = pool(9);
    let (_a, b) = (pool.join("a", 1), pool.join("b", 1));
    let (first, other) = (lease(&pool), lease(&pool));
    let mut waiting = of(pool.acquire(Claim::default()));
    waiting.assert_waits();
    b.set_slots(2);
    // The new slot went to the request that waited.
    assert!(pool.acquire_elsewhere(&Claim::default(), first.member()).is_none());
    let third = waiting.lease();
    b.set_slots(3);
    pool.pause();
    assert!(pool.acquire_elsewhere(&Claim::default(), first.member()).is_none(), "paused");
    let mut paused = of(pool.acquire(Claim::default()));
    paused.assert_waits();
    pool.resume();
    let fourth = paused.lease();
    drop(fourth);
    assert!(pool.acquire_elsewhere(&Claim::default(), first.member()).is_some());
    pool.close();
    assert!(pool.acquire_elsewhere(&Claim::default(), first.member()).is_none(), "closed");
    drop((other, third));
}
