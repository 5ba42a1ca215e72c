//! The Status: one snapshot of the counters of all parts of the program. Does not know in which format it is shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use hostler_coding::{EncoderMemory, Usage};
use hostler_config::tls::{Certificate, Terminator};
use hostler_config::{Conditions, MatchPattern};
use hostler_dispatch::{Pool, PoolSnapshot};
use hostler_engine::cache::SharedCache;
use hostler_engine::exchange::{
    ClientsView, Connections, Counters, CountersView, CutView, HandshakesView, LedgerView, MemoryBudget,
    MemoryView, RecentExchanges, RouteAccount, Spool, SpoolView,
};
use hostler_engine::gateway::{
    EarlyHints, ExpectedCosts, FairKeys, FairView, Health, HealthView, HedgeView, Hedging, HintsView,
    KeptOff, OrderView, Poison, RateLimitView, RateLimiter, Stickiness, StickyView, SuspectsView,
};
use hostler_engine::journal::{self, Journal};
use hostler_engine::proxy::{Checked, Endpoint, Meter, Times};
use hostler_native::geo::{Geo, GeoStatus};
use hostler_native::postal::{Postal, PostalStatus};
use hostler_worker::{
    Boots, RolloutSnapshot, ScalingSnapshot, Supervisor, WorkerMemory, WorkerSnapshot, resident_bytes,
};
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;
use tokio::time::Instant;

use super::advice::AdviceView;
use super::cache::CacheReport;
use super::machine::MachineStatus;
use super::process::ProcessStatus;
use super::registrations::{RegisteredStatus, Registrations};
use super::temp_free::TempFree;

use crate::traces::{Tracer, TracesView};
/// The parts that the Status reads.
pub struct Sources {
    /// When the program began to listen.
    pub started: Instant,
    /// The same moment by the time of day.
    pub started_at: Timestamp,
    pub connections: Arc<Connections>,
    /// The budget for request bodies.
    pub request_memory: Arc<MemoryBudget>,
    /// The budget for answers that wait for their clients.
    pub answer_memory: Arc<MemoryBudget>,
    /// The exchanges that have just ended, while the live page is open.
    pub recent: Arc<RecentExchanges>,
    /// What health checks are told.
    pub health: Arc<Health>,
    pub journal: Journal,
    /// Exports traces. None if they are off.
    pub tracer: Option<Arc<Tracer>>,
    /// Counters of compression.
    pub encoding: Arc<EncoderMemory>,
    /// The files for bodies and answers that do not fit into memory.
    pub spool: Arc<Spool>,
    /// The room on the disk of these files.
    pub temp_free: Arc<TempFree>,
    /// Sorted by name.
    pub pools: ArcSwap<Vec<PoolSource>>,
    /// In the order of the configuration.
    pub routes: ArcSwap<Vec<RouteSource>>,
    /// Counters of requests that match no route.
    pub unrouted: Arc<Counters>,
    /// The result of the last reload.
    pub last_reload: ArcSwapOption<LastReload>,
    /// None if the configuration has no registrar.
    pub registrations: Option<Registrations>,
    /// None if the configuration has no `[geo]`.
    pub geo: ArcSwapOption<Geo>,
    /// The stored answers.
    pub shared_cache: Arc<SharedCache>,
    /// None if the configuration has no `[postal]`.
    pub postal: ArcSwapOption<Postal>,
    /// The certificates that TLS clients are shown.
    pub tls: Option<Arc<Terminator>>,
    /// What is wrong now, as found at the last look.
    pub advice: ArcSwap<Vec<AdviceView>>,
}

/// A configured route in the Status.
#[derive(Clone)]
pub struct RouteSource {
    /// Its name: the pattern with what its conditions are about.
    pub pattern: Arc<str>,
    /// The pattern and the conditions. No other route has both.
    pub matching: (MatchPattern, Option<Conditions>),
    /// A description of the target.
    pub target: String,
    /// The pool, if the target is one.
    pub pool: Option<Arc<str>>,
    pub counters: Arc<Counters>,
    /// What its requests have cost its pool. None if the target is no pool.
    pub account: Option<Arc<RouteAccount>>,
    /// None if the route has no limit of its own.
    pub rate_limit: Option<Arc<RateLimiter>>,
    /// None if the route has no Early Hints.
    pub early_hints: Option<Arc<EarlyHints>>,
}

/// The result of a reload.
#[derive(Debug, Clone, Serialize)]
pub struct LastReload {
    /// When the reload ended.
    pub at: jiff::Timestamp,
    /// False if a part could not be applied.
    pub ok: bool,
    /// What was done, or why nothing was done.
    pub text: Vec<String>,
}

/// A pool in the Status.
pub struct PoolSource {
    pub name: Arc<str>,
    pub pool: Pool<Endpoint>,
    /// The times of its requests.
    pub meter: Arc<Meter>,
    /// The requests that are kept off the pool.
    pub poison: Arc<Poison>,
    /// None if `sticky` is off.
    pub sticky: Option<Arc<Stickiness>>,
    /// None if the pool serves in order of arrival.
    pub fair: Option<Arc<FairKeys>>,
    /// None if the pool has no limit.
    pub rate_limit: Option<Arc<RateLimiter>>,
    /// None if no request is sent to a second member.
    pub hedging: Option<Arc<Hedging>>,
    /// None if the pool does not serve short requests first.
    pub costs: Option<Arc<ExpectedCosts>>,
    /// None if Hostler does not run the pool's members.
    pub supervisor: Option<Arc<Supervisor>>,
}

/// All that Hostler reports about itself at one moment. docs/guide/seeing.md describes each field.
#[derive(Debug, Serialize)]
pub struct Status {
    pub version: &'static str,
    pub pid: u32,
    pub state: &'static str,
    pub uptime_ms: u64,
    pub memory: Option<u64>,
    pub process: ProcessStatus,
    pub machine: MachineStatus,
    pub advice: Vec<AdviceView>,
    pub connections: ConnectionStatus,
    pub request_memory: MemoryView,
    pub answer_memory: MemoryView,
    pub health: HealthView,
    pub log: journal::WriterUsage,
    /// Traces of requests. None if they are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces: Option<TracesView>,
    pub compression: Usage,
    pub spool: SpoolView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_memory: Option<WorkerMemory>,
    pub pools: Vec<PoolStatus>,
    pub routes: Vec<RouteStatus>,
    pub unrouted: CountersView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered: Option<RegisteredStatus>,
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
    pub streams: usize,
    pub refused: usize,
    pub flooded: usize,
    pub cut: CutView,
    pub clients: ClientsView,
    pub handshakes: HandshakesView,
}

#[derive(Debug, Serialize)]
pub struct CertificateStatus {
    #[serde(serialize_with = "path_as_text")]
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
    pub scaling: Option<ScalingSnapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boots: Option<Boots>,
    pub kept_off: Vec<KeptOff>,
    pub suspects: SuspectsView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<StickyView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair: Option<FairView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitView>,
    pub ledger: LedgerView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hedge: Option<HedgeView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderView>,
    pub times: Times,
}

/// A worker, with the pool's counters of it as a member.
#[derive(Debug, Serialize)]
pub struct WorkerReportView {
    #[serde(flatten)]
    pub worker: WorkerSnapshot,
    pub slots: usize,
    pub in_use: usize,
    pub tunnels: usize,
    pub streams: usize,
    pub requests: u64,
}

#[derive(Debug, Serialize)]
pub struct RouteStatus {
    pub pattern: Arc<str>,
    pub target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitView>,
    /// The pool, if the target is one.
    #[serde(skip)]
    pub pool: Option<Arc<str>>,
    #[serde(flatten)]
    pub counters: CountersView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_hints: Option<HintsView>,
}

impl Sources {
    /// A snapshot of this moment.
    pub fn status(&self) -> Status {
        Status {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            state: if self.connections.is_draining() { "draining" } else { "running" },
            uptime_ms: self.started.elapsed().as_millis() as u64,
            memory: resident_bytes(std::process::id()),
            process: ProcessStatus::now(self.started_at),
            machine: MachineStatus::now(self.temp_free.bytes()),
            advice: self.advice.load().to_vec(),
            connections: ConnectionStatus {
                open: self.connections.open(),
                tunnels: self.connections.tunnels(),
                streams: self.connections.streams(),
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
            traces: self.tracer.as_ref().map(|tracer| tracer.view()),
            compression: self.encoding.usage(),
            spool: self.spool.view(),
            cache: super::cache::status(&self.shared_cache),
            worker_memory: self.worker_memory(),
            pools: self.pools.load().iter().map(PoolSource::status).collect(),
            routes: self.routes.load().iter().map(route_status).collect(),
            unrouted: self.unrouted.view(),
            registered: self.registrations.as_ref().map(Registrations::figures),
            registrar: self.registrations.as_ref().map(|registrations| (registrations.status)()),
            last_reload: self.last_reload.load().as_deref().cloned(),
            geo: self.geo.load().as_ref().map(|geo| geo.status()),
            postal: self.postal.load().as_ref().map(|postal| postal.status()),
            certificates: self.tls.iter().flat_map(|tls| certificates(tls)).collect(),
        }
    }

    /// None: no pool has workers.
    fn worker_memory(&self) -> Option<WorkerMemory> {
        let pools = self.pools.load();
        pools.iter().find_map(|pool| pool.supervisor.as_ref()).map(|supervisor| supervisor.worker_memory())
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

    fn ledger(&self) -> LedgerView {
        self.pool.settle_idle();
        self.meter.ledger.view(self.fair.as_ref().map(|fair| fair.costs()), Instant::now())
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
                streams: member.map_or(0, |member| member.streams),
                // Those of a member that has left are among the earlier ones.
                requests: worker.earlier_requests
                    + member.filter(|member| !member.left).map_or(0, |member| member.granted),
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
            scaling: self.supervisor.as_ref().and_then(|supervisor| supervisor.scaling()),
            boots: self.supervisor.as_ref().map(|supervisor| supervisor.boots()),
            kept_off: self.poison.kept_off(),
            suspects: self.poison.view(),
            sticky: self.sticky.as_ref().map(|sticky| sticky.view()),
            fair: self.fair.as_ref().map(|fair| fair.view()),
            rate_limit: self.rate_limit.as_ref().map(|limit| limit.view()),
            ledger: self.ledger(),
            hedge: self.hedging.as_ref().map(|hedging| hedging.view()),
            order: self.costs.as_ref().map(|costs| costs.view()),
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
        rate_limit: route.rate_limit.as_ref().map(|limit| limit.view()),
        pool: route.pool.clone(),
        counters: route.counters.view(),
        early_hints: route.early_hints.as_ref().map(|hints| hints.view(route.counters.early_hints())),
    }
}

/// A path may have bytes that are not UTF-8. Without this, nothing of the whole Status would be written then.
fn path_as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn a_certificate_in_a_folder_whose_name_is_not_utf_8_is_in_the_status() {
        let file = PathBuf::from(OsString::from_vec(b"/srv/caf\xe9/cert.pem".to_vec()));
        let status = CertificateStatus { file, names: Vec::new(), valid_from: None, valid_until: None };
        assert_eq!(serde_json::to_value(&status).unwrap()["file"], "/srv/caf\u{fffd}/cert.pem");
    }
}
