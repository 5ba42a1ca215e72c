//! The registrations: which member serves which route, and until when. Pure: the caller passes the time, and each message returns a list
//! of changes. Knows no connections, no pools and no requests.

mod due;
mod figures;
mod inherited;
mod leaving;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hostler_config::{HostPattern, Sharding};
use tokio::time::Instant;

use super::facts::{self, RegistrarFacts};
use super::key::RouteKey;
use super::message::Registration;
use super::words::{Balancing, IgnoredPart, balancing, keys};

/// The rules for registrations.
#[derive(Debug, Clone)]
pub struct RegistrationRules {
    /// How long a member stays after its last registration. A registration may ask for less, but not for more.
    pub stale_threshold: Duration,
    /// How long a route without members stays.
    pub keep_empty: Duration,
    /// No member becomes stale while there is no connection over which it could register.
    pub suspend_pruning: bool,
    /// Which router segments are taken.
    pub sharding: Sharding,
    /// Our own router segments.
    pub segments: Vec<String>,
    /// Paths are folded to lower case.
    pub folds_paths: bool,
    /// The most routes.
    pub max_routes: usize,
    /// The most memory for routes and members, in bytes (an estimate).
    pub max_memory: u64,
}

/// A member of a route.
#[derive(Debug)]
pub struct RegisteredMember {
    pub facts: Arc<RegistrarFacts>,
    pub service_url: Box<str>,
    pub balancing: Box<str>,
    /// How long it stays after its last registration. A member with TLS has no such limit.
    pub ttl: Duration,
    pub updated: Instant,
}

/// The options of a route, from the latest registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteOptions {
    /// None: the configured balancing.
    pub balancing: Option<Balancing>,
    /// Empty if there is none.
    pub service_url: Box<str>,
}

/// A route and its members.
#[derive(Debug)]
pub struct RouteEntry {
    /// In the order of their first registration.
    pub members: Vec<RegisteredMember>,
    pub options: RouteOptions,
    /// The time of the latest message about the route.
    pub touched: Instant,
}

/// A change that follows from a message. Changes are applied in order.
#[derive(Debug, PartialEq)]
pub enum RouteChange {
    /// The route is there, without members.
    Opened(RouteKey),
    /// A member joins. It replaces the member with the same address, if there is one.
    Joined(RouteKey, Arc<RegistrarFacts>),
    /// The member with this address leaves.
    Left(RouteKey, Box<str>, Departure),
    /// The options of the route have changed.
    Ruled(RouteKey, RouteOptions),
    /// The route, which has no members any more, is removed.
    Closed(RouteKey),
}

/// Why a member leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    Unregistered,
    Silent,
    Failed,
    /// It was silent, and the lookup of its name has failed.
    Unfound,
}

/// The routes of one host, sorted by path. Most hosts have one route, so a list is smaller than a tree or a hash table.
#[derive(Debug, Default)]
struct Routes(Vec<(Box<str>, RouteEntry)>);

#[derive(Debug)]
pub struct Registry {
    rules: RegistrationRules,
    hosts: HashMap<HostPattern, Routes>,
    /// The number of the connection over which clients could register until now.
    connection: Option<u64>,
    suspended: bool,
    pruned: u64,
    routes: usize,
    bytes: u64,
}

impl Registry {
    pub fn new(rules: RegistrationRules) -> Self {
        Self {
            rules,
            hosts: HashMap::new(),
            connection: None,
            suspended: false,
            pruned: 0,
            routes: 0,
            bytes: 0,
        }
    }

    /// A client registers, for the first time or again.
    pub fn register(&mut self, message: &Registration, now: Instant) -> (Vec<RouteChange>, Vec<IgnoredPart>) {
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

    /// Checks the limits for a new member and counts it.
    fn make_room(&mut self, key: &RouteKey, member: &RegisteredMember) -> Result<(), IgnoredPart> {
        let entry = self.entry(key);
        let before = entry.and_then(|entry| entry.member(&member.facts.address)).map(RegisteredMember::bytes);
        let is_new_route = entry.is_none();
        let route = if is_new_route { key.bytes() } else { 0 };
        let bytes = (self.bytes + route + member.bytes()).saturating_sub(before.unwrap_or(0));
        if is_new_route && self.routes >= self.rules.max_routes {
            return Err(IgnoredPart::MostRoutes(self.rules.max_routes));
        }
        // A known member stays even above the memory limit: the size of its message is limited.
        if before.is_none() && bytes > self.rules.max_memory {
            return Err(IgnoredPart::MostMemory(self.rules.max_memory));
        }
        self.routes += usize::from(is_new_route);
        self.bytes = bytes;
        Ok(())
    }

    /// A client unregisters. Only its address and its URIs count.
    pub fn unregister(
        &mut self,
        message: &Registration,
        now: Instant,
    ) -> (Vec<RouteChange>, Vec<IgnoredPart>) {
        let (mut changes, mut odd) = (Vec::new(), Vec::new());
        if self.takes(message) {
            let address = facts::address(&message.host, message.chosen_port());
            for key in keys(message, self.rules.folds_paths, &mut odd) {
                self.remove(key, &address, Departure::Unregistered, now, &mut changes);
            }
        }
        (changes, odd)
    }

    /// Where a registration puts its member: a route and the address in it, for each URI.
    pub fn places(&self, message: &Registration) -> Vec<(RouteKey, Box<str>)> {
        let keys = self.takes(message).then(|| keys(message, self.rules.folds_paths, &mut Vec::new()));
        let address = facts::address(&message.host, message.chosen_port());
        keys.into_iter().flatten().map(|key| (key, address.as_str().into())).collect()
    }

    /// Clients can register over the connection with this number. If it is a new one, the time of every member starts again: between two
    /// connections no member could register, however short that time was.
    pub fn connected(&mut self, connection: u64, now: Instant) {
        let is_new = self.connection.replace(connection) != Some(connection);
        if is_new && self.rules.suspend_pruning {
            let entries = self.hosts.values_mut().flat_map(|routes| &mut routes.0);
            let members = entries.flat_map(|(_, entry)| &mut entry.members);
            members.for_each(|member| member.updated = now);
        }
    }

    /// Removes stale members. `connection` is the number of the connection to NATS; without one all stay.
    pub fn prune(&mut self, connection: Option<u64>, now: Instant) -> Vec<RouteChange> {
        match connection {
            Some(connection) => self.connected(connection, now),
            None if self.rules.suspend_pruning => {
                self.suspended = true;
                return Vec::new();
            }
            None => {}
        }
        self.suspended = false;
        let mut changes = Vec::new();
        let mut freed = 0;
        for (host, routes) in &mut self.hosts {
            for (path, entry) in &mut routes.0 {
                let key = || RouteKey { host: host.clone(), path: path.clone() };
                let stale = entry.members.extract_if(.., |member| member.is_stale(now));
                let before = changes.len();
                changes.extend(stale.map(|member| {
                    freed += member.bytes();
                    RouteChange::Left(key(), member.facts.address.clone(), Departure::Silent)
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

    pub fn iter(&self) -> impl Iterator<Item = (&HostPattern, &str, &RouteEntry)> {
        self.hosts
            .iter()
            .flat_map(|(host, routes)| routes.iter().map(move |(path, entry)| (host, path, entry)))
    }

    pub fn entry(&self, key: &RouteKey) -> Option<&RouteEntry> {
        let routes = self.hosts.get(&key.host)?;
        routes.find(&key.path).ok().map(|at| &routes.0[at].1)
    }

    pub fn paths(&self, host: &HostPattern) -> impl Iterator<Item = (&str, &RouteEntry)> {
        self.hosts.get(host).into_iter().flat_map(Routes::iter)
    }

    fn remove(
        &mut self,
        key: RouteKey,
        address: &str,
        why: Departure,
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
        changes.push(RouteChange::Left(key.clone(), address.into(), why));
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

    /// Stores the latest registration of a member. True if it differs from the one before.
    fn put(&mut self, new: RegisteredMember) -> bool {
        match self.members.iter_mut().find(|old| old.facts.address == new.facts.address) {
            None => {
                self.members.push(new);
                true
            }
            Some(old) => {
                let is_news = old.facts != new.facts;
                // Keeps the old `Arc` where nothing has changed, so that others go on sharing it.
                let facts = if is_news { new.facts } else { old.facts.clone() };
                *old = RegisteredMember { facts, ..new };
                is_news
            }
        }
    }
}

impl RegisteredMember {
    fn bytes(&self) -> u64 {
        // The route service URL is stored in the route's options too.
        self.facts.bytes() + (2 * self.service_url.len() + self.balancing.len()) as u64
    }

    fn is_stale(&self, now: Instant) -> bool {
        !self.facts.tls && now > self.updated + self.ttl
    }
}

#[cfg(test)]
mod tests;
