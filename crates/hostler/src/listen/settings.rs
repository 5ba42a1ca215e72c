//! What client connections go by: limits, times, and what is spoken on a listening socket. Does nothing.

use std::sync::Arc;
use std::time::Duration;

use hostler_engine::exchange::{MemoryBudget, Spool, Trust};
use hostler_wire::Limits;
use ipnet::IpNet;
use rustls::ServerConfig;

use super::admission::PerClient;
use super::behind::SendLimits;
use super::https::Https;

/// Limits and times of client connections.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is its key in the [server] section")]
pub struct Settings {
    pub limits: Limits,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub min_receive_rate: u64,
    /// With those who do not take their answers.
    pub send_limits: SendLimits,
    pub idle_timeout: Duration,
    /// How long a closed connection is read on, so that the last answer arrives.
    pub linger_timeout: Duration,
    /// For what waits of answers until their clients take it.
    pub answer_memory: Arc<MemoryBudget>,
    pub answer_buffer: usize,
    /// For bodies and answers that do not fit into memory.
    pub spool: Arc<Spool>,
    pub max_connections: usize,
    pub per_client: PerClient,
    /// Descriptors from this number on are not for clients.
    pub ceiling: usize,
    pub trust: Trust,
    pub http2: Http2,
    /// Who begins with a PROXY header.
    pub proxy_protocol: Vec<IpNet>,
    /// The terms of handshakes; none without [`ListenerKind::Tls`].
    pub tls: Option<Arc<ServerConfig>>,
    pub https: Https,
    /// Where health checks are answered; none: nowhere.
    pub health_path: Option<Arc<str>>,
    /// They have lines in the access log.
    pub log_health_checks: bool,
}

/// What is spoken on a listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerKind {
    /// HTTP.
    Plain,
    /// HTTP within TLS.
    Tls,
}

/// What an HTTP/2 connection may have under way.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is its key in the [server] section")]
pub struct Http2 {
    pub enabled: bool,
    pub max_streams: u32,
    pub stream_window: u32,
    pub connection_window: u32,
}
