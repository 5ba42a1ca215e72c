//! Decides whether a stored response may be served now (RFC 9111 section 4.2). Knows neither the response's head nor the
//! request's.

use super::{Freshness, NotStored, RequestDirectives};
use crate::{Forward, Head, Moment};

/// What to do with a stored response that matches the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// Serve it.
    Serve {
        /// The value of the field `Age`.
        age: u64,
        /// For [`CacheStatus::Hit`](crate::CacheStatus::Hit).
        ttl: i64,
    },
    /// Serve it, and fetch a new one meanwhile (`stale-while-revalidate`).
    ServeAndRefresh {
        /// The value of the field `Age`.
        age: u64,
        /// Negative: the seconds since it became stale.
        ttl: i64,
    },
    /// Ask a member first, with [`Validators`](super::Validators). If [`RequestDirectives::only_if_cached`] is set,
    /// answer 504 instead.
    Validate {
        /// For [`CacheStatus::Forwarded`](crate::CacheStatus::Forwarded).
        why: Forward,
    },
    /// Do not use it for this request. Send the request on without validators.
    Pass {
        /// For [`CacheStatus::Forwarded`](crate::CacheStatus::Forwarded).
        why: Forward,
    },
}

/// Whether a stored response that matches (see [`Vary`](super::Vary)) may be served.
pub fn judge(freshness: &Freshness, request_directives: &RequestDirectives, now: Moment) -> Reuse {
    if request_directives.authorized && !freshness.shared {
        return Reuse::Pass { why: Forward::Request };
    }
    let (age, ttl) = (freshness.age(now), freshness.ttl(now));
    let left = freshness.millis_left(now);
    let is_fresh = left > 0;
    // A client that reloads need not validate an immutable response (RFC 8246), unless it sends `no-cache`.
    let reloads = |most: u32| !(most == 0 && freshness.immutable && is_fresh);
    let is_too_old = |most: u32| freshness.millis(now) > u64::from(most) * 1000 && reloads(most);
    let is_not_fresh_for = |least: u32| left < i64::from(least) * 1000;
    if request_directives.no_cache
        || request_directives.max_age.is_some_and(is_too_old)
        || request_directives.min_fresh.is_some_and(is_not_fresh_for)
    {
        return Reuse::Validate { why: Forward::Request };
    }
    if freshness.no_cache || freshness.is_from_the_future(now) {
        return Reuse::Validate { why: Forward::Stale };
    }
    if is_fresh {
        return Reuse::Serve { age, ttl };
    }
    let is_within = |seconds: u32| -left < i64::from(seconds) * 1000;
    if freshness.must_revalidate {
        return Reuse::Validate { why: Forward::Stale };
    }
    if is_within(freshness.stale_while_revalidate) {
        return Reuse::ServeAndRefresh { age, ttl };
    }
    if !freshness.fresh_only
        && request_directives.max_stale.is_some_and(|most| most == u32::MAX || is_within(most))
    {
        return Reuse::Serve { age, ttl };
    }
    Reuse::Validate { why: Forward::Stale }
}

/// The age and the `ttl` (see [`Reuse`]) of a stored response that may be served although its validation failed: the
/// status [`is_failure`], the member did not answer, or the pool refused. `None`: it may not be served.
pub fn may_serve_on_error(
    freshness: &Freshness,
    request_directives: &RequestDirectives,
    now: Moment,
) -> Option<(u64, i64)> {
    let left = freshness.millis_left(now);
    let within = freshness.stale_if_error.max(request_directives.stale_if_error.unwrap_or(0));
    let is_good_enough = left > 0 || -left < i64::from(within) * 1000;
    let is_allowed = !freshness.no_cache
        && (left > 0 || !freshness.must_revalidate)
        && (freshness.shared || !request_directives.authorized);
    (is_allowed && is_good_enough).then(|| (freshness.age(now), freshness.ttl(now)))
}

/// Whether a response with this status is a failure for `stale-if-error` (RFC 5861 section 4).
pub fn is_failure(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// Whether the stored response is removed because of a response with this status, which is not stored itself. Most errors
/// are about one client or one moment (400, 401, 403, 429, 500): RFC 9111 section 4.3.3 leaves it to the cache whether they
/// replace the stored response. If they did, one client could remove it for all others. The same holds for 206 and 304,
/// which a client gets by a range or a condition of its own.
pub fn replaces_stored(status: u16) -> bool {
    match status {
        206 | 304 => false,
        404 | 410 | 451 => true,
        status => status < 400,
    }
}

/// Whether a response that was not stored for this reason may still be given to the requests that wait for it, on a route
/// that collapses requests. It may not if it is personal. The caller checks this for each waiting request with its own
/// `request_directives`, and also that the [`Vary`](super::Vary) matches.
pub fn may_share(why: NotStored, request_directives: &RequestDirectives, answer: &impl Head) -> bool {
    let is_personal = request_directives.authorized
        || request_directives.cookies
        || request_directives.personal
        || request_directives.guarded;
    let sets_cookies = answer.lines("set-cookie").next().is_some();
    !is_personal && !sets_cookies && matches!(why, NotStored::NoStore | NotStored::Lifetime)
}
