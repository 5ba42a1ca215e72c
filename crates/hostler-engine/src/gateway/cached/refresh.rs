//! Fetches a stored answer again while clients still get the old one. Knows no client.

use std::sync::Arc;

use hostler_cache::{CacheStatus, FlightRole, Forward, Moment, RequestDirectives, Tick, is_failure};

use super::fetch_state::Fetch;
use super::lookup::{CacheLookup, find};
use crate::cache::{Caching, Cut, Entry};
use crate::exchange::{Exchange, NoClient};
use crate::gateway::account;
use crate::gateway::answer::Answer;
use crate::gateway::line::refresh_line;
use crate::gateway::low;
use crate::gateway::target::{PoolTarget, Route, Target};

/// The shortest time between a failed fetch and the next one for the same response. Requests for the response come all the time, so an app
/// that fails at once would get one fetch after another.
const AFTER_FAILURE_MS: u64 = 1000;

/// Starts a task that fetches the answer, unless a fetch for it runs already or has just failed.
pub(super) fn begin(
    caching: &Arc<Caching>,
    route: &Arc<Route>,
    exchange: &Exchange,
    asks: RequestDirectives,
    (key, stale): (Box<[u8]>, Arc<Entry>),
    thread: usize,
) {
    // The client has got its answer. What is fetched now is whole.
    let asks = RequestDirectives { conditional: false, ranged: false, ..asks };
    let mut fetch = Fetch::new(caching, exchange, asks, key, Forward::Stale, Some(stale.clone()));
    fetch.is_refresh = true;
    fetch.select(exchange, &stale.head);
    let Target::Pool(target) = &route.target else { return };
    fetch.is_low = low::is_low(route, target, exchange);
    if caching.shared_cache.flights.is_alone(&pause_key(&fetch), Tick::now()) {
        return;
    }
    let (key, now) = (fetch.flight_key(), Tick::now());
    // A refresh that waits for its turn in a fair pool is not waited for, if this one would be over before.
    let role = caching.shared_cache.flights.join_unless(&key, now, |_, _, turn| {
        turn > 0 && fetch.turn_in(route, target, exchange).is_some_and(|own| own.end < turn)
    });
    let FlightRole::Leader(flight) = role else { return };
    fetch.lead(flight);
    let (route, exchange) = (route.clone(), exchange.copy_for_refresh());
    tokio::spawn(async move {
        // If another Hostler that shares the memcached has already refreshed it, take that answer.
        if let Some(fresh) = fetched_by_others(&fetch, &exchange).await {
            fetch.settle_stored(&fresh);
        } else if let Target::Pool(target) = &route.target {
            fetch_in_background(fetch, &route, target, exchange, thread).await;
        }
    });
}

/// The key under which a failed refresh is noted. It begins like no flight key, so clients that wait for a fetch of their own are not
/// affected.
fn pause_key(fetch: &Fetch) -> Vec<u8> {
    [&b"\0refresh\0"[..], &fetch.flight_key()].concat()
}

async fn fetched_by_others(fetch: &Fetch, exchange: &Exchange) -> Option<Arc<Entry>> {
    if !fetch.caching.shared_cache.fetch(&fetch.key).await {
        return None;
    }
    match find(&fetch.caching, exchange, &fetch.asks, Moment::now()) {
        CacheLookup::Good { entry, refresh: None, .. } => Some(entry),
        CacheLookup::Good { .. } | CacheLookup::Nothing { .. } => None,
    }
}

async fn fetch_in_background(
    fetch: Box<Fetch>,
    route: &Route,
    target: &PoolTarget,
    mut exchange: Exchange,
    thread: usize,
) {
    let (caching, pause) = (fetch.caching.clone(), pause_key(&fetch));
    // If the fetch fails, the old answer stays.
    match fetch.run((route, target), &mut exchange, &mut NoClient, thread).await {
        Ok(Answer::Member(call) | Answer::Tunnel(call)) => call.abandon(&mut exchange),
        Ok(Answer::Shared(shared)) => {
            if let Err(Cut(why)) = shared.reading.is_there().await {
                exchange.log_facts.aborted = Some("worker");
                exchange.log_facts.detail = Some(why.to_string());
            }
        }
        Ok(Answer::Whole(_) | Answer::Streamed(_)) => {}
        Err(refusal) => {
            exchange.log_facts.refusal = Some(refusal.facts().reason);
            exchange.log_facts.detail = refusal.detail();
        }
    }
    let mut is_answered = false;
    if let Some(CacheStatus::Forwarded { status: Some(status), .. }) = exchange.log_facts.cache {
        exchange.log_facts.status = status;
        is_answered = !is_failure(status) && exchange.log_facts.aborted.is_none();
    }
    if !is_answered {
        caching.shared_cache.flights.leave_alone(&pause, Tick::now(), AFTER_FAILURE_MS);
    }
    account::close(&exchange);
    if let Some(expected) = &exchange.log_facts.expected {
        expected.learner.learn(&exchange);
    }
    target.poison.settle(&mut exchange);
    caching.shared_cache.journal.access(|| refresh_line(&exchange));
}
