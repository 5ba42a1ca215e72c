//! Requests that are bound to a member: whether that member still takes them, and how such a member is found. Knows no order
//! of the requests.

use std::cmp::Reverse;

use tokio::time::Instant;

use super::claim::{Claim, LongLived, MemberId, MemberPreference};
use super::member::MemberState;
use super::place::QueuePosition;
use super::pool::Pool;
use super::queue::{FreeSlots, Queue};
use super::roster::Roster;

/// Whether this member takes no requests that are bound to it, so that they go to any member.
pub(super) fn is_lost<E>(roster: &Roster<E>, id: MemberId, now: Instant) -> bool {
    roster.state(id).is_none_or(|state| state.is_lost(now))
}

/// Whether this member takes a claim that is bound to it. A claim for a tunnel or a stream goes to another member if this
/// one has no room for it.
pub(super) fn takes<E>(roster: &Roster<E>, id: MemberId, claim: &Claim, now: Instant) -> bool {
    let has_room =
        |state: &MemberState<E>| claim.long_lived.is_none_or(|kind| state.takes(kind, roster.settings()));
    roster.state(id).is_some_and(|state| !state.is_lost(now) && has_room(state))
}

/// The index of this member, if it has a slot and room for a claim that is bound to it.
pub(super) fn free_index<E>(
    roster: &Roster<E>,
    id: MemberId,
    kind: Option<LongLived>,
    now: Instant,
) -> Option<usize> {
    let index = roster.index_of(id)?;
    let state = &roster.states()[index];
    let has_room = kind.is_none_or(|kind| state.takes(kind, roster.settings()));
    (has_room && state.has_bound_slot(now)).then_some(index)
}

/// Whether the member to which a claim is bound has a free slot. None: the claim is not bound.
pub(super) fn has_free_slot<E>(roster: &Roster<E>, claim: &MemberPreference, now: Instant) -> Option<bool> {
    let id = claim.bound?;
    Some(roster.state(id).is_some_and(|state| state.has_bound_slot(now)))
}

/// The member with the fewest tunnels and streams of those that have room for one more, with or without a free slot.
pub(super) fn with_room<E>(roster: &Roster<E>, kind: LongLived, now: Instant) -> Option<MemberId> {
    let has_room = |state: &&MemberState<E>| state.takes(kind, roster.settings()) && !state.is_lost(now);
    let fewest = roster.states().iter().filter(has_room).min_by_key(|state| state.all_long_lived());
    fewest.map(|state| state.member.id)
}

/// Requests that wait for a member that is lost wait for any member from now on.
pub(super) fn unbind_lost<E, G>(roster: &Roster<E>, queue: &mut Queue<G>, now: Instant) {
    for id in queue.awaited() {
        if is_lost(roster, id, now) {
            queue.unbind_all(id);
        }
    }
}

/// The oldest requests that wait for one member only because no other had room for their tunnel or stream: one of each class and kind.
pub(super) fn first_for_room<G>(queue: &Queue<G>) -> Vec<(QueuePosition, LongLived)> {
    let kinds = [LongLived::Tunnel, LongLived::Stream];
    let of_kind = |kind: LongLived| {
        queue.lines.iter().filter_map(move |line| Some((*line.for_room[kind as usize].first()?, kind)))
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// Which slots are free. `any`: a member has a free slot for a request that is not bound.
pub(super) fn free_slots<E, G>(roster: &Roster<E>, queue: &Queue<G>, any: bool, now: Instant) -> FreeSlots {
    let is_free = |id: &MemberId| roster.state(*id).is_some_and(|state| state.has_bound_slot(now));
    let awaited = if queue.has_bound() { queue.awaited() } else { Vec::new() };
    FreeSlots { any, awaited: awaited.into_iter().filter(is_free).collect() }
}

/// The result of [`Pool::rank`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// The member with the highest score, of those that get requests now.
    pub first: Option<MemberId>,
    /// The second of them.
    pub second: Option<MemberId>,
    /// The member with the highest score of all, if it gets no requests now because it is unhealthy or ejected.
    pub passed: Option<MemberId>,
}

impl<E: Send + Sync + 'static> Pool<E> {
    /// The member for which `is_it` returns true, also one that has left and still gets the requests that are bound to it.
    /// Of several, the one that joined last. `is_it` runs under the pool's lock and may only look at the endpoint.
    pub fn find_bound(&self, is_it: impl Fn(&E) -> bool) -> Option<MemberId> {
        let now = Instant::now();
        let state = self.shared.lock();
        let mut takers = state.roster.states().iter().rev().filter(|state| !state.has_left(now));
        takers.find(|state| is_it(&state.member.endpoint)).map(|state| state.member.id)
    }

    /// Whether this member still takes the requests that are bound to it.
    pub fn takes_bound(&self, id: MemberId) -> bool {
        let now = Instant::now();
        !is_lost(&self.shared.lock().roster, id, now)
    }

    /// The members with the highest scores. `score` runs under the pool's lock and may only look at the endpoint. Of members
    /// with equal scores, the one that joined first counts.
    pub fn rank(&self, score: impl Fn(&E) -> u64) -> Ranking {
        let now = Instant::now();
        let state = self.shared.lock();
        let mut ranked: Vec<_> =
            state.roster.present().map(|one| (score(&one.member.endpoint), one)).collect();
        ranked.sort_unstable_by_key(|(score, one)| (Reverse(*score), one.member.id));
        ranked.dedup_by_key(|(score, _)| *score);
        let passed = ranked.first().filter(|(_, one)| one.is_lost(now)).map(|(_, one)| one.member.id);
        let mut takers = ranked.iter().filter(|(_, one)| !one.is_lost(now)).map(|(_, one)| one.member.id);
        Ranking { first: takers.next(), second: takers.next(), passed }
    }
}
