//! How a route's answers are kept, as written. Knows no store.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::{Delay, Period};

/// Whether a route's answers are kept: a word, or how.
#[derive(Clone, Debug, PartialEq)]
pub enum CacheSwitch {
    /// They are not.
    Off,
    /// As they say themselves.
    Standard,
    /// So.
    Table(Box<Caching>),
}

/// How a route's answers are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Caching {
    /// How long answers are fresh that do not say so themselves; `precedence` says whether also the others. For 200, 203, 204, 300,
    /// 301, 308, 404, 405, 410, 414 and 501.
    #[schemars(with = "Delay", extend("x-default" = "none"))]
    pub ttl: Option<Delay>,
    /// The same for single statuses, such as `{ 404 = "5s", 302 = "1m" }`; they come before `ttl`.
    pub ttl_by_status: BTreeMap<String, Delay>,
    /// Whose word counts where an answer and the route both say how long it is fresh.
    pub precedence: Precedence,
    /// No answer is fresh for longer than this, whatever says so.
    #[schemars(with = "Period", extend("x-default" = "none"))]
    pub max_ttl: Option<Period>,
    /// How long after that an answer may still be sent while a new one is fetched, where it does not say so itself (RFC 5861).
    pub stale_while_revalidate: Delay,
    /// How long after that it may be sent in place of a 500, 502, 503 or 504, where it does not say so itself (RFC 5861).
    pub stale_if_error: Delay,
    /// Whether an answer that only says when it was last modified is fresh for a tenth of the time since then, at most a day
    /// (RFC 9111, section 4.2.2).
    pub heuristics: bool,
    /// What becomes of an answer that sets a cookie.
    pub set_cookie: SetCookie,
    /// Names of cookies that make a request its client's own: it is never answered from memory, nor is its answer kept. By
    /// themselves cookies do not matter (RFC 9111): an app that answers by a cookie has to say `Vary: Cookie` or `private`.
    pub personal_cookies: Vec<String>,
    /// Whether `Cache-Control` of requests is obeyed. Browsers send `no-cache` on reload, and so may anybody who wants your pool
    /// to work.
    pub request_directives: bool,
    /// Fields that count in place of `Cache-Control`, the first that is there (RFC 9213).
    pub targeted: Vec<String>,
    /// What of the query makes another answer.
    pub query: Query,
    /// The only parameters of the query that make another answer, in whichever order they come.
    #[schemars(with = "Vec<String>", extend("x-default" = "all"))]
    pub query_only: Option<Vec<String>>,
    /// Parameters of the query that make no other answer, such as `utm_source`; the others do in whichever order they come.
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

/// Whose word counts about how long an answer is fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precedence {
    /// The answer's.
    Answer,
    /// The route's; `private` and `no-store` of the answer are heeded all the same.
    Lifetime,
    /// The route's, and what the answer says in `Cache-Control`, `Expires` and `Pragma` is not read at all. For apps that cannot be
    /// changed, on paths where nothing is anybody's own.
    Route,
}

/// What becomes of an answer that sets a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetCookie {
    /// It is not kept: a session that everybody gets is the worst that a cache can do.
    Refuse,
    /// It is kept without the cookie, which only its own client gets.
    Drop,
    /// It is kept with the cookie, which everybody gets.
    Keep,
}

/// What of the query makes another answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    /// All of it, as it was sent.
    AsSent,
    /// Its parameters, in whichever order they come.
    Sorted,
    /// Nothing.
    Ignored,
}

impl<'de> Deserialize<'de> for CacheSwitch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = CacheSwitch;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"standard\", false or a table")
            }
            fn visit_bool<E: Error>(self, on: bool) -> Result<CacheSwitch, E> {
                Ok(if on { CacheSwitch::Standard } else { CacheSwitch::Off })
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<CacheSwitch, E> {
                match text {
                    "standard" | "true" => Ok(CacheSwitch::Standard),
                    "false" => Ok(CacheSwitch::Off),
                    other => Err(E::invalid_value(Unexpected::Str(other), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<CacheSwitch, A::Error> {
                let table = Caching::deserialize(MapAccessDeserializer::new(table))?;
                Ok(CacheSwitch::Table(Box::new(table)))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Serialize for CacheSwitch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => false.serialize(serializer),
            Self::Standard => "standard".serialize(serializer),
            Self::Table(table) => table.serialize(serializer),
        }
    }
}

impl JsonSchema for CacheSwitch {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "\"standard\", false or table".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<Caching>();
        let kind = "`\"standard\"`, `false` or table";
        json_schema!({
            "oneOf": [{ "type": "boolean" }, { "type": "string", "enum": ["standard"] }, table],
            "x-kind": kind
        })
    }
}
