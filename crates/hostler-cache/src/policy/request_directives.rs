//! What a request wants of a cache. Knows no answers.

use super::CachingRules;
use super::directives::Wants;
use crate::{Forward, Head};

/// The methods that differ for a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Answered and stored.
    Get,
    /// Answered from what a GET has brought.
    Head,
    /// Changes nothing, but is not ours to answer: OPTIONS and its like.
    Safe,
    /// May change something: a success makes void what is stored under its URL (RFC 9111 section 4.4). So do unknown ones.
    Unsafe,
}

/// What a request says that matters to a cache, read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestDirectives {
    /// What is to be done.
    pub method: Method,
    /// `Authorization` is there.
    pub authorized: bool,
    /// A cookie is there that the route calls personal.
    pub personal: bool,
    /// Any `Cookie` is there.
    pub cookies: bool,
    /// `Range` is there: see [`range`](super::range).
    pub ranged: bool,
    /// `If-None-Match` or `If-Modified-Since` is there: see [`conditions`](super::conditions).
    pub conditional: bool,
    /// `If-Match` or `If-Unmodified-Since` is there: only who has the resource itself can answer.
    pub guarded: bool,
    /// `no-store`: the answer must not be kept. This and what follows: only where the route obeys requests.
    pub no_store: bool,
    /// `no-cache`, or `Pragma: no-cache` without any `Cache-Control`: only what was validated.
    pub no_cache: bool,
    /// `only-if-cached`: 504 rather than asking a member.
    pub only_if_cached: bool,
    /// `max-age`: nothing older.
    pub max_age: Option<u32>,
    /// `min-fresh`: nothing that is stale in so many seconds.
    pub min_fresh: Option<u32>,
    /// `max-stale`: stale for so long is good enough; `u32::MAX` without a value.
    pub max_stale: Option<u32>,
    /// `stale-if-error` (RFC 5861 section 4).
    pub stale_if_error: Option<u32>,
}

impl Method {
    /// Of its name, which has upper and lower case.
    pub fn of(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"OPTIONS" | b"TRACE" | b"PROPFIND" | b"REPORT" | b"SEARCH" | b"QUERY" => Self::Safe,
            _ => Self::Unsafe,
        }
    }
}

impl RequestDirectives {
    /// Reads a request's head: as the client sent it, before anything is stripped for the member.
    pub fn of(rules: &CachingRules, method: &[u8], request: &impl Head) -> Self {
        let has = |name| request.lines(name).next().is_some();
        let wants = if rules.obeys_requests { wants(request) } else { Wants::default() };
        let cookies = has("cookie");
        Self {
            method: Method::of(method),
            authorized: has("authorization"),
            personal: cookies && has_one_of(&rules.personal_cookies, request),
            cookies,
            ranged: has("range"),
            conditional: has("if-none-match") || has("if-modified-since"),
            guarded: has("if-match") || has("if-unmodified-since"),
            no_store: wants.no_store,
            no_cache: wants.no_cache,
            only_if_cached: wants.only_if_cached,
            // What is no number asks for nothing that we could give, unless it is 0: then it asks for the newest.
            max_age: wants.max_age.lifetime(),
            min_fresh: wants.min_fresh.given(),
            max_stale: wants.max_stale.given(),
            stale_if_error: wants.stale_if_error.given(),
        }
    }
}

/// `Cache-Control`; without that, `Pragma: no-cache` stands for it (RFC 9111 section 5.4).
fn wants(request: &impl Head) -> Wants {
    let mut lines = request.lines("cache-control").peekable();
    if lines.peek().is_some() {
        return Wants::of(lines);
    }
    let mut pragmas = request.lines("pragma").flat_map(|line| line.split(|&byte| byte == b','));
    let no_cache = pragmas.any(|pragma| pragma.trim_ascii().eq_ignore_ascii_case(b"no-cache"));
    Wants { no_cache, ..Wants::default() }
}

/// Whether a cookie with one of these names is there.
fn has_one_of(names: &[Box<str>], request: &impl Head) -> bool {
    let is_one = |pair: &[u8]| {
        let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii();
        names.iter().any(|personal| personal.as_bytes() == name)
    };
    !names.is_empty() && request.lines("cookie").any(|line| line.split(|&byte| byte == b';').any(is_one))
}

/// Whether the cache is to be asked at all. If not, the request goes on as it is, and its answer is not stored;
/// [`Method::Unsafe`] ones go to [`invalidated`](super::invalidated) afterwards.
pub fn admit(request_directives: &RequestDirectives) -> Result<(), Forward> {
    match request_directives.method {
        Method::Get | Method::Head => {}
        Method::Safe | Method::Unsafe => return Err(Forward::Method),
    }
    if request_directives.guarded || request_directives.personal {
        return Err(Forward::Bypass);
    }
    Ok(())
}
