//! How a client stays with one worker or member, as written. Knows no workers.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::value::{Delay, Secret, Value, Word, WordOr, one_string};

/// How a client stays with one worker or member: in short, or a table with settings.
pub type StickySwitch = WordOr<StickyBy, StickyTable>;

/// What Hostler recognises a client by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StickyBy {
    /// The session id of Engine.IO (Socket.IO).
    Auto,
    /// Nothing.
    Off,
    /// A cookie that Hostler sets.
    Cookie,
    /// The client's address.
    Address,
    /// The value of this header field.
    Header(String),
    /// The value of this parameter of the query.
    Query(String),
    /// The value of this cookie, which the app sets.
    AppCookie(String),
}

impl FromStr for StickyBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |name: &str, fits: fn(u8) -> bool| {
            (!name.is_empty() && name.bytes().all(fits)).then(|| name.to_owned())
        };
        let found = match text.split_once(':') {
            None => match text {
                "auto" => Some(Self::Auto),
                "off" => Some(Self::Off),
                "cookie" => Some(Self::Cookie),
                "address" => Some(Self::Address),
                _ => None,
            },
            Some(("header", name)) => named(name, is_token).map(Self::Header),
            Some(("query", name)) => named(name, is_query_name).map(Self::Query),
            Some(("cookie", name)) => named(name, is_token).map(Self::AppCookie),
            Some(_) => None,
        };
        found.ok_or_else(|| format!("{text:?} is not {}", <Self as crate::value::OneString>::EXPECTS))
    }
}

/// A character of a token (RFC 9110 section 5.6.2): of the name of a field or of a cookie.
pub fn is_token(byte: u8) -> bool {
    hostler_wire::TOKEN[usize::from(byte)]
}

fn is_query_name(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"&=#+%;".contains(&byte)
}

impl fmt::Display for StickyBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::Cookie => f.write_str("cookie"),
            Self::Address => f.write_str("address"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::AppCookie(name) => write!(f, "cookie:{name}"),
        }
    }
}

one_string!(
    StickyBy,
    kind: "way to recognise a client",
    expects: "\"auto\", \"off\", \"cookie\", \"address\", \"header:NAME\", \"query:NAME\" or \"cookie:NAME\""
);

impl Word for StickyBy {
    const WORDS: &'static [&'static str] = &[
        "\"auto\"",
        "\"off\"",
        "\"cookie\"",
        "\"address\"",
        "\"header:NAME\"",
        "\"query:NAME\"",
        "\"cookie:NAME\"",
    ];
    fn of_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn schemas() -> Vec<Json> {
        vec![json!({ "type": "string", "pattern": "^(auto|off|address|cookie(:.+)?|(header|query):.+)$" })]
    }
}

/// How a client stays with one worker or member, with settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct StickyTable {
    /// What Hostler recognises a client by. The values are those of the short form.
    pub by: StickyBy,
    /// The time for which a request waits for its own worker while that worker is busy. Then any worker gets the request.
    ///
    /// It is a part of `queue.timeout`. Raise it if a client must not lose what its worker knows of it. With `queue.timeout`
    /// or more, the request never moves: the client gets 503 (`queue_timeout`). Lower it if the app works with any worker and
    /// stickiness only makes it faster.
    pub wait: Delay,
    /// The time for which a worker that is being replaced still gets the requests of its own clients, while it has requests
    /// or tunnels. `"0s"`: none.
    ///
    /// A restart can take this time longer for each worker. Hostler uses `hang_timeout` minus the longest
    /// `request_timeout` if that is less, so that these requests can finish. Only with `by = "auto"` or `"cookie"`.
    pub drain: Delay,
    /// The name of the cookie. Only with `by = "cookie"`.
    #[schemars(with = "String", extend("x-default" = "`hostler_` and the name of the pool"))]
    pub name: Option<String>,
    /// The `SameSite` attribute of the cookie. Only with `by = "cookie"`.
    ///
    /// Write `"none"` if pages of other sites embed the app or call it. Browsers send such a cookie over HTTPS only.
    #[schemars(with = "SameSite", extend("x-default" = "`\"lax\"`"))]
    pub same_site: Option<SameSite>,
    /// The key with which Hostler signs the cookie, at least 16 characters. Only with `by = "cookie"`.
    ///
    /// Write the same key into all Hostlers in front of the same `members`. Without it, Hostler makes a random key when it
    /// starts, and keeps it over an upgrade.
    #[schemars(with = "String", extend("x-default" = "random"))]
    pub secret: Option<Secret>,
}

impl Value for StickyTable {}

impl Default for StickyTable {
    fn default() -> Self {
        Self {
            by: StickyBy::Cookie,
            wait: Delay::seconds(2),
            drain: Delay::seconds(5),
            name: None,
            same_site: None,
            secret: None,
        }
    }
}

/// The `SameSite` attribute of a cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SameSite {
    /// The browser sends the cookie with requests of the app's own site, and when a link leads to it.
    #[default]
    Lax,
    /// The browser sends the cookie only with requests of the app's own site.
    Strict,
    /// The browser sends the cookie with all requests to the app.
    None,
}
