//! Whether a stored answer may be served now (RFC 9111 section 4.2). Knows neither the answer's head nor the request's.

use super::{Freshness, NotStored, RequestDirectives};
use crate::{Forward, Head, Moment};

/// What is to be done with a stored answer that is for this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It is served as it is.
    Serve {
        /// The field `Age`.
        age: u64,
        /// For [`CacheStatus::Hit`](crate::CacheStatus::Hit).
        ttl: i64,
    },
    /// It is served as it is, and somebody asks for a new one meanwhile (`stale-while-revalidate`).
    ServeAndRefresh {
        /// The field `Age`.
        age: u64,
        /// Below zero.
        ttl: i64,
    },
    /// A member is asked first, with [`Validators`](super::Validators). With [`RequestDirectives::only_if_cached`]: 504 instead.
    Validate {
        /// For [`CacheStatus::Forwarded`](crate::CacheStatus::Forwarded).
        why: Forward,
    },
    /// It is not for requests like this one, which is sent on without validators.
    Pass {
        /// For [`CacheStatus::Forwarded`](crate::CacheStatus::Forwarded).
        why: Forward,
    },
}

/// Whether a stored answer that matches (see [`Vary`](super::Vary)) may be served.
pub fn judge(freshness: &Freshness, request_directives: &RequestDirectives, now: Moment) -> Reuse {
    if request_directives.authorized && !freshness.shared {
        return Reuse::Pass { why: Forward::Request };
    }
    let (age, ttl) = (freshness.age(now), freshness.ttl(now));
    let left = freshness.millis_left(now);
    let is_fresh = left > 0;
    // A reload of what never changes need not be asked about (RFC 8246); `no-cache` is a reload that insists.
    let reloads = |most: u32| !(most == 0 && freshness.immutable && is_fresh);
    let is_too_old = |most: u32| freshness.millis(now) > u64::from(most) * 1000 && reloads(most);
    let is_not_fresh_for = |least: u32| left < i64::from(least) * 1000;
    if request_directives.no_cache
        || request_directives.max_age.is_some_and(is_too_old)
        || request_directives.min_fresh.is_some_and(is_not_fresh_for)
    {
        return Reuse::Validate { why: Forward::Request };
    }
    if freshness.no_cache {
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

/// Whether a stored answer that [`judge`] wants validated may be served because that failed: the member answered with a status that
/// [`is_failure`], or not at all, or the pool refused. Some: its age, and the seconds until it is stale.
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

/// Whether an answer with this status is the failure that `stale-if-error` is about (RFC 5861 section 4).
pub fn is_failure(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// Whether an answer that was not stored (for this reason) may still be given to those who wait for it, on a route that
/// collapses: not if it is anybody's own. Of each who waits the same is asked with his own `request_directives`, and whether the answer's
/// [`Vary`](super::Vary) matches him.
pub fn may_share(why: NotStored, request_directives: &RequestDirectives, answer: &impl Head) -> bool {
    let is_personal = request_directives.authorized
        || request_directives.cookies
        || request_directives.personal
        || request_directives.guarded;
    let sets_cookies = answer.lines("set-cookie").next().is_some();
    !is_personal && !sets_cookies && matches!(why, NotStored::NoStore | NotStored::Lifetime)
}
