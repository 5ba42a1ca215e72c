//! The meaning of the `[server]` section: listeners, limits and trusted proxies. Does not know where it was written.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hostler_coding::EncodingPlan;
use ipnet::IpNet;

use crate::file::{AccessLog, ClientIpHeader};
use crate::value::{ClientLimit, ListenAddress, Secret};

/// The `[server]` section. [`file::Server`](crate::file::Server) describes each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Empty only with `tls.listen`. No address is there twice. Port 0: the system chooses a free port.
    pub listen: Vec<SocketAddr>,
    /// `None`: no admin listener.
    pub admin: Option<ListenAddress>,
    /// The names that a request to the admin listener may have as its `Host`, in lower case.
    pub admin_hosts: Vec<String>,
    /// The file with the admin token.
    pub admin_token_file: Option<PathBuf>,
    /// The admin token. `None` also if only the `[server]` section was loaded: see [`AdminToken`](crate::AdminToken).
    pub admin_token: Option<Secret>,
    /// Data-plane runtimes, at least 1.
    pub threads: usize,
    /// From the first byte of a request's head to its last.
    pub header_timeout: Duration,
    /// The longest pause in a request's body.
    pub body_timeout: Duration,
    /// Bytes a second of a request's body, on average. 0: no limit.
    pub min_receive_rate: u64,
    /// The longest time in which a client reads nothing of its response.
    pub send_timeout: Duration,
    /// Bytes a second of its responses that a client reads, on average. 0: no limit.
    pub min_send_rate: u64,
    /// The same while a worker waits for the client.
    pub min_slot_rate: u64,
    /// The time for which a kept-alive connection may be silent.
    pub idle_timeout: Duration,
    /// The time for which a stop waits for accepted requests.
    pub drain_timeout: Duration,
    /// The time for which health checks fail before the stop after SIGUSR1.
    pub drain_wait: Duration,
    /// The path of health checks, without a slash at its end.
    pub health_path: Option<Arc<str>>,
    /// Pools that must have a ready member. A route leads to each of them. Empty: all pools of routes.
    pub health_pools: Vec<String>,
    /// Health checks have lines in the access log. `None`: `access_log` decides, which a reload may keep as it was.
    pub log_health_checks: Option<bool>,
    /// The time for a new process to get its workers ready.
    pub upgrade_timeout: Duration,
    /// Bytes for the workers of all pools. `None`: a share of the machine's memory.
    pub worker_memory: Option<u64>,
    /// Bytes of the head of a request. At least 8 KiB, which is also the minimum of hyper.
    pub max_header_size: u64,
    /// Fields in the head of a request.
    pub max_header_fields: usize,
    /// Interim responses before one response of a member.
    pub max_interim_answers: usize,
    /// Bytes of request body that stay in memory.
    pub body_memory: u64,
    /// Bytes of all request bodies that stay in memory.
    pub request_memory: u64,
    /// An existing folder.
    pub temp_dir: PathBuf,
    /// Bytes of all bodies and responses in `temp_dir` together.
    pub spool_size: u64,
    /// Bytes of all responses that wait in memory for slow clients.
    pub answer_memory: u64,
    /// Bytes of one response that wait in memory for a slow client.
    pub answer_buffer: u64,
    /// The compression on routes without a setting of their own.
    pub compress: Option<Arc<EncodingPlan>>,
    /// Bytes for all encoders together.
    pub compress_memory: u64,
    /// Concurrent client connections.
    pub max_connections: usize,
    /// Concurrent connections of one client.
    pub client_connections: ClientLimit,
    /// Concurrent requests of one client.
    pub client_requests: ClientLimit,
    /// Whether clients may use HTTP/2.
    pub http2: bool,
    /// Concurrent streams of one HTTP/2 connection.
    pub http2_max_streams: usize,
    /// The flow-control window of a stream, less than 2^31 bytes.
    pub http2_stream_window: u64,
    /// The flow-control window of a connection, less than 2^31 bytes.
    pub http2_connection_window: u64,
    /// The format of the access log.
    pub access_log: AccessLog,
    /// Networks whose forwarding headers Hostler trusts. Host bits are cleared, and IPv4-mapped networks are IPv4: compare with
    /// `IpAddr::to_canonical()`. Empty by default.
    pub trusted_proxies: Vec<IpNet>,
    /// The number of proxies that every request passes. Only without `trusted_proxies`.
    pub trusted_hops: Option<NonZeroUsize>,
    /// Networks whose connections begin with a PROXY header, in the form of `trusted_proxies`.
    pub proxy_protocol: Vec<IpNet>,
    /// The one header in which a trusted proxy names the client.
    pub client_ip_header: ClientIpHeader,
}

impl Server {
    /// Whether health checks have lines in the access log.
    pub fn logs_health_checks(&self) -> bool {
        self.log_health_checks.unwrap_or(self.access_log == AccessLog::Gorouter)
    }
}
