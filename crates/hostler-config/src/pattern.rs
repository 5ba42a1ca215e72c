//! What a route matches: an optional host and a path, parsed. Knows no requests and no targets.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::value::one_string;

/// The meaning of a route's `match`. Equal patterns display as equal text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatchPattern {
    /// `None`: any host.
    pub host: Option<HostPattern>,
    /// Which paths.
    pub path: PathPattern,
}

/// Which hosts a route matches: lower case, without port, without trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// This host. An IPv6 address is in brackets, as in a Host header.
    Exact(String),
    /// `*.example.com`, held as `example.com`: every host below it, with one label or more, but not `example.com` itself.
    Below(String),
}

/// Which paths a route matches: percent-decoded, as an application reads them, and case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// This path.
    Exact(String),
    /// `/cart/*`, held as `/cart`: this path and all paths below it (`/cart`, `/cart/`, `/cart/1`, not `/cartoon`). Empty: every path.
    Prefix(String),
}

impl PathPattern {
    /// Whether it matches a path that is already decoded.
    #[inline] // requests call it: Cargo.toml
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => path == exact.as_bytes(),
            Self::Prefix(prefix) => {
                let rest = path.strip_prefix(prefix.as_bytes());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            }
        }
    }
}

impl MatchPattern {
    /// The pattern `*`: every request.
    pub const ALL: Self = Self { host: None, path: PathPattern::Prefix(String::new()) };
}

impl FromStr for MatchPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::ALL);
        }
        if let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| !scheme.contains('/')) {
            return Err(format!("leave out {:?}: write {rest:?}", format!("{scheme}://")));
        }
        let (host, path) = match text.find('/') {
            Some(slash) => text.split_at(slash),
            None => (text, "/*"),
        };
        match host {
            "" if path == "/*" && text.is_empty() => Err("is empty; for all requests write \"*\"".into()),
            "" => Ok(Self { host: None, path: parse_path(path)? }),
            "*" => Err(format!("for every host, write only the path: {path:?}")),
            host => Ok(Self { host: Some(parse_host(host)?), path: parse_path(path)? }),
        }
    }
}

fn parse_host(text: &str) -> Result<HostPattern, String> {
    let lower = text.to_ascii_lowercase();
    let host = lower.strip_suffix('.').unwrap_or(&lower);
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.strip_suffix(']').and_then(|address| address.parse::<Ipv6Addr>().ok());
        let address = address.ok_or_else(|| format!("{text:?} is not an IPv6 address in brackets"))?;
        return Ok(HostPattern::Exact(format!("[{address}]")));
    }
    if let Some((name, _)) = host.split_once(':') {
        return Err(format!("a host has no port here; write {name:?}"));
    }
    let (name, below) = match host.strip_prefix("*.") {
        Some(rest) => (rest, true),
        None => (host, false),
    };
    if name.contains('*') {
        return Err(format!(
            "in the host {text:?} a wildcard must be the first label, as in \"*.example.com\""
        ));
    }
    if !name.is_ascii() {
        return Err(format!("the host {text:?} must be written in its ASCII form (xn--...)"));
    }
    let label_ok = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if !name.split('.').all(label_ok) {
        return Err(format!("{text:?} is not a host name"));
    }
    Ok(if below { HostPattern::Below(name.into()) } else { HostPattern::Exact(name.into()) })
}

fn parse_path(text: &str) -> Result<PathPattern, String> {
    let (path, prefix) = match text.strip_suffix("/*") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    if path.contains('*') {
        return Err(format!("in the path {text:?} a wildcard must be the last segment, as in \"/cart/*\""));
    }
    if let Some(odd) = path.chars().find(|char| matches!(char, '?' | '#')) {
        return Err(format!(
            "the path {text:?} contains {odd:?}; a route matches the path only, not the query"
        ));
    }
    // Decoded, because requests are decoded before they are compared. An encoded pattern would match nothing.
    let path = percent_decode_str(path).decode_utf8();
    let path = path.map_err(|_| format!("the path {text:?} is not UTF-8 when decoded"))?;
    if path.chars().any(char::is_control) {
        return Err(format!("the path {text:?} contains a control character"));
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(format!("the path {text:?} has a \".\" or \"..\" segment; write the path it means"));
    }
    Ok(if prefix { PathPattern::Prefix(path.into()) } else { PathPattern::Exact(path.into()) })
}

/// Characters that have another meaning in a pattern, or none.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'*').add(b'?').add(b'#');

impl fmt::Display for MatchPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, &self.path) {
            (None, PathPattern::Prefix(path)) if path.is_empty() => f.write_str("*"),
            (None, path) => path.fmt(f),
            (Some(host), PathPattern::Prefix(path)) if path.is_empty() => host.fmt(f),
            (Some(host), path) => write!(f, "{host}{path}"),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => f.write_str(host),
            Self::Below(host) => write!(f, "*.{host}"),
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => utf8_percent_encode(path, ESCAPED).fmt(f),
            Self::Prefix(path) => write!(f, "{}/*", utf8_percent_encode(path, ESCAPED)),
        }
    }
}

one_string!(MatchPattern, kind: "pattern", expects: "a host, a path or both, such as \"example.com/cart/*\"");
