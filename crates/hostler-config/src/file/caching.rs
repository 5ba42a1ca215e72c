//! How Hostler stores the responses of a route, as written. Knows no store.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::value::{Delay, Period, Value, Word, WordOr};

/// Whether Hostler stores the responses of a route: a word, or a table with settings.
pub type CacheSwitch = WordOr<Storing, Caching>;

/// Whether Hostler stores the responses of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storing {
    /// It does not.
    Off,
    /// It does, as the responses allow.
    Standard,
}

/// How Hostler stores the responses of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Caching {
    /// How long a response is fresh that does not say so itself. Example: `"30s"`. `precedence` extends this to all
    /// responses.
    ///
    /// It applies to the statuses 200, 203, 204, 300, 301, 308, 404, 405, 410, 414 and 501.
    #[schemars(with = "Delay", extend("x-default" = "none"))]
    pub ttl: Option<Delay>,
    /// The same as `ttl` for single statuses, such as `{ 404 = "5s", 302 = "1m" }`. It takes precedence over `ttl`.
    pub ttl_by_status: BTreeMap<String, Delay>,
    /// Which of the two decides how long a response is fresh, if both the response and the route say so.
    pub precedence: Precedence,
    /// The longest time for which a response is fresh, for any lifetime in the response or the route.
    #[schemars(with = "Period", extend("x-default" = "none"))]
    pub max_ttl: Option<Period>,
    /// How long Hostler may send a stale response while it fetches a new one (RFC 5861).
    ///
    /// The time begins when the response is no longer fresh. A value in the response takes precedence.
    pub stale_while_revalidate: Delay,
    /// How long Hostler may send a stale response in place of a 500, 502, 503 or 504 (RFC 5861).
    ///
    /// The time begins when the response is no longer fresh. A value in the response takes precedence.
    pub stale_if_error: Delay,
    /// Whether a response that has only `Last-Modified` is fresh for a tenth of the time since then, and at most a
    /// day (RFC 9111, section 4.2.2).
    pub heuristics: bool,
    /// What Hostler does with a response that sets a cookie.
    pub set_cookie: SetCookie,
    /// Cookies that mark a request as personal. Hostler does not answer such a request from memory and does not
    /// store its response. Example: `["session"]`.
    ///
    /// Other cookies do not matter (RFC 9111). An app whose response depends on another cookie must send `Vary:
    /// Cookie` or `private`.
    pub personal_cookies: Vec<String>,
    /// Whether Hostler obeys `Cache-Control` of requests.
    ///
    /// A browser sends `no-cache` when the user reloads a page. With `true`, every client can make the pool work.
    pub request_directives: bool,
    /// Response fields that replace `Cache-Control` for Hostler. The first one that exists counts (RFC 9213).
    pub targeted: Vec<String>,
    /// Which part of the query belongs to the cache key.
    pub query: Query,
    /// The only query parameters that belong to the cache key, in any order. Hostler ignores all others.
    #[schemars(with = "Vec<String>", extend("x-default" = "all"))]
    pub query_only: Option<Vec<String>>,
    /// Query parameters that do not belong to the cache key, such as `utm_source`. All others belong to it, in any
    /// order.
    pub query_without: Vec<String>,
}

impl Default for Caching {
    fn default() -> Self {
        Self {
            ttl: None,
            ttl_by_status: BTreeMap::new(),
            precedence: Precedence::Answer,
            max_ttl: None,
            stale_while_revalidate: Delay::seconds(0),
            stale_if_error: Delay::seconds(0),
            heuristics: false,
            set_cookie: SetCookie::Refuse,
            personal_cookies: Vec::new(),
            request_directives: false,
            targeted: vec!["Hostler-Cache-Control".into(), "CDN-Cache-Control".into()],
            query: Query::AsSent,
            query_only: None,
            query_without: Vec::new(),
        }
    }
}

/// Which of the two decides how long a response is fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precedence {
    /// The response.
    Answer,
    /// The route. Hostler still obeys `private` and `no-store` of the response.
    Lifetime,
    /// The route. Hostler ignores `Cache-Control`, `Expires` and `Pragma` of the response. Use it for apps that you
    /// cannot change, on paths that are equal for all clients.
    Route,
}

/// What Hostler does with a response that sets a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetCookie {
    /// It does not store the response, so that a session cookie never reaches another client.
    Refuse,
    /// It stores the response without the cookie. Only the first client gets the cookie.
    Drop,
    /// It stores the response with the cookie. All clients get the cookie.
    Keep,
}

/// Which part of the query belongs to the cache key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    /// The whole query, as the client sent it.
    AsSent,
    /// All parameters, in any order.
    Sorted,
    /// Nothing.
    Ignored,
}

impl Value for Caching {}

impl Word for Storing {
    const WORDS: &'static [&'static str] = &["\"standard\"", "false"];
    fn of_text(text: &str) -> Option<Self> {
        match text {
            "standard" | "true" => Some(Self::Standard),
            "false" => Some(Self::Off),
            _ => None,
        }
    }
    fn of_bool(on: bool) -> Option<Self> {
        Some(if on { Self::Standard } else { Self::Off })
    }
    fn schemas() -> Vec<serde_json::Value> {
        vec![json!({ "type": "boolean" }), json!({ "type": "string", "enum": ["standard", "true", "false"] })]
    }
}

impl Serialize for Storing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => false.serialize(serializer),
            Self::Standard => "standard".serialize(serializer),
        }
    }
}
