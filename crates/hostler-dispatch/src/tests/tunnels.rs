//! Tunnels: which member gets them, how many it may have, and how they end.

use std::pin::pin;

use super::*;
use crate::TunnelGuard;

fn pool_of(max_tunnels: usize) -> Pool<&'static str> {
    Pool::new("test", PoolSettings { max_tunnels, ..PoolSettings::default() })
}

fn for_tunnel(pool: &Pool<&'static str>) -> Request<&'static str> {
    of(pool.acquire(Claim { long_lived: Some(LongLived::Tunnel), ..Claim::default() }))
}

fn tunnel(pool: &Pool<&'static str>) -> TunnelGuard<&'static str> {
    for_tunnel(pool).lease().tunnel_guard()
}

/// A lease of each of two members, that of `first` first.
fn two_leases(pool: &Pool<&'static str>, first: &str) -> [Lease<&'static str>; 2] {
    let mut both = [lease(pool), lease(pool)];
    both.sort_by_key(|lease| **lease != first);
    both
}

fn is_ready(future: Pin<&mut impl Future<Output = ()>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_tunnel_leaves_the_slot_to_others() {
    let pool = pool(10);
    let _member = pool.join("a", 1);
    let lease = for_tunnel(&pool).lease();
    let mut next = waiting(&pool);
    let tunnel_guard = lease.tunnel_guard();
    next.assert_served();
    let figures = pool.snapshot();
    assert_eq!((figures.in_use, figures.tunnels, figures.counters.tunnels), (0, 1, 1));
    drop(tunnel_guard);
    assert_eq!((pool.snapshot().tunnels, pool.snapshot().counters.tunnels), (0, 1));
}

#[test]
fn tunnels_go_to_the_member_with_the_fewest_and_pending_ones_count() {
    for choice in [MemberChoice::Warm, MemberChoice::RoundRobin, MemberChoice::LeastBusy] {
        let pool = pool_with(choice);
        let _members = ["a", "b", "c"].map(|name| pool.join(name, 9));
        let begun: Vec<_> = (0..3).map(|_| tunnel(&pool)).collect();
        let to_be: Vec<_> = (0..3).map(|_| for_tunnel(&pool).lease()).collect();
        for names in [begun.iter().map(|it| **it).collect::<Vec<_>>(), to_be.iter().map(|it| **it).collect()]
        {
            assert!(["a", "b", "c"].iter().all(|name| names.contains(name)), "{choice}: {names:?}");
        }
    }
}

#[test]
fn over_the_limit_a_tunnel_is_refused_and_a_request_is_not() {
    let pool = pool_of(1);
    let _members = ["a", "b"].map(|name| pool.join(name, 2));
    let (first, second) = (tunnel(&pool), for_tunnel(&pool).lease());
    for_tunnel(&pool).assert_refused(AcquireError::TooManyTunnels);
    request(&pool).assert_served();
    assert_eq!(pool.snapshot().counters.refused_tunnels, 1);
    // A handshake that failed and a tunnel that has ended make room.
    drop(second);
    let _again = tunnel(&pool);
    drop(first);
    let _and_again = tunnel(&pool);
    for_tunnel(&pool).assert_refused(AcquireError::TooManyTunnels);
}

#[test]
fn a_tunnel_that_must_wait_blocks_no_request_behind_it() {
    let pool = pool_of(1);
    let _members = ["a", "b"].map(|name| pool.join(name, 1));
    let tunnel_guard = tunnel(&pool);
    let [full, other] = two_leases(&pool, *tunnel_guard);
    let mut wants_tunnel = for_tunnel(&pool);
    wants_tunnel.assert_waits();
    let mut behind = waiting(&pool);
    drop(full);
    behind.assert_served();
    wants_tunnel.assert_waits();
    let name = *other;
    drop(other);
    assert_eq!(*wants_tunnel.lease().tunnel_guard(), name, "the member that has room");
    for_tunnel(&pool).assert_served();
    let _second = for_tunnel(&pool).lease().tunnel_guard();
    for_tunnel(&pool).assert_refused(AcquireError::TooManyTunnels);
}

#[test]
fn a_tunnel_waits_for_the_member_with_room_while_others_have_free_slots() {
    let pool = pool_of(1);
    let _members = ["a", "b"].map(|name| pool.join(name, 1));
    let first = tunnel(&pool);
    let [free, busy] = two_leases(&pool, *first);
    drop(free);
    let mut wants_tunnel = for_tunnel(&pool);
    wants_tunnel.assert_waits();
    request(&pool).assert_served();
    // The room is taken while it waits for it, and comes free elsewhere.
    let mut other = for_tunnel(&pool);
    other.assert_waits();
    drop(busy);
    let second = wants_tunnel.lease().tunnel_guard();
    assert_ne!(*second, *first);
    other.assert_refused(AcquireError::TooManyTunnels);
}

/// A tunnel waits for the member with room, which is busy. The other one has a free slot, and the tunnel that is returned.
fn waits_for_room(
    pool: &Pool<&'static str>,
) -> (TunnelGuard<&'static str>, Lease<&'static str>, Request<&'static str>) {
    let first = tunnel(pool);
    let [free, busy] = two_leases(pool, *first);
    drop(free);
    let mut wants_tunnel = for_tunnel(pool);
    wants_tunnel.assert_waits();
    (first, busy, wants_tunnel)
}

#[test]
fn a_tunnel_that_waits_for_room_begins_at_the_first_member_that_has_room_and_a_slot() {
    let pool = pool_of(1);
    let _members = ["a", "b"].map(|name| pool.join(name, 1));
    let (first, _busy, mut wants_tunnel) = waits_for_room(&pool);
    let mut second = for_tunnel(&pool);
    second.assert_waits();
    let name = *first;
    drop(first);
    let begun = wants_tunnel.lease().tunnel_guard();
    assert_eq!(*begun, name, "its tunnel has ended");
    second.assert_waits();
    let _c = pool.join("c", 1);
    assert_eq!(*second.lease(), "c", "a new member");
}

#[test]
fn a_tunnel_that_waits_for_room_begins_when_the_limit_is_raised() {
    let pool = pool_of(1);
    let _members = ["a", "b"].map(|name| pool.join(name, 1));
    let (first, _busy, mut wants_tunnel) = waits_for_room(&pool);
    pool.update(PoolSettings { max_tunnels: 2, ..PoolSettings::default() });
    assert_eq!(*wants_tunnel.lease(), *first);
}

#[test]
fn a_tunnel_that_waits_for_room_and_leaves_is_forgotten() {
    let pool = pool_of(1);
    let _members = ["a", "b"].map(|name| pool.join(name, 1));
    let (first, busy, wants_tunnel) = waits_for_room(&pool);
    drop((wants_tunnel, first, busy));
    let state = pool.shared.lock();
    assert!(state.queue.lines.iter().all(|line| line.for_room.iter().all(|places| places.is_empty())));
}

#[test]
fn without_a_member_a_tunnel_waits_like_a_request() {
    let pool = pool_of(1);
    let mut first = for_tunnel(&pool);
    first.assert_waits();
    let _member = pool.join("a", 1);
    assert_eq!(*first.lease().tunnel_guard(), "a");
}

#[test]
fn a_member_that_leaves_tells_its_tunnels_and_has_not_left_before_they_end() {
    let pool = pool(10);
    let old = pool.join("old", 1);
    let tunnel_guard = tunnel(&pool);
    let mut dismissed = pin!(tunnel_guard.dismissed());
    assert!(!is_ready(dismissed.as_mut()));
    let mut left = pin!(old.leave());
    assert!(is_ready(dismissed.as_mut()) && !is_ready(left.as_mut()));
    assert!(is_ready(pin!(tunnel_guard.dismissed())), "also if it is asked later");
    assert_eq!(pool.snapshot().members.len(), 1);
    drop(tunnel_guard);
    assert!(is_ready(left.as_mut()));
    assert_eq!(pool.snapshot().members.len(), 0);
}

#[test]
fn a_pools_tunnels_can_be_closed_while_its_members_stay() {
    let pool = pool(10);
    let member = pool.join("a", 1);
    let tunnel_guard = tunnel(&pool);
    pool.dismiss_tunnels();
    assert!(is_ready(pin!(tunnel_guard.dismissed())));
    request(&pool).assert_served();
    drop((tunnel_guard, member));
}

#[test]
fn a_member_with_a_tunnel_is_not_idle() {
    let pool = pool(10);
    let member = pool.join("a", 1);
    let tunnel_guard = tunnel(&pool);
    let gauge = member.gauge();
    assert!(gauge.load().unwrap().is_in_use() && gauge.hold().is_none());
    drop(tunnel_guard);
    assert!(!gauge.load().unwrap().is_in_use() && gauge.hold().is_some());
}
