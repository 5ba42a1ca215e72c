//! What a route says about caching, where it says anything. Knows no configuration file.

/// A route's settings. The default is the book: what answers say themselves, no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachingRules {
    /// How long answers are fresh that do not say so themselves, or all: see `precedence`. The first that names the status counts.
    pub ttls: Vec<Ttl>,
    /// Whose word counts.
    pub precedence: Precedence,
    /// No answer is fresh for longer than these seconds, whatever it says.
    pub longest: Option<u32>,
    /// Seconds that an answer which does not say so itself may be served stale while a new one is fetched (RFC 5861).
    pub stale_while_revalidate: u32,
    /// Seconds that an answer which does not say so itself may be served stale when its member fails (RFC 5861).
    pub stale_if_error: u32,
    /// Answers without a lifetime but with a `Last-Modified` are fresh for a tenth of their age (RFC 9111 section 4.2.2), at most
    /// a day.
    pub heuristics: bool,
    /// What `Set-Cookie` in an answer means.
    pub set_cookie: CookiesOfAnswers,
    /// Requests with one of these cookies are not answered from memory, nor are the answers to them stored. By the book, cookies
    /// do not matter.
    pub personal_cookies: Vec<Box<str>>,
    /// `Cache-Control` of requests is obeyed (RFC 9111 section 5.2.1: a cache may). Whoever can ask then can also ask past the cache.
    pub obeys_requests: bool,
    /// The targeted fields that count before `Cache-Control` (RFC 9213), the first that is there before the others; lower case.
    pub targeted: Vec<Box<str>>,
}

/// A lifetime that the route gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ttl {
    /// From when the answer came.
    pub seconds: u32,
    /// For answers with these; none: for 200, 203, 204, 300, 301, 308, 404, 405, 410, 414 and 501, which RFC 9110 calls cacheable.
    pub statuses: Vec<u16>,
}

/// Whose word counts about how long an answer is fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precedence {
    /// The answer's; [`CachingRules::ttls`] are for those that say nothing.
    #[default]
    Answer,
    /// The route's, where it has one for the status. `private` and `no-store` are heeded all the same.
    Lifetime,
    /// The route's, and what answers say in `Cache-Control`, `Expires` and `Pragma` is not even read.
    Route,
}

/// What becomes of an answer with `Set-Cookie`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CookiesOfAnswers {
    /// It is not stored: a session that is handed to everybody is the worst that a cache can do.
    #[default]
    Refuse,
    /// It is stored without the field.
    Drop,
    /// It is stored with the field, which everybody gets.
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
    /// The lifetime that the route gives to answers with this status.
    pub(super) fn ttl(&self, status: u16) -> Option<u32> {
        let gives = |ttl: &&Ttl| match &*ttl.statuses {
            [] => is_cacheable_by_default(status),
            some => some.contains(&status),
        };
        self.ttls.iter().find(gives).map(|ttl| ttl.seconds)
    }
}

/// The statuses that may be stored without their answer saying so (RFC 9110 section 15.1), but for 206, which we do not keep.
pub(super) fn is_cacheable_by_default(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}
