//! An origin (RFC 6454) whose pages may read a response, or all origins. Knows no requests.

use std::fmt;
use std::str::FromStr;

use super::one_string;

/// An origin as a browser writes it into `Origin`. `*` means every origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(pub String);

impl Origin {
    /// Whether it means every origin.
    pub fn is_any(&self) -> bool {
        self.0 == "*"
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an origin such as \"https://www.example.com\", or \"*\"");
        if text == "*" {
            return Ok(Self(text.into()));
        }
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong());
        };
        // A browser sends no path and no upper case, so another form would never match.
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
