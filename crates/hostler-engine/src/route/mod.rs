//! The routing table: it maps host and path to a value of any type. Knows no targets and no requests.
//!
//! The order of precedence: an exact host, a wildcard host (the longest first), any host; then an exact path, the longest prefix. A
//! lookup allocates nothing. A change copies the table; hosts that do not change share their paths with the copy.
//!
//! One pattern may have several values. The caller says which of them fit a request; a pattern of which none fits counts as one that
//! does not match.

mod paths;

use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use hostler_wire::split_host;

use hostler_config::{HostPattern, MatchPattern, PathPattern};
use paths::Marks;
pub use paths::with_plain_path;

/// A longer text is no host name (RFC 1035 section 2.3.4).
const LONGEST_HOST: usize = 255;

/// A table. It is replaced as a whole when it changes, and cheap to copy.
#[derive(Debug)]
pub struct Table<T> {
    /// Paths are compared without regard to case.
    folds_paths: bool,
    /// A pattern with a capital letter in its path has been added at some time.
    has_capitals: bool,
    exact: Hosts<T>,
    below: Hosts<T>,
    any: Arc<Paths<T>>,
}

/// Clients do not choose the keys, so a fast hash is safe.
type Hosts<T> = HashMap<Arc<[u8]>, Arc<Paths<T>>>;

#[derive(Debug)]
struct Paths<T> {
    exact: HashMap<Box<[u8]>, Choices<T>>,
    prefixes: HashMap<Box<[u8]>, Choices<T>>,
    longest_prefix: usize,
    /// The patterns with capital letters, by their lower case.
    lowered: Lowered,
}

/// The values of one pattern, in the order in which they are tried. Nearly always there is one.
#[derive(Debug)]
struct Choices<T> {
    first: T,
    others: Box<[T]>,
}

#[derive(Debug, Default)]
struct Lowered {
    exact: HashMap<Box<[u8]>, Vec<Box<[u8]>>>,
    prefixes: HashMap<Box<[u8]>, Vec<Box<[u8]>>>,
}

/// How specific a match is: the length of the host (0 for any host), whether the path matches exactly, and the length of the matching
/// path.
type Rank = (usize, bool, usize);

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        let Self { folds_paths, has_capitals, exact, below, any } = self;
        let (exact, below, any) = (exact.clone(), below.clone(), any.clone());
        Self { folds_paths: *folds_paths, has_capitals: *has_capitals, exact, below, any }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        let (exact, below, any) = (HashMap::new(), HashMap::new(), Arc::default());
        Self { folds_paths: false, has_capitals: false, exact, below, any }
    }
}

impl<T> Default for Paths<T> {
    fn default() -> Self {
        let lowered = Lowered::default();
        Self { exact: HashMap::new(), prefixes: HashMap::new(), longest_prefix: 0, lowered }
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
    /// An empty table that compares paths without regard to case, in patterns and in requests.
    pub fn folding_paths() -> Self {
        Self { folds_paths: true, ..Self::default() }
    }

    /// Replaces the paths of a host, or of `None`: the paths for hosts that have no route. Values of equal patterns are tried in this order.
    pub fn set(&mut self, host: Option<&HostPattern>, paths: impl IntoIterator<Item = (PathPattern, T)>) {
        let mut known = Paths::default();
        paths.into_iter().for_each(|(path, target)| known.add(self.folds_paths, path, target));
        self.has_capitals |= !known.lowered.exact.is_empty() || !known.lowered.prefixes.is_empty();
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

    /// Finds the value for a request, whatever it is. `host` is the `Host` field (its port is ignored), `path` the path as sent, without
    /// the query.
    pub fn find(&self, host: &[u8], path: &[u8]) -> Option<&T> {
        self.find_fitting(host, path, &|_| true)
    }

    /// Finds the first value that fits the request.
    pub fn find_fitting(&self, host: &[u8], path: &[u8], fits: &impl Fn(&T) -> bool) -> Option<&T> {
        let mut lower = [0; LONGEST_HOST];
        let host = self.lowered(host, &mut lower);
        with_plain_path(path, self.folds_paths, |path| self.find_plain(host, path, fits))
    }

    /// Finds the first value that fits the request, but prefers to one that `yields` any other that fits and is of the same host.
    pub fn find_yielding(
        &self,
        host: &[u8],
        path: &[u8],
        fits: &impl Fn(&T) -> bool,
        yields: &impl Fn(&T) -> bool,
    ) -> Option<&T> {
        let found = self.find_fitting(host, path, fits)?;
        if !yields(found) {
            return Some(found);
        }
        let mut lower = [0; LONGEST_HOST];
        let host = self.lowered(host, &mut lower);
        let other = with_plain_path(path, self.folds_paths, |path| {
            let paths = self.matching_hosts(host).find(|paths| paths.find(path, fits).is_some())?;
            paths.find(path, &|value| fits(value) && !yields(value))
        });
        other.or(Some(found))
    }

    /// Whether an application that reads the path in another way would take it for a path of another route than `found`. Such a request
    /// would bypass the other route. `fits` is as it was for the lookup.
    pub fn is_disputed(&self, host: &[u8], path: &[u8], found: &T, fits: &impl Fn(&T) -> bool) -> bool {
        let marks = Marks::of(path);
        let is_odd = paths::is_odd(path, marks);
        if !is_odd && !self.has_capitals && !marks.may_have_capitals() {
            return false;
        }
        let mut lower = [0; LONGEST_HOST];
        let host = self.lowered(host, &mut lower);
        if !is_odd {
            return with_plain_path(path, self.folds_paths, |path| {
                self.is_disputed_by_case(host, path, fits)
            });
        }
        let leads_here = |reading: &[u8]| {
            self.find_plain(host, reading, fits).is_some_and(|other| std::ptr::eq(other, found))
        };
        paths::is_any(path, self.folds_paths, |reading| {
            !leads_here(reading) || self.is_disputed_by_case(host, reading, fits)
        })
    }

    /// Whether an application that ignores the case of paths, as Express does, would take the path for one of a more specific route. A
    /// route that matches the path as written is not disputed.
    fn is_disputed_by_case(&self, host: &[u8], path: &[u8], fits: &impl Fn(&T) -> bool) -> bool {
        if self.folds_paths || !self.has_capitals && !path.iter().any(u8::is_ascii_uppercase) {
            return false;
        }
        paths::in_lower_case(path, |lower| {
            self.rank(host, lower, true, fits) > self.rank(host, path, false, fits)
        })
    }

    /// How specific the match for a path is. `lowered`: patterns are compared in lower case.
    fn rank(&self, host: &[u8], path: &[u8], lowered: bool, fits: &impl Fn(&T) -> bool) -> Option<Rank> {
        let at = |paths: &Paths<T>, host: usize| {
            paths.rank(path, lowered, fits).map(|(whole, length)| (host, whole, length))
        };
        let exact = self.exact.get(host).and_then(|paths| at(paths, usize::MAX));
        let below = || {
            let ends = memchr::memchr_iter(b'.', host).map(|dot| &host[dot + 1..]);
            ends.filter_map(|end| at(self.below.get(end)?, end.len())).next()
        };
        exact.or_else(below).or_else(|| at(&self.any, 0))
    }

    /// The host in the form of the table; empty if it is in none.
    fn lowered<'a>(&self, host: &[u8], into: &'a mut [u8; LONGEST_HOST]) -> &'a [u8] {
        if self.exact.is_empty() && self.below.is_empty() { b"" } else { lowered(host, into) }
    }

    fn find_plain(&self, host: &[u8], path: &[u8], fits: &impl Fn(&T) -> bool) -> Option<&T> {
        let exact = self.exact.get(host).and_then(|paths| paths.find(path, fits));
        exact.or_else(|| self.find_below(host, path, fits)).or_else(|| self.any.find(path, fits))
    }

    /// The paths of each pattern of hosts that matches, in order of precedence.
    fn matching_hosts(&self, host: &[u8]) -> impl Iterator<Item = &Paths<T>> {
        let ends = memchr::memchr_iter(b'.', host).map(|dot| &host[dot + 1..]);
        let below = ends.filter_map(|end| self.below.get(end));
        self.exact.get(host).into_iter().chain(below).chain([&self.any]).map(|paths| &**paths)
    }

    fn find_below(&self, mut host: &[u8], path: &[u8], fits: &impl Fn(&T) -> bool) -> Option<&T> {
        if self.below.is_empty() {
            return None;
        }
        while let Some(dot) = memchr::memchr(b'.', host) {
            host = &host[dot + 1..];
            if let Some(found) = self.below.get(host).and_then(|paths| paths.find(path, fits)) {
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
        let is_exact = matches!(path, PathPattern::Exact(_));
        let known = match path {
            PathPattern::Exact(_) => &mut self.exact,
            PathPattern::Prefix(_) => {
                self.longest_prefix = self.longest_prefix.max(text.len());
                &mut self.prefixes
            }
        };
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            let lowered = if is_exact { &mut self.lowered.exact } else { &mut self.lowered.prefixes };
            let originals = lowered.entry(text.to_ascii_lowercase().into_bytes().into()).or_default();
            originals.push(text.as_bytes().into());
        }
        match known.entry(text.into_bytes().into()) {
            Entry::Vacant(place) => drop(place.insert(Choices { first: target, others: Box::default() })),
            Entry::Occupied(mut choices) => choices.get_mut().add(target),
        }
    }

    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty()
    }

    /// Whether a pattern matches the path exactly, and the length of the longest match.
    fn rank(&self, path: &[u8], lowered: bool, fits: &impl Fn(&T) -> bool) -> Option<(bool, usize)> {
        let matches =
            |known: &HashMap<Box<[u8]>, Choices<T>>, lower: &HashMap<_, Vec<Box<[u8]>>>, text: &[u8]| {
                let has = |text: &[u8]| known.get(text).is_some_and(|choices| choices.find(fits).is_some());
                let originals = || lower.get(text).into_iter().flatten();
                has(text) || lowered && originals().any(|original| has(original))
            };
        let Lowered { exact, prefixes } = &self.lowered;
        if matches(&self.exact, exact, path) {
            return Some((true, path.len()));
        }
        let mut end = self.longest_end(path);
        loop {
            if matches(&self.prefixes, prefixes, &path[..end]) {
                return Some((false, end));
            }
            end = shorter(path, end)?;
        }
    }

    fn find(&self, path: &[u8], fits: &impl Fn(&T) -> bool) -> Option<&T> {
        if let Some(found) = self.exact.get(path).and_then(|choices| choices.find(fits)) {
            return Some(found);
        }
        let mut end = self.longest_end(path);
        loop {
            if let Some(found) = self.prefixes.get(&path[..end]).and_then(|choices| choices.find(fits)) {
                return Some(found);
            }
            end = shorter(path, end)?;
        }
    }

    /// The end of the longest part of the path that can be a prefix in the table. It bounds the work for a path of thousands of slashes.
    fn longest_end(&self, path: &[u8]) -> usize {
        match path.get(..=self.longest_prefix) {
            Some(start) => memchr::memrchr(b'/', start).unwrap_or(0),
            None => path.len(),
        }
    }
}

impl<T> Choices<T> {
    fn add(&mut self, value: T) {
        let others = std::mem::take(&mut self.others);
        self.others = others.into_iter().chain([value]).collect();
    }

    fn find(&self, fits: &impl Fn(&T) -> bool) -> Option<&T> {
        if fits(&self.first) {
            return Some(&self.first);
        }
        self.others.iter().find(|value| fits(value))
    }
}

/// The end of the next shorter part of the path that may be a prefix; the empty one is last. `OPTIONS *` has no path: only a prefix for
/// everything matches it.
fn shorter(path: &[u8], end: usize) -> Option<usize> {
    (end > 0).then(|| memchr::memrchr(b'/', &path[..end]).unwrap_or(0))
}

/// The host without port and final dot, in lower case. Empty if it is too long.
fn lowered<'a>(host: &[u8], into: &'a mut [u8; LONGEST_HOST]) -> &'a [u8] {
    let (name, _) = split_host(host);
    let name = name.strip_suffix(b".").unwrap_or(name);
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
    fn no_spelling_of_a_path_bypasses_a_route() {
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
    fn a_path_that_apps_read_as_paths_of_different_routes_is_ambiguous() {
        let table = table(&["*", "/admin/*", "/api/admin/*"]);
        for path in [
            "/admin/../x",
            "/admin/%2e%2e/x",
            "/x/../admin/y",
            "/x/%2E%2e/admin",
            "/admin/%2e%2e%2fx",
            "/admin/%2e%2e%2fx/..",
            "/x%2f..%2fadmin",
            "/x/..%5cadmin",
            "/admin%2Fx",
            "/admin;a=b/x",
            "/admin;a",
            "/api//admin",
            "/api/.//admin",
        ] {
            let found = table.find(b"a", path.as_bytes()).unwrap();
            assert!(table.is_disputed(b"a", path.as_bytes(), found, &|_| true), "{path}");
        }
        for (path, route) in [
            ("/a/../x", "*"),
            ("/a%2Fb", "*"),
            ("/a;b=c//d", "*"),
            ("/admin/a%2Fb;c//d/./e", "/admin/*"),
            ("/%61dmin/x", "/admin/*"),
            ("/.well-known/x", "*"),
            ("/x%3Badmin", "*"),
            ("*", "*"),
        ] {
            let found = table.find(b"a", path.as_bytes()).unwrap();
            assert_eq!(
                (*found, table.is_disputed(b"a", path.as_bytes(), found, &|_| true)),
                (route, false),
                "{path}"
            );
        }
    }

    #[test]
    fn a_path_that_matches_another_route_without_case_is_ambiguous() {
        let routes =
            table(&["*", "/admin/*", "/Reports/*", "/api/*", "/API/docs/*", "/Ping", "a.test/admin/x/*"]);
        for path in [
            "/Admin/x",
            "/ADMIN",
            "/%41dmin/x",
            "/reports/1",
            "/REPORTS",
            "/API/x",
            "/API",
            "/api/docs/1",
            "/ping",
            "/x/../Admin",
            "/Admin;a/x",
            "/Admin%2Fx",
        ] {
            let found = routes.find(b"b", path.as_bytes()).unwrap();
            assert!(routes.is_disputed(b"b", path.as_bytes(), found, &|_| true), "{path}");
        }
        for (path, route) in [
            ("/admin/X/Y", "/admin/*"),
            ("/Reports/X", "/Reports/*"),
            ("/API/docs/X", "/API/docs/*"),
            ("/api/X", "/api/*"),
            ("/Ping", "/Ping"),
            ("/Adminx", "*"),
            ("/X/admin", "*"),
            ("/%C3%89", "*"),
        ] {
            let found = routes.find(b"b", path.as_bytes()).unwrap();
            assert_eq!(
                (*found, routes.is_disputed(b"b", path.as_bytes(), found, &|_| true)),
                (route, false),
                "{path}"
            );
        }
        let found = routes.find(b"a.test", b"/admin/X/y").unwrap();
        assert!(routes.is_disputed(b"a.test", b"/admin/X/y", found, &|_| true), "of this host's own");
    }

    #[test]
    fn a_catch_all_route_takes_requests_for_the_server_as_a_whole() {
        let table = table(&["*", "/a/*"]);
        assert_eq!(table.find(b"a", b"*"), Some(&"*"));
    }

    #[test]
    fn hostile_hosts_and_paths_cause_no_panic() {
        let table = table(&["/a/*", "x.org"]);
        assert_eq!(table.find(&[b'x'; 1000], b"/a/b"), Some(&"/a/*"));
        assert_eq!(table.find(b"[::1", &b"/".repeat(60_000)), None);
    }

    #[test]
    fn a_table_copy_with_one_changed_host_keeps_all_others() {
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
    fn paths_are_case_sensitive_unless_configured() {
        let mut folding = Table::folding_paths();
        folding.set(None, [(PathPattern::Prefix("/Api".into()), 1), (PathPattern::Prefix("/api".into()), 2)]);
        for path in ["/api/x", "/API", "/%41pi/X", "/x/../aPI/"] {
            assert_eq!(folding.find(b"a", path.as_bytes()), Some(&1), "{path}");
        }
        assert_eq!(table(&["/api/*"]).find(b"a", b"/API/x"), None);
    }

    #[test]
    fn a_pattern_of_which_no_value_fits_gives_way_to_the_next_that_matches() {
        let patterns = ["*", "/api/*", "/api/*", "/api/x", "a.test/api/*", "*.test"];
        let table: Table<(usize, &str)> = patterns
            .into_iter()
            .enumerate()
            .map(|(at, pattern)| (pattern.parse().unwrap(), (at, pattern)))
            .collect();
        let find = |host: &str, path: &str, fits: &[usize]| {
            let found = table.find_fitting(host.as_bytes(), path.as_bytes(), &|(at, _)| fits.contains(at));
            found.map(|(at, _)| *at)
        };
        assert_eq!(find("a.test", "/api/x", &[0, 1, 2, 3, 4, 5]), Some(4));
        assert_eq!(find("a.test", "/api/x", &[0, 1, 2, 3, 5]), Some(5));
        assert_eq!(find("a.test", "/api/x", &[0, 1, 2, 3]), Some(3));
        assert_eq!(find("a.test", "/api/x", &[0, 1, 2]), Some(1), "the first of two with the same pattern");
        assert_eq!(find("a.test", "/api/x", &[0, 2]), Some(2));
        assert_eq!(find("a.test", "/api/x", &[0]), Some(0));
        assert_eq!(find("a.test", "/api/x", &[]), None);
    }

    #[test]
    fn a_value_that_yields_counts_only_if_no_other_of_its_host_matches() {
        let table =
            table(&["*", "*.test", "a.test", "a.test/api/*", "b.test/api/*", "*.test/x/*", "*.c.test/x/*"]);
        let find = |host: &str, path: &str, yielding: &[&str]| {
            table
                .find_yielding(host.as_bytes(), path.as_bytes(), &|_| true, &|pattern| {
                    yielding.contains(pattern)
                })
                .copied()
        };
        for (host, path, yielding, expected) in [
            ("a.test", "/api/x", &[][..], "a.test/api/*"),
            ("a.test", "/api/x", &["a.test/api/*"], "a.test"),
            ("A.test:80", "/%61pi/x", &["a.test/api/*"], "a.test"),
            ("a.test", "/api/x", &["a.test/api/*", "a.test"], "a.test/api/*"),
            ("b.test", "/api/x", &["b.test/api/*"], "b.test/api/*"),
            ("d.test", "/x/y", &["*.test/x/*"], "*.test"),
            ("d.c.test", "/x/y", &["*.c.test/x/*"], "*.c.test/x/*"),
            ("other", "/", &["*"], "*"),
        ] {
            assert_eq!(find(host, path, yielding), Some(expected), "{host}{path} {yielding:?}");
        }
        assert_eq!(Table::<u8>::default().find_yielding(b"a", b"/", &|_| true, &|_| true), None);
    }

    #[test]
    fn a_path_is_disputed_only_by_a_route_that_fits() {
        let table = table(&["*", "/admin/*", "/Reports/*"]);
        for (path, other) in
            [("/x%2f..%2fadmin", "/admin/*"), ("/Admin/x", "/admin/*"), ("/reports", "/Reports/*")]
        {
            for (fits, expected) in [(true, true), (false, false)] {
                let fits = |pattern: &&str| fits || *pattern != other;
                let found = table.find_fitting(b"a", path.as_bytes(), &fits).unwrap();
                assert_eq!(table.is_disputed(b"a", path.as_bytes(), found, &fits), expected, "{path}");
            }
        }
    }
}
