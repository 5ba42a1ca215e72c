//! A memory budget that connections share fairly: one for request bodies, one for answers. Does not know what the bytes are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

/// A limit on memory for all connections together.
///
/// A connection may hold as many bytes as are still free (the dynamic threshold of shared-memory switches: Choudhury and Hahne, 1998).
/// One connection can hold half of the budget, two can hold a third each, a hundred can hold 1/101 each. So a few connections cannot use
/// up the memory of others, and active connections need not be counted.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: AtomicU64,
    /// Each connection may hold this much in any case: without it, it could not go on.
    minimum: u64,
    used: AtomicU64,
    refused: AtomicU64,
}

/// The budget, for the Status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MemoryView {
    pub limit: u64,
    pub used: u64,
    /// How often a connection asked for more than its share.
    pub refused: u64,
}

impl MemoryBudget {
    pub fn new(limit: u64) -> Arc<Self> {
        Self::with_minimum(limit, 0)
    }

    /// A budget in which each connection gets `minimum` even when nothing is free.
    pub fn with_minimum(limit: u64, minimum: u64) -> Arc<Self> {
        let (used, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { limit: limit.into(), minimum, used, refused })
    }

    /// More than half of it is used.
    pub fn is_tight(&self) -> bool {
        self.used.load(Relaxed) > self.limit.load(Relaxed) / 2
    }

    /// Changes the limit. Existing reservations stay.
    pub fn resize(&self, limit: u64) {
        self.limit.store(limit, Relaxed);
    }

    /// The account of one connection.
    pub fn account(self: &Arc<Self>) -> Arc<MemoryAccount> {
        Arc::new(MemoryAccount { budget: self.clone(), used: AtomicU64::new(0) })
    }

    pub fn view(&self) -> MemoryView {
        MemoryView {
            limit: self.limit.load(Relaxed),
            used: self.used.load(Relaxed),
            refused: self.refused.load(Relaxed),
        }
    }
}

/// What one connection holds, over all its requests.
#[derive(Debug)]
pub struct MemoryAccount {
    budget: Arc<MemoryBudget>,
    used: AtomicU64,
}

impl MemoryAccount {
    /// An empty reservation.
    pub fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation { account: self.clone(), bytes: 0 }
    }

    /// Adds the bytes, unless the connection would then hold more than what is free.
    fn take(&self, bytes: u64) -> bool {
        let used = self.used.fetch_add(bytes, Relaxed) + bytes;
        let all = self.budget.used.fetch_add(bytes, Relaxed) + bytes;
        let left = self.budget.limit.load(Relaxed).saturating_sub(all);
        let is_granted = used <= self.budget.minimum || used <= left;
        if !is_granted {
            self.give_back(bytes);
            self.budget.refused.fetch_add(1, Relaxed);
        }
        is_granted
    }

    /// Adds bytes that are in use already, even over the limit.
    fn note(&self, bytes: u64) {
        self.used.fetch_add(bytes, Relaxed);
        self.budget.used.fetch_add(bytes, Relaxed);
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
        self.budget.used.fetch_sub(bytes, Relaxed);
    }
}

/// Bytes that one request holds. Dropping it frees them.
#[derive(Debug)]
pub struct Reservation {
    account: Arc<MemoryAccount>,
    bytes: u64,
}

impl Reservation {
    /// Grows or shrinks to `bytes`. False if it may not grow; then it is unchanged. Shrinking never fails.
    #[must_use]
    pub fn resize(&mut self, bytes: u64) -> bool {
        if bytes > self.bytes && !self.account.take(bytes - self.bytes) {
            return false;
        }
        if bytes < self.bytes {
            self.account.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }

    /// Grows or shrinks to the bytes that are in use already, even over the limit.
    pub fn set(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.account.note(bytes - self.bytes);
        } else {
            self.account.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Splits off this many bytes, or all if there are fewer, for another owner.
    pub fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { account: self.account.clone(), bytes }
    }

    /// Moves all of it to another owner.
    pub fn take(&mut self) -> Self {
        Self { account: self.account.clone(), bytes: std::mem::take(&mut self.bytes) }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether more than half of the budget is used.
    pub fn is_tight(&self) -> bool {
        self.account.budget.is_tight()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grows by one byte as long as that is allowed.
    fn most(reservation: &mut Reservation) -> u64 {
        while reservation.resize(reservation.bytes() + 1) {}
        reservation.bytes()
    }

    #[test]
    fn a_connection_alone_can_hold_half_of_a_budget() {
        let budget = MemoryBudget::new(1000);
        let mut only = budget.account().reservation();
        assert_eq!(most(&mut only), 500);
        assert_eq!(budget.view(), MemoryView { limit: 1000, used: 500, refused: 1 });
    }

    #[test]
    fn a_few_greedy_connections_leave_room_for_others() {
        let budget = MemoryBudget::new(1000);
        let mut greedy: Vec<_> = (0..8).map(|_| budget.account().reservation()).collect();
        for _ in 0..3 {
            greedy.iter_mut().for_each(|reservation| {
                most(reservation);
            });
        }
        let mut modest = budget.account().reservation();
        assert!(modest.resize(1));
    }

    #[test]
    fn requests_of_one_connection_share_its_part() {
        let budget = MemoryBudget::new(1000);
        let account = budget.account();
        let (mut one, mut other) = (account.reservation(), account.reservation());
        assert_eq!(most(&mut one), 500);
        assert_eq!(most(&mut other), 0);
    }

    #[test]
    fn each_connection_gets_the_minimum_when_nothing_is_left() {
        let budget = MemoryBudget::with_minimum(1000, 10);
        let mut others: Vec<_> = (0..2).map(|_| budget.account().reservation()).collect();
        others[0].set(900);
        others[1].set(900);
        assert!(budget.is_tight());
        let account = budget.account();
        let (mut one, mut other) = (account.reservation(), account.reservation());
        assert_eq!((most(&mut one), most(&mut other)), (10, 0), "its requests share it");
        let part = one.split(4);
        assert_eq!((one.bytes(), part.bytes(), budget.view().used), (6, 4, 1810));
        drop(part);
        others[0].set(100);
        assert_eq!(budget.view().used, 1006);
    }

    #[test]
    fn dropped_and_shrunk_buffers_free_their_memory() {
        let budget = MemoryBudget::new(1000);
        let mut one = budget.account().reservation();
        assert!(one.resize(400));
        assert!(one.resize(100));
        assert_eq!(budget.view().used, 100);
        drop(one);
        assert_eq!(budget.view().used, 0);
    }

    #[test]
    fn a_smaller_limit_holds_for_new_memory_and_existing_memory_may_shrink() {
        let budget = MemoryBudget::new(1000);
        let mut one = budget.account().reservation();
        assert!(one.resize(400));
        budget.resize(100);
        assert!(!one.resize(401));
        assert!(one.resize(40));
    }
}
