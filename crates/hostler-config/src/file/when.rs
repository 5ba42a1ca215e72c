//! The conditions of a route besides host and path, as written. Does not know which of them fit together.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sticky::is_token;
use crate::value::{OneOrMany, Proxy, Wanted, one_string};

/// Makes the table of conditions, and the same table for `not`, which has no `not` itself.
macro_rules! conditions {
    ($(#[$about:meta])* $name:ident { $($(#[$of_not:meta])* $not:ident: $of:ty)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields, expecting = "a table")]
        pub struct $name {
            /// The method. Example: `["GET", "POST"]`.
            ///
            /// `"GET"` includes HEAD, because the response to HEAD has the header of the response to GET (RFC 9110, section
            /// 9.3.2). `"HEAD"` is HEAD alone.
            pub method: OneOrMany<MethodName>,
            /// Header fields with their values: text, a list of texts, `true` (the field is there) or `false` (it is not).
            ///
            /// A text is the whole value, and its case counts. `*` at its beginning, its end or both stands for any
            /// characters: `"*Firefox*"`. The case of the field's name does not count. Several lines with one name are
            /// one value, with `, ` between them (RFC 9110, section 5.2). Example:
            /// `{ "X-Beta" = true, "User-Agent" = ["curl/*", "Wget/*"] }`.
            pub header: BTreeMap<String, Wanted>,
            /// Parameters of the query with their values, as in `header`. Example: `{ preview = true, lang = ["de", "fr"] }`.
            ///
            /// Names and values are compared percent-decoded, and with a space for each `+`. If a parameter occurs several
            /// times, the first one counts. `?preview` has the empty value.
            pub query: BTreeMap<String, Wanted>,
            /// Cookies with their values, as in `header`. Example: `{ group = "b" }`.
            ///
            /// Values are compared as they are sent, without quotes around them. If a cookie occurs several times, the first
            /// one counts. It does not matter in how many `Cookie` lines the cookies come.
            pub cookie: BTreeMap<String, Wanted>,
            /// Networks of the client's address. Example: `["10.0.0.0/8", "2001:db8::/32"]`.
            ///
            /// The address is that of the connection, or the one that a trusted proxy names (`server.trusted_proxies`).
            pub client: OneOrMany<Proxy>,
            /// What the request says about itself.
            ///
            /// - `"prefetch"`: a browser (`Sec-Purpose: prefetch`) or a framework (`Next-Router-Prefetch`) fetches in advance
            /// - `"crawler"`: it comes from a crawler that says so in `User-Agent`
            pub is: OneOrMany<Saying>,
            $($(#[$of_not])* pub $not: $of,)?
        }
    };
}

conditions! {
    /// Conditions that a request meets besides `match`. It must meet each of them. Of a list, one value is enough.
    When {
        /// Conditions of which the request meets none. Example: `{ client = "10.0.0.0/8" }`.
        not: WhenNot
    }
}

conditions! {
    /// Conditions of which a request meets none.
    WhenNot {}
}

/// The name of a method.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MethodName(pub String);

impl FromStr for MethodName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const USUAL: [&str; 9] =
            ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
        if text.is_empty() || !text.bytes().all(is_token) {
            return Err(format!("{text:?} is not the name of a method such as \"GET\""));
        }
        match USUAL.iter().find(|usual| usual.eq_ignore_ascii_case(text)) {
            Some(usual) if *usual != text => Err(format!("the case of methods counts; write {usual:?}")),
            _ => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

one_string!(MethodName, kind: "method", expects: "a method such as \"GET\"");

/// What a request says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Saying {
    /// A browser or a framework says that it fetches in advance.
    Prefetch,
    /// It comes from a crawler.
    Crawler,
}

impl FromStr for Saying {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "prefetch" => Ok(Self::Prefetch),
            "crawler" => Ok(Self::Crawler),
            _ => Err(format!("{text:?} is not {}", <Self as crate::value::OneString>::EXPECTS)),
        }
    }
}

impl fmt::Display for Saying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefetch => "prefetch",
            Self::Crawler => "crawler",
        })
    }
}

one_string!(Saying, kind: "kind of request", expects: "\"prefetch\" or \"crawler\"");
