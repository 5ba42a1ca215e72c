//! What a request asks of a cache. Knows no responses.

use percent_encoding::percent_decode;

use super::CachingRules;
use super::directives::RequestCacheControl;
use crate::{Forward, Head};

/// The kinds of methods that a cache treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET: served and stored.
    Get,
    /// HEAD: served from a stored GET.
    Head,
    /// OPTIONS and other safe methods: changes nothing, but the cache does not serve it.
    Safe,
    /// May change something. A success makes void what is stored under its URL (RFC 9111 section 4.4). Unknown methods
    /// are unsafe.
    Unsafe,
}

/// The parts of a request that matter to a cache, read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestDirectives {
    /// The kind of its method.
    pub method: Method,
    /// It has `Authorization`.
    pub authorized: bool,
    /// It has a cookie that the route calls personal.
    pub personal: bool,
    /// It has `Cookie`.
    pub cookies: bool,
    /// It has `Range`: see [`range`](super::range).
    pub ranged: bool,
    /// It has `If-None-Match` or `If-Modified-Since`: see [`conditions`](super::conditions).
    pub conditional: bool,
    /// It has `If-Match` or `If-Unmodified-Since`: only the origin can answer.
    pub guarded: bool,
    /// `no-store`: its response must not be stored. This and the following ones are set only if the route obeys requests.
    pub no_store: bool,
    /// `no-cache`, or `Pragma: no-cache` without `Cache-Control`: only a validated response.
    pub no_cache: bool,
    /// `only-if-cached`: answer 504 instead of asking a member.
    pub only_if_cached: bool,
    /// `max-age`: no older response, in seconds.
    pub max_age: Option<u32>,
    /// `min-fresh`: no response that becomes stale within this many seconds.
    pub min_fresh: Option<u32>,
    /// `max-stale`: may be stale for this many seconds. `u32::MAX` without a value.
    pub max_stale: Option<u32>,
    /// `stale-if-error` in seconds (RFC 5861 section 4).
    pub stale_if_error: Option<u32>,
}

impl Method {
    /// The kind of the method with this name. Names are case-sensitive.
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
    /// Reads the head of a request, as the client sent it, before any field is removed for the member.
    pub fn of(rules: &CachingRules, method: &[u8], request: &impl Head) -> Self {
        let has = |name| request.lines(name).next().is_some();
        let cache_control =
            if rules.obeys_requests { cache_control(request) } else { RequestCacheControl::default() };
        let cookies = has("cookie");
        Self {
            method: Method::of(method),
            authorized: has("authorization"),
            personal: cookies && has_one_of(&rules.personal_cookies, request),
            cookies,
            ranged: has("range"),
            conditional: has("if-none-match") || has("if-modified-since"),
            guarded: has("if-match") || has("if-unmodified-since"),
            no_store: cache_control.no_store,
            no_cache: cache_control.no_cache,
            only_if_cached: cache_control.only_if_cached,
            // An invalid number is ignored, except in `max-age`: there it counts as 0, and asks for the newest response.
            max_age: cache_control.max_age.lifetime(),
            min_fresh: cache_control.min_fresh.given(),
            max_stale: cache_control.max_stale.given(),
            stale_if_error: cache_control.stale_if_error.given(),
        }
    }
}

/// `Cache-Control`. Without it, `Pragma: no-cache` counts (RFC 9111 section 5.4).
fn cache_control(request: &impl Head) -> RequestCacheControl {
    let mut lines = request.lines("cache-control").peekable();
    if lines.peek().is_some() {
        return RequestCacheControl::of(lines);
    }
    let mut pragmas = request.lines("pragma").flat_map(|line| line.split(|&byte| byte == b','));
    let no_cache = pragmas.any(|pragma| pragma.trim_ascii().eq_ignore_ascii_case(b"no-cache"));
    RequestCacheControl { no_cache, ..RequestCacheControl::default() }
}

/// Whether the request has a cookie that an app could read as one with one of these names. Otherwise a client could let its own page be stored for
/// all others.
fn has_one_of(names: &[Box<str>], request: &impl Head) -> bool {
    let is_one = |pair: &[u8]| {
        let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii();
        let forms = [name, trimmed_by_js(name)];
        names.iter().any(|personal| forms.iter().any(|name| could_be_read_as(name, personal.as_bytes())))
    };
    // Rack 1 separates cookies by commas, too.
    let separates = |byte: &u8| matches!(byte, b';' | b',');
    !names.is_empty() && request.lines("cookie").any(|line| line.split(separates).any(is_one))
}

/// Whether an app could read the first name as the second one. Older versions of Rack and PHP decode it, PHP reads a dot and a blank as `_`, and
/// `a[b]` as a part of `a`. ASP.NET ignores the case of letters.
fn could_be_read_as(name: &[u8], other: &[u8]) -> bool {
    let mut read = as_read(name);
    as_read(other).all(|byte| read.next() == Some(byte)) && matches!(read.next(), None | Some(b'['))
}

fn as_read(name: &[u8]) -> impl Iterator<Item = u8> {
    let decoded = percent_decode(name).skip_while(u8::is_ascii_whitespace).take_while(|&byte| byte != 0);
    decoded.map(|byte| if matches!(byte, b' ' | b'+' | b'.') { b'_' } else { byte.to_ascii_lowercase() })
}

/// The name without no-break spaces around it, too. An app may read it so: `trim` of JavaScript removes them, and the npm package `cookie` uses
/// it before 0.7.
fn trimmed_by_js(name: &[u8]) -> &[u8] {
    let is_name = |byte: &u8| !byte.is_ascii_whitespace() && *byte != 0xa0;
    let start = name.iter().position(is_name).unwrap_or(name.len());
    let end = name.iter().rposition(is_name).map_or(start, |last| last + 1);
    &name[start..end]
}

/// Whether the cache may serve this request. If not, the request goes on as it is, and its response is not stored. After
/// a [`Method::Unsafe`] one, call [`invalidated`](super::invalidated).
///
/// Errors: the reason for `Cache-Status`.
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
