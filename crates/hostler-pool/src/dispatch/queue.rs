//! Who waits, in order of arrival, and who has been given a slot without having taken it yet; knows no members.

use std::collections::BTreeMap;
use std::task::Waker;

use tokio::time::Instant;

/// An arrival: keeps a request's place in the queue when it has to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    pub(super) number: u64,
    pub(super) arrived: Instant,
}

impl Ticket {
    /// When the request arrived at the pool.
    pub fn arrived(&self) -> Instant {
        self.arrived
    }
}

/// Where one `Acquire` stands. The serial keeps places apart even if a ticket is shown twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub ticket: Ticket,
    pub serial: u64,
}

impl Place {
    /// Whether it came with a ticket from before; such a place does not count against the queue limit.
    pub fn returns(&self) -> bool {
        self.serial != self.ticket.number
    }
}

/// Ordered maps rather than a deque: a waiter leaves from anywhere at once, so nothing of the departed stays
/// behind however many come and go while every member is stuck.
pub(super) struct Queue<G> {
    waiting: BTreeMap<Place, Waker>,
    newcomers: usize,
    handed: BTreeMap<Place, G>,
}

impl<G> Queue<G> {
    pub fn new() -> Self {
        Self { waiting: BTreeMap::new(), newcomers: 0, handed: BTreeMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many of the waiting count against the limit.
    pub fn newcomers(&self) -> usize {
        self.newcomers
    }

    pub fn oldest(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(place, _)| place.ticket.arrived)
    }

    pub fn push(&mut self, place: Place, waker: Waker) {
        let before = self.waiting.insert(place, waker);
        debug_assert!(before.is_none(), "a place is taken once");
        self.newcomers += usize::from(!place.returns());
    }

    /// Whether somebody who waits comes before `place`.
    pub fn has_ahead_of(&self, place: Place) -> bool {
        self.waiting.first_key_value().is_some_and(|(first, _)| *first < place)
    }

    /// Hands a grant to the first in the queue, who must be woken once the lock is free.
    pub fn hand_to_first(&mut self, grant: G) -> Option<Waker> {
        let (place, waker) = self.waiting.pop_first()?;
        self.newcomers -= usize::from(!place.returns());
        self.handed.insert(place, grant);
        Some(waker)
    }

    pub fn take_handed(&mut self, place: Place) -> Option<G> {
        self.handed.remove(&place)
    }

    /// Takes back the grants that `is_void` and have not been taken; those they were for wait again, in their
    /// old places. They have been woken and not been polled since, so until that poll no waker is needed.
    pub fn take_back(&mut self, is_void: impl Fn(&G) -> bool) -> Vec<G> {
        let void: Vec<Place> =
            self.handed.iter().filter(|(_, grant)| is_void(grant)).map(|(place, _)| *place).collect();
        void.into_iter()
            .filter_map(|place| {
                self.push(place, Waker::noop().clone());
                self.handed.remove(&place)
            })
            .collect()
    }

    /// The waker comes back because dropping it may run foreign code: drop it after unlocking.
    pub fn leave(&mut self, place: Place) -> Option<Waker> {
        let waker = self.waiting.remove(&place)?;
        self.newcomers -= usize::from(!place.returns());
        Some(waker)
    }

    /// Makes sure that `waker` is the one to be woken; the one it replaces comes back, as in [`Self::leave`].
    pub fn renew(&mut self, place: Place, waker: &Waker) -> Option<Waker> {
        let current = self.waiting.get_mut(&place)?;
        (!current.will_wake(waker)).then(|| std::mem::replace(current, waker.clone()))
    }

    pub fn drain(&mut self) -> Vec<Waker> {
        self.newcomers = 0;
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}
