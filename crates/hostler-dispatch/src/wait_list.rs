//! Waiting requests in order of their places. Knows no classes and no slots.

use std::task::Waker;

use slab::Slab;

use super::place::QueuePosition;
use super::sorted_row::SortedRow;
use super::span::QueueSpan;

/// An empty list gives its memory back if it had room for more requests than this.
const KEPT: usize = 1024;

/// A request that waits.
pub(super) struct Waiter {
    pub waker: Waker,
    pub span: QueueSpan,
}

/// Waiting requests in order of their places. Most arrive as the last and leave as the first. A waiter is large, so it stays where it is, and
/// only its place is kept in order.
#[derive(Default)]
pub(super) struct WaitList {
    places: SortedRow<QueuePosition, usize>,
    waiters: Slab<Waiter>,
}

impl WaitList {
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Returns the request that had this place before, if there was one.
    pub fn insert(&mut self, place: QueuePosition, waiter: Waiter) -> Option<Waiter> {
        let before = self.places.append(place, self.waiters.insert(waiter))?;
        Some(self.waiters.remove(before))
    }

    pub fn remove(&mut self, place: QueuePosition) -> Option<Waiter> {
        let waiter = self.places.remove(&place).map(|at| self.waiters.remove(at));
        if self.waiters.is_empty() && self.waiters.capacity() > KEPT {
            self.waiters = Slab::new();
        }
        waiter
    }

    pub fn get(&self, place: QueuePosition) -> Option<&Waiter> {
        self.places.get(&place).map(|at| &self.waiters[*at])
    }

    pub fn get_mut(&mut self, place: QueuePosition) -> Option<&mut Waiter> {
        self.places.get(&place).map(|at| &mut self.waiters[*at])
    }

    pub fn first(&self) -> Option<(QueuePosition, &Waiter)> {
        self.places.first().map(|entry| self.entry(entry))
    }

    /// The place of the request that arrived last.
    pub fn last(&self) -> Option<QueuePosition> {
        self.places.last().map(|(place, _)| *place)
    }

    pub fn iter(&self) -> impl Iterator<Item = (QueuePosition, &Waiter)> {
        self.places.iter().map(|entry| self.entry(entry))
    }

    /// Takes all waiting requests away, in their order.
    pub fn drain(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        let Self { places, mut waiters } = std::mem::take(self);
        let order: Vec<_> = places.iter().map(|(_, at)| *at).collect();
        order.into_iter().map(move |at| waiters.remove(at))
    }

    fn entry(&self, (place, at): (&QueuePosition, &usize)) -> (QueuePosition, &Waiter) {
        (*place, &self.waiters[*at])
    }
}
