//! The routing table: host and path lead to whatever it is asked to hold. Knows no targets and no requests.
//!
//! Exact host before wildcard (the longer first) before any host; exact path before the longest prefix. A lookup allocates
//! nothing. A table is copied to be changed: what is below a host is shared until it changes itself.

mod plain;

use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use crate::config::{HostPattern, MatchPattern, PathPattern};
pub use plain::with as with_plain_path;

/// A host longer than this is none (RFC 1035 section 2.3.4).
const LONGEST_HOST: usize = 255;

/// A table; swapped whole when it changes. Cheap to copy.
#[derive(Debug)]
pub struct Table<T> {
    /// The case of paths does not count.
    folds_paths: bool,
    exact: Hosts<T>,
    below: Hosts<T>,
    any: Arc<Paths<T>>,
}

/// Whoever asks chooses no keys, so a hash need not be slow to be safe.
type Hosts<T> = HashMap<Arc<[u8]>, Arc<Paths<T>>>;

#[derive(Debug)]
struct Paths<T> {
    exact: HashMap<Box<[u8]>, T>,
    prefixes: HashMap<Box<[u8]>, T>,
    longest_prefix: usize,
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        let Self { folds_paths, exact, below, any } = self;
        Self { folds_paths: *folds_paths, exact: exact.clone(), below: below.clone(), any: any.clone() }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { folds_paths: false, exact: HashMap::new(), below: HashMap::new(), any: Arc::default() }
    }
}

impl<T> Default for Paths<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), prefixes: HashMap::new(), longest_prefix: 0 }
    }
}

impl<T> FromIterator<(MatchPattern, T)> for Table<T> {
    fn from_iter<I: IntoIterator<Item = (MatchPattern, T)>>(routes: I) -> Self {
        let mut hosts: HashMap<Option<HostPattern>, Vec<(PathPattern, T)>> = HashMap::new();
        for (pattern, target) in routes {
            hosts.entry(pattern.host).or_default().push((pattern.path, target));
        }
        let mut table = Self::default();
        hosts.into_iter().for_each(|(host, paths)| table.set(host.as_ref(), paths));
        table
    }
}

impl<T> Table<T> {
    /// An empty one in which the case of paths does not count, neither in patterns nor in requests.
    pub fn folding_paths() -> Self {
        Self { folds_paths: true, ..Self::default() }
    }

    /// From now on these paths, and no others, are known under a host, or for hosts of which none is known. Of two for the
    /// same path the first counts.
    pub fn set(&mut self, host: Option<&HostPattern>, paths: impl IntoIterator<Item = (PathPattern, T)>) {
        let mut known = Paths::default();
        paths.into_iter().for_each(|(path, target)| known.add(self.folds_paths, path, target));
        let (hosts, name) = match host {
            None => return self.any = known.into(),
            Some(HostPattern::Exact(name)) => (&mut self.exact, name.as_bytes()),
            Some(HostPattern::Below(name)) => (&mut self.below, name.as_bytes()),
        };
        match known.is_empty() {
            true => drop(hosts.remove(name)),
            false => drop(hosts.insert(name.into(), known.into())),
        }
    }

    /// The target for a request: `host` as in its Host field (a port is passed over), `path` as sent, without query.
    pub fn find(&self, host: &[u8], path: &[u8]) -> Option<&T> {
        let mut lower = [0; LONGEST_HOST];
        let host = lowered(host, &mut lower);
        plain::with(path, self.folds_paths, |path| {
            let exact = self.exact.get(host).and_then(|paths| paths.find(path));
            exact.or_else(|| self.find_below(host, path)).or_else(|| self.any.find(path))
        })
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
    fn add(&mut self, folds: bool, path: PathPattern, target: T) {
        let (PathPattern::Exact(text) | PathPattern::Prefix(text)) = &path;
        let text = if folds { text.to_ascii_lowercase() } else { text.clone() };
        let known = match path {
            PathPattern::Exact(_) => &mut self.exact,
            PathPattern::Prefix(_) => {
                self.longest_prefix = self.longest_prefix.max(text.len());
                &mut self.prefixes
            }
        };
        if let Entry::Vacant(place) = known.entry(text.into_bytes().into()) {
            place.insert(target);
        }
    }

    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty()
    }

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

    #[test]
    fn a_copy_is_changed_under_one_host_and_leaves_the_rest_as_it_was() {
        let first = table(&["*", "a.test/x/*", "*.b.test", "c.test"]);
        let mut second = first.clone();
        let host = |pattern: &str| pattern.parse::<MatchPattern>().unwrap().host;
        second.set(host("a.test").as_ref(), [(PathPattern::Prefix(String::new()), "new")]);
        second.set(host("*.b.test").as_ref(), []);
        second.set(None, []);
        for (host, path, before, after) in [
            ("a.test", "/x/1", Some("a.test/x/*"), Some("new")),
            ("a.test", "/y", Some("*"), Some("new")),
            ("x.b.test", "/", Some("*.b.test"), None),
            ("c.test", "/", Some("c.test"), Some("c.test")),
        ] {
            assert_eq!(first.find(host.as_bytes(), path.as_bytes()).copied(), before, "{host}{path}");
            assert_eq!(second.find(host.as_bytes(), path.as_bytes()).copied(), after, "{host}{path}");
        }
    }

    #[test]
    fn the_case_of_paths_counts_unless_it_is_said_not_to() {
        let mut folding = Table::folding_paths();
        folding.set(None, [(PathPattern::Prefix("/Api".into()), 1), (PathPattern::Prefix("/api".into()), 2)]);
        for path in ["/api/x", "/API", "/%41pi/X", "/x/../aPI/"] {
            assert_eq!(folding.find(b"a", path.as_bytes()), Some(&1), "{path}");
        }
        assert_eq!(table(&["/api/*"]).find(b"a", b"/API/x"), None);
    }
}
