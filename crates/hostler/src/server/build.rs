//! From configuration to parts: sockets, pools, routes, settings. Starts workers; runs nothing else.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hostler_pool::dispatch::{self, Membership, Pool, PoolSettings};
use hostler_pool::worker::{
    self, Entry, GuardCommand, Record, Supervisor, WorkerSettings, Yard, YardSettings,
};
use hostler_wire::{Address, Limits, Name};

use super::StartError;
use super::environment::{self, Environment};
use super::probe::{HttpProbe, wire_address};
use crate::admin::PoolSource;
use crate::config::{
    self, Bind, Buffer, Choice, ClientIpHeader, Concurrency, Config, Gc, Policy, Priority, Source,
};
use crate::exchange::{Counters, Trust};
use crate::gateway::{Fixed, Gateway, Poison, PoisonSettings, PoolTarget, Route, SpoolSettings, Target};
use crate::journal::{Journal, Level};
use crate::listen;
use crate::proxy::{CallSettings, Endpoint, Meter, OnHang, Ours};

/// What goes into every worker: packages/worker/preload.cjs.
const PRELOAD: &str = include_str!("../../../../packages/worker/preload.cjs");
/// A third worker that boots at the same time makes all three slower on most machines.
const BOOTS_AT_ONCE: usize = 2;
/// How long a connection is read on after our last answer.
const LINGER: Duration = Duration::from_secs(2);

/// Listening sockets: for each address one a thread.
pub(super) struct Listeners(Vec<Vec<TcpListener>>);

impl Listeners {
    /// Where they listen; a free port is known by now.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(|group| group.first()?.local_addr().ok()).collect()
    }

    /// The sockets of each thread.
    pub fn by_thread(self) -> Vec<Vec<TcpListener>> {
        let mut threads: Vec<Vec<TcpListener>> = Vec::new();
        for group in self.0 {
            for (index, socket) in group.into_iter().enumerate() {
                if threads.len() == index {
                    threads.push(Vec::new());
                }
                threads[index].push(socket);
            }
        }
        threads
    }
}

pub(super) fn bind_all(server: &config::Server) -> Result<Listeners, StartError> {
    let bind = |&address: &SocketAddr| {
        listen::bind(address, server.threads).map_err(|source| StartError::Listen {
            address,
            key: "server.listen",
            source,
        })
    };
    server.listen.iter().map(bind).collect::<Result<_, _>>().map(Listeners)
}

pub(super) fn bind_admin(server: &config::Server) -> Result<Option<TcpListener>, StartError> {
    let Some(address) = server.admin else { return Ok(None) };
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map(Some).map_err(|source| StartError::Listen { address, key: "server.admin", source })
}

pub(super) fn listen_settings(config: &Config) -> listen::Settings {
    let server = &config.server;
    listen::Settings {
        limits: limits(server),
        header_timeout: server.header_timeout,
        body_timeout: server.body_timeout,
        send_timeout: server.send_timeout,
        idle_timeout: server.idle_timeout,
        linger_timeout: LINGER,
        answer_buffer: server.answer_buffer as usize,
        max_connections: server.max_connections,
        trust: Trust { networks: server.trusted_proxies.clone(), header: client_header(server) },
    }
}

fn limits(server: &config::Server) -> Limits {
    Limits { max_size: server.max_header_size as usize, max_fields: server.max_header_fields }
}

fn client_header(server: &config::Server) -> Name {
    match server.client_ip_header {
        ClientIpHeader::XForwardedFor => Name::XForwardedFor,
        ClientIpHeader::XRealIp => Name::XRealIp,
        ClientIpHeader::Forwarded => Name::Forwarded,
        ClientIpHeader::CfConnectingIp => Name::CfConnectingIp,
        ClientIpHeader::TrueClientIp => Name::TrueClientIp,
    }
}

/// A pool that is running.
pub(super) struct BuiltPool {
    name: Arc<str>,
    pool: Pool<Endpoint>,
    meter: Arc<Meter>,
    poison: Arc<Poison>,
    settings: config::Pool,
    pub supervisor: Option<Arc<Supervisor>>,
    /// Members that somebody else runs stay for as long as this does.
    _members: Vec<Membership<Endpoint>>,
}

impl BuiltPool {
    /// The queue and its members.
    pub fn pool(&self) -> Pool<Endpoint> {
        self.pool.clone()
    }

    pub fn source(&self) -> PoolSource {
        PoolSource {
            name: self.name.clone(),
            pool: self.pool.clone(),
            meter: self.meter.clone(),
            supervisor: self.supervisor.clone(),
        }
    }
}

pub(super) fn pools(
    config: &Config,
    environment: &Environment,
    journal: &Journal,
) -> Result<Vec<BuiltPool>, StartError> {
    let has_workers = config.pools.iter().any(|pool| matches!(pool.source, Source::Workers(_)));
    let yard = if has_workers { Some(yard(config, environment, journal)?) } else { None };
    Ok(config
        .pools
        .iter()
        .map(|settings| pool(config, settings, environment, journal, yard.as_ref()))
        .collect())
}

fn pool(
    config: &Config,
    settings: &config::Pool,
    environment: &Environment,
    journal: &Journal,
    yard: Option<&Yard>,
) -> BuiltPool {
    let name: Arc<str> = settings.name.as_str().into();
    let pool = Pool::new(
        name.clone(),
        PoolSettings {
            choice: choice(settings.choice),
            queue_limit: settings.queue.limit,
            policy: policy(settings.queue.policy),
            ..Default::default()
        },
    );
    let threads = config.server.threads;
    let mut built = BuiltPool {
        poison: Arc::new(Poison::new(name.clone(), poison(settings), journal.clone())),
        name,
        pool: pool.clone(),
        meter: Arc::new(Meter::new(threads)),
        settings: settings.clone(),
        supervisor: None,
        _members: Vec::new(),
    };
    match (&settings.source, yard) {
        (Source::Members(members), _) => {
            built._members = members
                .iter()
                .map(|member| {
                    let address = match member {
                        config::Endpoint::Tcp { host, port } => Address::Tcp(host.clone(), *port),
                        config::Endpoint::Unix(path) => Address::Unix(path.clone()),
                    };
                    let label = member.to_string().into();
                    let endpoint = Endpoint::new(address, label, built.meter.clone(), threads, None);
                    pool.join(endpoint, settings.concurrency.at_first())
                })
                .collect();
        }
        (Source::Workers(workers), Some(yard)) => {
            built.supervisor = Some(supervise(
                worker_settings(settings, workers, environment, config.server.max_header_size as usize),
                &built,
                threads,
                yard.clone(),
            ));
        }
        (Source::Workers(_), None) => {}
    }
    built
}

fn supervise(settings: WorkerSettings, built: &BuiltPool, threads: usize, yard: Yard) -> Arc<Supervisor> {
    let meter = built.meter.clone();
    Arc::new_cyclic(|supervisor: &std::sync::Weak<Supervisor>| {
        let supervisor = supervisor.clone();
        let on_hang: OnHang = Arc::new(move |member| {
            if let Some(supervisor) = supervisor.upgrade() {
                supervisor.hung(member);
            }
        });
        let endpoint = move |address: worker::Address, facts: worker::WorkerFacts| {
            let label = facts.index.to_string().into();
            let ours = Ours { on_hang: on_hang.clone(), fate: facts.fate };
            Endpoint::new(wire_address(&address), label, meter.clone(), threads, Some(ours))
        };
        Supervisor::start(settings, built.pool.clone(), endpoint, Arc::new(HttpProbe), yard)
    })
}

fn worker_settings(
    pool: &config::Pool,
    workers: &config::Workers,
    inherited: &Environment,
    max_header_size: usize,
) -> WorkerSettings {
    WorkerSettings {
        command: workers.command.iter().map(Into::into).collect(),
        cwd: workers.cwd.clone(),
        env: environment::for_workers(inherited, &workers.env, max_header_size),
        bind: match workers.bind {
            Bind::Socket => worker::Bind::Socket,
            Bind::Port => worker::Bind::Port,
        },
        port: workers.port,
        count: workers.count,
        slots: match pool.concurrency {
            Concurrency::Fixed(slots) => worker::Slots::Fixed(slots),
            Concurrency::Auto => worker::Slots::Auto,
        },
        start_timeout: workers.start_timeout,
        stop_timeout: workers.stop_timeout,
        health: workers.health.clone(),
        warmup: workers.warmup.clone(),
        hang_timeout: workers.hang_timeout,
        recycling: worker::Recycling {
            max_requests: workers.max_requests,
            max_age: workers.max_age,
            max_memory: workers.max_memory,
        },
        collect_when_idle: workers.gc == Gc::Idle,
    }
}

fn poison(pool: &config::Pool) -> PoisonSettings {
    PoisonSettings {
        kills: pool.poison.kills,
        keep_off: pool.poison.keep_off,
        crowded: pool.concurrency != Concurrency::Fixed(1),
    }
}

fn priority(priority: Priority) -> dispatch::Priority {
    match priority {
        Priority::High => dispatch::Priority::High,
        Priority::Normal => dispatch::Priority::Normal,
        Priority::Low => dispatch::Priority::Low,
    }
}

fn choice(choice: Choice) -> dispatch::Choice {
    match choice {
        Choice::Warm => dispatch::Choice::Warm,
        Choice::RoundRobin => dispatch::Choice::RoundRobin,
        Choice::LeastBusy => dispatch::Choice::LeastBusy,
    }
}

fn policy(policy: Policy) -> dispatch::Policy {
    match policy {
        Policy::Adaptive => dispatch::Policy::Adaptive,
        Policy::Fifo => dispatch::Policy::Fifo,
    }
}

fn yard(config: &Config, environment: &Environment, journal: &Journal) -> Result<Yard, StartError> {
    let runtime_dir = environment.get("XDG_RUNTIME_DIR").map(|path| Path::new(path).to_owned());
    let journal = journal.clone();
    Ok(Yard::new(YardSettings {
        parents: runtime_dir.into_iter().chain([config.server.temp_dir.clone()]).collect(),
        preload: PRELOAD.into(),
        guard: GuardCommand { program: std::env::current_exe()?, args: vec!["__guard".into()] },
        log: Arc::new(move |record| write_down(&journal, &record)),
        boots_at_once: BOOTS_AT_ONCE,
    })?)
}

fn write_down(journal: &Journal, record: &Record) {
    match &record.entry {
        Entry::Output { stream, line } => {
            let stream = match stream {
                worker::Stream::Stdout => "stdout",
                worker::Stream::Stderr => "stderr",
            };
            journal.worker_line(&record.pool, record.worker, stream, line);
        }
        Entry::Event(event) => {
            let level = match event.level() {
                worker::Level::Info => Level::Info,
                worker::Level::Warn => Level::Warn,
                worker::Level::Error => Level::Error,
            };
            journal.event(level, &format!("{}/{}: {event}", record.pool, record.worker));
        }
    }
}

/// A route as the Status lists it: pattern, target, counters.
pub(super) type Listed = (Arc<str>, String, Arc<Counters>);

pub(super) fn gateway(config: &Config, pools: &[BuiltPool]) -> (Arc<Gateway>, Vec<Listed>) {
    let mut listed = Vec::new();
    let mut table = Vec::new();
    for written in &config.routes {
        let route = Arc::new(route(config, written, pools));
        let target = match &route.target {
            Target::Fixed(fixed) => format!("respond {}", fixed.status),
            Target::Pool(target) => format!("pool {}", target.name),
        };
        listed.push((route.pattern.clone(), target, route.counters.clone()));
        table.push((written.pattern.clone(), route));
    }
    let server = &config.server;
    let gateway = Gateway {
        routes: ArcSwap::from_pointee(table.into_iter().collect()),
        spool: SpoolSettings { memory: server.body_memory as usize, folder: server.temp_dir.clone() },
        unrouted: Arc::default(),
    };
    (Arc::new(gateway), listed)
}

fn route(config: &Config, written: &config::Route, pools: &[BuiltPool]) -> Route {
    Route {
        pattern: written.pattern.to_string().into(),
        target: match &written.target {
            config::Target::Respond(respond) => Target::Fixed(Arc::new(fixed(respond))),
            config::Target::Pool { name, request_timeout } => {
                let pool = pools.iter().find(|pool| *pool.name == **name);
                let pool = pool.expect("invariant: a resolved route names a pool that exists");
                Target::Pool(pool_target(config, pool, *request_timeout))
            }
        },
        max_body: written.max_body_size,
        streams_body: written.buffer == Buffer::None,
        priority: priority(written.priority),
        fallback: written.fallback.clone(),
        counters: Arc::default(),
    }
}

fn pool_target(config: &Config, pool: &BuiltPool, request_timeout: Duration) -> PoolTarget {
    let hang_timeout = match &pool.settings.source {
        Source::Workers(workers) => workers.hang_timeout.max(request_timeout),
        // Nobody can be killed there; this is only how long an abandoned answer is waited for.
        Source::Members(_) => request_timeout * 2,
    };
    PoolTarget {
        name: pool.name.clone(),
        pool: pool.pool.clone(),
        queue_timeout: pool.settings.queue.timeout,
        request_timeout,
        call: CallSettings {
            connect_timeout: pool.settings.connect_timeout,
            hang_timeout,
            limits: limits(&config.server),
        },
        meter: pool.meter.clone(),
        poison: pool.poison.clone(),
    }
}

fn fixed(respond: &config::Respond) -> Fixed {
    let fields = respond.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
    Fixed {
        status: respond.status.as_u16(),
        fields: fields.collect(),
        body: respond.body.clone().into_bytes(),
    }
}
