//! Health checks of Hostler itself: is it alive, has it started, is it ready, and can a pool serve. Knows neither how the checks arrive nor
//! what runs the members.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use hostler_dispatch::Pool;
use hostler_wire::{ResponseHead, Whole};
use serde::Serialize;

use crate::exchange::Connections;
use crate::proxy::Endpoint;

/// What a health check asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthProbe {
    /// Whether the process works. No pool and no drain changes the answer; if it fails, a restart helps.
    Live,
    /// Whether all pools that count have had a ready member at the same time, at least once since the start.
    Startup,
    /// Whether Hostler takes new clients, may have routes, and all pools that count have a ready member.
    Ready,
    /// Like `Ready`, for one pool that a route uses.
    Pool(String),
}

/// A pool that a route uses.
#[derive(Clone)]
pub struct Watched {
    pub name: Arc<str>,
    pub pool: Pool<Endpoint>,
    /// The members are workers of this Hostler.
    pub has_workers: bool,
    /// Hostler is not ready while this pool has no ready member.
    pub counts: bool,
}

/// The state behind all health checks. There is one.
pub struct Health {
    connections: Arc<Connections>,
    /// None before the first routes are in force.
    pools: ArcSwapOption<Vec<Watched>>,
    /// There are no routes, because no program could register one yet.
    waits_for_routes: AtomicBool,
    has_started: AtomicBool,
    asked: AtomicU64,
    failed: AtomicU64,
}

/// Health in the status.
#[derive(Debug, Clone, Serialize)]
pub struct HealthView {
    /// The result of [`HealthProbe::Ready`].
    pub ready: bool,
    /// Why Hostler is not ready, one sentence each.
    pub why: Vec<String>,
    /// All pools that count have been ready at the same time.
    pub started: bool,
    /// Health checks so far.
    pub checks: u64,
    /// Health checks that were answered with 503.
    pub failed: u64,
    /// Hostler was told to stop, so it is not ready on purpose.
    #[serde(skip)]
    pub ending: bool,
}

impl HealthView {
    /// Why Hostler is not ready, unless that is on purpose.
    pub fn faults(&self) -> &[String] {
        if self.ending { &[] } else { &self.why }
    }
}

impl Health {
    /// No pool is known yet. `connections` knows whether the drain has begun.
    pub fn new(connections: Arc<Connections>) -> Self {
        Self {
            connections,
            pools: ArcSwapOption::empty(),
            waits_for_routes: AtomicBool::new(false),
            has_started: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Sets the pools that routes use.
    pub fn watch(&self, pools: Vec<Watched>) {
        self.pools.store(Some(Arc::new(pools)));
    }

    /// Sets whether all routes are still to come from other programs: until then, clients get only refusals.
    pub fn set_waits_for_routes(&self, waits: bool) {
        self.waits_for_routes.store(waits, Ordering::Relaxed);
    }

    /// Runs one check and counts it. None: there is no such pool.
    pub fn ask(&self, probe: &HealthProbe) -> Option<Result<(), Vec<String>>> {
        let outcome = match probe {
            HealthProbe::Live => Ok(()),
            HealthProbe::Startup => self.started(),
            HealthProbe::Ready => self.ready(),
            HealthProbe::Pool(name) => self.pool(name)?,
        };
        self.asked.fetch_add(1, Ordering::Relaxed);
        if outcome.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        Some(outcome)
    }

    /// The result as an HTTP answer, with the reasons in its body.
    pub fn answer(&self, probe: &HealthProbe) -> Whole {
        match self.ask(probe) {
            Some(Ok(())) => plain(200, "ok\n".into()),
            Some(Err(why)) => plain(503, lines(&why)),
            None => plain(404, "no route leads to a pool of this name\n".into()),
        }
    }

    /// For the status. Not counted as a check.
    pub fn view(&self) -> HealthView {
        let why = self.ready().err().unwrap_or_default();
        HealthView {
            ready: why.is_empty(),
            why,
            started: self.started().is_ok(),
            checks: self.asked.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            ending: self.ending().is_some(),
        }
    }

    fn ready(&self) -> Result<(), Vec<String>> {
        let waits = self.waits_for_routes.load(Ordering::Relaxed);
        let waits = waits.then(|| "starting: no program could register a route yet".to_owned());
        none(self.ending().into_iter().chain(waits).chain(self.missing()).collect())
    }

    fn started(&self) -> Result<(), Vec<String>> {
        if self.has_started.load(Ordering::Relaxed) { Ok(()) } else { none(self.missing()) }
    }

    fn ending(&self) -> Option<String> {
        self.connections.is_end_announced().then(|| "draining: no new clients".into())
    }

    /// One sentence for each pool that counts and cannot serve.
    fn missing(&self) -> Vec<String> {
        let Some(pools) = self.pools.load_full() else {
            return vec!["starting: no routes are in force yet".into()];
        };
        let missing: Vec<_> = pools.iter().filter(|pool| pool.counts).filter_map(Watched::fault).collect();
        if missing.is_empty() {
            self.has_started.store(true, Ordering::Relaxed);
        }
        missing
    }

    fn pool(&self, name: &str) -> Option<Result<(), Vec<String>>> {
        let pools = self.pools.load_full()?;
        let pool = pools.iter().find(|pool| *pool.name == *name)?;
        Some(none(self.ending().into_iter().chain(pool.fault()).collect()))
    }
}

impl Watched {
    /// Why it cannot serve. Contains only names and numbers, because any client may ask.
    fn fault(&self) -> Option<String> {
        let (members, name) = (self.pool.reachable_members(), &self.name);
        match (members, self.has_workers) {
            (1.., _) => None,
            // The first request starts a worker.
            (0, true) if self.pool.is_asleep() => None,
            (0, true) => Some(format!("pool {name}: no worker is ready")),
            (0, false) => Some(format!("pool {name}: no member can be reached")),
        }
    }
}

fn none(why: Vec<String>) -> Result<(), Vec<String>> {
    if why.is_empty() { Ok(()) } else { Err(why) }
}

fn lines(why: &[String]) -> String {
    why.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

fn plain(status: u16, body: String) -> Whole {
    let mut head = ResponseHead::with_status(status);
    head.fields.add(b"Content-Type", b"text/plain; charset=utf-8");
    head.fields.add(b"Cache-Control", b"no-store");
    Whole::new(head, body.into_bytes())
}

#[cfg(test)]
mod tests {
    use hostler_dispatch::{Membership, PoolSettings};
    use hostler_wire::Address;

    use super::*;
    use crate::proxy::Meter;

    fn watched(name: &str, counts: bool) -> Watched {
        let pool = Pool::new(name, PoolSettings::default());
        Watched { name: name.into(), pool, has_workers: true, counts }
    }

    fn join(to: &Watched) -> Membership<Endpoint> {
        let dial = Address::Tcp("127.0.0.1".into(), 1).into();
        to.pool.join(Endpoint::new(dial, "1".into(), Arc::new(Meter::new(1)), 1, None), 1)
    }

    #[tokio::test]
    async fn readiness_needs_accepting_listeners_and_a_member_in_each_counted_pool() {
        let connections = Arc::new(Connections::default());
        let health = Health::new(connections.clone());
        let ready = |probe| health.ask(&probe).unwrap();
        assert_eq!(ready(HealthProbe::Startup), Err(vec!["starting: no routes are in force yet".into()]));
        let (web, api, extra) = (watched("web", true), watched("api", true), watched("extra", false));
        health.watch(vec![web.clone(), api.clone(), extra]);
        let _web = join(&web);
        let why = |pool: &str| Err(vec![format!("pool {pool}: no worker is ready")]);
        assert_eq!(ready(HealthProbe::Ready), why("api"));
        assert_eq!(ready(HealthProbe::Startup), why("api"));
        assert_eq!(ready(HealthProbe::Pool("web".into())), Ok(()));
        assert_eq!(ready(HealthProbe::Pool("extra".into())), why("extra"));
        assert_eq!(health.ask(&HealthProbe::Pool("none".into())), None);
        let in_api = join(&api);
        assert_eq!((ready(HealthProbe::Ready), ready(HealthProbe::Startup)), (Ok(()), Ok(())));
        drop(in_api);
        // `Startup` stays true after it was true once, and `Live` does not need workers.
        assert_eq!((ready(HealthProbe::Ready), ready(HealthProbe::Startup)), (why("api"), Ok(())));
        assert_eq!(health.view().faults(), ["pool api: no worker is ready"]);
        let in_api = join(&api);
        drop(in_api);
        assert!(api.pool.fall_asleep(&Arc::default()));
        assert_eq!(ready(HealthProbe::Ready), Ok(()), "a pool that is asleep can serve");
        connections.announce_end();
        for probe in [HealthProbe::Ready, HealthProbe::Pool("web".into())] {
            assert_eq!(ready(probe), Err(vec!["draining: no new clients".into()]));
        }
        assert_eq!((ready(HealthProbe::Startup), ready(HealthProbe::Live)), (Ok(()), Ok(())));
        let view = health.view();
        assert_eq!((view.ready, view.started, view.checks, view.failed), (false, true, 14, 7));
        assert!(view.faults().is_empty(), "it is on purpose");
    }
}
