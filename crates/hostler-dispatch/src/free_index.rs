//! The index of the members with a free slot, in the orders in which a pool chooses among them. Knows no claims and no
//! waiting requests.
//!
//! A member is in the index if its state allows one more request. A member that gets none before a known instant, because
//! it is ejected or its event loop computes, comes back at that instant. The index reads no clock: the pool tells it the time.
//! Two things it cannot know, so the caller asks the member that it finds: whether the time of an observation has passed
//! (`MemberState::may_have_free_slot`), and what an event loop does now (`MemberState::can_begin`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tokio::time::Instant;

use super::choice::MemberChoice;
use super::claim::MemberId;
use super::member::{MemberState, Opening};
use super::winner_tree::{SortKey, WinnerTree};

/// Which members are asked for, and in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeatOrder {
    /// By the fewest tunnels and streams, then the fewest requests. Otherwise by the pool's `MemberChoice`.
    pub spreads: bool,
    /// Near members only.
    pub near: bool,
}

impl SeatOrder {
    const COUNT: usize = 4;
    const ALL: [Self; Self::COUNT] = [
        Self { spreads: false, near: false },
        Self { spreads: true, near: false },
        Self { spreads: false, near: true },
        Self { spreads: true, near: true },
    ];

    fn index(self) -> usize {
        usize::from(self.spreads) + 2 * usize::from(self.near)
    }

    /// The key of a member that has a free slot.
    fn key<E>(self, choice: MemberChoice, state: &MemberState<E>) -> Option<SortKey> {
        let is_wanted = !self.near || state.near;
        is_wanted.then(|| {
            let in_use = state.in_use as u64;
            match choice {
                _ if self.spreads => {
                    // Counts beyond 32 bits do not occur.
                    let long_lived = u64::try_from(state.all_long_lived()).unwrap_or(u64::MAX);
                    (long_lived << 32 | in_use, state.last_used)
                }
                // The most recently used one first.
                MemberChoice::Warm => (in_use, !state.last_used),
                MemberChoice::RoundRobin => (0, 0),
                MemberChoice::LeastBusy => (share(state.in_use, state.slots), state.last_used),
            }
        })
    }
}

/// `in_use / slots` as a fraction of 2^63. Different shares of members with up to 2^31 slots have different values.
fn share(in_use: usize, slots: usize) -> u64 {
    ((in_use as u128) << 63).checked_div(slots as u128).map_or(u64::MAX, |share| share as u64)
}

/// The members with a free slot. Members are numbered by their places in the roster.
pub(super) struct FreeIndex {
    choice: MemberChoice,
    /// `None`: no claim has asked for this order yet.
    trees: [Option<WinnerTree>; SeatOrder::COUNT],
    /// The members that come back at an instant. Entries that are out of date do no harm.
    returning: BinaryHeap<Reverse<(Instant, MemberId)>>,
    /// The latest time that the pool has told.
    now: Option<Instant>,
}

impl FreeIndex {
    pub fn new(choice: MemberChoice) -> Self {
        Self { choice, trees: Default::default(), returning: BinaryHeap::new(), now: None }
    }

    /// A member whose instant has come. Call it until it returns `None`, and [`Self::update`] for each member.
    pub fn returned(&mut self, now: Instant) -> Option<(Instant, MemberId)> {
        self.now = self.now.max(Some(now));
        let Reverse((at, id)) = *self.returning.peek()?;
        (at <= now).then(|| {
            self.returning.pop();
            (at, id)
        })
    }

    /// Before this instant no member can begin a request, unless a member joins or a slot comes back. `None`: no such instant is known.
    /// Either a member may begin a request at any time, or none has an instant at which it becomes free.
    pub fn opens_at(&self) -> Option<Instant> {
        let all = self.trees[SeatOrder::default().index()].as_ref()?;
        let Reverse((at, _)) = self.returning.peek()?;
        all.lowest_from(0).is_none().then_some(*at)
    }

    /// The state of a member has changed.
    pub fn update<E>(&mut self, place: usize, state: &mut MemberState<E>) {
        let is_free = self.is_free(state);
        for (order, tree) in SeatOrder::ALL.into_iter().zip(&mut self.trees) {
            if let Some(tree) = tree {
                tree.set(place, order.key(self.choice, state).filter(|_| is_free));
            }
        }
    }

    /// A member joins, behind all others.
    pub fn push<E>(&mut self, state: &mut MemberState<E>) {
        let is_free = self.is_free(state);
        for (order, tree) in SeatOrder::ALL.into_iter().zip(&mut self.trees) {
            if let Some(tree) = tree {
                tree.push(order.key(self.choice, state).filter(|_| is_free));
            }
        }
    }

    /// A member has left, so the places of others have changed, or the choice has.
    pub fn rebuild<E>(&mut self, choice: MemberChoice, states: &mut [MemberState<E>]) {
        self.choice = choice;
        for order in SeatOrder::ALL {
            if self.trees[order.index()].take().is_some() {
                self.prepare(order, states);
            }
        }
    }

    /// Makes this order available. The first claim that asks for it pays for a look at each member.
    pub fn prepare<E>(&mut self, order: SeatOrder, states: &mut [MemberState<E>]) {
        if self.trees[order.index()].is_none() {
            let choice = self.choice;
            let key =
                |state: &mut MemberState<E>| self.is_free(state).then(|| order.key(choice, state)).flatten();
            let tree = states.iter_mut().map(key).collect();
            self.trees[order.index()] = Some(tree);
        }
    }

    /// The place of the first member that fits. `start`: the place at which a pool that takes turns begins.
    pub fn first(
        &self,
        order: SeatOrder,
        start: impl FnOnce() -> usize,
        mut fits: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let tree = self.trees[order.index()].as_ref()?;
        if order.spreads || self.choice != MemberChoice::RoundRobin {
            return tree.first(fits);
        }
        let start = start();
        let mut among = |from: usize, to: usize| {
            let mut next = tree.lowest_from(from).filter(|place| *place < to);
            while let Some(place) = next
                && !fits(place)
            {
                next = tree.lowest_from(place + 1).filter(|place| *place < to);
            }
            next
        };
        among(start, usize::MAX).or_else(|| among(0, start))
    }

    /// Whether the member is free now, as far as its state tells. Notes when it will be.
    fn is_free<E>(&mut self, state: &mut MemberState<E>) -> bool {
        match state.opening(self.now) {
            Opening::Now => true,
            Opening::Closed => false,
            Opening::At(at) => {
                if state.returns_at.replace(at) != Some(at) {
                    self.returning.push(Reverse((at, state.member.id)));
                }
                false
            }
        }
    }
}
