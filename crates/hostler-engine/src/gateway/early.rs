//! Refuses a request before its body is read, if its pool would refuse it. Knows no client protocol.
//!
//! A body that is small, or that has arrived, is read anyway: that costs less than a new connection, and the connection can be kept.
//! A large body would be received, and perhaps written to a file, only to be discarded.

use std::future::poll_fn;
use std::task::Poll;

use hostler_dispatch::MemberPreference;
use hostler_wire::{BodyLength, Name};

use super::account;
use super::low;
use super::refusal::Refusal;
use super::target::{PoolTarget, Route, Target};
use crate::exchange::{Downstream, Exchange};

/// A shorter body is read before the pool is asked, and the connection is kept.
const SMALL: u64 = 64 * 1024;

/// Refuses the request if its body is large, or waits for a `100 Continue`, and the queue of its pool is full, the pool is closed or has no
/// member for it, or requests like it have killed workers.
pub(super) fn check(route: &Route, exchange: &mut Exchange) -> Result<(), Refusal> {
    let Target::Pool(target) = &route.target else { return Ok(()) };
    if !is_costly(exchange) {
        return Ok(());
    }
    // A stored answer or a fallback may stand in for the pool's.
    let may_be_stored = route.caching.is_some() && matches!(exchange.head.method(), b"GET" | b"HEAD");
    let has_alternative = may_be_stored || route.fallback.is_some();
    // The request may wait for the member of its client, which may have a free slot although the queue is full.
    if has_alternative || target.sticky.as_ref().is_some_and(|sticky| sticky.binds(exchange, &target.pool)) {
        return Ok(());
    }
    exchange.log_facts.pool = Some(target.name.clone());
    let key = target.fair.as_ref().map(|fair| fair.of(exchange));
    let refused = preference(route, target, exchange).and_then(|preference| {
        target.poison.admit(exchange)?;
        let (pool, priority) = (&target.pool, low::priority(route, target, exchange));
        // A request for one member only does not wait, whether the queue is full or not.
        let too_many = || if preference.only.is_some() { None } else { pool.refuse_early(priority, key) };
        let refused = pool.refuse_without_member(&preference).or_else(too_many);
        let Some(error) = refused else { return Ok(()) };
        exchange.log_facts.retry_after = target.meter.retry_after();
        Err(error.into())
    });
    if refused.is_err() {
        // A request that passes gets its account when it asks for a slot.
        account::open(target, exchange);
    }
    refused
}

/// Which members the request is for. Only the kind of a registered route knows that before the body is read.
fn preference(
    route: &Route,
    target: &PoolTarget,
    exchange: &mut Exchange,
) -> Result<MemberPreference, Refusal> {
    match &route.kind {
        Some(kind) => kind.preference(exchange, target),
        None => Ok(MemberPreference::default()),
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hostler_config::{FairBy, SameSite, Sticky, StickyBy};
    use tokio::time::Instant;

    use super::super::tests::{request, target};
    use super::super::{FairKeys, Stickiness, StickyKey};
    use super::*;

    #[tokio::test]
    async fn the_ledger_and_the_key_count_an_upload_that_is_refused_early() {
        let fair = FairKeys::new(&[FairBy::Client], None).unwrap();
        let target = PoolTarget { fair: Some(fair.clone()), ..target() };
        target.pool.close();
        let ledger = target.meter.ledger.clone();
        let route = Route::new("*".into(), Target::Pool(target), 1 << 30);
        let mut exchange = request("192.0.2.1", "");
        exchange.length = BodyLength::Known(10 << 20);
        assert!(check(&route, &mut exchange).is_err());
        let account = exchange.account.take().expect("a refused request has an account");
        account.end(exchange.log_facts.fair.as_deref(), Duration::ZERO, true);
        let key = &fair.view().keys[0];
        assert_eq!((&*key.key, key.requests, key.refused), ("client 192.0.2.0/24", 1, 1));
        assert_eq!(ledger.view(None, Instant::now()).all.requests.minute, 1);
    }

    #[tokio::test]
    async fn an_upload_without_a_member_of_its_own_is_refused_early_in_a_sticky_pool() {
        let settings = Sticky {
            by: StickyBy::Cookie,
            wait: Duration::ZERO,
            drain: Duration::ZERO,
            cookie: "member".into(),
            same_site: SameSite::Lax,
            secret: None,
        };
        let sticky = Stickiness::new(&"app".into(), &settings, &StickyKey::random(), None).map(Arc::new);
        let target = PoolTarget { sticky, ..target() };
        target.pool.close();
        let route = Route::new("*".into(), Target::Pool(target), 1 << 30);
        for cookie in ["", "Cookie: member=gone\r\n"] {
            let mut exchange = request("192.0.2.1", cookie);
            exchange.length = BodyLength::Known(10 << 20);
            assert!(check(&route, &mut exchange).is_err(), "{cookie}");
        }
    }
}
