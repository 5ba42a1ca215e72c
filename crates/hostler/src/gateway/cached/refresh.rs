//! A stored answer fetched anew while its clients get the old one. Knows no client.

use std::sync::Arc;

use hostler_cache::{Asks, CacheStatus, Forward, Moment, Role};

use super::errand::Errand;
use super::{Found, look};
use crate::cache::{Caching, Cut, Entry};
use crate::exchange::{Exchange, Nobody};
use crate::gateway::line::refresh_line;
use crate::gateway::{Answer, PoolTarget, Route, Target};

/// Fetches it in a task of its own, unless somebody does already.
pub(super) fn begin(
    caching: &Arc<Caching>,
    route: &Arc<Route>,
    exchange: &Exchange,
    asks: Asks,
    (key, stale): (Box<[u8]>, Arc<Entry>),
    thread: usize,
) {
    let mut errand = Errand::new(caching, exchange, asks, key, Forward::Stale, Some(stale.clone()));
    errand.select(exchange, &stale.head);
    let Role::Leader(flight) = caching.stock.flights.join(&errand.flight_key(), Moment::now()) else {
        return;
    };
    errand.lead(flight);
    let (route, exchange) = (route.clone(), exchange.again());
    tokio::spawn(async move {
        // Of several Hostlers that share what they have, one is enough.
        if let Some(fresh) = fetched_by_others(&errand, &exchange).await {
            errand.land(&fresh);
        } else if let Target::Pool(target) = &route.target {
            fetch(errand, &route, target, exchange, thread).await;
        }
    });
}

async fn fetched_by_others(errand: &Errand, exchange: &Exchange) -> Option<Arc<Entry>> {
    if !errand.caching.stock.fetch(&errand.key).await {
        return None;
    }
    match look(&errand.caching, exchange, &errand.asks, Moment::now()) {
        Found::Good { entry, refresh: None, .. } => Some(entry),
        Found::Good { .. } | Found::Nothing { .. } => None,
    }
}

async fn fetch(
    errand: Box<Errand>,
    route: &Route,
    target: &PoolTarget,
    mut exchange: Exchange,
    thread: usize,
) {
    let caching = errand.caching.clone();
    // What fails leaves the old answer where it is.
    match errand.run((route, target), &mut exchange, &mut Nobody, thread).await {
        Ok(Answer::Member(call) | Answer::Tunnel(call)) => call.abandon(&mut exchange),
        Ok(Answer::Shared(shared)) => {
            if let Err(Cut(why)) = shared.reading.is_there().await {
                exchange.trail.aborted = Some("worker");
                exchange.trail.detail = Some(why.to_string());
            }
        }
        Ok(Answer::Whole(_) | Answer::Streamed(_)) => {}
        Err(refusal) => {
            exchange.trail.refusal = Some(refusal.facts().reason);
            exchange.trail.detail = refusal.detail();
        }
    }
    if let Some(CacheStatus::Forwarded { status: Some(status), .. }) = exchange.trail.cache {
        exchange.trail.status = status;
    }
    target.poison.settle(&mut exchange);
    caching.stock.journal.access(|| refresh_line(&exchange));
}
