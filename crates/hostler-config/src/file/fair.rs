//! Under which keys requests share the slots of a pool, as written. Knows no queue.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::sticky::is_token;
use crate::value::one_string;

/// What gives a request its key, if the request has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FairBy {
    /// The network of the client's address.
    Client,
    /// The name of the crawler that the request says it comes from.
    Crawler,
    /// The value of this header field.
    Header(Arc<str>),
    /// The value of this cookie.
    Cookie(Arc<str>),
}

impl FromStr for FairBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |name: &str| (!name.is_empty() && name.bytes().all(is_token)).then(|| name.into());
        let found = match text.split_once(':') {
            None if text == "client" => Some(Self::Client),
            None if text == "crawler" => Some(Self::Crawler),
            Some(("header", name)) => named(name).map(Self::Header),
            Some(("cookie", name)) => named(name).map(Self::Cookie),
            _ => None,
        };
        found.ok_or_else(|| format!("{text:?} is not {}", <Self as crate::value::OneString>::EXPECTS))
    }
}

impl fmt::Display for FairBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client => f.write_str("client"),
            Self::Crawler => f.write_str("crawler"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
        }
    }
}

one_string!(
    FairBy,
    kind: "key of a fair queue",
    expects: "\"client\", \"crawler\", \"header:NAME\" or \"cookie:NAME\""
);
