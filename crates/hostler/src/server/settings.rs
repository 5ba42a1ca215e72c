//! The configuration in the words of the parts: each function takes what was resolved and gives what a part wants to know. Starts
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use hostler_address::{Header, Trust};
use hostler_pool::dispatch::{self, PoolSettings};
use hostler_pool::worker::{self, WorkerSettings};
use hostler_wire::{Address, Limits};
use rustls::pki_types::ServerName;

use super::environment::{self, Environment};
use super::tls::Tls;
use crate::config::{self, Bind, Choice, ClientIpHeader, Concurrency, Config, Gc, Policy, Priority, Source};
use crate::exchange::Connections;
use crate::gateway::platform::Rules;
use crate::gateway::{PoisonSettings, SpoolSettings};
use crate::listen::{self, Https};
use crate::proxy::{Dial, MemberProtocol, MemberTls};

/// How long a connection is read on after our last answer.
const LINGER: Duration = Duration::from_secs(2);

/// With what TLS listeners go by, if there are any.
pub(super) fn listening(config: &Config, tls: Option<&Tls>) -> Result<listen::Settings, String> {
    let server = &config.server;
    let both = tls.zip(config.tls.as_ref());
    Ok(listen::Settings {
        limits: limits(server),
        header_timeout: server.header_timeout,
        body_timeout: server.body_timeout,
        send_timeout: server.send_timeout,
        idle_timeout: server.idle_timeout,
        linger_timeout: LINGER,
        answer_buffer: server.answer_buffer as usize,
        max_connections: server.max_connections,
        http2: http2(server),
        trust: trust(server),
        proxy_protocol: server.proxy_protocol.clone(),
        tls: both.map(|(tls, written)| tls.terms(written, server.http2)).transpose()?,
        https: both.map_or_else(Https::default, |(tls, written)| https(tls, written)),
    })
}

fn https(tls: &Tls, written: &config::Tls) -> Https {
    Https {
        redirect_to: written.redirect_http.then(|| written.public_port.unwrap_or(tls.port)),
        tells_certificates: written.client_certificates.is_some(),
        hsts: written.hsts.clone().map(String::into_bytes),
    }
}

fn http2(server: &config::Server) -> listen::Http2 {
    // The configuration's bounds are below those of the protocol.
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

/// What holds for registered routes.
pub(super) fn platform(config: &Config, connections: &Arc<Connections>) -> Option<Arc<Rules>> {
    config.platform.clone().map(|settings| Arc::new(Rules::new(settings, connections.clone())))
}

fn trust(server: &config::Server) -> Trust {
    let header = match server.client_ip_header {
        ClientIpHeader::XForwardedFor => Header::XForwardedFor,
        ClientIpHeader::XRealIp => Header::XRealIp,
        ClientIpHeader::Forwarded => Header::Forwarded,
        ClientIpHeader::CfConnectingIp => Header::CfConnectingIp,
        ClientIpHeader::TrueClientIp => Header::TrueClientIp,
    };
    Trust { networks: server.trusted_proxies.clone(), hops: server.trusted_hops, header }
}

pub(super) fn spool(server: &config::Server) -> SpoolSettings {
    SpoolSettings { memory: server.body_memory as usize, folder: server.temp_dir.clone() }
}

pub(super) fn pool(pool: &config::Pool) -> PoolSettings {
    PoolSettings {
        choice: choice(pool.choice),
        queue_limit: pool.queue.limit,
        policy: policy(pool.queue.policy),
        max_tunnels: pool.max_tunnels,
        ..Default::default()
    }
}

/// None for a pool whose members somebody else runs.
pub(super) fn workers(
    config: &Config,
    pool: &config::Pool,
    inherited: &Environment,
) -> Option<WorkerSettings> {
    let Source::Workers(workers) = &pool.source else { return None };
    Some(WorkerSettings {
        command: workers.command.iter().map(Into::into).collect(),
        cwd: workers.cwd.clone(),
        env: environment::for_workers(inherited, &workers.env, config.server.max_header_size as usize),
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
    })
}

/// The way to one of a pool's members.
pub(super) fn dial(member: &config::Endpoint, all: &config::Members) -> Dial {
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
    Dial { address, tls, protocol }
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

pub(super) fn poison(pool: &config::Pool) -> PoisonSettings {
    PoisonSettings {
        kills: pool.poison.kills,
        keep_off: pool.poison.keep_off,
        crowded: pool.concurrency != Concurrency::Fixed(1),
    }
}

pub(super) fn priority(priority: Priority) -> dispatch::Priority {
    match priority {
        Priority::High => dispatch::Priority::High,
        Priority::Normal => dispatch::Priority::Normal,
        Priority::Low => dispatch::Priority::Low,
    }
}
