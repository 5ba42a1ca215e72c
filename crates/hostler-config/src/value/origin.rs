//! Whose pages may read an answer: an origin (RFC 6454), or everybody's. Knows no requests.

use std::fmt;
use std::str::FromStr;

use super::one_string;

/// As a browser writes it into `Origin`; `*` is every one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(pub String);

impl Origin {
    /// Everybody's.
    pub fn is_any(&self) -> bool {
        self.0 == "*"
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an origin such as \"https://www.example.com\", nor \"*\"");
        if text == "*" {
            return Ok(Self(text.into()));
        }
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong());
        };
        // A browser sends no path and no upper case: another form would never match.
        let origin = format!("{scheme}://{authority}").to_ascii_lowercase();
        match text == origin && !authority.as_str().contains('@') {
            true => Ok(Self(origin)),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

one_string!(Origin, kind: "origin", expects: "an origin such as \"https://www.example.com\", or \"*\"");
