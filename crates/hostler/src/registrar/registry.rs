//! Who has registered for what, and until when. Pure: time is told, and what follows from a
//! message comes back as changes. Knows no connections, no pools and no requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hostler_config::{HostPattern, Sharding};
use tokio::time::Instant;

use super::facts::{self, RegistrarFacts};
use super::key::RouteKey;
use super::message::Registration;
use super::words::{Balancing, Oddity, balancing, keys};

/// What registrations are held to.
#[derive(Debug, Clone)]
pub struct RegistrationRules {
    /// How long a member stays that says nothing else; nobody may ask for more.
    pub stale_threshold: Duration,
    /// How long a route without members stays.
    pub keep_empty: Duration,
    /// Nobody goes stale while there is no connection over which he could be heard.
    pub suspend_pruning: bool,
    /// Which segments are taken.
    pub sharding: Sharding,
    /// The segments that are ours.
    pub segments: Vec<String>,
    /// The case of paths does not count.
    pub folds_paths: bool,
    /// Routes in all.
    pub max_routes: usize,
    /// Bytes that they may take, as far as we can tell.
    pub max_memory: u64,
}

/// A member in its route.
#[derive(Debug)]
pub struct RegisteredMember {
    pub facts: Arc<RegistrarFacts>,
    pub service_url: Box<str>,
    pub balancing: Box<str>,
    /// Without another word it goes so long after the last; one with TLS never does.
    pub ttl: Duration,
    pub updated: Instant,
}

/// What those who registered last say of a whole route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteOptions {
    /// None: as the configuration says.
    pub balancing: Option<Balancing>,
    /// Empty: none.
    pub service_url: Box<str>,
}

/// A route: those who serve it.
#[derive(Debug)]
pub struct RouteEntry {
    /// In the order in which they came.
    pub members: Vec<RegisteredMember>,
    pub options: RouteOptions,
    /// When it was last said anything about.
    pub touched: Instant,
}

/// What follows, in this order.
#[derive(Debug, PartialEq)]
pub enum RouteChange {
    /// There is a member, in place of the one with its address if there is one.
    Joined(RouteKey, Arc<RegistrarFacts>),
    /// The member with this address has gone.
    Left(RouteKey, Box<str>, Gone),
    /// Other terms.
    Ruled(RouteKey, RouteOptions),
    /// The route has gone; it has no members any more.
    Closed(RouteKey),
}

/// Why a member has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    Unregistered,
    Silent,
    Failed,
}

/// The routes of one host, by their paths in order. Most hosts have one, for which a tree or a table would be large.
#[derive(Debug, Default)]
struct Routes(Vec<(Box<str>, RouteEntry)>);

/// All registrations.
#[derive(Debug)]
pub struct Registry {
    rules: RegistrationRules,
    hosts: HashMap<HostPattern, Routes>,
    suspended: bool,
    pruned: u64,
    routes: usize,
    bytes: u64,
}

impl Registry {
    pub fn new(rules: RegistrationRules) -> Self {
        Self { rules, hosts: HashMap::new(), suspended: false, pruned: 0, routes: 0, bytes: 0 }
    }

    /// A client says that it is there, for the first time or again.
    pub fn register(&mut self, message: &Registration, now: Instant) -> (Vec<RouteChange>, Vec<Oddity>) {
        let (mut changes, mut odd) = (Vec::new(), Vec::new());
        if !self.takes(message) {
            return (changes, odd);
        }
        let balancing = balancing(&message.options.loadbalancing).unwrap_or_else(|oddity| {
            odd.push(oddity);
            None
        });
        let facts = Arc::new(RegistrarFacts::of(message));
        let ttl = self.ttl(message);
        for key in keys(message, self.rules.folds_paths, &mut odd) {
            let member = RegisteredMember {
                facts: facts.clone(),
                service_url: message.route_service_url.as_str().into(),
                balancing: message.options.loadbalancing.as_str().into(),
                ttl,
                updated: now,
            };
            if let Err(full) = self.make_room(&key, &member) {
                odd.push(full);
                continue;
            }
            let routes = self.hosts.entry(key.host.clone()).or_default();
            let entry = routes.entry(&key.path, now);
            let options = RouteOptions {
                balancing: balancing.or(entry.options.balancing),
                service_url: member.service_url.clone(),
            };
            entry.touched = now;
            if entry.put(member) {
                changes.push(RouteChange::Joined(key.clone(), facts.clone()));
            }
            if entry.options != options {
                entry.options = options.clone();
                changes.push(RouteChange::Ruled(key, options));
            }
        }
        (changes, odd)
    }

    /// Whether there is room for what is new; then it is counted.
    fn make_room(&mut self, key: &RouteKey, member: &RegisteredMember) -> Result<(), Oddity> {
        let entry = self.entry(key);
        let before = entry.and_then(|entry| entry.member(&member.facts.address)).map(RegisteredMember::bytes);
        let is_new_route = entry.is_none();
        let route = if is_new_route { key.bytes() } else { 0 };
        let bytes = (self.bytes + route + member.bytes()).saturating_sub(before.unwrap_or(0));
        if is_new_route && self.routes >= self.rules.max_routes {
            return Err(Oddity::MostRoutes(self.rules.max_routes));
        }
        // Who is known may go on, whatever it says of itself: one message is small.
        if before.is_none() && bytes > self.rules.max_memory {
            return Err(Oddity::MostMemory(self.rules.max_memory));
        }
        self.routes += usize::from(is_new_route);
        self.bytes = bytes;
        Ok(())
    }

    /// What all routes and members take, as far as we can tell.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A client says that it goes. Only its address and its URIs count.
    pub fn unregister(&mut self, message: &Registration, now: Instant) -> (Vec<RouteChange>, Vec<Oddity>) {
        let (mut changes, mut odd) = (Vec::new(), Vec::new());
        if self.takes(message) {
            let address = facts::address(&message.host, message.chosen_port());
            for key in keys(message, self.rules.folds_paths, &mut odd) {
                self.remove(key, &address, Gone::Unregistered, now, &mut changes);
            }
        }
        (changes, odd)
    }

    /// A member could not be reached. One with TLS goes: by age it never would.
    pub fn failed(&mut self, key: RouteKey, address: &str, now: Instant) -> Vec<RouteChange> {
        let mut changes = Vec::new();
        let member = self.entry(&key).and_then(|entry| entry.member(address));
        if member.is_some_and(|member| member.facts.tls) {
            self.remove(key, address, Gone::Failed, now, &mut changes);
        }
        changes
    }

    /// Lets go of those who have been silent for too long, unless nobody could be heard. After such a time all begin anew.
    pub fn prune(&mut self, is_connected: bool, now: Instant) -> Vec<RouteChange> {
        if self.rules.suspend_pruning && !is_connected {
            self.suspended = true;
            return Vec::new();
        }
        if std::mem::take(&mut self.suspended) {
            let entries = self.hosts.values_mut().flat_map(|routes| &mut routes.0);
            let members = entries.flat_map(|(_, entry)| &mut entry.members);
            members.for_each(|member| member.updated = now);
        }
        let mut changes = Vec::new();
        let mut freed = 0;
        for (host, routes) in &mut self.hosts {
            for (path, entry) in &mut routes.0 {
                let key = || RouteKey { host: host.clone(), path: path.clone() };
                let stale = entry.members.extract_if(.., |member| member.is_stale(now));
                let before = changes.len();
                changes.extend(stale.map(|member| {
                    freed += member.bytes();
                    RouteChange::Left(key(), member.facts.address.clone(), Gone::Silent)
                }));
                if changes.len() > before {
                    self.pruned += (changes.len() - before) as u64;
                    entry.touched = now;
                }
            }
        }
        let keep = self.rules.keep_empty;
        self.hosts.retain(|host, routes| {
            routes.0.retain(|(path, entry)| {
                let gone = entry.members.is_empty() && (keep.is_zero() || now > entry.touched + keep);
                if gone {
                    let key = RouteKey { host: host.clone(), path: path.clone() };
                    freed += key.bytes();
                    self.routes -= 1;
                    changes.push(RouteChange::Closed(key));
                }
                !gone
            });
            !routes.0.is_empty()
        });
        self.bytes = self.bytes.saturating_sub(freed);
        changes
    }

    /// Whether nobody goes stale at the moment.
    pub fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// How many have gone stale so far.
    pub fn pruned(&self) -> u64 {
        self.pruned
    }

    /// All routes.
    pub fn iter(&self) -> impl Iterator<Item = (&HostPattern, &str, &RouteEntry)> {
        self.hosts
            .iter()
            .flat_map(|(host, routes)| routes.iter().map(move |(path, entry)| (host, path, entry)))
    }

    /// A route.
    pub fn entry(&self, key: &RouteKey) -> Option<&RouteEntry> {
        let routes = self.hosts.get(&key.host)?;
        routes.find(&key.path).ok().map(|at| &routes.0[at].1)
    }

    /// The paths of a host.
    pub fn paths(&self, host: &HostPattern) -> impl Iterator<Item = (&str, &RouteEntry)> {
        self.hosts.get(host).into_iter().flat_map(Routes::iter)
    }

    fn remove(
        &mut self,
        key: RouteKey,
        address: &str,
        gone: Gone,
        now: Instant,
        changes: &mut Vec<RouteChange>,
    ) {
        let Some(routes) = self.hosts.get_mut(&key.host) else { return };
        let Ok(found) = routes.find(&key.path) else { return };
        let entry = &mut routes.0[found].1;
        let Some(at) = entry.members.iter().position(|member| &*member.facts.address == address) else {
            return;
        };
        let member = entry.members.remove(at);
        self.bytes = self.bytes.saturating_sub(member.bytes());
        entry.touched = now;
        changes.push(RouteChange::Left(key.clone(), address.into(), gone));
        if entry.members.is_empty() && self.rules.keep_empty.is_zero() {
            routes.0.remove(found);
            if routes.0.is_empty() {
                self.hosts.remove(&key.host);
            }
            self.routes -= 1;
            self.bytes = self.bytes.saturating_sub(key.bytes());
            changes.push(RouteChange::Closed(key));
        }
    }

    fn takes(&self, message: &Registration) -> bool {
        let segment = &message.isolation_segment;
        match self.rules.sharding {
            Sharding::All => true,
            Sharding::SharedAndSegments => segment.is_empty() || self.rules.segments.contains(segment),
            Sharding::Segments => self.rules.segments.contains(segment),
        }
    }

    fn ttl(&self, message: &Registration) -> Duration {
        let most = self.rules.stale_threshold;
        match u64::try_from(message.stale_threshold_in_seconds) {
            Ok(0) | Err(_) => most,
            Ok(seconds) => Duration::from_secs(seconds).min(most),
        }
    }
}

impl Routes {
    fn find(&self, path: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(path))
    }

    fn entry(&mut self, path: &str, now: Instant) -> &mut RouteEntry {
        let at = self.find(path).unwrap_or_else(|at| {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, (path.into(), RouteEntry::new(now)));
            at
        });
        &mut self.0[at].1
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &RouteEntry)> {
        self.0.iter().map(|(path, entry)| (&**path, entry))
    }
}

impl RouteEntry {
    fn new(now: Instant) -> Self {
        Self { members: Vec::with_capacity(1), options: RouteOptions::default(), touched: now }
    }

    pub fn member(&self, address: &str) -> Option<&RegisteredMember> {
        self.members.iter().find(|member| &*member.facts.address == address)
    }

    /// Takes in what was said last of a member; true if that is not what was known.
    fn put(&mut self, new: RegisteredMember) -> bool {
        match self.members.iter_mut().find(|old| old.facts.address == new.facts.address) {
            None => {
                self.members.push(new);
                true
            }
            Some(old) => {
                let is_news = old.facts != new.facts;
                // Those who share what was known go on sharing it.
                let facts = if is_news { new.facts } else { old.facts.clone() };
                *old = RegisteredMember { facts, ..new };
                is_news
            }
        }
    }
}

impl RegisteredMember {
    fn bytes(&self) -> u64 {
        // A route service stands in the route's terms as well.
        self.facts.bytes() + (2 * self.service_url.len() + self.balancing.len()) as u64
    }

    fn is_stale(&self, now: Instant) -> bool {
        !self.facts.tls && now > self.updated + self.ttl
    }
}

#[cfg(test)]
mod tests;
