//! The routing table: host and path lead to whatever it is asked to hold. Knows no targets and no requests.
//!
//! Exact host before wildcard (the longer first) before any host; exact path before the longest prefix. A lookup allocates
//! only for a path that is not in its plain form.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::config::{HostPattern, MatchPattern, PathPattern};

/// A host longer than this is none (RFC 1035 section 2.3.4).
const LONGEST_HOST: usize = 255;

/// A table; swapped whole when it changes.
#[derive(Debug)]
pub struct Table<T> {
    exact: HashMap<Box<[u8]>, Paths<T>>,
    below: HashMap<Box<[u8]>, Paths<T>>,
    any: Paths<T>,
}

#[derive(Debug)]
struct Paths<T> {
    exact: HashMap<Box<[u8]>, T>,
    prefixes: HashMap<Box<[u8]>, T>,
    longest_prefix: usize,
}

impl<T> Default for Paths<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), prefixes: HashMap::new(), longest_prefix: 0 }
    }
}

impl<T> FromIterator<(MatchPattern, T)> for Table<T> {
    fn from_iter<I: IntoIterator<Item = (MatchPattern, T)>>(routes: I) -> Self {
        let mut table = Self { exact: HashMap::new(), below: HashMap::new(), any: Paths::default() };
        for (pattern, target) in routes {
            let paths = match pattern.host {
                None => &mut table.any,
                Some(HostPattern::Exact(host)) => table.exact.entry(host.into_bytes().into()).or_default(),
                Some(HostPattern::Below(host)) => table.below.entry(host.into_bytes().into()).or_default(),
            };
            match pattern.path {
                PathPattern::Exact(path) => drop(paths.exact.insert(path.into_bytes().into(), target)),
                PathPattern::Prefix(path) => {
                    paths.longest_prefix = paths.longest_prefix.max(path.len());
                    paths.prefixes.insert(path.into_bytes().into(), target);
                }
            }
        }
        table
    }
}

impl<T> Table<T> {
    /// The target for a request: `host` as in its Host field (a port is passed over), `path` as sent, without query.
    pub fn find(&self, host: &[u8], path: &[u8]) -> Option<&T> {
        let path = plain(path);
        let mut lower = [0; LONGEST_HOST];
        let host = lowered(host, &mut lower);
        self.exact
            .get(host)
            .and_then(|paths| paths.find(&path))
            .or_else(|| self.find_below(host, &path))
            .or_else(|| self.any.find(&path))
    }

    fn find_below(&self, mut host: &[u8], path: &[u8]) -> Option<&T> {
        while let Some(dot) = memchr::memchr(b'.', host).filter(|_| !self.below.is_empty()) {
            host = &host[dot + 1..];
            if let Some(found) = self.below.get(host).and_then(|paths| paths.find(path)) {
                return Some(found);
            }
        }
        None
    }
}

impl<T> Paths<T> {
    fn find(&self, path: &[u8]) -> Option<&T> {
        if let Some(found) = self.exact.get(path) {
            return Some(found);
        }
        // From the longest prefix that any route has: a path of thousands of slashes costs no more than another.
        let mut end = path.len();
        loop {
            if end <= self.longest_prefix
                && let Some(found) = self.prefixes.get(&path[..end])
            {
                return Some(found);
            }
            end = match memchr::memrchr(b'/', &path[..end]) {
                Some(slash) => slash,
                // `OPTIONS *` has no path at all: only a route for everything is one for it.
                None if end > 0 => 0,
                None => return None,
            };
        }
    }
}

/// The host without port and trailing dot, in lower case; empty if it is too long to be one.
fn lowered<'a>(host: &[u8], into: &'a mut [u8; LONGEST_HOST]) -> &'a [u8] {
    let name_end = match host.first() {
        Some(b'[') => memchr::memchr(b']', host).map_or(host.len(), |end| end + 1),
        _ => memchr::memchr(b':', host).unwrap_or(host.len()),
    };
    let name = host[..name_end].strip_suffix(b".").unwrap_or(&host[..name_end]);
    let Some(place) = into.get_mut(..name.len()) else { return b"" };
    place.copy_from_slice(name);
    place.make_ascii_lowercase();
    place
}

/// The path as an application will read it: percent-decoded, without dot segments (RFC 3986 sections 6.2.2 and 5.2.4), so that
/// `/%61dmin` and `/x/../admin` are no way around a route for `/admin`.
fn plain(path: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', path).is_none() && memchr::memmem::find(path, b"/.").is_none() {
        return Cow::Borrowed(path);
    }
    let decoded: Cow<'_, [u8]> = percent_encoding::percent_decode(path).into();
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut ends_in_dots = false;
    for segment in decoded.split(|&byte| byte == b'/').skip(1) {
        ends_in_dots = segment == b"." || segment == b"..";
        match segment {
            b".." => drop(kept.pop()),
            b"." => {}
            other => kept.push(other),
        }
    }
    let mut out = Vec::with_capacity(decoded.len());
    for segment in kept {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if ends_in_dots || out.is_empty() {
        out.push(b'/');
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(patterns: &[&'static str]) -> Table<&'static str> {
        patterns.iter().map(|pattern| (pattern.parse().unwrap(), *pattern)).collect()
    }

    #[test]
    fn the_most_specific_route_wins() {
        let table = table(&[
            "*",
            "/api/*",
            "/api/users/*",
            "/ping",
            "shop.example.com",
            "shop.example.com/cart/*",
            "*.example.com",
            "*.eu.example.com/x/*",
        ]);
        let cases = [
            ("a.org", "/", "*"),
            ("a.org", "/api", "/api/*"),
            ("a.org", "/api/", "/api/*"),
            ("a.org", "/api/x", "/api/*"),
            ("a.org", "/apis", "*"),
            ("a.org", "/api/users/1", "/api/users/*"),
            ("a.org", "/ping", "/ping"),
            ("a.org", "/ping/", "*"),
            ("shop.example.com", "/ping", "shop.example.com"),
            ("SHOP.example.com.:8080", "/cart/1", "shop.example.com/cart/*"),
            ("example.com", "/", "*"),
            ("a.example.com", "/", "*.example.com"),
            ("a.eu.example.com", "/", "*.example.com"),
            ("a.eu.example.com", "/x", "*.eu.example.com/x/*"),
            ("", "/api/1", "/api/*"),
        ];
        for (host, path, expected) in cases {
            assert_eq!(table.find(host.as_bytes(), path.as_bytes()), Some(&expected), "{host}{path}");
        }
    }

    #[test]
    fn there_is_no_way_around_a_route() {
        let table = table(&["/admin/*", "/open/*"]);
        for path in
            ["/admin", "/%61dmin/x", "/open/../admin/x", "/./admin", "/open/%2e%2e/admin", "/admin/.."]
        {
            let expected = if path == "/admin/.." { None } else { Some(&"/admin/*") };
            assert_eq!(table.find(b"a", path.as_bytes()), expected, "{path}");
        }
        assert_eq!(table.find(b"a", b"/other"), None);
        assert_eq!(table.find(b"a", b"*"), None);
    }

    #[test]
    fn a_route_for_everything_is_one_for_the_server_as_a_whole() {
        let table = table(&["*", "/a/*"]);
        assert_eq!(table.find(b"a", b"*"), Some(&"*"));
    }

    #[test]
    fn hostile_hosts_and_paths_are_only_looked_up() {
        let table = table(&["/a/*", "x.org"]);
        assert_eq!(table.find(&[b'x'; 1000], b"/a/b"), Some(&"/a/*"));
        assert_eq!(table.find(b"[::1", &b"/".repeat(60_000)), None);
    }
}
