//! Decides whether a response may be stored, and how long it may be served. Knows no store.

use serde::{Deserialize, Serialize};

use super::directives::{Scope, Seconds};
use super::lifetime::{Lifetime, has_validator, initial_age};
use super::response_directives::{ResponseDirectives, may_be_kept};
use super::{CachingRules, Method, NotStored, RequestDirectives};
use crate::{Head, Moment};

/// By how much the clocks of Hostlers that share memcached may differ.
const CLOCKS_DIFFER_MS: u64 = 60_000;

/// How long a stored response may be served. Several machines share it, so times are by the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Freshness {
    /// When the response came or was last validated.
    pub received: Moment,
    /// Its age at that time, in milliseconds (RFC 9111 section 4.2.3).
    pub initial_age: u64,
    /// Seconds for which it is fresh, counted from age 0, or from its arrival.
    pub lifetime: u32,
    /// The lifetime counts from the arrival: the route has set it.
    pub from_arrival: bool,
    /// Seconds after that during which it may be served while a new one is fetched.
    pub stale_while_revalidate: u32,
    /// Seconds after that during which it may be served when its member fails.
    pub stale_if_error: u32,
    /// `no-cache`: it is always validated before it is served.
    pub no_cache: bool,
    /// `must-revalidate` or `proxy-revalidate`: it is never served stale.
    pub must_revalidate: bool,
    /// `s-maxage`: a request's `max-stale` is ignored (RFC 9111 section 5.2.2.10).
    pub fresh_only: bool,
    /// `immutable`: it need not be validated when a client reloads (RFC 8246).
    pub immutable: bool,
    /// `public`, `s-maxage` or `must-revalidate`: requests with `Authorization` get it too (RFC 9111 section 3.5).
    pub shared: bool,
    /// It has a validator, so it is useful even when it is stale.
    pub validates: bool,
}

impl Freshness {
    /// Whether the response to a request may be stored, and how long it may be served. [`admit`](super::admit) must have
    /// accepted the request.
    ///
    /// `answer` is the head as it came. After a 304, it is the stored head with the lines of the 304 (and the stored
    /// status). `requested` is when the request was sent, `received` when the head of the response came. A response to
    /// HEAD has no body to store: its freshness only serves to update a stored response.
    ///
    /// Errors: the reason why the response must not be stored.
    pub fn of(
        rules: &CachingRules,
        request_directives: &RequestDirectives,
        status: u16,
        answer: &impl Head,
        requested: Moment,
        received: Moment,
    ) -> Result<Self, NotStored> {
        match request_directives.method {
            Method::Get | Method::Head => {}
            Method::Safe | Method::Unsafe => return Err(NotStored::Method),
        }
        let directives = ResponseDirectives::of(rules, status, answer);
        may_be_kept(rules, request_directives, status, answer, &directives)?;
        let initial_age = initial_age(answer, requested, received);
        let Lifetime { seconds, from_arrival } =
            Lifetime::of(rules, status, answer, &directives, received).ok_or(NotStored::Lifetime)?;
        let cache_control = &directives.cache_control;
        let no_cache = cache_control.no_cache == Scope::Whole;
        let stale = |own: Seconds, route: u32| match own {
            _ if cache_control.forbids_stale() || no_cache => 0,
            own => own.lifetime().unwrap_or(route),
        };
        let freshness = Self {
            received,
            initial_age,
            lifetime: seconds,
            from_arrival,
            stale_while_revalidate: stale(cache_control.stale_while_revalidate, rules.stale_while_revalidate),
            stale_if_error: stale(cache_control.stale_if_error, rules.stale_if_error),
            no_cache,
            must_revalidate: cache_control.forbids_stale(),
            fresh_only: cache_control.s_maxage != Seconds::Absent,
            immutable: cache_control.immutable,
            shared: directives.is_shared(),
            validates: has_validator(answer),
        };
        let is_ever_served = freshness.validates
            || !no_cache
                && (freshness.millis(received) < freshness.lifetime_millis()
                    || freshness.stale_while_revalidate.max(freshness.stale_if_error) > 0);
        if is_ever_served { Ok(freshness) } else { Err(NotStored::Lifetime) }
    }

    /// Its age in whole seconds, for the field `Age`.
    pub fn age(&self, now: Moment) -> u64 {
        self.millis(now) / 1000
    }

    /// Seconds until it is stale. Negative: the seconds since it became stale.
    pub fn ttl(&self, now: Moment) -> i64 {
        self.millis_left(now).div_euclid(1000)
    }

    /// Whether it may be served now without a request to a member first.
    pub fn is_servable(&self, now: Moment) -> bool {
        !self.no_cache && self.millis_left(now) + i64::from(self.stale_while_revalidate) * 1000 > 0
    }

    /// Whether it came later than now, because the clock was set back since. Then its age is not known, and it would stay fresh until the clock shows
    /// the time of its arrival again. The clocks of Hostlers that share memcached may differ by [`CLOCKS_DIFFER_MS`].
    pub(super) fn is_from_the_future(&self, now: Moment) -> bool {
        self.received.0 > now.0.saturating_add(CLOCKS_DIFFER_MS)
    }

    /// When the entry becomes useless and its memory can be freed.
    pub fn useless_from(&self) -> Moment {
        let stale = u64::from(self.stale_while_revalidate.max(self.stale_if_error));
        // A validator can save a body at any time, but a day after a response went stale hardly any client requests it.
        let stale = if self.validates { stale.max(24 * 60 * 60) } else { stale };
        let fresh = self.lifetime_millis().saturating_sub(self.initial_age);
        Moment(self.received.0.saturating_add(fresh).saturating_add(stale * 1000))
    }

    /// Milliseconds until it is stale. Zero or negative if it is stale.
    pub(super) fn millis_left(&self, now: Moment) -> i64 {
        i64::try_from(self.millis(now)).map_or(-i64::MAX, |age| self.lifetime_millis().cast_signed() - age)
    }

    /// The age at which it becomes stale.
    fn lifetime_millis(&self) -> u64 {
        let before = if self.from_arrival { self.initial_age } else { 0 };
        before.saturating_add(u64::from(self.lifetime) * 1000)
    }

    /// Its age in milliseconds. A clock that was set back does not make it younger than at its arrival.
    pub(super) fn millis(&self, now: Moment) -> u64 {
        self.initial_age.saturating_add(now.0.saturating_sub(self.received.0))
    }
}

impl NotStored {
    /// The name of the reason, for logs and counters.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Status => "status",
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::Authorized => "authorization",
            Self::Cookie => "cookie",
            Self::Vary => "vary",
            Self::Lifetime => "lifetime",
        }
    }
}
