//! The waiting requests of one class that are bound to a member, by member. Knows no other requests and no slots.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::claim::MemberId;
use super::place::QueuePosition;

/// The requests in order of arrival, for each member that has any.
pub(super) struct BoundLine<W> {
    waiting: BTreeMap<MemberId, BTreeMap<QueuePosition, W>>,
    /// The member for which each request waits. It finds a request by its place, without a search through the lines of
    /// all members.
    members: BTreeMap<QueuePosition, MemberId>,
    newcomers: usize,
}

impl<W> Default for BoundLine<W> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), members: BTreeMap::new(), newcomers: 0 }
    }
}

impl<W> BoundLine<W> {
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// How many of them count against the queue limit.
    pub fn newcomers(&self) -> usize {
        self.newcomers
    }

    /// The place of the newest of them.
    pub fn newest(&self) -> Option<QueuePosition> {
        if self.newcomers == 0 {
            return None;
        }
        self.members.keys().rev().find(|place| !place.returns()).copied()
    }

    pub fn members(&self) -> impl Iterator<Item = MemberId> {
        self.waiting.keys().copied()
    }

    pub fn has(&self, member: MemberId) -> bool {
        self.waiting.contains_key(&member)
    }

    /// When the oldest one arrived.
    pub fn oldest(&self) -> Option<Instant> {
        let firsts = self.waiting.values().filter_map(BTreeMap::first_key_value);
        firsts.map(|(place, _)| place.ticket.arrived).min()
    }

    /// The first request that waits for this member.
    pub fn first_of(&self, member: MemberId) -> Option<(QueuePosition, &W)> {
        self.waiting.get(&member)?.first_key_value().map(|(place, waiter)| (*place, waiter))
    }

    /// How many wait for this member.
    pub fn len_of(&self, member: MemberId) -> usize {
        self.waiting.get(&member).map_or(0, BTreeMap::len)
    }

    pub fn insert(&mut self, member: MemberId, place: QueuePosition, waiter: W) -> Option<W> {
        self.newcomers += usize::from(!place.returns());
        self.members.insert(place, member);
        self.waiting.entry(member).or_default().insert(place, waiter)
    }

    pub fn get_mut(&mut self, place: QueuePosition) -> Option<&mut W> {
        self.waiting.get_mut(self.members.get(&place)?)?.get_mut(&place)
    }

    pub fn remove(&mut self, place: QueuePosition) -> Option<W> {
        let member = self.members.remove(&place)?;
        self.newcomers -= usize::from(!place.returns());
        let waiting = self.waiting.get_mut(&member)?;
        let waiter = waiting.remove(&place);
        if waiting.is_empty() {
            self.waiting.remove(&member);
        }
        waiter
    }

    /// All of them in order of arrival, whichever member they wait for.
    pub fn iter(&self) -> impl Iterator<Item = (QueuePosition, &W)> {
        self.members
            .iter()
            .filter_map(|(place, member)| Some((*place, self.waiting.get(member)?.get(place)?)))
    }

    /// Removes all that wait for this member.
    pub fn take_all(&mut self, member: MemberId) -> BTreeMap<QueuePosition, W> {
        let taken = self.waiting.remove(&member).unwrap_or_default();
        for place in taken.keys() {
            self.members.remove(place);
            self.newcomers -= usize::from(!place.returns());
        }
        taken
    }

    /// Removes all.
    pub fn drain(&mut self) -> impl Iterator<Item = (QueuePosition, W)> + use<W> {
        std::mem::take(self).waiting.into_values().flatten()
    }
}
