//! The waiting requests of one class: those for any member in order of arrival, and those that are bound to a member. Chooses neither the
//! class nor the request that is next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::bound_line::BoundLine;
use super::bound_shares::BoundShares;
use super::claim::MemberId;
use super::place::QueuePosition;
use super::wait_list::{WaitList, Waiter};

/// The waiting requests of one class.
#[derive(Default)]
pub(super) struct Line {
    pub newcomers: WaitList,
    /// Requests that lost their member. They do not count against the queue limit.
    pub returned: WaitList,
    /// Requests that are bound to a member. They hold up no other request, and no other request holds them up.
    pub bound: BoundLine<Waiter>,
    /// The places of those that are bound only because no other member had room for their tunnel or stream, by its kind.
    pub for_room: [BTreeSet<QueuePosition>; 2],
    /// What those that are bound cost, by key.
    pub bound_shares: BoundShares,
    /// The sum of what the requests cost that wait for any member.
    pub work: Duration,
    /// How many slots in a row went to other classes although a request of this class could have used them.
    pub passed_over: u32,
}

impl Line {
    fn side(&mut self, place: QueuePosition) -> &mut WaitList {
        if place.returns() { &mut self.returned } else { &mut self.newcomers }
    }

    /// Whether no request waits here for any member. Requests that are bound to one member do not count.
    pub fn is_empty(&self) -> bool {
        self.newcomers.is_empty() && self.returned.is_empty()
    }

    /// Whether a request waits here, for any member or for one.
    pub fn has_waiting(&self) -> bool {
        !self.is_empty() || !self.bound.is_empty()
    }

    /// Whether a request waits here that can use a slot of this member.
    pub fn can_use(&self, member: MemberId) -> bool {
        !self.is_empty() || self.bound.has(member)
    }

    /// All requests that wait here.
    pub fn waiting(&self) -> impl Iterator<Item = (QueuePosition, &Waiter)> {
        self.newcomers.iter().chain(self.returned.iter()).chain(self.bound.iter())
    }

    pub fn insert(&mut self, place: QueuePosition, waiter: Waiter) -> Option<Waiter> {
        self.work += waiter.span.work.time;
        self.side(place).insert(place, waiter)
    }

    pub fn remove(&mut self, place: QueuePosition) -> Option<Waiter> {
        let waiter = self.side(place).remove(place)?;
        self.work = self.work.saturating_sub(waiter.span.work.time);
        Some(waiter)
    }

    pub fn insert_bound(&mut self, member: MemberId, place: QueuePosition, waiter: Waiter) -> Option<Waiter> {
        if let Some(kind) = waiter.span.long_lived.filter(|_| waiter.span.for_room) {
            self.for_room[kind as usize].insert(place);
        }
        self.bound_shares.insert(place, waiter.span.work);
        self.bound.insert(member, place, waiter)
    }

    pub fn remove_bound(&mut self, place: QueuePosition) -> Option<Waiter> {
        let waiter = self.bound.remove(place)?;
        self.note_removed(place, &waiter);
        Some(waiter)
    }

    /// Removes all that are bound to this member.
    pub fn take_bound(&mut self, member: MemberId) -> BTreeMap<QueuePosition, Waiter> {
        let taken = self.bound.take_all(member);
        taken.iter().for_each(|(place, waiter)| self.note_removed(*place, waiter));
        taken
    }

    /// Removes all that are bound.
    pub fn drain_bound(&mut self) -> impl Iterator<Item = (QueuePosition, Waiter)> + use<> {
        (self.for_room, self.bound_shares) = Default::default();
        self.bound.drain()
    }

    /// A bound request is removed.
    fn note_removed(&mut self, place: QueuePosition, waiter: &Waiter) {
        self.for_room.iter_mut().for_each(|places| _ = places.remove(&place));
        self.bound_shares.remove(place, waiter.span.work);
    }

    pub fn waiter_mut(&mut self, place: QueuePosition) -> Option<&mut Waiter> {
        let side = if place.returns() { &mut self.returned } else { &mut self.newcomers };
        side.get_mut(place).or_else(|| self.bound.get_mut(place))
    }

    /// The place of the newest request that counts against the queue limit.
    pub fn newest(&self) -> Option<QueuePosition> {
        self.newcomers.last().max(self.bound.newest())
    }

    /// When the oldest request arrived that one more member could serve. One that is bound to a member waits for that one.
    pub fn oldest_for_any(&self) -> Option<Instant> {
        let first = self.first().map(|(place, _)| place);
        let for_room = self.for_room.iter().filter_map(BTreeSet::first).copied();
        for_room.chain(first).map(|place| place.ticket.arrived).min()
    }

    pub fn first(&self) -> Option<(QueuePosition, &Waiter)> {
        let (newcomer, returned) = (self.newcomers.first(), self.returned.first());
        newcomer.into_iter().chain(returned).min_by_key(|(place, _)| *place)
    }
}
