//! The routing table: it maps host and path to a value of any type. Knows no targets and no requests.
//!
//! The order of precedence: an exact host, a wildcard host (the longest first), any host; then an exact path, the longest prefix. A
//! lookup allocates nothing. A change copies the table; hosts that do not change share their paths with the copy.
//!
//! One pattern may have several values. The caller says which of them fit a request; a pattern of which none fits counts as one that
//! does not match.

mod paths;

use std::collections::hash_map::Entry;
use std::io::Write as _;
use std::net::Ipv6Addr;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use hostler_wire::split_host;

use hostler_config::{HostPattern, MatchPattern, PathPattern};
pub use paths::MarkedPath;

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

/// How specific a match is: the length of the host (0 for any host, the greatest number for an exact host), whether the path matches
/// exactly, and the length of the matching path.
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

    /// Replaces the paths of a host. `None` as the host: the paths for hosts that have no route. Values of equal patterns are tried in the
    /// order given.
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
        self.find_marked(host, MarkedPath::of(path), fits)
    }

    fn find_marked(&self, host: &[u8], path: MarkedPath<'_>, fits: &impl Fn(&T) -> bool) -> Option<&T> {
        let mut lower = [0; LONGEST_HOST];
        let host = self.lowered(host, &mut lower);
        path.with_plain(self.folds_paths, |path| self.find_plain(host, path, fits))
    }

    /// Finds the first value that fits the request. If that value `yields`, another one of the same host that fits and does not yield is
    /// preferred.
    pub fn find_yielding(
        &self,
        host: &[u8],
        path: MarkedPath<'_>,
        fits: &impl Fn(&T) -> bool,
        yields: &impl Fn(&T) -> bool,
    ) -> Option<&T> {
        let found = self.find_marked(host, path, fits)?;
        if !yields(found) {
            return Some(found);
        }
        let mut lower = [0; LONGEST_HOST];
        let host = self.lowered(host, &mut lower);
        let other = path.with_plain(self.folds_paths, |path| {
            let (_, paths) = self.matching_hosts(host).find(|(_, paths)| paths.find(path, fits).is_some())?;
            paths.find(path, &|value| fits(value) && !yields(value))
        });
        other.or(Some(found))
    }

    /// Whether an application that reads the path differently could take it for a path of another route than `found`. Such a request would
    /// bypass the rules of that route. `fits` must be the same as for the lookup.
    pub fn is_disputed(
        &self,
        host: &[u8],
        path: MarkedPath<'_>,
        found: &T,
        fits: &impl Fn(&T) -> bool,
    ) -> bool {
        let is_odd = paths::is_odd(path);
        if !is_odd && !self.has_capitals && !path.marks.may_have_capitals() {
            return false;
        }
        let mut lower = [0; LONGEST_HOST];
        let host = self.lowered(host, &mut lower);
        if !is_odd {
            return path.with_plain(self.folds_paths, |path| self.is_disputed_by_case(host, path, fits));
        }
        let leads_here = |reading: &[u8]| {
            self.find_plain(host, reading, fits).is_some_and(|other| std::ptr::eq(other, found))
        };
        paths::is_any(path.path, self.folds_paths, |reading| {
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
        self.matching_hosts(host).find_map(|(host, paths)| {
            paths.rank(path, lowered, fits).map(|(whole, length)| (host, whole, length))
        })
    }

    /// The host in the form of the table; empty if it is in none.
    fn lowered<'a>(&self, host: &[u8], into: &'a mut [u8; LONGEST_HOST]) -> &'a [u8] {
        if self.exact.is_empty() && self.below.is_empty() { b"" } else { lowered(host, into) }
    }

    fn find_plain(&self, host: &[u8], path: &[u8], fits: &impl Fn(&T) -> bool) -> Option<&T> {
        self.matching_hosts(host).find_map(|(_, paths)| paths.find(path, fits))
    }

    /// The paths of each pattern of hosts that matches, in order of precedence, with the length of the host as in [`Rank`].
    fn matching_hosts(&self, host: &[u8]) -> impl Iterator<Item = (usize, &Paths<T>)> {
        let exact = self.exact.get(host).map(|paths| (usize::MAX, paths));
        let ends = memchr::memchr_iter(b'.', host).map(|dot| &host[dot + 1..]);
        let below = ends.filter_map(|end| Some((end.len(), self.below.get(end)?)));
        exact.into_iter().chain(below).chain([(0, &self.any)]).map(|(length, paths)| (length, &**paths))
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

/// The host without port and final dot, in lower case, and an IPv6 address in its shortest form, as patterns have it. Empty if it is too
/// long.
fn lowered<'a>(host: &[u8], into: &'a mut [u8; LONGEST_HOST]) -> &'a [u8] {
    let (name, _) = split_host(host);
    if let Some(address) = address_of(name) {
        let mut rest = &mut into[..];
        // It has room: the longest address has 45 characters.
        let _ = write!(rest, "[{address}]");
        let length = LONGEST_HOST - rest.len();
        return &into[..length];
    }
    let name = name.strip_suffix(b".").unwrap_or(name);
    let Some(place) = into.get_mut(..name.len()) else { return b"" };
    place.copy_from_slice(name);
    place.make_ascii_lowercase();
    place
}

fn address_of(name: &[u8]) -> Option<Ipv6Addr> {
    let inner = name.strip_prefix(b"[")?.strip_suffix(b"]")?;
    std::str::from_utf8(inner).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
