//! Looks up the stored answer for a request, judges it and serves it. Knows no flights and no members.

use std::cell::RefCell;
use std::sync::Arc;

use hostler_cache::{
    CacheStatus, Forward, Moment, RequestDirectives, RequestSide, Reuse, admit, judge, write_key,
};
use hostler_wire::BodyLength;

use super::request::{self, MemberRequestView};
use super::show;
use crate::cache::{Caching, Entry};
use crate::exchange::Exchange;
use crate::gateway::answer::Answer;
use crate::gateway::refusal::Refusal;

/// The result of a lookup.
pub(super) enum CacheLookup {
    /// An answer that may be served.
    Good { entry: Arc<Entry>, age: u64, ttl: i64, refresh: Option<Box<[u8]>> },
    /// No response may be served. `stale`: a stored one that needs validation first. `other`: one that is for requests
    /// with other fields (`Vary`).
    Nothing { key: Box<[u8]>, why: Forward, stale: Option<Arc<Entry>>, other: Option<Arc<Entry>> },
}

thread_local! {
    /// Reused, so that a hit allocates nothing for its key.
    static KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What the request asks of the cache, and whether it may be answered from memory.
pub(super) fn read_directives(
    caching: &Caching,
    exchange: &Exchange,
) -> (RequestDirectives, Result<(), Forward>) {
    let asks = RequestDirectives::of(&caching.rules, exchange.head.method(), &request::sent(exchange));
    let has_more = exchange.length != BodyLength::Known(0) || exchange.offer.is_some();
    // A member gets the local address in place of a missing `Host`. That address is not in the cache key, so the
    // request passes by the cache.
    let is_nowhere = exchange.host().is_empty();
    let admitted = match admit(&asks) {
        // The method comes first: a request with another one mostly has a body, too.
        Err(Forward::Method) => Err(Forward::Method),
        _ if has_more || is_nowhere || request::names_a_method(exchange) => Err(Forward::Bypass),
        admitted => admitted,
    };
    (asks, admitted)
}

/// Looks up the stored answer for a request.
pub(super) fn find(
    caching: &Caching,
    exchange: &Exchange,
    asks: &RequestDirectives,
    now: Moment,
) -> CacheLookup {
    KEY.with_borrow_mut(|key| {
        let secure = request::is_secure(exchange);
        write_key(&caching.query, secure, exchange.host(), exchange.head.target(), key);
        let nothing =
            |why, stale| CacheLookup::Nothing { key: key.as_slice().into(), why, stale, other: None };
        let Some(variants) = caching.shared_cache.memory.look(key) else {
            return nothing(Forward::UriMiss, None);
        };
        let side = RequestSide { secure, route: caching.route, told: request::told(exchange) };
        let entry = match variants.find(|entry| entry.vary.matches(&MemberRequestView(exchange), side)) {
            Ok(entry) => entry,
            Err(variants) => {
                // What another route has stored for this URL says nothing about the answers of this one.
                let other = variants.iter().find(|entry| entry.vary.route == side.route).cloned();
                let why = if other.is_some() { Forward::VaryMiss } else { Forward::UriMiss };
                return CacheLookup::Nothing { key: key.as_slice().into(), why, stale: None, other };
            }
        };
        match judge(&entry.freshness, asks, now) {
            Reuse::Serve { age, ttl } => CacheLookup::Good { entry, age, ttl, refresh: None },
            Reuse::ServeAndRefresh { age, ttl } => {
                CacheLookup::Good { entry, age, ttl, refresh: Some(key.as_slice().into()) }
            }
            Reuse::Validate { why } => nothing(why, Some(entry)),
            Reuse::Pass { why } => nothing(why, None),
        }
    })
}

pub(super) fn serve(
    caching: &Caching,
    exchange: &mut Exchange,
    asks: &RequestDirectives,
    entry: &Entry,
    (age, ttl): (u64, i64),
) -> Result<Answer, Refusal> {
    exchange.log_facts.cache = Some(CacheStatus::Hit { ttl });
    exchange.log_facts.age = Some(age);
    show::stored(caching, exchange, asks, entry)
}
