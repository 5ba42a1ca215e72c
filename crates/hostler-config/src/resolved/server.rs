//! What the `[server]` section means: listeners, limits and trust. Knows not where it was written.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hostler_coding::EncodingPlan;
use ipnet::IpNet;

use crate::file::{AccessLog, ClientIpHeader};
use crate::value::ClientLimit;

/// The `[server]` section. Each field is described at its key: [`file::Server`](crate::file::Server).
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// None only beside `tls.listen`, none twice; port 0 asks the system for a free one.
    pub listen: Vec<SocketAddr>,
    /// `None`: no admin listener.
    pub admin: Option<SocketAddr>,
    /// Data-plane runtimes, at least 1.
    pub threads: usize,
    /// From the first byte of a request's head to its last.
    pub header_timeout: Duration,
    /// The longest pause in a request's body.
    pub body_timeout: Duration,
    /// Bytes of a request's body in a second, on average; 0: any.
    pub min_receive_rate: u64,
    /// The longest time in which a client takes nothing of its answer.
    pub send_timeout: Duration,
    /// Bytes of its answers that a client takes in a second, on average; 0: any.
    pub min_send_rate: u64,
    /// The same while a worker waits for it.
    pub min_slot_rate: u64,
    /// How long a kept-alive connection may be silent.
    pub idle_timeout: Duration,
    /// How long a stop waits for accepted requests.
    pub drain_timeout: Duration,
    /// How long health checks fail before a stop that SIGUSR1 begins.
    pub drain_wait: Duration,
    /// Where health checks are answered; without a slash at its end.
    pub health_path: Option<Arc<str>>,
    /// Pools that must have a ready member, each of which a route leads to; none: all of those.
    pub health_pools: Vec<String>,
    /// Health checks have lines in the access log.
    pub log_health_checks: bool,
    /// How long a new program may take until its workers are ready.
    pub upgrade_timeout: Duration,
    /// Bytes of a request's head; at least 8 KiB, which is also the least that hyper takes.
    pub max_header_size: u64,
    /// Fields in a request's head.
    pub max_header_fields: usize,
    /// Interim answers before one answer of a member.
    pub max_interim_answers: usize,
    /// Bytes of request body that stay in memory.
    pub body_memory: u64,
    /// Bytes of all request bodies that stay in memory.
    pub request_memory: u64,
    /// An existing folder.
    pub temp_dir: PathBuf,
    /// Bytes of all bodies and answers in `temp_dir` together.
    pub spool_size: u64,
    /// Bytes of all answers that wait in memory for slow clients.
    pub answer_memory: u64,
    /// Bytes of one answer that wait in memory for a slow client.
    pub answer_buffer: u64,
    /// How answers are encoded on routes that do not say otherwise.
    pub compress: Option<Arc<EncodingPlan>>,
    /// Bytes for all encoders together.
    pub compress_memory: u64,
    /// Client connections at once.
    pub max_connections: usize,
    /// Connections of one client at once.
    pub client_connections: ClientLimit,
    /// Requests of one client under way.
    pub client_requests: ClientLimit,
    /// Clients may speak HTTP/2.
    pub http2: bool,
    /// Streams of one HTTP/2 connection at once.
    pub http2_max_streams: usize,
    /// Bytes of one request's body on their way; less than 2^31.
    pub http2_stream_window: u64,
    /// Bytes of all bodies of a connection on their way; less than 2^31.
    pub http2_connection_window: u64,
    /// Form of the access log.
    pub access_log: AccessLog,
    /// Networks whose forwarding headers are believed, host bits cleared, IPv4-mapped ones written as IPv4: compare with
    /// `IpAddr::to_canonical()`. Empty by default: nobody's.
    pub trusted_proxies: Vec<IpNet>,
    /// How many proxies every request has come through; only where there are no `trusted_proxies`.
    pub trusted_hops: Option<NonZeroUsize>,
    /// Networks whose connections begin with a PROXY header, as canonical as `trusted_proxies`.
    pub proxy_protocol: Vec<IpNet>,
    /// The one header in which a trusted proxy names the client.
    pub client_ip_header: ClientIpHeader,
}
