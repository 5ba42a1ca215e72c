//! Where a request counts: in the log line and the ledger of its pool, and under its key in a fair pool. Does not know why it ends.

use super::target::PoolTarget;
use crate::exchange::{Exchange, held_again};

/// The request counts from now on, also if the pool refuses it.
pub(super) fn open(target: &PoolTarget, exchange: &mut Exchange) {
    exchange.log_facts.pool = Some(held_again(&mut exchange.before.pool, &target.name));
    exchange.account = Some(held_again(&mut exchange.before.account, &target.account));
    exchange.longest_pause = Some(target.response_idle_timeout);
    if let Some(fair) = &target.fair {
        fair.of(exchange);
    }
}

/// The request has ended.
pub(super) fn close(exchange: &Exchange) {
    if let Some(account) = &exchange.account {
        let (facts, queue) = (&exchange.log_facts, exchange.timings.queue_wait);
        account.end(facts.fair.as_deref(), queue, facts.refusal.is_some());
        // Only limits of worker time ask for the average.
        if let Some(hold) = exchange.timings.slot_hold
            && exchange.is_answered
            && !facts.charges.is_empty()
        {
            account.note_hold(hold);
        }
    }
}
