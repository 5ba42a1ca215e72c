//! Which stored answers an unsafe method makes void, also those of other routes. Knows no client protocol.

use std::cell::RefCell;
use std::sync::Arc;

use arc_swap::ArcSwap;
use hostler_cache::{Method, invalidated, write_key};
use hostler_wire::ResponseHead;

use super::request;
use crate::cache::{Caching, HeadLines};
use crate::exchange::{Exchange, LateAnswer};
use crate::gateway::answer::Answer;
use crate::gateway::refusal::Refusal;
use crate::gateway::target::Route;
use crate::route::Table;

/// Invalidates the stored responses for the URL of an unsafe method, and for those that its response names (RFC 9111 section 4.4). The
/// route of the request need not have a cache itself.
pub fn invalidate(
    routes: &ArcSwap<Table<Arc<Route>>>,
    exchange: &Exchange,
    answered: &Result<Answer, Refusal>,
) {
    let Ok(Answer::Member(call)) = answered else { return };
    if Method::of(exchange.head.method()) != Method::Unsafe {
        return;
    }
    let (routes, host) = (routes.load(), exchange.host());
    let url = (host, exchange.head.target(), request::is_secure(exchange));
    forget(call.answer(), url, |target| of_url(&routes, host, target));
}

/// The same when the response comes after the client has left, or has got a refusal such as a 504. The member has done then what it was asked for.
/// None if no route stores responses for the URL of the request. The routes of that URL also say how the other URLs are read.
pub fn late_answer(routes: &ArcSwap<Table<Arc<Route>>>, exchange: &Exchange) -> Option<LateAnswer> {
    if Method::of(exchange.head.method()) != Method::Unsafe {
        return None;
    }
    let (host, target) = (exchange.host(), exchange.head.target());
    // Not the routes: a pool that a reload has removed ends when no request holds them.
    let stored = of_url(&routes.load(), host, target);
    if stored.is_empty() {
        return None;
    }
    let (host, target) = (host.to_vec(), target.to_vec());
    let secure = request::is_secure(exchange);
    Some(Arc::new(move |answer| forget(answer, (&host, &target, secure), |_| stored.clone())))
}

/// Forgets what is stored for the URL of an unsafe method (host, target, whether it came over TLS), and for those that its response names.
/// `caches`: the settings of the routes that may have stored a target.
fn forget(
    answer: &ResponseHead,
    (host, target, secure): (&[u8], &[u8], bool),
    caches: impl Fn(&[u8]) -> Vec<Arc<Caching>>,
) {
    let mut key = Vec::new();
    for target in invalidated(Method::Unsafe, answer.status, &HeadLines(&answer.fields), host, target) {
        for caching in caches(&target) {
            write_key(&caching.query, secure, host, &target, &mut key);
            match caching.stores {
                true => caching.shared_cache.forget(&key),
                false => caching.shared_cache.forget_in_memory(&key),
            }
        }
    }
}

/// The cache settings of all routes that may have stored a response for a URL, or have one on its way. Of settings that write the key in
/// the same way, only the first.
fn of_url(routes: &Table<Arc<Route>>, host: &[u8], target: &[u8]) -> Vec<Arc<Caching>> {
    let found = RefCell::new(Vec::<Arc<Caching>>::new());
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    // Each route with conditions may have served a request for the URL. The first route without conditions serves all others, so the search
    // ends there.
    let note = |route: &Arc<Route>| {
        let mut found = found.borrow_mut();
        if let Some(caching) = &route.caching
            && !found.iter().any(|known| known.query == caching.query && known.stores == caching.stores)
        {
            found.push(caching.clone());
        }
        route.when.is_none()
    };
    routes.find_fitting(host, path, &note);
    found.into_inner()
}
