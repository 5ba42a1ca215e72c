//! The routing table, made of configured and registered routes, which change independently. Knows no registrations.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_config::{Config, HostPattern, MatchPattern, PathPattern};
use hostler_engine::gateway::{Gateway, Route};
use hostler_engine::journal::{Journal, Level};
use hostler_engine::route::Table;
use tokio::time::sleep;

use hostler_gorouter::registrar::ServedRoute;

/// How often a replaced table is checked until no thread reads it any more.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How many routes that are not served the log names at most.
const MAX_LOGGED: usize = 100;

pub(super) struct Tables {
    gateway: Arc<Gateway>,
    journal: Journal,
    parts: Mutex<TableParts>,
}

#[derive(Default)]
struct TableParts {
    /// Paths are compared without regard to case.
    folds_paths: bool,
    /// A registered route may have a longer path below a configured one.
    allows_longer: bool,
    /// Registered routes that the log has named as not served.
    told: HashSet<String>,
    configured: HashMap<Option<HostPattern>, Vec<(PathPattern, Arc<Route>)>>,
    registered: HashMap<HostPattern, Vec<ServedRoute>>,
}

impl Tables {
    pub fn new(gateway: Arc<Gateway>, folds_paths: bool, config: &Config, journal: &Journal) -> Self {
        let allows_longer = config.registrar.as_ref().is_some_and(|registrar| registrar.allow_longer_paths);
        let parts = TableParts { folds_paths, allows_longer, ..TableParts::default() };
        Self { gateway, journal: journal.clone(), parts: Mutex::new(parts) }
    }

    /// Registered routes that are not served, because a configured route of the same host has their paths.
    pub fn not_served(&self) -> BTreeSet<String> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).not_served()
    }

    /// Replaces all configured routes.
    pub fn configure(&self, routes: Vec<(MatchPattern, Arc<Route>)>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if !routes.is_empty() {
            self.gateway.health.set_waits_for_routes(false);
        }
        parts.configured.clear();
        for (pattern, route) in routes {
            parts.configured.entry(pattern.host).or_default().push((pattern.path, route));
        }
        let mut table = if parts.folds_paths { Table::folding_paths() } else { Table::default() };
        let hosts: HashSet<_> =
            parts.registered.keys().cloned().map(Some).chain(parts.configured.keys().cloned()).collect();
        hosts.into_iter().for_each(|host| table.set(host.as_ref(), parts.paths(host.as_ref())));
        self.tell(&mut parts);
        self.swap(table);
    }

    /// Sets whether no program could register a route yet. Without configured routes, Hostler is not ready until one could.
    pub fn wait_for_registrations(&self, waits: bool) {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        self.gateway.health.set_waits_for_routes(waits && parts.configured.is_empty());
    }

    /// Replaces the registered routes of these hosts. Other hosts stay unchanged.
    pub fn register(&self, changed: Vec<(HostPattern, Vec<ServedRoute>)>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = (**self.gateway.routes.load()).clone();
        for (host, served) in changed {
            match served.is_empty() {
                true => drop(parts.registered.remove(&host)),
                false => drop(parts.registered.insert(host.clone(), served)),
            }
            table.set(Some(&host), parts.paths(Some(&host)));
        }
        self.tell(&mut parts);
        self.swap(table);
    }

    /// Logs once for each route that it is not served.
    fn tell(&self, parts: &mut TableParts) {
        for route in parts.not_served() {
            if parts.told.len() < MAX_LOGGED && parts.told.insert(route.clone()) {
                let why = "a configured route of this host has its paths (registrar.allow_longer_paths)";
                self.journal.event(Level::Warn, &format!("registrar: route {route} is not served: {why}"));
            }
        }
    }

    /// Swaps the table. A task keeps the old table until no thread reads it. So it is not freed on a data-plane thread: that takes long.
    fn swap(&self, table: Table<Arc<Route>>) {
        let old = self.gateway.routes.swap(Arc::new(table));
        tokio::spawn(async move {
            while Arc::strong_count(&old) > 1 {
                sleep(POLL_INTERVAL).await;
            }
        });
    }
}

impl TableParts {
    /// Whether a configured route of the same host has its paths. A route with conditions leaves those requests to others that do not meet
    /// them.
    fn is_shadowed(&self, host: Option<&HostPattern>, served: &ServedRoute) -> bool {
        let configured = self.configured.get(&host.cloned()).into_iter().flatten();
        let configured = configured.filter(|(_, route)| route.when.is_none());
        let is_above = |(path, _): &(PathPattern, _)| match (path, self.folds_paths) {
            (PathPattern::Prefix(path), true) => {
                is_above(&PathPattern::Prefix(path.to_ascii_lowercase()), &served.path)
            }
            _ => is_above(path, &served.path),
        };
        !self.allows_longer && configured.into_iter().any(is_above)
    }

    fn not_served(&self) -> BTreeSet<String> {
        let mut not_served = BTreeSet::new();
        for host in self.configured.keys().flatten() {
            let served = self.registered.get(host).into_iter().flatten();
            for served in served.filter(|served| self.is_shadowed(Some(host), served)) {
                not_served.insert(served.route.pattern.to_string());
            }
        }
        not_served
    }

    /// The routes of a host: configured before registered. A registered route without members counts only where no other route matches.
    fn paths(&self, host: Option<&HostPattern>) -> Vec<(PathPattern, Arc<Route>)> {
        let configured = self.configured.get(&host.cloned()).into_iter().flatten();
        let mut paths: Vec<_> = configured.map(|(path, route)| (path.clone(), route.clone())).collect();
        let served = host.and_then(|host| self.registered.get(host)).into_iter().flatten();
        let served = served.filter(|served| !self.is_shadowed(host, served));
        let (empty, full): (Vec<&ServedRoute>, Vec<&ServedRoute>) =
            served.partition(|served| served.is_empty);
        paths.extend(full.into_iter().map(prefix));
        let unserved = empty.into_iter().filter(|served| {
            !paths.iter().any(|(path, route)| route.when.is_none() && is_above(path, &served.path))
        });
        let unserved: Vec<_> = unserved.map(prefix).collect();
        paths.extend(unserved);
        paths
    }
}

fn prefix(served: &ServedRoute) -> (PathPattern, Arc<Route>) {
    (PathPattern::Prefix(served.path.to_string()), served.route.clone())
}

/// Whether a path includes everything below the other one.
fn is_above(path: &PathPattern, below: &str) -> bool {
    match path {
        PathPattern::Exact(_) => false,
        PathPattern::Prefix(prefix) => {
            below.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
    }
}
