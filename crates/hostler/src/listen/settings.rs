//! The settings of client connections: limits, timeouts, TLS. Does nothing.

use std::sync::Arc;
use std::time::Duration;

use hostler_cache::BodyMemory;
use hostler_config::tls::Handshaking;
use hostler_engine::exchange::{MemoryBudget, Spool, Trust};
use hostler_wire::Limits;
use ipnet::IpNet;

/// The limits and timeouts of client connections.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is its key in the [server] section")]
pub struct Settings {
    pub limits: Limits,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub min_receive_rate: u64,
    /// How slowly a client may take its answer.
    pub send_limits: SendLimits,
    pub idle_timeout: Duration,
    /// How long Hostler reads from a connection after it has closed its side, so that the last answer arrives.
    pub linger_timeout: Duration,
    /// The memory for answers that wait for their clients.
    pub answer_memory: Arc<MemoryBudget>,
    pub answer_buffer: usize,
    /// The memory of the cache's bodies.
    pub cache_bodies: Arc<BodyMemory>,
    /// The files for bodies and answers that do not fit into memory.
    pub spool: Arc<Spool>,
    pub max_connections: usize,
    pub per_client: PerClient,
    /// File descriptors from this number on are not for clients.
    pub descriptor_limit: usize,
    pub trust: Trust,
    pub http2: Http2,
    /// The networks whose connections begin with a PROXY header.
    pub proxy_protocol: Vec<IpNet>,
    /// How TLS handshakes are made; none without [`ListenerKind::Tls`].
    pub tls: Option<Arc<Handshaking>>,
    pub https: Https,
    /// The path of health checks; none: clients can make no health checks.
    pub health_path: Option<Arc<str>>,
    /// Whether health checks are in the access log.
    pub log_health_checks: bool,
}

impl Settings {
    /// Whether other client certificates are accepted now, so that clients that were admitted by TLS handshakes with these settings must be
    /// admitted anew.
    pub(super) fn are_outdated(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_outdated())
    }
}

/// The protocol of a listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerKind {
    /// HTTP.
    Plain,
    /// HTTP over TLS.
    Tls,
}

/// The limits of an HTTP/2 connection.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is its key in the [server] section")]
pub struct Http2 {
    pub enabled: bool,
    pub max_streams: u32,
    pub stream_window: u32,
    pub connection_window: u32,
}

/// How slow a client may be.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is its key in the [server] section")]
pub struct SendLimits {
    pub min_send_rate: u64,
    pub min_slot_rate: u64,
    pub send_timeout: Duration,
}

/// How many connections and requests one client may have.
#[derive(Debug, Clone, Copy)]
pub struct PerClient {
    /// Open connections.
    pub connections: ByKind,
    /// Requests in progress, including tunnels.
    pub requests: ByKind,
}

/// A limit that depends on the kind of the client's address; `usize::MAX`: no limit.
#[derive(Debug, Clone, Copy)]
pub struct ByKind {
    /// Loopback and private addresses: they often belong to proxies, balancers, container gateways and load tests.
    pub near: usize,
    /// All other addresses.
    pub far: usize,
}

/// The settings for requests of all listeners, with and without TLS.
#[derive(Debug, Clone, Default)]
pub struct Https {
    /// Requests without TLS are redirected to this port.
    pub redirect_to: Option<u16>,
    /// The value of `Strict-Transport-Security`.
    pub hsts: Option<Vec<u8>>,
    /// Whether Hostler asks clients for certificates. It passes a certificate to the member, and removes the field that a client sent.
    pub tells_certificates: bool,
}
