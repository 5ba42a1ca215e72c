//! Refuses a request before its body is read, if its pool would refuse it. Knows no client protocol.
//!
//! A body that is small, or that has arrived, is read all the same: that costs less than a new connection, and the connection can be kept.
//! A large body would be received, and perhaps written to a file, only to be discarded.

use hostler_wire::{BodyLength, Name};

use super::refusal::Refusal;
use super::target::{Route, Target};
use crate::exchange::Exchange;

/// A shorter body is read before the pool is asked, and the connection is kept.
const SMALL: u64 = 64 * 1024;

/// Refuses the request if its body is large, or waits for a `100 Continue`, and the queue of its pool is full, the pool is closed, or
/// requests like it have killed workers.
pub(super) fn check(route: &Route, exchange: &mut Exchange) -> Result<(), Refusal> {
    let Target::Pool(target) = &route.target else { return Ok(()) };
    // Another answer than the refusal may stand in, or the rules of the route decide, or one member of the pool may have a free slot.
    let has_alternatives = route.caching.is_some() || route.fallback.is_some() || route.kind.is_some();
    if has_alternatives || target.sticky.is_some() || !is_costly(exchange) {
        return Ok(());
    }
    exchange.log_facts.pool = Some(target.name.clone());
    target.poison.admit(exchange)?;
    let Some(error) = target.pool.refuse_early() else { return Ok(()) };
    exchange.log_facts.retry_after = target.meter.retry_after();
    Err(error.into())
}

/// Whether the client has to send much, or waits to be told that it may send.
fn is_costly(exchange: &Exchange) -> bool {
    match exchange.length {
        BodyLength::Known(0) => false,
        BodyLength::Known(length) if length > SMALL => true,
        _ => exchange.head.fields.first(Name::Expect).is_some(),
    }
}
