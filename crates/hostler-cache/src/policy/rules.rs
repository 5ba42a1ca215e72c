//! The caching settings of a route. Knows no configuration file.

/// The caching settings of a route. The default follows the RFCs: only what responses allow themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachingRules {
    /// The lifetimes for responses that set none, or for all: see `precedence`. The first one for the status counts.
    pub ttls: Vec<Ttl>,
    /// Whether the response or the route sets the lifetime.
    pub precedence: Precedence,
    /// The longest lifetime of any response, in seconds.
    pub longest: Option<u32>,
    /// Seconds during which a response may be served stale while a new one is fetched, if it does not set this itself
    /// (RFC 5861).
    pub stale_while_revalidate: u32,
    /// Seconds during which a response may be served stale when its member fails, if it does not set this itself (RFC
    /// 5861).
    pub stale_if_error: u32,
    /// Responses without a lifetime but with `Last-Modified` are fresh for a tenth of their age (RFC 9111 section 4.2.2),
    /// at most a day.
    pub heuristics: bool,
    /// What to do with a response that has `Set-Cookie`.
    pub set_cookie: CookiesOfAnswers,
    /// Requests with one of these cookies are not served from memory, and their responses are not stored. By the RFCs,
    /// cookies do not matter.
    pub personal_cookies: Vec<Box<str>>,
    /// `Cache-Control` of requests is obeyed (RFC 9111 section 5.2.1 leaves the choice). Then every client can bypass the
    /// cache.
    pub obeys_requests: bool,
    /// The targeted fields that count before `Cache-Control` (RFC 9213), in lower case. The first one that a response has
    /// is used.
    pub targeted: Vec<Box<str>>,
}

/// A lifetime that the route sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ttl {
    /// The lifetime in seconds, from the arrival of the response.
    pub seconds: u32,
    /// The statuses it is for. Empty: 200, 203, 204, 300, 301, 308, 404, 405, 410, 414 and 501, which RFC 9110 calls
    /// cacheable.
    pub statuses: Vec<u16>,
}

/// Whether the response or the route sets the lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precedence {
    /// The response. [`CachingRules::ttls`] are for responses that set none.
    #[default]
    Answer,
    /// The route, if it has a lifetime for the status. `private` and `no-store` still count.
    Lifetime,
    /// The route. `Cache-Control`, `Expires` and `Pragma` of responses are not read.
    Route,
}

/// What to do with a response that has `Set-Cookie`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CookiesOfAnswers {
    /// Do not store it. A stored session cookie would go to all clients.
    #[default]
    Refuse,
    /// Store it without the field.
    Drop,
    /// Store it with the field, which all clients then get.
    Keep,
}

impl Default for CachingRules {
    fn default() -> Self {
        Self {
            ttls: Vec::new(),
            precedence: Precedence::Answer,
            longest: None,
            stale_while_revalidate: 0,
            stale_if_error: 0,
            heuristics: false,
            set_cookie: CookiesOfAnswers::Refuse,
            personal_cookies: Vec::new(),
            obeys_requests: false,
            targeted: vec!["hostler-cache-control".into(), "cdn-cache-control".into()],
        }
    }
}

impl CachingRules {
    /// The lifetime that the route sets for this status.
    pub(super) fn ttl(&self, status: u16) -> Option<u32> {
        let gives = |ttl: &&Ttl| match &*ttl.statuses {
            [] => is_cacheable_by_default(status),
            some => some.contains(&status),
        };
        self.ttls.iter().find(gives).map(|ttl| ttl.seconds)
    }
}

/// The statuses that may be stored even if the response does not say so (RFC 9110 section 15.1), without 206, which this
/// cache does not store.
pub(super) fn is_cacheable_by_default(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}
