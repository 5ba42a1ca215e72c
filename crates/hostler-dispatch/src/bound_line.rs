//! The waiting requests of one class that are bound to a member, by member. Knows no other requests and no slots.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::claim::MemberId;
use super::place::QueuePosition;

/// The requests in order of arrival, for each member that has any.
pub(super) struct BoundLine<W>(BTreeMap<MemberId, BTreeMap<QueuePosition, W>>);

impl<W> Default for BoundLine<W> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<W> BoundLine<W> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// How many of them count against the queue limit.
    pub fn newcomers(&self) -> usize {
        self.0.values().flat_map(BTreeMap::keys).filter(|place| !place.returns()).count()
    }

    pub fn members(&self) -> impl Iterator<Item = MemberId> {
        self.0.keys().copied()
    }

    pub fn has(&self, member: MemberId) -> bool {
        self.0.contains_key(&member)
    }

    /// When the oldest one arrived.
    pub fn oldest(&self) -> Option<Instant> {
        let firsts = self.0.values().filter_map(BTreeMap::first_key_value);
        firsts.map(|(place, _)| place.ticket.arrived).min()
    }

    /// The first request that waits for this member.
    pub fn first_of(&self, member: MemberId) -> Option<(QueuePosition, &W)> {
        self.0.get(&member)?.first_key_value().map(|(place, waiter)| (*place, waiter))
    }

    /// How many wait for this member.
    pub fn len_of(&self, member: MemberId) -> usize {
        self.0.get(&member).map_or(0, BTreeMap::len)
    }

    pub fn insert(&mut self, member: MemberId, place: QueuePosition, waiter: W) -> Option<W> {
        self.0.entry(member).or_default().insert(place, waiter)
    }

    pub fn get_mut(&mut self, place: QueuePosition) -> Option<&mut W> {
        self.0.values_mut().find_map(|waiting| waiting.get_mut(&place))
    }

    pub fn remove(&mut self, place: QueuePosition) -> Option<W> {
        let found = self.0.iter_mut().find_map(|(member, waiting)| Some((*member, waiting.remove(&place)?)));
        let (member, waiter) = found?;
        if self.0.get(&member).is_some_and(BTreeMap::is_empty) {
            self.0.remove(&member);
        }
        Some(waiter)
    }

    /// Removes all that wait for this member.
    pub fn take_all(&mut self, member: MemberId) -> BTreeMap<QueuePosition, W> {
        self.0.remove(&member).unwrap_or_default()
    }

    /// Removes all.
    pub fn drain(&mut self) -> impl Iterator<Item = (QueuePosition, W)> + use<W> {
        std::mem::take(&mut self.0).into_values().flatten()
    }
}
