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

/// The order of places of one class: by ticket, then by serial number.
type PlaceOrder = (u64, u64);

/// Waiting requests in order of their places. Most arrive as the last and leave as the first. A waiter is large, so it stays where it is, and
/// only the numbers that tell its order are sorted.
#[derive(Default)]
pub(super) struct WaitList {
    order: SortedRow<PlaceOrder, usize>,
    waiters: Slab<(QueuePosition, Waiter)>,
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
        let before = self.order.append(order(place), self.waiters.insert((place, waiter)))?;
        Some(self.waiters.remove(before).1)
    }

    pub fn remove(&mut self, place: QueuePosition) -> Option<Waiter> {
        let waiter = self.order.remove(&order(place)).map(|at| self.waiters.remove(at).1);
        if self.waiters.is_empty() && self.waiters.capacity() > KEPT {
            self.waiters = Slab::new();
        }
        waiter
    }

    pub fn get(&self, place: QueuePosition) -> Option<(QueuePosition, &Waiter)> {
        self.order.get(&order(place)).map(|at| self.entry(*at))
    }

    pub fn get_mut(&mut self, place: QueuePosition) -> Option<&mut Waiter> {
        self.order.get(&order(place)).map(|at| &mut self.waiters[*at].1)
    }

    pub fn first(&self) -> Option<(QueuePosition, &Waiter)> {
        self.order.first().map(|(_, at)| self.entry(*at))
    }

    /// The place of the request that arrived last.
    pub fn last(&self) -> Option<QueuePosition> {
        self.order.last().map(|(_, at)| self.waiters[*at].0)
    }

    pub fn iter(&self) -> impl Iterator<Item = (QueuePosition, &Waiter)> {
        self.order.iter().map(|(_, at)| self.entry(*at))
    }

    /// Takes all waiting requests away, in their order.
    pub fn drain(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        let Self { order, mut waiters } = std::mem::take(self);
        let order: Vec<_> = order.iter().map(|(_, at)| *at).collect();
        order.into_iter().map(move |at| waiters.remove(at).1)
    }

    fn entry(&self, at: usize) -> (QueuePosition, &Waiter) {
        let (place, waiter) = &self.waiters[at];
        (*place, waiter)
    }
}

fn order(place: QueuePosition) -> PlaceOrder {
    (place.ticket.number, place.serial)
}
