//! The state of a running Hostler, which commands change and the Status shows. Knows no sockets and no signals.

mod log_file;

use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hostler_coding::EncoderMemory;
use hostler_config::{Advertise, Config, Invocation};
use hostler_engine::cache::SharedCache;
use hostler_engine::exchange::{Connections, MemoryBudget, RecentExchanges, Spool, Sweep};
use hostler_engine::gateway::{DevelopmentPages, DevelopmentState, Gateway, Health, Route};
use hostler_engine::journal::Journal;
use hostler_worker::Supervisor;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, timeout};

use super::listeners::Listeners;
use super::lookups::LookupServices;
use super::pool_context::PoolContext;
use super::pools::{self, RunningPool};
use super::predecessor::{Handover, Inheritance};
use super::program::Program;
use super::registrar::{self, RegisteredRules, Registering};
use super::routes::{RouteTables, RouteTarget, routes, watched};
use super::run_options::RunOptions;
use super::start_error::StartError;
use super::tables::Tables;
use super::tls::TlsFiles;
use super::{cache, settings};
use crate::admin::note::{self, NotedHostler};
use crate::admin::{AdminAccess, CommandError, Sources, TempFree};
use crate::listen;
use crate::traces::Tracer;
pub(super) use log_file::{log_to, open_log, reopen_log};

/// If the end of a time limit is noticed this much too late, Hostler itself did not run.
const HELD_UP: Duration = Duration::from_secs(1);

pub(super) struct RunningServer {
    pub invocation: Invocation,
    pub options: RunOptions,
    /// Whether the newest code of the app serves. Only with `--watch`.
    pub development: watch::Sender<DevelopmentState>,
    pub program: Program,
    pub pool_context: PoolContext,
    pub journal: Journal,
    pub config: ArcSwap<Config>,
    pub pools: ArcSwap<Vec<RunningPool>>,
    pub gateway: Arc<Gateway>,
    pub tables: Arc<Tables>,
    /// The stored answers.
    pub shared_cache: Arc<SharedCache>,
    /// The data for native routes.
    pub lookups: ArcSwap<LookupServices>,
    /// How requests are handled while routes may be registered.
    pub registered: RegisteredRules,
    /// None if no registrar is configured.
    pub registering: Option<Registering>,
    /// The current routes, and earlier ones that had requests at the last reload, to see whether requests still use them.
    pub routes: ArcSwap<Vec<Weak<Route>>>,
    /// Names that the latest reload announces no more. Their pools may still serve.
    pub withdrawn: ArcSwap<Vec<String>>,
    /// The certificates. None if there are no TLS listeners; a reload cannot change that.
    pub tls: Option<Arc<TlsFiles>>,
    /// The settings of client connections. A connection uses those of the moment when it was accepted, or when its TLS handshake began.
    pub listening: Arc<ArcSwap<listen::Settings>>,
    /// Wakes the tasks of client connections, so that they look at their state. Empty before clients are served.
    pub sweeps: OnceLock<Vec<Sweep>>,
    /// The supervisors of pools that are not in `pools`. See [`UnlistedPool`].
    unlisted: Mutex<Vec<Arc<Supervisor>>>,
    pub sources: Arc<Sources>,
    /// Who may use the admin listener.
    pub admin_access: Arc<AdminAccess>,
    /// The listening sockets, for a successor. None once Hostler is stopping.
    pub listeners: ArcSwapOption<Listeners>,
    /// Allows one reload or upgrade at a time, in the order of the commands.
    pub changes: Semaphore,
    /// Allows a reload, or reading changed files again, at a time. Not an upgrade: the successor reads all files itself.
    pub renewals: Semaphore,
    /// How many times an operator has ordered the restart of a pool.
    pub restarts: AtomicUsize,
    pub takeover: watch::Sender<Takeover>,
    /// The channel to the process before this one, which may still finish requests. None if there was none.
    pub predecessor: Option<Arc<Handover>>,
    /// The successor was told to stop.
    pub successor_stops: Notify,
}

/// How far a successor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takeover {
    /// There is none, or it may not begin yet.
    NotYet,
    /// The process with this number may begin, and may serve clients already.
    Begins(u32),
    /// The process with this number has taken over.
    Done(u32),
}

impl Takeover {
    /// Fails for an order that a successor would not know of, because it may serve already.
    pub fn allows_orders(self) -> Result<(), CommandError> {
        let (pid, how) = match self {
            Self::NotYet => return Ok(()),
            Self::Begins(pid) => (pid, "is taking over"),
            Self::Done(pid) => (pid, "has taken over"),
        };
        Err(CommandError::TakenOver { pid, how })
    }
}

impl RunningServer {
    /// Starts the pools. Nothing is accepted yet.
    #[expect(clippy::too_many_lines, reason = "one line for each part of the program")]
    pub fn start(
        (config, invocation, options): (Config, Invocation, RunOptions),
        listeners: Listeners,
        Inheritance { registrations, sticky_key, channel, .. }: Inheritance,
        journal: Journal,
    ) -> Result<Self, StartError> {
        let tls = certificates(&config, &listeners)?;
        let (spool, answer_memory) = memory(&config);
        let shared_cache = cache::open(&config, &journal);
        let memory = (&spool, &answer_memory, shared_cache.memory.bodies());
        let listening =
            settings::listening(&config, tls.as_deref(), None, memory).map_err(StartError::Tls)?;
        let development = options.development();
        let pool_context = PoolContext::new(&invocation, &config, development, &journal, sticky_key)?;
        let lookups = LookupServices::open(&config, None, &journal).map_err(StartError::Lookups)?;
        let pools = pools::start_all(&config, &pool_context)?;
        pool_context.started();
        let behind = RouteTarget { pools: &pools, lookups: &lookups, shared_cache: &shared_cache };
        let RouteTables { table, listed, weak } = routes(&config, &behind, &[]);
        let (connections, health) = health_of(&config, &pools);
        let (development, pages) = pages(&options, &pools);
        let (gateway, tables, registered) = serving(&config, &health, &journal, pages);
        tables.configure(table);
        let served = (tables.clone(), listeners.own_addresses()?);
        let rules = listeners.access_rules(&config.server);
        let registering = Registering::open(&config, &registered, served, &journal, registrations);
        let sources = Sources {
            started: Instant::now(),
            started_at: jiff::Timestamp::now(),
            encoding: Arc::new(EncoderMemory::new(config.server.compress_memory)),
            connections,
            recent: RecentExchanges::new(pool_context.threads),
            request_memory: gateway.request_memory.clone(),
            answer_memory,
            spool,
            temp_free: TempFree::new(),
            health,
            journal: journal.clone(),
            tracer: Tracer::start(&config.traces, &journal),
            pools: ArcSwap::from_pointee(pools.iter().map(RunningPool::source).collect()),
            routes: ArcSwap::from_pointee(listed),
            unrouted: gateway.unrouted.clone(),
            last_reload: ArcSwapOption::empty(),
            registrations: registering.as_ref().and_then(Registering::source),
            geo: ArcSwapOption::new(lookups.geo.clone()),
            shared_cache: shared_cache.clone(),
            postal: ArcSwapOption::new(lookups.postal.clone()),
            tls: tls.as_ref().map(|tls| tls.terminator.clone()),
            advice: ArcSwap::default(),
        };
        Ok(Self {
            admin_access: Arc::new(AdminAccess::new(rules, journal.clone())),
            program: Program::of_process(&invocation.load_context)?,
            invocation,
            options,
            development,
            pool_context,
            journal,
            tls,
            listening: Arc::new(ArcSwap::from_pointee(listening)),
            sweeps: OnceLock::new(),
            routes: ArcSwap::from_pointee(weak),
            unlisted: Mutex::default(),
            withdrawn: ArcSwap::default(),
            config: ArcSwap::from_pointee(config),
            pools: ArcSwap::from_pointee(pools),
            gateway,
            tables,
            shared_cache,
            lookups: ArcSwap::from_pointee(lookups),
            registered,
            registering,
            sources: Arc::new(sources),
            listeners: ArcSwapOption::from_pointee(listeners),
            changes: Semaphore::new(1),
            renewals: Semaphore::new(1),
            restarts: AtomicUsize::new(0),
            takeover: watch::Sender::new(Takeover::NotYet),
            predecessor: channel,
            successor_stops: Notify::new(),
        })
    }

    /// The supervisors of all pools, unlisted ones included.
    pub fn supervisors(&self) -> Vec<Arc<Supervisor>> {
        let pools = self.pools.load();
        let unlisted = self.unlisted();
        pools.iter().filter_map(|pool| pool.supervisor.clone()).chain(unlisted.iter().cloned()).collect()
    }

    fn unlisted(&self) -> MutexGuard<'_, Vec<Arc<Supervisor>>> {
        self.unlisted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses these settings for connections that begin now. True if open TLS connections end now, because other client certificates are accepted.
    pub fn listen_by(&self, newer: listen::Settings) -> bool {
        let newer = Arc::new(newer);
        let older = self.listening.swap(newer.clone());
        let (Some(older), Some(newer)) = (&older.tls, &newer.tls) else { return false };
        let must_end = older.give_way_to(newer);
        if must_end {
            self.sweeps.get().into_iter().flatten().for_each(Sweep::wake_all);
        }
        must_end
    }

    pub fn connections(&self) -> &Arc<Connections> {
        &self.sources.connections
    }

    /// Notes the admin address and the file with the token, for commands without an address.
    pub fn note_admin(&self, listeners: &Listeners) {
        let Some(admin) = listeners.admin_address() else { return };
        let folder = self.invocation.load_context.folder.clone();
        let token_file = self.config.load().server.admin_token_file.clone();
        let note = NotedHostler { admin, folder, token_file };
        self.pool_context.keep_file(note::FILE, &note.to_string());
    }

    /// The address at which routers are told to reach us: the configured one, or else that of the first plain listener. None if it listens on
    /// all addresses; the configuration then announces no pool.
    pub fn advertised(&self) -> Option<Advertise> {
        if let Some(written) = self.config.load().registrar.as_ref()?.advertise.clone() {
            return Some(written);
        }
        let address = self.listeners.load().as_ref()?.reachable_at()?;
        Some(Advertise { host: address.ip().to_string(), port: address.port(), tls: false })
    }

    /// All pools with the names under which they are announced.
    pub fn announced(&self) -> Vec<(Arc<str>, String)> {
        let pools = self.pools.load();
        let mut announced = Vec::new();
        for pool in pools.iter() {
            announced.extend(pool.settings.announce.iter().map(|name| (pool.name.clone(), name.clone())));
        }
        announced
    }

    /// Waits for the end of something, for `server.drain_timeout` at most. `None`: it has not ended.
    pub async fn drained<T>(&self, ended: impl Future<Output = T>) -> Option<T> {
        let limit = self.config.load().server.drain_timeout;
        in_time(limit, ended).await
    }
}

/// Waits for this time at most. If Hostler itself did not run at its end, as in a container that was paused, it waits as long again: requests and
/// workers did not go on, either.
async fn in_time<T>(limit: Duration, ended: impl Future<Output = T>) -> Option<T> {
    let mut ended = pin!(ended);
    loop {
        let began = Instant::now();
        match timeout(limit, ended.as_mut()).await {
            Ok(ended) => return Some(ended),
            Err(_) if began.elapsed() >= limit.saturating_add(HELD_UP) => {}
            Err(_) => return None,
        }
    }
}

/// A pool of workers that is not in `pools`: a reload has started it and waits for its workers, or it was removed and drains. As long as this
/// value lives, the end of the program stops its workers too.
pub(super) struct UnlistedPool {
    running: Arc<RunningServer>,
    pub supervisor: Arc<Supervisor>,
}

impl UnlistedPool {
    /// None for a pool whose members Hostler does not run.
    pub fn enter(running: &Arc<RunningServer>, pool: &RunningPool) -> Option<Self> {
        let supervisor = pool.supervisor.clone()?;
        running.unlisted().push(supervisor.clone());
        Some(Self { running: running.clone(), supervisor })
    }
}

impl Drop for UnlistedPool {
    fn drop(&mut self) {
        let mut unlisted = self.running.unlisted();
        // A supervisor may be in the list twice for a moment: the pool of a failed reload enters it again to drain.
        if let Some(at) = unlisted.iter().position(|other| Arc::ptr_eq(other, &self.supervisor)) {
            unlisted.swap_remove(at);
        }
    }
}

/// For answers of slow clients: on the disk and in memory.
fn memory(config: &Config) -> (Arc<Spool>, Arc<MemoryBudget>) {
    let files = settings::open_files(config);
    let spool = Spool::new(config.server.spool_size, files, config.server.temp_dir.clone());
    (spool, settings::answer_memory(&config.server))
}

/// The certificates, if there are TLS listeners.
fn certificates(config: &Config, listeners: &Listeners) -> Result<Option<Arc<TlsFiles>>, StartError> {
    let tls = config.tls.as_ref().map(|tls| TlsFiles::open(tls, listeners.tls_port())).transpose();
    Ok(tls.map_err(StartError::Tls)?.map(Arc::new))
}

fn health_of(config: &Config, pools: &[RunningPool]) -> (Arc<Connections>, Arc<Health>) {
    let connections = Arc::new(Connections::default());
    let health = Arc::new(Health::new(connections.clone()));
    health.watch(watched(config, pools));
    (connections, health)
}

/// With `--watch`: the pages for the pool whose workers restart. The sender sets their state.
fn pages(
    options: &RunOptions,
    pools: &[RunningPool],
) -> (watch::Sender<DevelopmentState>, Option<DevelopmentPages>) {
    let state = watch::Sender::default();
    let watched = pools.iter().find(|pool| pool.supervisor.is_some() && options.watch.is_some());
    let pages =
        watched.map(|pool| DevelopmentPages { pool: pool.name.to_string(), state: state.subscribe() });
    (state, pages)
}

/// The gateway, its routing table, which has no routes yet, and the rules of registered routes.
fn serving(
    config: &Config,
    health: &Arc<Health>,
    journal: &Journal,
    development: Option<DevelopmentPages>,
) -> (Arc<Gateway>, Arc<Tables>, RegisteredRules) {
    let registered = RegisteredRules::of(config, health);
    let gateway = Arc::new(Gateway {
        routes: ArcSwap::default(),
        spool: ArcSwap::from_pointee(settings::spool(&config.server)),
        request_memory: MemoryBudget::new(config.server.request_memory),
        registrar: ArcSwapOption::new(registered.for_gateway()),
        health: health.clone(),
        access_format: registrar::access_format(config),
        development,
        unrouted: Arc::default(),
    });
    let tables = Tables::new(gateway.clone(), registered.folds_paths(), config, journal);
    (gateway, Arc::new(tables), registered)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;
    use tokio::task::yield_now;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_hostler_did_not_run_is_no_time_to_drain() {
        let (limit, (end, ended)) = (Duration::from_secs(30), oneshot::channel());
        let waiting = tokio::spawn(in_time(limit, ended));
        yield_now().await;
        advance(120 * limit).await;
        for _ in 0..10 {
            yield_now().await;
        }
        let _ = end.send(());
        assert_eq!(waiting.await.unwrap(), Some(Ok(())));

        let began = Instant::now();
        assert_eq!(in_time(limit, pending::<()>()).await, None);
        assert!(began.elapsed() < limit + HELD_UP);
    }
}
