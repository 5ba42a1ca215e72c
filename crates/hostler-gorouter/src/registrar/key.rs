//! The key of a registered route: host and path in normal form. Knows no members.

use std::fmt;

use hostler_config::{HostPattern, MatchPattern, PathPattern};

/// A host, and a path that includes everything below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteKey {
    /// In lower case.
    pub host: HostPattern,
    /// Percent-decoded, without a slash at the end. Empty for all paths.
    pub path: Box<str>,
}

/// The memory of a route with its pool and its row in the table, in bytes, without its host and path.
const ROUTE: u64 = 4 << 10;

impl RouteKey {
    /// The approximate size in memory.
    pub fn bytes(&self) -> u64 {
        let (HostPattern::Exact(host) | HostPattern::Below(host)) = &self.host;
        // The texts are stored in the registry, in the table, and twice as a name.
        ROUTE + 4 * (host.len() + self.path.len()) as u64
    }

    /// Parses `host[/path]`; the host may begin with `*.`. The query and slashes at the end are ignored. `folds`: the path is folded to
    /// lower case, as the host always is.
    pub fn parse(uri: &str, folds: bool) -> Result<Self, String> {
        let uri = uri.split('?').next().unwrap_or_default().trim_end_matches('/');
        let pattern: MatchPattern = format!("{uri}/*").parse()?;
        match pattern {
            MatchPattern { host: Some(host), path: PathPattern::Prefix(path) } => {
                let path = if folds { path.to_ascii_lowercase() } else { path };
                // Again: an encoded slash (%2F) is one only now.
                Ok(Self { host, path: path.trim_end_matches('/').into() })
            }
            _ => Err("it has no host".into()),
        }
    }
}

impl From<RouteKey> for MatchPattern {
    fn from(key: RouteKey) -> Self {
        Self { host: Some(key.host), path: PathPattern::Prefix(key.path.into()) }
    }
}

impl fmt::Display for RouteKey {
    /// In the form of a registered URI.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pattern = MatchPattern::from(self.clone()).to_string();
        f.write_str(pattern.strip_suffix("/*").unwrap_or(&pattern))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_one_normal_form() {
        for (uri, normal) in [
            ("App.Example.TEST", "app.example.test"),
            ("a.test/", "a.test"),
            ("a.test/api//", "a.test/api"),
            ("a.test/Api/x?q=1/", "a.test/Api/x"),
            ("a.test/x%2F", "a.test/x"),
            ("a.test/%2F/", "a.test"),
            ("*.Wild.test/a%20b", "*.wild.test/a%20b"),
        ] {
            let key = RouteKey::parse(uri, false).unwrap();
            assert_eq!(key.to_string(), normal, "{uri}");
            assert_eq!(RouteKey::parse(normal, false).unwrap(), key, "a successor reads the same key");
        }
        assert_eq!(RouteKey::parse("Case.TEST/Path/", true).unwrap().to_string(), "case.test/path");
    }

    #[test]
    fn a_uri_that_matches_every_host_or_none_is_refused() {
        for uri in ["", "/", "/api", "*", "*/api", "a.*.test", "http://a.test", "a.test:80", "a b", "?a.test"]
        {
            assert!(RouteKey::parse(uri, false).is_err(), "{uri}");
        }
    }
}
