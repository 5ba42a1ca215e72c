//! Which requests of a pool get low priority, as written. Knows no queue.

use std::fmt;
use std::str::FromStr;

use super::sticky::is_token;
use crate::value::one_string;

/// What makes a request one of low priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LowIf {
    /// A browser or a framework says that it fetches in advance, and that no person waits for the response yet.
    Prefetch,
    /// The request says that it comes from a crawler.
    Crawler,
    /// It has this header field; with a value: exactly this value.
    Header(String, Option<String>),
}

impl FromStr for LowIf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = match text.split_once(':') {
            None if text == "prefetch" => Some(Self::Prefetch),
            None if text == "crawler" => Some(Self::Crawler),
            Some(("header", field)) => {
                let (name, value) = match field.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (field, None),
                };
                let is_name = !name.is_empty() && name.bytes().all(is_token);
                is_name.then(|| Self::Header(name.to_owned(), value.map(str::to_owned)))
            }
            _ => None,
        };
        found.ok_or_else(|| format!("{text:?} is not {}", <Self as crate::value::OneString>::EXPECTS))
    }
}

impl fmt::Display for LowIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefetch => f.write_str("prefetch"),
            Self::Crawler => f.write_str("crawler"),
            Self::Header(name, None) => write!(f, "header:{name}"),
            Self::Header(name, Some(value)) => write!(f, "header:{name}={value}"),
        }
    }
}

one_string!(
    LowIf,
    kind: "kind of request of low priority",
    expects: "\"prefetch\", \"crawler\", \"header:NAME\" or \"header:NAME=VALUE\""
);
