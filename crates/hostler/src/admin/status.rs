//! The Status: one snapshot of everything, taken from the counters that every part keeps for itself. Knows no format.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use hostler_coding::{EncoderMemory, Usage};
use hostler_config::tls::{Certificate, Terminator};
use hostler_dispatch::{Pool, PoolSnapshot};
use hostler_engine::cache::Stock;
use hostler_engine::exchange::{
    ClientsView, Connections, Counters, CountersView, CutView, HandshakesView, MemoryBudget, MemoryView,
    Spool, SpoolView,
};
use hostler_engine::gateway::{Health, HealthView, KeptOff, Poison, SuspectsView};
use hostler_engine::journal::{self, Journal};
use hostler_engine::proxy::{Checked, Endpoint, Meter, Times};
use hostler_native::geo::{Geo, GeoStatus};
use hostler_native::postal::{Postal, PostalStatus};
use hostler_worker::{Boots, RolloutSnapshot, Supervisor, WorkerSnapshot, resident_bytes};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::cache::CacheReport;

/// Where the Status comes from.
pub struct Sources {
    /// When the program began to listen.
    pub started: Instant,
    /// Client connections.
    pub connections: Arc<Connections>,
    /// Memory for the bodies of requests.
    pub request_memory: Arc<MemoryBudget>,
    /// Memory for answers that wait for their clients.
    pub answer_memory: Arc<MemoryBudget>,
    /// What those are told who ask after our health.
    pub health: Arc<Health>,
    /// The log.
    pub journal: Journal,
    /// What encoding has done and costs.
    pub encoding: Arc<EncoderMemory>,
    /// Bodies and answers that do not fit into memory.
    pub spool: Arc<Spool>,
    /// All pools, in the order of their names.
    pub pools: ArcSwap<Vec<PoolSource>>,
    /// All routes, in the order written.
    pub routes: ArcSwap<Vec<RouteSource>>,
    /// What no route matched.
    pub unrouted: Arc<Counters>,
    /// What came of the last reload.
    pub last_reload: ArcSwapOption<LastReload>,
    /// Routes that register themselves; none: they do not.
    pub registrations: Option<Registrations>,
    /// Where addresses are looked up; none: nowhere.
    pub geo: ArcSwapOption<Geo>,
    /// Stored answers.
    pub stock: Arc<Stock>,
    /// Where postal codes are looked up; none: nowhere.
    pub postal: ArcSwapOption<Postal>,
    /// What is shown to clients that speak TLS.
    pub tls: Option<Arc<Terminator>>,
}

/// Where the registrar is asked.
pub struct Registrations {
    /// Its part of the Status.
    pub status: Box<dyn Fn() -> Value + Send + Sync>,
    /// Its routes, as gorouter answers `/routes`.
    pub routes: Box<dyn Fn() -> Value + Send + Sync>,
    /// Its routes, a row each, in the order of their names.
    pub table: Box<dyn Fn() -> Vec<Value> + Send + Sync>,
}

/// Where a route's part comes from.
#[derive(Clone)]
pub struct RouteSource {
    /// Its name.
    pub pattern: Arc<str>,
    /// What it leads to, in words.
    pub target: String,
    /// The name of the pool that it leads to.
    pub pool: Option<Arc<str>>,
    /// What it has answered.
    pub counters: Arc<Counters>,
}

/// What came of a reload.
#[derive(Debug, Clone, Serialize)]
pub struct LastReload {
    /// When it ended.
    pub at: jiff::Timestamp,
    /// Whether all was applied that can be.
    pub ok: bool,
    /// What was done, or why nothing was.
    pub text: Vec<String>,
}

/// Where a pool's part comes from.
pub struct PoolSource {
    /// Its name.
    pub name: Arc<str>,
    /// Queue and members.
    pub pool: Pool<Endpoint>,
    /// Its times.
    pub meter: Arc<Meter>,
    /// What is kept off it.
    pub poison: Arc<Poison>,
    /// Its workers, unless somebody else runs its members.
    pub supervisor: Option<Arc<Supervisor>>,
}

/// Everything that Hostler knows about itself at one moment.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "docs/guide/seeing.md describes each field")]
pub struct Status {
    pub version: &'static str,
    pub pid: u32,
    pub state: &'static str,
    pub uptime_ms: u64,
    pub memory: Option<u64>,
    pub connections: ConnectionStatus,
    pub request_memory: MemoryView,
    pub answer_memory: MemoryView,
    pub health: HealthView,
    pub log: journal::WriterUsage,
    pub compression: Usage,
    pub spool: SpoolView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheReport>,
    pub pools: Vec<PoolStatus>,
    pub routes: Vec<RouteStatus>,
    pub unrouted: CountersView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registrar: Option<Value>,
    pub last_reload: Option<LastReload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geo: Option<GeoStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postal: Option<PostalStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<CertificateStatus>,
}

#[derive(Debug, Serialize)]
pub struct ConnectionStatus {
    pub open: usize,
    pub tunnels: usize,
    pub refused: usize,
    pub flooded: usize,
    pub cut: CutView,
    pub clients: ClientsView,
    pub handshakes: HandshakesView,
}

#[derive(Debug, Serialize)]
pub struct CertificateStatus {
    pub file: PathBuf,
    pub names: Vec<String>,
    pub valid_from: Option<Timestamp>,
    pub valid_until: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
pub struct PoolStatus {
    pub name: Arc<str>,
    #[serde(flatten)]
    pub queue: PoolSnapshot<Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub health_checks: Vec<Checked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<Vec<WorkerReportView>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spares: Vec<WorkerReportView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutSnapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boots: Option<Boots>,
    pub kept_off: Vec<KeptOff>,
    pub suspects: SuspectsView,
    pub times: Times,
}

/// A worker, with what the pool knows of it as a member.
#[derive(Debug, Serialize)]
pub struct WorkerReportView {
    #[serde(flatten)]
    pub worker: WorkerSnapshot,
    pub slots: usize,
    pub in_use: usize,
    pub tunnels: usize,
    pub requests: u64,
}

#[derive(Debug, Serialize)]
pub struct RouteStatus {
    pub pattern: Arc<str>,
    pub target: String,
    #[serde(flatten)]
    pub counters: CountersView,
}

impl Sources {
    /// The Status of this moment.
    pub fn status(&self) -> Status {
        Status {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            state: if self.connections.is_draining() { "draining" } else { "running" },
            uptime_ms: self.started.elapsed().as_millis() as u64,
            memory: resident_bytes(std::process::id()),
            connections: ConnectionStatus {
                open: self.connections.open(),
                tunnels: self.connections.tunnels(),
                refused: self.connections.refused(),
                handshakes: self.connections.handshakes.view(),
                flooded: self.connections.flooded(),
                cut: self.connections.cut.view(),
                clients: self.connections.clients.view(),
            },
            request_memory: self.request_memory.view(),
            answer_memory: self.answer_memory.view(),
            health: self.health.view(),
            log: self.journal.usage(),
            compression: self.encoding.usage(),
            spool: self.spool.view(),
            cache: super::cache::status(&self.stock),
            pools: self.pools.load().iter().map(PoolSource::status).collect(),
            routes: self.routes.load().iter().map(route_status).collect(),
            unrouted: self.unrouted.view(),
            registrar: self.registrations.as_ref().map(|registrations| (registrations.status)()),
            last_reload: self.last_reload.load().as_deref().cloned(),
            geo: self.geo.load().as_ref().map(|geo| geo.status()),
            postal: self.postal.load().as_ref().map(|postal| postal.status()),
            certificates: self.tls.iter().flat_map(|tls| certificates(tls)).collect(),
        }
    }
}

impl PoolSource {
    fn health_checks(&self) -> Vec<Checked> {
        if self.supervisor.is_some() {
            return Vec::new();
        }
        let members = self.pool.snapshot_with(Endpoint::checked).members;
        members.into_iter().filter_map(|member| member.endpoint).collect()
    }

    fn status(&self) -> PoolStatus {
        let queue = self.pool.snapshot_with(|endpoint| endpoint.label.clone());
        let with_member = |worker: WorkerSnapshot| {
            let mut members = queue.members.iter().map(|member| &member.figures);
            let member = members.find(|member| Some(member.id) == worker.member);
            WorkerReportView {
                slots: member.map_or(0, |member| member.slots),
                in_use: member.map_or(0, |member| member.in_use),
                tunnels: member.map_or(0, |member| member.tunnels),
                requests: member.map_or(0, |member| member.granted),
                worker,
            }
        };
        let (workers, spares) = match &self.supervisor {
            Some(supervisor) => {
                let [workers, spares] = [supervisor.snapshot(), supervisor.spares()]
                    .map(|all| all.into_iter().map(with_member).collect());
                (Some(workers), spares)
            }
            None => (None, Vec::new()),
        };
        PoolStatus {
            name: self.name.clone(),
            queue,
            health_checks: self.health_checks(),
            workers,
            spares,
            rollout: self.supervisor.as_ref().map(|supervisor| supervisor.rollout()),
            boots: self.supervisor.as_ref().map(|supervisor| supervisor.boots()),
            kept_off: self.poison.kept_off(),
            suspects: self.poison.view(),
            times: self.meter.times(),
        }
    }
}

fn certificates(tls: &Terminator) -> Vec<CertificateStatus> {
    let status = |certificate: &Certificate| CertificateStatus {
        file: certificate.path.clone(),
        names: certificate.names.clone(),
        valid_from: certificate.valid.map(|valid| valid.from),
        valid_until: certificate.valid.map(|valid| valid.until),
    };
    tls.shown().iter().map(status).collect()
}

fn route_status(route: &RouteSource) -> RouteStatus {
    RouteStatus {
        pattern: route.pattern.clone(),
        target: route.target.clone(),
        counters: route.counters.view(),
    }
}
