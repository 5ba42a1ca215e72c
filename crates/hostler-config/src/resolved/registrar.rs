//! The meaning of `[registrar]`. Knows no connections.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::ServerAddr;

use super::super::client_tls::ClientTls;
use super::super::file::{Buffer, Choice, Sharding};
use super::super::value::Secret;
use super::{Ejection, Queue};

/// How other programs register routes. [`super::super::file::Registrar`] describes each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Registrar {
    /// The NATS servers.
    pub nats: Nats,
    /// Whether Hostler accepts registrations.
    pub accept: bool,
    /// The address at which others reach this Hostler. `None`: its first address.
    pub advertise: Option<Advertise>,
    /// Whole seconds, at least 1.
    pub register_interval: Duration,
    /// Whole seconds; never below `register_interval`.
    pub stale_threshold: Duration,
    /// Whether Hostler serves registered routes whose paths belong to a configured route.
    pub allow_longer_paths: bool,
    /// Bytes of one message.
    pub max_message_size: usize,
    /// URIs of one message.
    pub max_uris: usize,
    /// Routes in all.
    pub max_routes: usize,
    /// Bytes of all registrations.
    pub max_memory: u64,
    /// The interval at which Hostler removes silent members.
    pub prune_interval: Duration,
    /// Whether all members stay while NATS is not reachable.
    pub suspend_pruning: bool,
    /// How long the start waits for registrations.
    pub start_delay: Duration,
    /// How long a route without members stays.
    pub keep_empty: Duration,
    /// Which isolation segments Hostler accepts.
    pub sharding: Sharding,
    /// The isolation segments of this Hostler.
    pub isolation_segments: Vec<String>,
    /// Which free member gets the next request, unless a registration asks for another rule.
    pub choice: Choice,
    /// Concurrent requests of one member. 0: no limit.
    pub concurrency: usize,
    /// TLS to members. The names in their certificates come from their registrations.
    pub member_tls: ClientTls,
    /// When a member that does not answer gets no requests for a while.
    pub ejection: Ejection,
    /// Where requests wait.
    pub queue: Queue,
    /// The time until the response begins.
    pub request_timeout: Duration,
    /// The time to connect to a member.
    pub connect_timeout: Duration,
    /// The time for which a tunnel may be silent.
    pub tunnel_idle_timeout: Duration,
    /// The time for which a stream may be silent.
    pub stream_idle_timeout: Duration,
    /// How long a response that has begun may pause.
    pub response_idle_timeout: Duration,
    /// Whether Hostler reads bodies completely before it takes a slot.
    pub buffer: Buffer,
    /// Bytes of a request's body.
    pub max_body_size: u64,
}

/// The address at which others reach this Hostler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertise {
    /// A name or an address.
    pub host: String,
    /// Never 0.
    pub port: u16,
    /// Whether with TLS, and with a certificate for `host`.
    pub tls: bool,
}

/// NATS servers, and the login.
#[derive(Clone, PartialEq)]
pub struct Nats {
    /// At least one.
    pub servers: Vec<ServerAddr>,
    /// The login: that of the keys, or that in the addresses.
    pub login: NatsLogin,
    /// `None`: TLS only for addresses with `tls://`.
    pub tls: Option<NatsTls>,
    /// The interval at which Hostler tests a quiet connection.
    pub ping_interval: Duration,
}

impl std::fmt::Debug for Nats {
    /// Addresses may hold passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers: Vec<_> = self.servers.iter().map(|server| (server.host(), server.port())).collect();
        f.debug_struct("Nats").field("servers", &servers).field("tls", &self.tls).finish_non_exhaustive()
    }
}

/// The login at the NATS servers.
#[derive(Clone, Debug, PartialEq)]
pub enum NatsLogin {
    /// No login.
    None,
    /// A user.
    User {
        /// The name.
        user: String,
        /// May be empty.
        password: Secret,
    },
    /// A token.
    Token(Secret),
}

/// TLS to the NATS servers.
#[derive(Clone, Debug, PartialEq)]
pub struct NatsTls {
    /// A file with the authorities. `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// Hostler's certificate and its key.
    pub own: Option<(PathBuf, PathBuf)>,
}
