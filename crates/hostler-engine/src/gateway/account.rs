//! Where a request counts: in the log line and the ledger of its pool, and under its key in a fair pool. Does not know why it ends.

use super::target::PoolTarget;
use crate::exchange::Exchange;

/// The request counts from now on, also if the pool refuses it.
pub(super) fn open(target: &PoolTarget, exchange: &mut Exchange) {
    exchange.log_facts.pool = Some(target.name.clone());
    exchange.account = Some(target.account.clone());
    exchange.longest_pause = Some(target.response_idle_timeout);
    if let Some(fair) = &target.fair {
        fair.of(exchange);
    }
}

/// The request has ended.
pub(super) fn close(exchange: &mut Exchange) {
    if let Some(account) = exchange.account.take() {
        let (facts, queue) = (&exchange.log_facts, exchange.timings.queue_wait);
        account.end(facts.fair.as_deref(), queue, facts.refusal.is_some());
    }
}
