//! The cache directives of a response that the route respects, and which of them forbid storing. Knows no times.

use super::directives::{ResponseCacheControl, Scope};
use super::{CachingRules, CookiesOfAnswers, NotStored, Precedence, RequestDirectives};
use crate::Head;

/// The cache directives of a response, as far as the route respects them.
pub(super) struct ResponseDirectives {
    pub cache_control: ResponseCacheControl,
    /// They come from a targeted field, so `Expires`, `Pragma` and `Cache-Control` do not count (RFC 9213 section 2.1).
    pub targeted: bool,
}

impl ResponseDirectives {
    pub fn of(rules: &CachingRules, status: u16, answer: &impl Head) -> Self {
        if rules.precedence == Precedence::Route && rules.ttl(status).is_some() {
            return Self { cache_control: ResponseCacheControl::default(), targeted: true };
        }
        let targeted =
            rules.targeted.iter().find_map(|name| ResponseCacheControl::of_targeted(answer.lines(name)));
        let (mut cache_control, targeted) = match targeted {
            Some(cache_control) => (cache_control, true),
            None => (ResponseCacheControl::of(answer.lines("cache-control")), false),
        };
        let is_silent = !targeted && answer.lines("cache-control").next().is_none();
        if is_silent && answer.lines("pragma").any(|pragma| pragma.eq_ignore_ascii_case(b"no-cache")) {
            // `Pragma` has no meaning in a response, but servers that send it do not want the response to be stored.
            cache_control.no_cache = Scope::Whole;
        }
        if rules.precedence == Precedence::Lifetime
            && rules.ttl(status).is_some()
            && cache_control.no_cache == Scope::Whole
        {
            cache_control.no_cache = Scope::Absent;
        }
        Self { cache_control, targeted }
    }

    /// Whether requests with `Authorization` may get it (RFC 9111 section 3.5). `proxy-revalidate` does not allow it.
    pub fn is_shared(&self) -> bool {
        let cache_control = &self.cache_control;
        cache_control.public || cache_control.must_revalidate || cache_control.s_maxage.given().is_some()
    }
}

/// Everything that forbids storing a response with any lifetime (RFC 9111 section 3).
pub(super) fn may_be_kept(
    rules: &CachingRules,
    request_directives: &RequestDirectives,
    status: u16,
    answer: &impl Head,
    directives: &ResponseDirectives,
) -> Result<(), NotStored> {
    let cache_control = &directives.cache_control;
    // 206 is a part, 304 has no body, and 412 and 416 depend on conditions of the request.
    if status < 200
        || matches!(status, 206 | 304 | 412 | 416)
        || cache_control.must_understand && !is_understood(status)
    {
        return Err(NotStored::Status);
    }
    if request_directives.no_store || cache_control.no_store && !cache_control.must_understand {
        return Err(NotStored::NoStore);
    }
    if cache_control.private == Scope::Whole {
        return Err(NotStored::Private);
    }
    if request_directives.authorized && !directives.is_shared() {
        return Err(NotStored::Authorized);
    }
    let refuses_cookies = rules.set_cookie == CookiesOfAnswers::Refuse && !lists(cache_control, "set-cookie");
    if request_directives.personal || refuses_cookies && answer.lines("set-cookie").next().is_some() {
        return Err(NotStored::Cookie);
    }
    let mut varies = answer.lines("vary").flat_map(|line| line.split(|&byte| byte == b','));
    if varies.any(|name| name.trim_ascii() == b"*") {
        return Err(NotStored::Vary);
    }
    Ok(())
}

/// Whether a field with this name is not stored.
fn lists(cache_control: &ResponseCacheControl, name: &str) -> bool {
    unstored(cache_control).any(|unstored| unstored == name)
}

/// The fields that `private="..."` and `no-cache="..."` name. They are not stored; for a client this is the same.
fn unstored(cache_control: &ResponseCacheControl) -> impl Iterator<Item = &str> {
    cache_control.private.fields().iter().chain(cache_control.no_cache.fields()).map(|name| &**name)
}

/// As [`unstored`], for a response.
pub(super) fn unstored_fields(rules: &CachingRules, status: u16, answer: &impl Head) -> Vec<Box<str>> {
    unstored(&ResponseDirectives::of(rules, status, answer).cache_control).map(Box::from).collect()
}

/// The final statuses of RFC 9110 and related RFCs. None of them asks a cache for anything that this one does not do.
fn is_understood(status: u16) -> bool {
    matches!(status, 200..=205 | 300..=303 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451 | 500..=505)
}
