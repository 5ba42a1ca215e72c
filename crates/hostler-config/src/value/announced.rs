//! A name of an announced pool: a host, and a path with all paths below it. Knows no messages.

use std::fmt;
use std::str::FromStr;

use super::one_string;
use crate::pattern::{MatchPattern, PathPattern};

/// `host`, `*.host` or `host/path`, in the form of Cloud Foundry's routers: a path means itself and all paths below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced(pub String);

impl FromStr for Announced {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Err(format!(
                "{text:?} is a URL; write \"shop.example.com\" or \"shop.example.com/cart\""
            ));
        }
        let place = text.strip_suffix("/*").unwrap_or(text).trim_end_matches('/');
        // Parsed as the pattern that the receiver makes of it.
        let pattern: MatchPattern = format!("{place}/*").parse()?;
        match (&pattern.host, &pattern.path) {
            (Some(_), PathPattern::Prefix(_)) => {
                let shown = pattern.to_string();
                Ok(Self(shown.strip_suffix("/*").unwrap_or(&shown).to_owned()))
            }
            _ => Err(format!("{text:?} has no host; write for example \"shop.example.com/cart\"")),
        }
    }
}

impl fmt::Display for Announced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

one_string!(
    Announced,
    kind: "host or host/path",
    expects: "a host such as \"shop.example.com\", with or without a path"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_host_with_or_without_a_path() {
        let cases = [
            ("shop.example.com", "shop.example.com"),
            ("Shop.Example.com/", "shop.example.com"),
            ("*.example.com", "*.example.com"),
            ("a.test/cart", "a.test/cart"),
            ("a.test/cart/*", "a.test/cart"),
        ];
        for (written, meant) in cases {
            assert_eq!(written.parse::<Announced>().unwrap().0, meant, "{written}");
        }
        for wrong in ["", "*", "/cart", "https://a.test", "a.test:80", "a.test/x?y", "a b"] {
            assert!(wrong.parse::<Announced>().is_err(), "{wrong}");
        }
    }
}
