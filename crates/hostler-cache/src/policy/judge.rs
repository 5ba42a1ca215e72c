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
    let (age, ttl) = (terms.age(now), terms.ttl(now));
    if asks.authorized && !terms.shared {
        return Verdict::Pass { why: Forward::Request };
    }
    if terms.no_cache {
        return Verdict::Validate { why: Forward::Stale };
    }
    if ttl > 0 { Verdict::Serve { age, ttl } } else { Verdict::Validate { why: Forward::Stale } }
}

/// Whether a stored answer that [`judge`] wants validated may be served because that failed: the member answered with a status that
/// [`is_failure`], or not at all, or the pool refused. Some: its age, and the seconds until it is stale.
pub fn may_serve_on_error(terms: &Terms, asks: &Asks, now: Moment) -> Option<(u64, i64)> {
    let _ = asks;
    (!terms.no_cache && !terms.must_revalidate && -terms.ttl(now) < i64::from(terms.stale_if_error))
        .then(|| (terms.age(now), terms.ttl(now)))
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
