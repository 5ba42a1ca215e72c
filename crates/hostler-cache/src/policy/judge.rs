//! Whether a stored answer may be served now (RFC 9111 section 4.2). Knows neither the answer's head nor the request's.

use super::{Asks, NotStored, Terms};
use crate::{Forward, Head, Moment};

/// What is to be done with a stored answer that is for this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
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
    /// A member is asked first, with [`Validators`](super::Validators). With [`Asks::only_if_cached`]: 504 instead.
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
pub fn judge(terms: &Terms, asks: &Asks, now: Moment) -> Verdict {
    if asks.authorized && !terms.shared {
        return Verdict::Pass { why: Forward::Request };
    }
    let (age, ttl) = (terms.age(now), terms.ttl(now));
    let left = terms.millis_left(now);
    let is_fresh = left > 0;
    // A reload of what never changes need not be asked about (RFC 8246); `no-cache` is a reload that insists.
    let reloads = |most: u32| !(most == 0 && terms.immutable && is_fresh);
    let is_too_old = |most: u32| terms.millis(now) > u64::from(most) * 1000 && reloads(most);
    let is_not_fresh_for = |least: u32| left < i64::from(least) * 1000;
    if asks.no_cache || asks.max_age.is_some_and(is_too_old) || asks.min_fresh.is_some_and(is_not_fresh_for) {
        return Verdict::Validate { why: Forward::Request };
    }
    if terms.no_cache {
        return Verdict::Validate { why: Forward::Stale };
    }
    if is_fresh {
        return Verdict::Serve { age, ttl };
    }
    let is_within = |seconds: u32| -left < i64::from(seconds) * 1000;
    if terms.must_revalidate {
        return Verdict::Validate { why: Forward::Stale };
    }
    if is_within(terms.stale_while_revalidate) {
        return Verdict::ServeAndRefresh { age, ttl };
    }
    if !terms.fresh_only && asks.max_stale.is_some_and(|most| most == u32::MAX || is_within(most)) {
        return Verdict::Serve { age, ttl };
    }
    Verdict::Validate { why: Forward::Stale }
}

/// Whether a stored answer that [`judge`] wants validated may be served because that failed: the member answered with a status that
/// [`is_failure`], or not at all, or the pool refused. Some: its age, and the seconds until it is stale.
pub fn may_serve_on_error(terms: &Terms, asks: &Asks, now: Moment) -> Option<(u64, i64)> {
    let left = terms.millis_left(now);
    let within = terms.stale_if_error.max(asks.stale_if_error.unwrap_or(0));
    let is_good_enough = left > 0 || -left < i64::from(within) * 1000;
    let is_allowed =
        !terms.no_cache && (left > 0 || !terms.must_revalidate) && (terms.shared || !asks.authorized);
    (is_allowed && is_good_enough).then(|| (terms.age(now), terms.ttl(now)))
}

/// Whether an answer with this status is the failure that `stale-if-error` is about (RFC 5861 section 4).
pub fn is_failure(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// Whether an answer that was not stored (for this reason) may still be given to those who wait for it, on a route that
/// collapses: not if it is anybody's own. Of each who waits the same is asked with his own `asks`, and whether the answer's
/// [`Vary`](super::Vary) matches him.
pub fn may_share(why: NotStored, asks: &Asks, answer: &impl Head) -> bool {
    let is_personal = asks.authorized || asks.cookies || asks.personal || asks.guarded;
    let sets_cookies = answer.lines("set-cookie").next().is_some();
    !is_personal && !sets_cookies && matches!(why, NotStored::NoStore | NotStored::Lifetime)
}
