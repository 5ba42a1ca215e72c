//! The parts of the queue that depend on its order: arrival, fair shares (`fair`), or short requests first (`short_first`). Chooses neither
//! the class nor the request that is next.

use std::time::Duration;

use tokio::time::Instant;

use super::claim::{MemberId, Priority};
use super::fair::{Charge, FairShares};
use super::line::Line;
use super::order::Order;
use super::place::QueuePosition;
use super::queue::{Queue, is_shared};
use super::settings::PoolSettings;
use super::short_first::ShortFirst;
use super::span::{QueueSpan, Work};
use super::work_ahead::{WaitingWork, WorkAhead};

impl<G> Queue<G> {
    /// Serves in the order of these settings from now on.
    pub fn serve_by(&mut self, settings: &PoolSettings, now: Instant) {
        self.share_fairly(settings.fair, now);
        self.order_by(settings.order, settings.fair);
    }

    /// Shares the slots fairly among keys from now on, or serves in order of arrival.
    fn share_fairly(&mut self, is_fair: bool, now: Instant) {
        if self.fair.is_some() == is_fair {
            return;
        }
        self.fair = is_fair.then(|| Box::new(FairShares::new(now)));
        let Some(fair) = &mut self.fair else { return };
        for (place, waiter) in self.lines.iter().flat_map(|line| line.newcomers.iter()) {
            fair.insert(place, waiter.span.work.key(), waiter.span.work.time);
        }
    }

    /// Serves in this order from now on, unless the slots are shared fairly.
    fn order_by(&mut self, order: Order, is_fair: bool) {
        let delay = match order {
            Order::ShortFirst { delay } if !is_fair => delay,
            _ => return self.short = None,
        };
        if let Some(short) = &mut self.short {
            return short.set_delay(delay);
        }
        let mut short = Box::new(ShortFirst::new(delay));
        for (place, waiter) in self.lines.iter().flat_map(|line| line.newcomers.iter()) {
            short.insert(place, waiter.span.label());
        }
        self.short = Some(short);
    }

    /// The pool has this many slots that requests can get. Only an order that counts with them asks for the number.
    pub fn set_slots(&mut self, slots: impl FnOnce() -> usize) {
        if let Some(short) = &mut self.short {
            short.set_slots(slots());
        }
    }

    /// How much work of a class is done before a new request that may use any member.
    pub fn work_before(&self, place: QueuePosition, span: QueueSpan) -> WorkAhead {
        let priority = place.priority;
        let waiting = WaitingWork { requests: self.len_of(priority), work: self.work_of(priority) };
        match (&self.fair, &self.short) {
            (Some(fair), _) => fair.work_ahead(priority, span.work.key(), waiting),
            (None, Some(short)) => {
                WorkAhead::without_keys(short.work_ahead(place, span.label(), waiting.work))
            }
            (None, None) => WorkAhead::without_keys(waiting.work),
        }
    }

    /// How long the oldest request of the high and normal classes has waited, if the order is that of arrival. A member may then get
    /// several requests at once, by which they lose little. Zero in any other order: a request that has just come may be next there, and
    /// must not wait behind several others inside a member. The low class does not count, for the same reason.
    pub fn wait_in_order(&self, now: Instant) -> Duration {
        let is_by_arrival = self.fair.is_none() && self.short.is_none();
        let lines = self.lines[..Priority::Low.index()].iter().filter(|_| is_by_arrival);
        let oldest = lines.filter_map(Line::first).map(|(place, _)| place.ticket.arrived).min();
        oldest.map_or(Duration::ZERO, |arrived| now.saturating_duration_since(arrived))
    }

    /// In a fair pool, the request that gives way to a new one of this class when the queue is full. See [`FairShares::dearest`].
    pub fn dearest(&mut self, priority: Priority, work: Work) -> Option<QueuePosition> {
        let bound = &self.lines[priority.index()].bound_shares;
        self.fair.as_mut()?.dearest(priority, work.key(), work.time, bound)
    }

    /// In a fair pool, the key of a waiting request pays for the slot that the request gets.
    pub fn charge(&mut self, place: QueuePosition, span: QueueSpan) -> Option<Charge> {
        let fair = self.fair.as_mut()?;
        let (key, estimate) = (span.work.key(), span.work.time);
        Some(if is_shared(place, span) {
            fair.serve(place, key, estimate)
        } else {
            fair.charge(key, estimate)
        })
    }

    /// A waiting request gets a slot: its member, and its number there.
    pub fn begin_turn(&mut self, place: QueuePosition, span: QueueSpan, slot: (MemberId, u32)) {
        if let Some(short) = &mut self.short {
            short.begin(place, span.label().cost, slot);
        }
    }

    /// A slot came back. It was held for this time.
    pub fn end_turn(&mut self, slot: (MemberId, u32), held: Duration) {
        if let Some(short) = &mut self.short {
            short.settle(slot, held);
        }
    }

    /// Checks that an order other than that of arrival has exactly the newcomers.
    #[cfg(test)]
    pub fn check_order(&self) {
        let newcomers =
            || self.lines.each_ref().map(|line| line.newcomers.iter().map(|(place, _)| place).collect());
        if let Some(fair) = &self.fair {
            fair.check(newcomers());
        }
        if let Some(short) = &self.short {
            short.check(newcomers());
        }
    }
}
