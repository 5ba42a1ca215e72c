//! How long a response is fresh, and how old it is when it comes (RFC 9111 section 4.2). Does not decide what follows
//! from that.

use super::directives::Scope;
use super::response_directives::ResponseDirectives;
use super::rules::is_cacheable_by_default;
use super::{CachingRules, Precedence, times};
use crate::{Head, Moment};

/// How long a response is fresh.
pub(super) struct Lifetime {
    pub seconds: u32,
    /// It counts from the arrival: the route has set it.
    pub from_arrival: bool,
}

impl Lifetime {
    /// The lifetime by RFC 9111 section 4.2.1. `None`: neither the response nor the route sets one.
    pub fn of(
        rules: &CachingRules,
        status: u16,
        answer: &impl Head,
        directives: &ResponseDirectives,
        received: Moment,
    ) -> Option<Self> {
        let by_answer = |seconds| Self { seconds, from_arrival: false };
        let route = || rules.ttl(status).map(|seconds| Self { seconds, from_arrival: true });
        let own = || own_lifetime(answer, directives, received).map(by_answer);
        let found = match rules.precedence {
            Precedence::Answer => own().or_else(route),
            Precedence::Lifetime | Precedence::Route => route().or_else(own),
        };
        let found = found.or_else(|| {
            let is_open =
                rules.heuristics && (is_cacheable_by_default(status) || directives.cache_control.public);
            is_open.then(|| heuristic(answer, received)).flatten().map(by_answer)
        })?;
        let most = rules.longest.unwrap_or(u32::MAX);
        Some(Self { seconds: found.seconds.min(most), ..found })
    }
}

/// The lifetime that the response sets, in the order of RFC 9111 section 4.2.1.
fn own_lifetime(answer: &impl Head, directives: &ResponseDirectives, received: Moment) -> Option<u32> {
    let cache_control = &directives.cache_control;
    if let Some(seconds) = cache_control.s_maxage.lifetime().or(cache_control.max_age.lifetime()) {
        return Some(seconds);
    }
    if !directives.targeted && answer.lines("expires").next().is_some() {
        // An invalid date, or two dates, count as past.
        let expires = times::date_of(answer, "expires").unwrap_or(0);
        let seconds = expires.saturating_sub(date(answer, received));
        return Some(u32::try_from(seconds).unwrap_or(u32::MAX));
    }
    // It may be stored, but each request validates it.
    (cache_control.no_cache == Scope::Whole).then_some(0)
}

/// The heuristic lifetime of RFC 9111 section 4.2.2.
fn heuristic(answer: &impl Head, received: Moment) -> Option<u32> {
    const MOST: u64 = 24 * 60 * 60;
    let since = date(answer, received).saturating_sub(times::date_of(answer, "last-modified")?);
    u32::try_from((since / 10).min(MOST)).ok()
}

/// When the response was generated, in seconds: its `Date`, or the time when it came.
fn date(answer: &impl Head, received: Moment) -> u64 {
    times::date_of(answer, "date").unwrap_or(received.0 / 1000)
}

/// The initial age by RFC 9111 section 4.2.3, in milliseconds where they are known.
///
/// A `Date` from the second before the request shows no age. It has no parts of a second, and Node reads the clock for it when a second begins,
/// or later if a page keeps its event loop busy then. With an age of a second, a page with `max-age=1` would be stale when it comes.
pub(super) fn initial_age(answer: &impl Head, requested: Moment, received: Moment) -> u64 {
    let made = date(answer, received);
    let is_of_now = made.saturating_add(1) >= requested.0 / 1000;
    let apparent = if is_of_now { 0 } else { (received.0 / 1000).saturating_sub(made) * 1000 };
    let delay = received.0.saturating_sub(requested.0);
    apparent.max(times::age(answer) * 1000 + delay)
}

/// Whether the member can be asked if the response is still valid.
pub(super) fn has_validator(answer: &impl Head) -> bool {
    answer.lines("etag").next().is_some_and(|tag| !tag.is_empty())
        || times::date_of(answer, "last-modified").is_some()
}
