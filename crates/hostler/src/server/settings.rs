//! Converts the configuration into the settings of each part. Starts nothing.

use std::sync::Arc;
use std::time::Duration;

use hostler_address::{AddressHeader, Trust};
use hostler_cache::BodyMemory;
use hostler_config::tls::Handshaking;
use hostler_config::{
    self as config, AutoOrOff, Choice, ClientIpHeader, ClientLimit, Config, LogLevel, Policy, Priority,
};
use hostler_dispatch::{EjectSettings, Order, PoolSettings};
use hostler_engine::exchange::{MemoryBudget, Spool};
use hostler_engine::files::limit_open_files;
use hostler_engine::gateway::{PoisonSettings, SpoolSettings};
use hostler_engine::journal::{Level, LogRules};
use hostler_engine::proxy::{CheckSettings, Connector, MemberProtocol, MemberTls};
use hostler_wire::{Address, Limits};
use hostler_worker::{Slots, WorkerSettings};
use rustls::pki_types::ServerName;

use super::descriptors;
use super::environment;
use super::pool_context::PoolContext;
use super::tls::TlsFiles;
use crate::listen::{self, ByKind, Https, PerClient};

/// How long a closed connection is still read from, so that the client gets our last answer.
const LINGER: Duration = Duration::from_secs(2);

/// Which lines the log has.
pub(super) fn log_rules(log: &config::Log) -> LogRules {
    let level = match log.level {
        LogLevel::Info => Level::Info,
        LogLevel::Warn => Level::Warn,
        LogLevel::Error => Level::Error,
    };
    LogRules { level, sample: log.sample, slow: log.slow, redact: log.redact.clone() }
}

/// With the TLS settings, if there are TLS listeners. `before`: how TLS handshakes are made until now.
pub(super) fn listening(
    config: &Config,
    tls: Option<&TlsFiles>,
    before: Option<&Handshaking>,
    (spool, answer_memory, cache_bodies): (&Arc<Spool>, &Arc<MemoryBudget>, &Arc<BodyMemory>),
) -> Result<listen::Settings, String> {
    let server = &config.server;
    let both = tls.zip(config.tls.as_ref());
    Ok(listen::Settings {
        limits: limits(server),
        header_timeout: server.header_timeout,
        body_timeout: server.body_timeout,
        min_receive_rate: server.min_receive_rate,
        send_limits: listen::SendLimits {
            min_send_rate: server.min_send_rate,
            min_slot_rate: server.min_slot_rate,
            send_timeout: server.send_timeout,
        },
        idle_timeout: server.idle_timeout,
        linger_timeout: LINGER,
        answer_memory: answer_memory.clone(),
        answer_buffer: server.answer_buffer as usize,
        cache_bodies: cache_bodies.clone(),
        spool: spool.clone(),
        max_connections: server.max_connections,
        per_client: per_client(server),
        descriptor_limit: descriptors::client_limit(),
        http2: http2(server),
        trust: trust(server),
        proxy_protocol: server.proxy_protocol.clone(),
        tls: both.map(|(tls, written)| tls.handshaking(written, server.http2, before)).transpose()?,
        https: both.map_or_else(Https::default, |(tls, written)| https(tls, written)),
        health_path: server.health_path.clone(),
        log_health_checks: server.logs_health_checks(),
    })
}

/// How many temporary files may be open. As many files that are sent stay open.
pub(super) fn open_files(config: &config::Config) -> u64 {
    let files = descriptors::of_files(config.spare_descriptors);
    limit_open_files(files);
    files as u64
}

/// If `max_connections` is lower than this, one near client may use all connections.
const RESERVE_FROM: usize = 1000;
/// How many connections a single near client must leave to others.
const RESERVED: usize = 64;

fn per_client(server: &config::Server) -> PerClient {
    let most = server.max_connections;
    let near = if most >= RESERVE_FROM { most - RESERVED } else { usize::MAX };
    let by_kind = |limit, auto| match limit {
        ClientLimit::Word(AutoOrOff::Off) => ByKind { near: usize::MAX, far: usize::MAX },
        ClientLimit::Value(most) => ByKind { near: most.get(), far: most.get() },
        ClientLimit::Word(AutoOrOff::Auto) => auto,
    };
    PerClient {
        connections: by_kind(server.client_connections, ByKind { near, far: (most / 4).max(100) }),
        requests: by_kind(server.client_requests, ByKind { near: usize::MAX, far: (most / 10).max(100) }),
    }
}

fn https(tls: &TlsFiles, written: &config::Tls) -> Https {
    Https {
        redirect_to: written.redirect_http.then(|| written.public_port.unwrap_or(tls.port)),
        tells_certificates: written.client_certificates.is_some(),
        hsts: written.hsts.clone().map(String::into_bytes),
    }
}

fn http2(server: &config::Server) -> listen::Http2 {
    // The configuration's limits are lower than the protocol's.
    let number = |number| u32::try_from(number).unwrap_or(u32::MAX >> 1);
    listen::Http2 {
        enabled: server.http2,
        max_streams: number(server.http2_max_streams as u64),
        stream_window: number(server.http2_stream_window),
        connection_window: number(server.http2_connection_window),
    }
}

pub(super) fn limits(server: &config::Server) -> Limits {
    Limits { max_size: server.max_header_size as usize, max_fields: server.max_header_fields }
}

fn trust(server: &config::Server) -> Trust {
    let header = match server.client_ip_header {
        ClientIpHeader::XForwardedFor => AddressHeader::XForwardedFor,
        ClientIpHeader::XRealIp => AddressHeader::XRealIp,
        ClientIpHeader::Forwarded => AddressHeader::Forwarded,
        ClientIpHeader::CfConnectingIp => AddressHeader::CfConnectingIp,
        ClientIpHeader::TrueClientIp => AddressHeader::TrueClientIp,
    };
    Trust { networks: server.trusted_proxies.clone(), hops: server.trusted_hops, header }
}

pub(super) fn answer_memory(server: &config::Server) -> Arc<MemoryBudget> {
    MemoryBudget::with_minimum(server.answer_memory, listen::LEAST_ANSWER_MEMORY)
}

pub(super) fn spool(server: &config::Server) -> SpoolSettings {
    SpoolSettings { memory: server.body_memory as usize }
}

pub(super) fn pool(pool: &config::Pool) -> PoolSettings {
    PoolSettings {
        choice: choice(pool.choice),
        queue_limit: pool.queue.limit,
        burst: pool.queue.burst,
        policy: policy(pool.queue.policy),
        order: pool.queue.short_first.map_or(Order::Arrival, |delay| Order::ShortFirst { delay }),
        fair: !pool.queue.fair.is_empty(),
        max_tunnels: pool.max_tunnels,
        max_streams: pool.max_streams,
        eject: ejection(&pool.ejection),
        bound_drain: pool.sticky.drain,
        ..Default::default()
    }
}

fn ejection(written: &config::Ejection) -> EjectSettings {
    EjectSettings {
        failures: written.timeouts,
        min: written.time,
        max: written.max_time,
        share: written.max_percent,
    }
}

/// The health check of a member, if there is one.
pub(super) fn health_check(member: &config::Endpoint, all: &config::Members) -> Option<CheckSettings> {
    use config::Endpoint::{Tcp, Tls, Unix};
    let written = all.health_check.as_ref()?;
    let own = || match member {
        Tcp { host, port } | Tls { host, port } if host.contains(':') => format!("[{host}]:{port}"),
        Tcp { host, port } | Tls { host, port } => format!("{host}:{port}"),
        Unix(_) => "localhost".into(),
    };
    Some(CheckSettings {
        path: written.path.clone(),
        host: written.host.clone().unwrap_or_else(own),
        interval: written.interval,
        timeout: written.timeout,
        unhealthy: written.unhealthy,
        healthy: written.healthy,
        status: written.status.clone(),
    })
}

/// The settings with the whole environment of a worker; `workers.env` is what the pool adds.
pub(super) fn workers(config: &Config, workers: &WorkerSettings, context: &PoolContext) -> WorkerSettings {
    let most = config.server.max_header_size as usize;
    let env = environment::for_workers(&context.environment, &workers.env, most);
    WorkerSettings { env, development: context.development.clone(), ..workers.clone() }
}

/// How a member is connected to.
pub(super) fn connector(member: &config::Endpoint, all: &config::Members) -> Connector {
    use config::Endpoint::{Tcp, Tls, Unix};
    let address = match member {
        Tcp { host, port } | Tls { host, port } => Address::Tcp(host.clone(), *port),
        Unix(path) => Address::Unix(path.clone()),
    };
    let tls = match member {
        Tls { host, .. } => {
            let tls = all.tls.as_ref().expect("invariant: where there is such a member, there is this");
            let own = || ServerName::try_from(host.clone()).expect("invariant: checked when it was resolved");
            let name = tls.server_name.clone().unwrap_or_else(own);
            Some(Box::new(MemberTls { config: tls.config.clone(), name }))
        }
        _ => None,
    };
    let protocol = match all.protocol {
        config::MemberProtocol::Http1 => MemberProtocol::Http1,
        config::MemberProtocol::Http2 => MemberProtocol::Http2,
    };
    Connector { tls, protocol, ..Connector::from(address) }
}

fn choice(choice: Choice) -> hostler_dispatch::MemberChoice {
    match choice {
        Choice::Warm => hostler_dispatch::MemberChoice::Warm,
        Choice::RoundRobin => hostler_dispatch::MemberChoice::RoundRobin,
        Choice::LeastBusy => hostler_dispatch::MemberChoice::LeastBusy,
    }
}

fn policy(policy: Policy) -> hostler_dispatch::Policy {
    match policy {
        Policy::Adaptive => hostler_dispatch::Policy::Adaptive,
        Policy::Fifo => hostler_dispatch::Policy::Fifo,
    }
}

/// How long a request to this pool may take until its response begins, by the longest time of its routes.
fn longest_request(config: &Config, pool: &config::Pool) -> Duration {
    let of_routes = config.routes.iter().filter_map(|route| match &route.target {
        config::Target::Pool { name, request_timeout } if *name == pool.name => Some(*request_timeout),
        _ => None,
    });
    of_routes.fold(pool.request_timeout, Duration::max)
}

/// Whether a worker of the pool may have several requests at once.
pub(super) fn is_crowded(pool: &config::Pool) -> bool {
    pool.slots() != Slots::Fixed(1)
}

/// A request of a route with a longer time than the pool's does not hold its worker before that is over.
pub(super) fn poison(config: &Config, pool: &config::Pool) -> PoisonSettings {
    PoisonSettings {
        kills: pool.poison.kills,
        keep_off: pool.poison.keep_off,
        crowded: is_crowded(pool),
        suspect_after: pool.request_timeout / 4,
        request_timeout: longest_request(config, pool),
    }
}

pub(super) fn priority(priority: Priority) -> hostler_dispatch::Priority {
    match priority {
        Priority::High => hostler_dispatch::Priority::High,
        Priority::Normal => hostler_dispatch::Priority::Normal,
        Priority::Low => hostler_dispatch::Priority::Low,
    }
}
