//! Counts and logs an exchange whose task is dropped before it has ended. Knows no protocol.

use hostler_engine::exchange::Exchange;

use super::shard::Shard;

/// An exchange that has begun. If this is dropped, its task was: Hostler has stopped before the exchange has ended, or the task has panicked.
pub(super) struct Unsettled<'a> {
    shard: &'a Shard,
    pub exchange: &'a mut Exchange,
    is_pending: bool,
}

impl<'a> Unsettled<'a> {
    pub fn new(shard: &'a Shard, exchange: &'a mut Exchange) -> Self {
        Self { shard, exchange, is_pending: true }
    }

    /// The exchange goes on elsewhere.
    pub fn release(mut self) {
        self.is_pending = false;
    }

    /// The exchange has ended.
    pub fn settle(mut self) {
        self.is_pending = false;
        self.shard.settle(self.exchange);
    }
}

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        if self.is_pending {
            self.exchange.log_facts.aborted.get_or_insert("stopped");
            self.shard.settle(self.exchange);
        }
    }
}
