//! Refuses a request before its body is read, if its pool would refuse it. Knows no client protocol.
//!
//! A body that is small, or that has arrived, is read all the same: that costs less than a new connection, and the connection can be kept.
//! A large body would be received, and perhaps written to a file, only to be discarded.

use std::future::poll_fn;
use std::task::Poll;

use hostler_wire::{BodyLength, Name};

use super::low;
use super::refusal::Refusal;
use super::target::{Route, Target};
use crate::exchange::{Downstream, Exchange};

/// A shorter body is read before the pool is asked, and the connection is kept.
const SMALL: u64 = 64 * 1024;

/// Refuses the request if its body is large, or waits for a `100 Continue`, and the queue of its pool is full, the pool is closed, or
/// requests like it have killed workers.
pub(super) fn check(route: &Route, exchange: &mut Exchange) -> Result<(), Refusal> {
    let Target::Pool(target) = &route.target else { return Ok(()) };
    if !is_costly(exchange) {
        return Ok(());
    }
    // A stored answer or a fallback may stand in for the pool's.
    let may_be_stored = route.caching.is_some() && matches!(exchange.head.method(), b"GET" | b"HEAD");
    let has_alternative = may_be_stored || route.fallback.is_some();
    // The member of the client may have a free slot while others wait.
    let is_bound = target.sticky.as_ref().is_some_and(|sticky| sticky.stay(exchange, &target.pool).is_some());
    // The kind of a registered route decides what becomes of its requests.
    if has_alternative || is_bound || route.kind.is_some() {
        return Ok(());
    }
    exchange.log_facts.pool = Some(target.name.clone());
    target.poison.admit(exchange)?;
    let key = target.fair.as_ref().map(|fair| fair.of(exchange));
    let priority = low::priority(route, target, exchange);
    let Some(error) = target.pool.refuse_early(priority, key) else { return Ok(()) };
    exchange.log_facts.retry_after = target.meter.retry_after();
    Err(error.into())
}

/// Discards a small body of a refused request, as far as it has arrived. If that is all of it, the connection can be kept. Waits for nothing.
pub(super) async fn discard_arrived<D: Downstream>(client: &mut D, exchange: &Exchange) {
    if exchange.length == BodyLength::Known(0) || is_costly(exchange) {
        return;
    }
    client.allow_body(SMALL);
    let mut discarded = 0;
    poll_fn(|cx| {
        while discarded < SMALL {
            let mut piece = Vec::new();
            match client.poll_body(cx, &mut piece, SMALL as usize) {
                Poll::Ready(Ok(false)) => discarded += piece.len() as u64,
                _ => break,
            }
        }
        Poll::Ready(())
    })
    .await;
}

/// Whether the client has to send much, or waits to be told that it may send.
fn is_costly(exchange: &Exchange) -> bool {
    match exchange.length {
        BodyLength::Known(0) => false,
        BodyLength::Known(length) if length > SMALL => true,
        _ => exchange.head.fields.first(Name::Expect).is_some(),
    }
}
