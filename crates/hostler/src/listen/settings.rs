//! The settings of client connections: limits, timeouts, TLS. Does nothing.

use std::sync::Arc;
use std::time::Duration;

use hostler_engine::exchange::{MemoryBudget, Spool, Trust};
use hostler_wire::Limits;
use ipnet::IpNet;
use rustls::ServerConfig;

use super::admission::PerClient;
use super::behind::SendLimits;
use super::https::Https;

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
    /// The files for bodies and answers that do not fit into memory.
    pub spool: Arc<Spool>,
    pub max_connections: usize,
    pub per_client: PerClient,
    /// File descriptors from this number on are not for clients.
    pub ceiling: usize,
    pub trust: Trust,
    pub http2: Http2,
    /// The networks whose connections begin with a PROXY header.
    pub proxy_protocol: Vec<IpNet>,
    /// The settings of TLS handshakes; none without [`ListenerKind::Tls`].
    pub tls: Option<Arc<ServerConfig>>,
    pub https: Https,
    /// The path of health checks; none: clients can make no health checks.
    pub health_path: Option<Arc<str>>,
    /// Whether health checks are in the access log.
    pub log_health_checks: bool,
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
