//! Which members may serve a claim.

use std::time::Duration;

use tokio::time::advance;

use super::super::{MemberPreference, Tried};
use super::*;

fn aimed(pool: &Pool<&'static str>, preference: MemberPreference) -> Request<&'static str> {
    of(pool.acquire(Claim { preference, ..Claim::default() }))
}

fn served_by(pool: &Pool<&'static str>, preference: MemberPreference) -> &'static str {
    *aimed(pool, preference).lease()
}

#[test]
fn the_preferred_member_is_taken_while_it_has_a_slot_and_another_otherwise() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let [_a, b, _c] = ["a", "b", "c"].map(|name| pool.join(name, 1));
    let preference = MemberPreference { wanted: Some(b.id()), ..MemberPreference::default() };
    let held = aimed(&pool, preference).lease();
    assert_eq!(*held, "b");
    assert_eq!(served_by(&pool, preference), "c");
    drop(held);
    assert_eq!([served_by(&pool, preference), served_by(&pool, preference)], ["b", "b"]);
    drop(b);
    assert_ne!(served_by(&pool, preference), "b");
}

#[test]
fn a_waiting_request_takes_the_first_free_member_not_only_its_preferred_one() {
    let pool = pool(10);
    let [a, b] = ["a", "b"].map(|name| pool.join(name, 1));
    let (_busy, other) = (lease_of(&pool, a.id()), lease_of(&pool, b.id()));
    let mut waiting = aimed(&pool, MemberPreference { wanted: Some(a.id()), ..MemberPreference::default() });
    waiting.assert_waits();
    drop(other);
    assert_eq!(*waiting.lease(), "b");
}

fn lease_of(pool: &Pool<&'static str>, only: super::super::MemberId) -> Lease<&'static str> {
    aimed(pool, MemberPreference { only: Some(only), ..MemberPreference::default() }).lease()
}

#[test]
fn a_claim_for_one_member_only_does_not_wait() {
    let pool = pool(10);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let only = MemberPreference { only: Some(a.id()), ..MemberPreference::default() };
    let held = aimed(&pool, only).lease();
    aimed(&pool, only).assert_refused(AcquireError::MemberBusy);
    let _other = lease(&pool);
    let mut waiting = request(&pool);
    waiting.assert_waits();
    aimed(&pool, only).assert_refused(AcquireError::MemberBusy);
    drop(held);
    waiting.assert_served();
    aimed(&pool, only).assert_served();
    drop(a);
    aimed(&pool, only).assert_refused(AcquireError::NoMember);
    assert_eq!(pool.snapshot().counters.refused_aim, 3);
}

#[test]
fn a_claim_for_one_member_waits_during_a_pause_and_delays_no_other_afterwards() {
    let pool = pool(10);
    let [a, _b] = ["a", "b"].map(|name| pool.join(name, 1));
    let only = MemberPreference { only: Some(a.id()), ..MemberPreference::default() };
    pool.pause();
    let [mut first, mut second] = [aimed(&pool, only), aimed(&pool, only)];
    let mut third = request(&pool);
    first.assert_waits();
    second.assert_waits();
    third.assert_waits();
    pool.resume();
    let _held = first.lease();
    second.assert_refused(AcquireError::MemberBusy);
    assert_eq!(*third.lease(), "b");
}

#[test]
fn near_members_come_first_while_one_has_a_slot() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let _far = pool.join("far", 10);
    let _near = [pool.join_near("near", 1), pool.join_near("near", 1)];
    let near = MemberPreference { near: true, ..MemberPreference::default() };
    assert_eq!(served_by(&pool, near), "near");
    let _held = [aimed(&pool, near).lease(), aimed(&pool, near).lease()];
    assert_eq!(served_by(&pool, near), "far");
    let all: Vec<_> = (0..4).map(|_| served_by(&pool, MemberPreference::default())).collect();
    assert_eq!(all, ["far"; 4], "the near ones are busy");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_repeated_goes_to_near_members_too_unless_they_are_unproven() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let _far = pool.join("far", 10);
    let _near = pool.join_near("near", 10);
    let once = MemberPreference { near: true, cautious: true, ..MemberPreference::default() };
    assert_eq!([(); 4].map(|()| served_by(&pool, once)), ["near"; 4]);
    let near = MemberPreference { near: true, ..MemberPreference::default() };
    let held = [(); 5].map(|()| aimed(&pool, near).lease());
    assert_eq!(held.iter().filter_map(Lease::strike).count(), 1, "it is ejected");
    advance(Duration::from_secs(10)).await;
    assert_eq!([(); 4].map(|()| served_by(&pool, once)), ["far"; 4]);
    assert_eq!(served_by(&pool, near), "near");
}

#[test]
fn members_that_were_tried_come_last() {
    let pool = pool_with(MemberChoice::Warm);
    let members = ["a", "b", "c"].map(|name| pool.join(name, 1));
    let mut tried = Tried::default();
    for member in &members {
        let preference = MemberPreference { tried, ..MemberPreference::default() };
        assert!(!tried.contains(aimed(&pool, preference).lease().member()));
        tried.add(member.id());
    }
    aimed(&pool, MemberPreference { tried, ..MemberPreference::default() }).assert_served();
}

#[test]
fn the_last_tried_members_are_remembered_each_once() {
    let pool = pool(10);
    let members: Vec<_> = (0..4).map(|_| pool.join("m", 1)).collect();
    let mut tried = Tried::default();
    assert!(tried.is_empty());
    for member in [0, 1, 1, 2] {
        tried.add(members[member].id());
    }
    assert!((0..3).all(|at| tried.contains(members[at].id())));
    tried.add(members[3].id());
    assert!(!tried.contains(members[0].id()) && tried.contains(members[3].id()));
}

#[test]
fn a_claim_for_present_members_does_not_wait_for_a_member_to_join() {
    let pool = pool(10);
    let present = MemberPreference { present: true, ..MemberPreference::default() };
    aimed(&pool, present).assert_refused(AcquireError::NoMember);
    let member = pool.join("a", 1);
    let _held = aimed(&pool, present).lease();
    let mut waiting = aimed(&pool, present);
    waiting.assert_waits();
    drop(member);
    aimed(&pool, present).assert_refused(AcquireError::NoMember);
}

#[test]
fn when_the_last_member_leaves_claims_for_present_members_wait_no_more_and_others_do() {
    let pool = pool(10);
    let [a, b] = ["a", "b"].map(|name| pool.join(name, 1));
    let _held = [lease(&pool), lease(&pool)];
    let present = MemberPreference { present: true, ..MemberPreference::default() };
    let [mut first, mut second] = [aimed(&pool, present), aimed(&pool, present)];
    let mut patient = request(&pool);
    first.assert_waits();
    patient.assert_waits();
    second.assert_waits();
    drop(a);
    first.assert_waits();
    drop(b);
    assert!(first.woken() && second.woken() && !patient.woken());
    first.assert_refused(AcquireError::NoMember);
    second.assert_refused(AcquireError::NoMember);
    assert_eq!(pool.snapshot().counters.refused_aim, 2);
    let _new = pool.join("new", 1);
    assert_eq!(*patient.lease(), "new");
}

#[tokio::test(start_paused = true)]
async fn a_forgiving_claim_tries_unreachable_members_instead_of_waiting() {
    let pool = pool(10);
    let _members = ["a", "b"].map(|name| pool.join(name, 1));
    lease(&pool).end(LeaseEnding::Unreachable);
    lease(&pool).end(LeaseEnding::Unreachable);
    request(&pool).assert_waits();
    let forgiving = MemberPreference { forgiving: true, ..MemberPreference::default() };
    let first = aimed(&pool, forgiving).lease();
    // The ejections of all members are over, also for the next claim, which did not ask for that.
    let second = lease(&pool);
    assert_ne!(*first, *second);
    aimed(&pool, forgiving).assert_waits();
}

#[test]
fn a_tunnel_may_prefer_a_member_too() {
    let pool = pool(10);
    let [_a, b] = ["a", "b"].map(|name| pool.join(name, 9));
    let preference = MemberPreference { wanted: Some(b.id()), ..MemberPreference::default() };
    for _ in 0..3 {
        let tunnel_guard =
            of(pool.acquire(Claim { long_lived: Some(LongLived::Tunnel), preference, ..Claim::default() }))
                .lease();
        assert_eq!(*tunnel_guard, "b");
    }
}

#[test]
fn a_member_is_found_by_its_endpoint_newest_first() {
    let pool = pool(10);
    let [first, second] = ["same", "same"].map(|name| pool.join(name, 1));
    let other = pool.join("other", 1);
    assert_eq!(pool.find(|name| *name == "same"), Some(second.id()));
    assert_eq!(pool.find_all(|name| *name == "same"), [first.id(), second.id()]);
    assert_eq!((pool.find(|name| *name == "none"), pool.members()), (None, 3));
    drop(second);
    drop(other);
    assert_eq!(pool.find(|name| *name == "same"), Some(first.id()));
    assert_eq!(pool.members(), 1);
}
