//! Whether an answer may be stored, and on which terms it is served. Knows no store.

use serde::{Deserialize, Serialize};

use super::directives::{Scope, Seconds};
use super::heard::{Heard, may_be_kept};
use super::lifetime::{Lifetime, Word, has_validator, initial_age};
use super::{CachingRules, Method, RequestDirectives};
use crate::{Head, Moment};

/// The terms on which a stored answer may be served. What several machines share: times are by the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Freshness {
    /// When the answer came, or was validated last.
    pub received: Moment,
    /// Milliseconds that it was old then (RFC 9111 section 4.2.3).
    pub initial_age: u64,
    /// Seconds for which it is fresh, counted from age 0.
    pub lifetime: u32,
    /// Seconds after that in which it may be served while a new one is fetched.
    pub stale_while_revalidate: u32,
    /// Seconds after that in which it may be served when its member fails.
    pub stale_if_error: u32,
    /// It is never served without having been validated: `no-cache`.
    pub no_cache: bool,
    /// It is never served stale: `must-revalidate` or `proxy-revalidate`.
    pub must_revalidate: bool,
    /// A request's `max-stale` does not count: `s-maxage` (RFC 9111 section 5.2.2.10).
    pub fresh_only: bool,
    /// A client that reloads need not be sent past it (RFC 8246).
    pub immutable: bool,
    /// Requests with `Authorization` get it too: `public`, `s-maxage` or `must-revalidate` (RFC 9111 section 3.5).
    pub shared: bool,
    /// It has a validator, so that it is worth something when it is stale.
    pub validates: bool,
}

/// Why an answer is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotStored {
    /// It answers neither GET nor HEAD.
    Method,
    /// Its status is none that a cache keeps: interim, 206, 304, or one that `must-understand` is about.
    Status,
    /// It or the request says `no-store`.
    NoStore,
    /// It is for one user: `private`.
    Private,
    /// The request had `Authorization`, and the answer does not say that others may have it.
    Authorized,
    /// It or the request has cookies that make it personal.
    Cookie,
    /// `Vary: *`: no other request is like this one.
    Vary,
    /// Nothing says how long it is good, or it is good for no time and cannot be validated.
    Lifetime,
}

impl Freshness {
    /// Whether the answer to a request (that [`admit`](super::admit) let in) may be stored, and its terms. `answer`: its head as
    /// it came, or for what a 304 has confirmed the stored head with the lines of the 304 in it (and the stored status).
    /// `requested`: when the request was sent; `received`: when the head of its answer was there.
    ///
    /// An answer to HEAD has no body to store: its terms only say what a stored answer may be freshened with.
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
        let heard = Heard::of(rules, status, answer);
        may_be_kept(rules, request_directives, status, answer, &heard)?;
        let initial_age = initial_age(answer, requested, received);
        let Lifetime { seconds, word } =
            Lifetime::of(rules, status, answer, &heard, received).ok_or(NotStored::Lifetime)?;
        // What the route gives counts from when the answer came, however old it was then.
        let seconds = match word {
            Word::Answer => seconds,
            Word::Route => {
                seconds.saturating_add(u32::try_from(initial_age.div_ceil(1000)).unwrap_or(u32::MAX))
            }
        };
        let says = &heard.says;
        let no_cache = says.no_cache == Scope::Whole;
        let stale = |own: Seconds, route: u32| match own {
            _ if says.must_revalidate || no_cache => 0,
            own => own.lifetime().unwrap_or(route),
        };
        let freshness = Self {
            received,
            initial_age,
            lifetime: seconds,
            stale_while_revalidate: stale(says.stale_while_revalidate, rules.stale_while_revalidate),
            stale_if_error: stale(says.stale_if_error, rules.stale_if_error),
            no_cache,
            must_revalidate: says.must_revalidate,
            fresh_only: says.s_maxage != Seconds::Absent,
            immutable: says.immutable,
            shared: heard.is_shared(),
            validates: has_validator(answer),
        };
        let is_ever_served = freshness.validates
            || !no_cache
                && (freshness.millis(received) < freshness.lifetime_millis()
                    || freshness.stale_while_revalidate.max(freshness.stale_if_error) > 0);
        if is_ever_served { Ok(freshness) } else { Err(NotStored::Lifetime) }
    }

    /// Its age in whole seconds: the field `Age`.
    pub fn age(&self, now: Moment) -> u64 {
        self.millis(now) / 1000
    }

    /// Seconds until it is stale; negative since when it is.
    pub fn ttl(&self, now: Moment) -> i64 {
        self.millis_left(now).div_euclid(1000)
    }

    /// From when on it is of no use to anybody, and its room is better used otherwise.
    pub fn useless_from(&self) -> Moment {
        let stale = u64::from(self.stale_while_revalidate.max(self.stale_if_error));
        // What can be validated saves a body whenever it does; a day after it went stale hardly anybody comes for it.
        let stale = if self.validates { stale.max(24 * 60 * 60) } else { stale };
        let fresh = self.lifetime_millis().saturating_sub(self.initial_age);
        Moment(self.received.0.saturating_add(fresh).saturating_add(stale * 1000))
    }

    /// Milliseconds until it is stale; zero or less since when it is.
    pub(super) fn millis_left(&self, now: Moment) -> i64 {
        i64::try_from(self.millis(now)).map_or(-i64::MAX, |age| self.lifetime_millis().cast_signed() - age)
    }

    fn lifetime_millis(&self) -> u64 {
        u64::from(self.lifetime) * 1000
    }

    /// Its age in milliseconds. A clock that was set back makes it no younger than it came.
    pub(super) fn millis(&self, now: Moment) -> u64 {
        self.initial_age.saturating_add(now.0.saturating_sub(self.received.0))
    }
}

impl NotStored {
    /// A word for logs and counters.
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
