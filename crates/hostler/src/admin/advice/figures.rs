//! The figures that advice needs, taken from one Status. Small enough to be kept for a minute. Knows no advice.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::PoolCounters;
use hostler_engine::exchange::{ClientsView, CutView, MemoryView, SpoolView};
use hostler_engine::gateway::FairView;
use hostler_worker::{Boots, HeapUse, HeavyStart, LoopDelay, WorkerMemory, WorkerState};
use jiff::Timestamp;
use serde_json::Value;

use super::super::cache::CacheReport;
use super::super::machine::MachineStatus;
use super::super::newest::{newest, replaced};
use super::super::status::{
    CertificateStatus, LastReload, PoolStatus, RouteStatus, Status, WorkerReportView,
};
use super::times::TimeFigures;

/// One Status, as far as advice needs it.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// The clock of all advice: the time since Hostler began to serve.
    pub uptime: Duration,
    pub time: Timestamp,
    pub draining: bool,
    pub machine: MachineStatus,
    pub open_files: Option<u64>,
    pub max_files: Option<u64>,
    pub log_dropped: u64,
    pub log_stuck: Option<Duration>,
    pub log_error: Option<Arc<str>>,
    pub health_failed: u64,
    pub not_ready: Vec<String>,
    pub connections_refused: u64,
    pub flooded: u64,
    pub cut: CutView,
    pub clients: ClientsView,
    pub handshakes: u64,
    pub handshakes_failed: BTreeMap<&'static str, u64>,
    pub request_memory: MemoryView,
    pub spool: SpoolView,
    pub cache: Option<CacheFigures>,
    pub worker_memory: Option<WorkerMemory>,
    /// Hostler finds the number of workers of a pool, in a range.
    pub has_ranges: bool,
    pub pools: Vec<PoolFigures>,
    pub routes: Vec<RouteFigures>,
    /// Whether the registrar is connected to NATS. None: there is no registrar.
    pub registrar: Option<bool>,
    pub registered_routes: u64,
    pub last_reload: Option<LastReload>,
    pub certificates: Vec<CertificateFigures>,
}

/// A file of a certificate, and when it is valid.
#[derive(Debug, Clone)]
pub struct CertificateFigures {
    pub file: PathBuf,
    pub from: Timestamp,
    pub until: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub struct CacheFigures {
    pub bytes: u64,
    pub limit: u64,
    pub evicted: u64,
    pub memcached: Vec<MemcachedFigures>,
}

#[derive(Debug, Clone, Default)]
pub struct MemcachedFigures {
    pub server: Box<str>,
    pub away: Option<Box<str>>,
    /// Lookups with an answer.
    pub answered: u64,
    pub slow: u64,
}

#[derive(Debug, Clone, Default)]
pub struct PoolFigures {
    pub name: Arc<str>,
    pub counters: PoolCounters,
    pub queue_length: usize,
    pub queue_limit: usize,
    pub oldest_wait: Duration,
    pub paused: bool,
    pub asleep: bool,
    pub queue_wait: TimeFigures,
    pub worker_time: TimeFigures,
    /// Members that other programs serve.
    pub members: Vec<MemberOut>,
    /// None: the pool has members, and no workers.
    pub workers: Option<Vec<WorkerFigures>>,
    /// The states of old workers. Their successors are in `workers`.
    pub replaced: Vec<WorkerState>,
    /// The state of each spare. One that is ready serves in place of a worker.
    pub spares: Vec<WorkerState>,
    /// A restart is under way, or ended less than a minute ago.
    pub deploying: bool,
    /// Why the last restart failed.
    pub failed_restart: Option<String>,
    pub heavy_start: Option<HeavyStart>,
    /// The most workers of a range, if the range is used up.
    pub at_most: Option<usize>,
    pub boots: Boots,
    /// Requests that are refused because workers died of them.
    pub kept_off: Vec<Arc<str>>,
    /// The key of a fair pool that has cost the most in the last minute. None if there are no two keys.
    pub dearest: Option<KeyFigures>,
    pub is_fair: bool,
}

/// A key under which requests share the slots of a fair pool.
#[derive(Debug, Clone, Default)]
pub struct KeyFigures {
    pub key: String,
    /// Its part of the worker time of the last minute, in percent.
    pub share: f64,
}

/// A member that another program serves.
#[derive(Debug, Clone, Default)]
pub struct MemberOut {
    pub name: Arc<str>,
    /// Why it gets no requests.
    pub out: Option<String>,
}

/// The newest process of a worker's number.
#[derive(Debug, Clone)]
pub struct WorkerFigures {
    pub index: usize,
    pub generation: u64,
    pub state: WorkerState,
    pub crashes: u32,
    pub last_exit: Option<String>,
    pub last_error: Option<String>,
    pub recycled: Option<Arc<str>>,
    pub memory: Option<u64>,
    pub stack: Option<String>,
    pub hung_ago: Option<Duration>,
    pub loop_delay: Option<Duration>,
    pub heap: Option<HeapUse>,
    pub in_use: usize,
    /// Tunnels and streams.
    pub long_lived: usize,
    pub slots_reason: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct RouteFigures {
    pub pattern: Arc<str>,
    /// It leads to a pool. Otherwise all answers are Hostler's own, also those that the configuration fixes.
    pub has_app: bool,
    /// All answers.
    pub answers: u64,
    /// Those with a status of 500 and more.
    pub failed: u64,
    pub refusals: BTreeMap<&'static str, u64>,
    pub fallbacks: BTreeMap<&'static str, u64>,
    pub cache: BTreeMap<&'static str, u64>,
}

impl Figures {
    pub fn of(status: &Status) -> Self {
        let uptime = Duration::from_millis(status.uptime_ms);
        let registrar = status.registrar.as_ref();
        Self {
            uptime,
            time: Timestamp::now(),
            draining: status.state == "draining",
            machine: status.machine.clone(),
            open_files: status.process.open_files.map(|files| files as u64),
            max_files: status.process.max_files,
            log_dropped: status.log.dropped,
            log_stuck: status.log.stuck_ms.map(Duration::from_millis),
            log_error: status.log.last_error.clone(),
            health_failed: status.health.failed,
            not_ready: status.health.faults().to_vec(),
            connections_refused: status.connections.refused as u64,
            flooded: status.connections.flooded as u64,
            cut: status.connections.cut,
            clients: status.connections.clients,
            handshakes: status.connections.handshakes.completed,
            handshakes_failed: status.connections.handshakes.failed.clone(),
            request_memory: status.request_memory,
            spool: status.spool,
            cache: status.cache.as_ref().map(CacheFigures::of),
            worker_memory: status.worker_memory,
            has_ranges: status.pools.iter().any(|pool| pool.scaling.is_some()),
            pools: status.pools.iter().map(PoolFigures::of).collect(),
            routes: status.routes.iter().map(RouteFigures::of).collect(),
            registrar: registrar.and_then(|registrar| registrar["connected"].as_bool()),
            registered_routes: registrar.and_then(|registrar| registrar["routes"].as_u64()).unwrap_or(0),
            last_reload: status.last_reload.clone(),
            certificates: status.certificates.iter().filter_map(CertificateFigures::of).collect(),
        }
    }

    pub fn pool(&self, name: &str) -> Option<&PoolFigures> {
        self.pools.iter().find(|pool| *pool.name == *name)
    }

    pub fn route(&self, pattern: &str) -> Option<&RouteFigures> {
        self.routes.iter().find(|route| *route.pattern == *pattern)
    }
}

impl CertificateFigures {
    fn of(status: &CertificateStatus) -> Option<Self> {
        Some(Self { file: status.file.clone(), from: status.valid_from?, until: status.valid_until? })
    }
}

impl CacheFigures {
    fn of(report: &CacheReport) -> Self {
        let memcached = report.memcached.iter().map(|server| {
            let count = |name: &str| server.counts.get(name).and_then(Value::as_u64).unwrap_or(0);
            MemcachedFigures {
                server: server.server.clone(),
                away: server.why.clone(),
                answered: count("hits") + count("misses"),
                slow: count("slow"),
            }
        });
        let (bytes, limit, evicted) = (report.bytes, report.limit, report.evicted);
        Self { bytes, limit, evicted, memcached: memcached.collect() }
    }
}

impl PoolFigures {
    fn of(pool: &PoolStatus) -> Self {
        const LATELY: Duration = Duration::from_secs(60);
        let queue = &pool.queue;
        let rollout = pool.rollout.as_ref();
        let last = rollout.and_then(|rollout| rollout.last.as_ref());
        let scaling = pool.scaling.as_ref();
        Self {
            name: pool.name.clone(),
            counters: queue.counters,
            queue_length: queue.queue_length,
            queue_limit: queue.queue_limit,
            oldest_wait: queue.oldest_wait.unwrap_or_default(),
            paused: queue.paused,
            asleep: queue.asleep,
            queue_wait: TimeFigures::of(&pool.times.queue_wait),
            worker_time: TimeFigures::of(&pool.times.worker_time),
            members: if pool.workers.is_none() { members(pool) } else { Vec::new() },
            workers: pool.workers.as_deref().map(|all| newest(all, place).map(WorkerFigures::of).collect()),
            replaced: pool.workers.iter().flat_map(|all| replaced(all, place)).map(state).collect(),
            spares: pool.spares.iter().map(state).collect(),
            deploying: rollout.is_some_and(|rollout| rollout.running.is_some())
                || last.is_some_and(|last| last.ago < LATELY),
            failed_restart: last.filter(|last| !last.succeeded).map(|last| last.result.clone()),
            heavy_start: rollout.and_then(|rollout| rollout.heavy_start),
            at_most: scaling.filter(|scaling| scaling.wanted >= scaling.max).map(|scaling| scaling.max),
            boots: pool.boots.unwrap_or_default(),
            kept_off: pool.kept_off.iter().map(|kept_off| kept_off.request.clone()).collect(),
            dearest: pool.fair.as_ref().and_then(KeyFigures::of),
            is_fair: pool.fair.is_some(),
        }
    }
}

impl KeyFigures {
    fn of(fair: &FairView) -> Option<Self> {
        let [dearest, _, ..] = fair.keys.as_slice() else { return None };
        Some(Self { key: dearest.key.clone(), share: dearest.share_percent })
    }
}

fn members(pool: &PoolStatus) -> Vec<MemberOut> {
    let members = pool.queue.members.iter().filter(|member| !member.figures.left);
    let state = members.map(|member| {
        let figures = &member.figures;
        let failure = || {
            let checked = pool.health_checks.iter().find(|checked| checked.member == member.endpoint);
            let why = checked.and_then(|checked| checked.last_failure.as_deref());
            why.map_or("unhealthy".to_owned(), |why| format!("unhealthy: {why}"))
        };
        let out = match (figures.unhealthy, figures.ejected, figures.unreachable) {
            (true, ..) => Some(failure()),
            (_, true, _) => Some("ejected after timeouts".to_owned()),
            (.., true) => Some("unreachable".to_owned()),
            _ => None,
        };
        MemberOut { name: member.endpoint.clone(), out }
    });
    state.collect()
}

/// The 99th percentile, but the 90th of fewer than 100 answers: their 99th is the longest time, and a process that has just started is slow once.
fn usual_delay(delay: LoopDelay) -> Duration {
    if delay.answers >= 100 { delay.p99 } else { delay.p90 }
}

fn place(view: &WorkerReportView) -> (usize, u64) {
    (view.worker.index, view.worker.generation)
}

fn state(view: &WorkerReportView) -> WorkerState {
    view.worker.state
}

impl WorkerFigures {
    fn of(view: &WorkerReportView) -> Self {
        let worker = &view.worker;
        Self {
            index: worker.index,
            generation: worker.generation,
            state: worker.state,
            crashes: worker.crashes,
            last_exit: worker.last_exit.clone(),
            last_error: worker.last_error.clone(),
            recycled: worker.recycled.clone(),
            memory: worker.memory,
            stack: worker.stack.as_ref().and_then(|stack| stack.first().cloned()),
            hung_ago: worker.hung_ago,
            loop_delay: worker.node.event_loop_delay.map(usual_delay),
            heap: worker.node.heap_lately(),
            in_use: view.in_use,
            long_lived: view.tunnels + view.streams,
            slots_reason: worker.slots_reason.clone(),
        }
    }
}

impl PoolFigures {
    /// Whether a worker or a spare gets requests. One that retires gets no more.
    pub fn has_ready_worker(&self) -> bool {
        let workers = self.workers.iter().flatten().map(|worker| worker.state);
        let others = self.replaced.iter().chain(&self.spares).copied();
        workers.chain(others).any(|state| state == WorkerState::Ready)
    }

    /// Why the number in `concurrency` does not fit the app.
    pub fn misfit(&self) -> Option<&str> {
        let reasons = self.workers.iter().flatten().filter_map(|worker| worker.slots_reason.as_deref());
        // With `queue.fair`, the remedy is another number.
        let remedies = [": use concurrency", ": use a higher number in concurrency"];
        let why = |reason: &str| remedies.iter().find_map(|remedy| reason.find(remedy));
        reasons.into_iter().find_map(|reason| reason.get(..why(reason)?))
    }
}

impl RouteFigures {
    fn of(route: &RouteStatus) -> Self {
        let counters = &route.counters;
        Self {
            pattern: route.pattern.clone(),
            has_app: route.pool.is_some(),
            answers: counters.answers.values().sum(),
            failed: counters.answers.get("5xx").copied().unwrap_or(0),
            refusals: counters.refusals.clone(),
            fallbacks: counters.fallbacks.clone(),
            cache: counters.cache.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_answer_of_a_young_worker_is_not_its_usual_one() {
        let [short, long] = [5, 300].map(Duration::from_millis);
        let delay = |answers, p90, p99| {
            let (min, mean, stddev, p50, max) = (short, short, short, short, long);
            usual_delay(LoopDelay { answers, min, mean, stddev, p50, p90, p99, max })
        };
        assert_eq!(delay(60, short, long), short);
        assert_eq!(delay(60, long, long), long);
        assert_eq!(delay(100, short, long), long);
    }
}
