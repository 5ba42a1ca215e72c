//! Requests that are bound to a member.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::advance;

use super::super::{Claim, Lease, LongLived, MemberId, MemberPreference, PoolSettings, Priority};
use super::*;

fn bound_to(member: MemberId) -> Claim {
    Claim { preference: MemberPreference { bound: Some(member), ..Default::default() }, ..Default::default() }
}

fn bound(pool: &Pool<&'static str>, member: MemberId) -> Request<&'static str> {
    of(pool.acquire(bound_to(member)))
}

fn hold(pool: &Pool<&'static str>, member: MemberId) -> Lease<&'static str> {
    bound(pool, member).lease()
}

#[test]
fn a_bound_request_waits_for_its_member_and_holds_up_no_other() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let [a, b] = ["a", "b"].map(|name| pool.join(name, 1));
    let busy = hold(&pool, a.id());
    let mut waits = bound(&pool, a.id());
    waits.assert_waits();
    for _ in 0..3 {
        assert_eq!(*lease(&pool), "b", "the others are served past it");
    }
    assert_eq!(*hold(&pool, b.id()), "b");
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.queue_length, snapshot.waiting.normal), (1, 1));
    drop(busy);
    assert_eq!(*waits.lease(), "a");
}

#[tokio::test(start_paused = true)]
async fn only_requests_that_another_member_could_serve_show_that_there_are_too_few() {
    let pool = pool(10);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let [_on_a, _on_b] = [hold(&pool, a.id()), lease(&pool)];
    let mut of_client = bound(&pool, a.id());
    of_client.assert_waits();
    let waits = || (pool.snapshot().oldest_wait, pool.snapshot().oldest_wait_for_any);
    let second = Duration::from_secs(1);
    advance(second).await;
    assert_eq!(waits(), (Some(second), None));
    let mut any = waiting(&pool);
    any.assert_waits();
    advance(second).await;
    assert_eq!(waits(), (Some(2 * second), Some(second)));
}

#[test]
fn the_slot_of_a_member_goes_to_the_oldest_request_bound_or_not() {
    let pool = pool(10);
    let [a, b] = ["a", "b"].map(|name| pool.join(name, 1));
    let (on_a, _on_b) = (hold(&pool, a.id()), hold(&pool, b.id()));
    let mut first = waiting(&pool);
    let mut second = bound(&pool, a.id());
    let mut third = waiting(&pool);
    second.assert_waits();
    drop(on_a);
    let lease = first.lease();
    second.assert_waits();
    third.assert_waits();
    drop(lease);
    let lease = second.lease();
    third.assert_waits();
    drop(lease);
    third.assert_served();
}

#[test]
fn bound_requests_of_one_member_are_served_in_their_order_and_by_class() {
    let pool = pool(10);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let busy = hold(&pool, a.id());
    let mut low = of(pool.acquire(Claim { priority: Priority::Low, ..bound_to(a.id()) }));
    let [mut first, mut second] = [bound(&pool, a.id()), bound(&pool, a.id())];
    low.assert_waits();
    first.assert_waits();
    second.assert_waits();
    drop(busy);
    for request in [&mut first, &mut second, &mut low] {
        assert_eq!(*request.lease(), "a");
    }
}

#[test]
fn a_waiting_class_is_skipped_at_most_eight_times_if_its_requests_are_bound() {
    let pool = pool(100);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let mut busy = hold(&pool, a.id());
    let of_class = |priority| {
        let mut request = of(pool.acquire(Claim { priority, ..bound_to(a.id()) }));
        request.assert_waits();
        request
    };
    let mut low: Vec<_> = (0..2).map(|_| of_class(Priority::Low)).collect();
    let mut high: Vec<_> = (0..20).map(|_| of_class(Priority::High)).collect();
    let mut order = String::new();
    while order.len() < 20 {
        drop(busy);
        let (name, class) =
            if low.first().is_some_and(Request::woken) { ('l', &mut low) } else { ('h', &mut high) };
        order.push(name);
        busy = class.remove(0).lease();
    }
    assert_eq!(order, "hhhhhhhhlhhhhhhhhlhh");
}

#[test]
fn a_slot_that_a_bound_class_cannot_use_is_none_that_it_was_denied() {
    let pool = pool(100);
    let [a, b] = ["a", "b"].map(|name| pool.join(name, 1));
    let (on_a, mut on_b) = (hold(&pool, a.id()), hold(&pool, b.id()));
    let of_class = |priority, claim| {
        let mut request = of(pool.acquire(Claim { priority, ..claim }));
        request.assert_waits();
        request
    };
    let low = of_class(Priority::Low, bound_to(a.id()));
    for _ in 0..20 {
        let mut high = of_class(Priority::High, Claim::default());
        drop(on_b);
        on_b = high.lease();
    }
    let mut high = of_class(Priority::High, Claim::default());
    drop(on_a);
    assert!(!low.woken());
    assert_eq!(*high.lease(), "a", "the first slot that both can use goes to the higher class");
}

#[test]
fn a_request_that_is_unbound_takes_any_slot_at_its_old_place() {
    let pool = pool(10);
    let [a, b] = ["a", "b"].map(|name| pool.join(name, 1));
    let (_on_a, on_b) = (hold(&pool, a.id()), hold(&pool, b.id()));
    let mut acquire = pin!(pool.acquire(bound_to(a.id())));
    let mut context = Context::from_waker(Waker::noop());
    assert!(acquire.as_mut().poll(&mut context).is_pending());
    let mut younger = waiting(&pool);
    acquire.as_mut().unbind();
    drop(on_b);
    younger.assert_waits();
    let Poll::Ready(Ok(lease)) = Pin::new(&mut acquire).poll(&mut context) else { panic!("no slot") };
    assert_eq!(*lease, "b");
}

#[test]
fn unbinding_gives_a_free_slot_at_once() {
    let pool = pool(10);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let _busy = hold(&pool, a.id());
    let mut acquire = pin!(pool.acquire(bound_to(a.id())));
    let mut context = Context::from_waker(Waker::noop());
    assert!(acquire.as_mut().poll(&mut context).is_pending());
    acquire.as_mut().unbind();
    assert!(acquire.as_mut().poll(&mut context).is_ready());
}

#[test]
fn a_request_of_a_member_that_is_gone_goes_to_another() {
    let pool = pool(10);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let id = a.id();
    let _busy = hold(&pool, id);
    let mut waits = bound(&pool, id);
    waits.assert_waits();
    drop(a);
    assert_eq!(*waits.lease(), "b");
    assert_eq!(*hold(&pool, id), "b", "also a request that comes later");
}

#[test]
fn an_unhealthy_member_loses_its_bound_requests() {
    let pool = pool(10);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let _busy = hold(&pool, a.id());
    let mut waits = bound(&pool, a.id());
    waits.assert_waits();
    a.set_health(false);
    assert_eq!(*waits.lease(), "b");
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_member_loses_its_bound_requests_and_one_in_doubt_keeps_them() {
    let pool = pool(10);
    let [a, b] = ["a", "b"].map(|name| pool.join(name, 1));
    hold(&pool, a.id()).end(LeaseEnding::HungUp);
    let mut waits = bound(&pool, a.id());
    waits.assert_waits();
    advance(Duration::from_secs(5)).await;
    tokio::task::yield_now().await;
    assert_eq!(*waits.lease(), "a");
    hold(&pool, b.id()).end(LeaseEnding::Unreachable);
    assert_eq!(*hold(&pool, b.id()), "a");
}

fn draining(drain: u64) -> Pool<&'static str> {
    let settings = PoolSettings { bound_drain: Duration::from_secs(drain), ..PoolSettings::default() };
    Pool::new("test", settings)
}

#[tokio::test(start_paused = true)]
async fn a_member_that_leaves_serves_its_bound_requests_while_it_has_others() {
    let pool = draining(5);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 2));
    let id = a.id();
    let under_way = hold(&pool, id);
    let mut gone = pin!(a.leave());
    assert_eq!(*hold(&pool, id), "a");
    assert_eq!(pool.find_bound(|name| *name == "a"), Some(id));
    assert_eq!(*lease(&pool), "b", "other requests do not reach it");
    let mut context = Context::from_waker(Waker::noop());
    assert!(gone.as_mut().poll(&mut context).is_pending());
    drop(under_way);
    assert!(gone.as_mut().poll(&mut context).is_ready(), "its last request has ended");
    assert_eq!(*hold(&pool, id), "b");
    assert_eq!(pool.find_bound(|name| *name == "a"), None);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_leaves_serves_its_bound_requests_for_a_limited_time() {
    let pool = draining(5);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 2));
    let id = a.id();
    let _under_way = hold(&pool, id);
    let _gone = a.leave();
    let tunnel = Claim { long_lived: Some(LongLived::Tunnel), ..bound_to(id) };
    assert_eq!(*of(pool.acquire(tunnel)).lease(), "b", "a tunnel would be told to end at once");
    advance(Duration::from_secs(6)).await;
    tokio::task::yield_now().await;
    assert_eq!(*hold(&pool, id), "b");
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_a_member_that_leaves_go_to_another_when_its_time_is_over() {
    let pool = draining(5);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let id = a.id();
    let _under_way = hold(&pool, id);
    let mut waits = bound(&pool, id);
    waits.assert_waits();
    let _gone = a.leave();
    advance(Duration::from_secs(4)).await;
    tokio::task::yield_now().await;
    waits.assert_waits();
    // Nothing else happens in the pool.
    advance(Duration::from_secs(2)).await;
    tokio::task::yield_now().await;
    assert_eq!(*waits.lease(), "b");
}

#[test]
fn a_member_that_is_taken_away_serves_none() {
    let pool = draining(5);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 2));
    let id = a.id();
    let _under_way = hold(&pool, id);
    drop(a);
    assert_eq!(*hold(&pool, id), "b");
}

#[test]
fn a_bound_tunnel_goes_elsewhere_if_its_member_has_the_most_tunnels() {
    let settings = PoolSettings { max_tunnels: 1, ..PoolSettings::default() };
    let pool = Pool::new("test", settings);
    let [a, b] = ["a", "b"].map(|name| pool.join(name, 1));
    let tunnel = || of(pool.acquire(Claim { long_lived: Some(LongLived::Tunnel), ..bound_to(a.id()) }));
    let _open = tunnel().lease().tunnel_guard();
    let _also_open = tunnel().lease().tunnel_guard();
    tunnel().assert_refused(AcquireError::TooManyTunnels);
    assert_eq!(*hold(&pool, a.id()), "a");
    drop(b);
}

#[test]
fn a_bound_tunnel_waits_for_its_busy_member_although_another_is_free() {
    let pool = pool(10);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let busy = hold(&pool, a.id());
    let mut tunnel = of(pool.acquire(Claim { long_lived: Some(LongLived::Tunnel), ..bound_to(a.id()) }));
    tunnel.assert_waits();
    drop(busy);
    assert_eq!(*tunnel.lease(), "a");
}

#[test]
fn a_bound_tunnel_that_comes_during_a_pause_waits_for_its_own_member() {
    let pool = pool(10);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let tunnel = || of(pool.acquire(Claim { long_lived: Some(LongLived::Tunnel), ..bound_to(a.id()) }));
    // The other member has fewer tunnels.
    let _open = tunnel().lease().tunnel_guard();
    pool.pause();
    let mut comes = tunnel();
    comes.assert_waits();
    pool.resume();
    assert_eq!(*comes.lease(), "a");
}

#[test]
fn a_queue_that_is_full_of_bound_requests_refuses_no_upload_that_another_member_can_begin() {
    let pool = pool(1);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let _busy = hold(&pool, a.id());
    let mut waits = bound(&pool, a.id());
    waits.assert_waits();
    assert_eq!(pool.refuse_early(Priority::Normal, None), None);
    let on_b = lease(&pool);
    let full = AcquireError::QueueFull { limit: 1 };
    assert_eq!(pool.refuse_early(Priority::Normal, None), Some(full));
    request(&pool).assert_refused(full);
    drop(on_b);
    pool.pause();
    assert_eq!(pool.refuse_early(Priority::Normal, None), Some(full), "a paused pool gives no slot");
}

#[test]
fn a_bound_request_that_gives_up_leaves_the_queue() {
    let pool = pool(1);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let _busy = hold(&pool, a.id());
    let mut waits = bound(&pool, a.id());
    waits.assert_waits();
    bound(&pool, a.id()).assert_refused(AcquireError::QueueFull { limit: 1 });
    drop(waits);
    assert_eq!(pool.snapshot().queue_length, 0);
    bound(&pool, a.id()).assert_waits();
}

#[test]
fn clients_are_spread_over_the_members() {
    let pool = pool_with(MemberChoice::Warm);
    let _members = ["a", "b", "c"].map(|name| pool.join(name, 9));
    let spread = MemberPreference { spread: true, ..MemberPreference::default() };
    let served = || *of(pool.acquire(Claim { preference: spread, ..Claim::default() })).lease();
    let mut names = [served(), served(), served()];
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn a_ranking_passes_members_that_are_out() {
    let pool = pool(10);
    let [a, b, c] = ["a", "bb", "ccc"].map(|name| pool.join(name, 1));
    let _twin = pool.join("xxx", 1);
    let by_length = || pool.rank(|name| name.len() as u64);
    let ranking = by_length();
    assert_eq!((ranking.first, ranking.second, ranking.passed), (Some(c.id()), Some(b.id()), None));
    c.set_health(false);
    let ranking = by_length();
    assert_eq!((ranking.first, ranking.second, ranking.passed), (Some(b.id()), Some(a.id()), Some(c.id())));
}
