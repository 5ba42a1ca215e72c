//! What `[registrar]` means. Knows no connection.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::ServerAddr;

use super::super::client_tls::ClientTls;
use super::super::file::{Buffer, Choice, Sharding};
use super::super::value::Secret;
use super::{Ejection, Queue};

/// How routes register themselves. Each field is described at its key: [`super::super::file::Registrar`].
#[derive(Clone, Debug, PartialEq)]
pub struct Registrar {
    /// Where registrations come from.
    pub nats: Nats,
    /// Whether they are taken.
    pub accept: bool,
    /// Where others reach us; none: at the first of our addresses.
    pub advertise: Option<Advertise>,
    /// Whole seconds, at least 1.
    pub register_interval: Duration,
    /// Whole seconds; never below `register_interval`.
    pub stale_threshold: Duration,
    /// Whether registered routes count whose paths belong to a configured one.
    pub allow_longer_paths: bool,
    /// Bytes of one message.
    pub max_message_size: usize,
    /// URIs of one message.
    pub max_uris: usize,
    /// Routes in all.
    pub max_routes: usize,
    /// Bytes of all.
    pub max_memory: u64,
    /// How often silent members are looked for.
    pub prune_interval: Duration,
    /// Whether nobody is silent while NATS is away.
    pub suspend_pruning: bool,
    /// How long the start waits for registrations.
    pub start_delay: Duration,
    /// How long a route without members stays.
    pub keep_empty: Duration,
    /// Which segments are taken.
    pub sharding: Sharding,
    /// The segments that are ours.
    pub isolation_segments: Vec<String>,
    /// Which free member gets the next request, unless a registration says otherwise.
    pub choice: Choice,
    /// Requests of one member at once; 0: any number.
    pub concurrency: usize,
    /// How members with TLS are checked; whom their certificates name, their registrations say.
    pub member_tls: ClientTls,
    /// What becomes of members that let requests wait in vain.
    pub ejection: Ejection,
    /// Where requests wait.
    pub queue: Queue,
    /// How long a client waits for its answer to begin.
    pub request_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a tunnel may be silent.
    pub tunnel_idle_timeout: Duration,
    /// Whether bodies are read whole.
    pub buffer: Buffer,
    /// Bytes of a request's body.
    pub max_body_size: u64,
}

/// Where others reach us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertise {
    /// A name or an address.
    pub host: String,
    /// Never 0.
    pub port: u16,
    /// Over TLS, with a certificate for `host`.
    pub tls: bool,
}

/// NATS servers, and how we come in.
#[derive(Clone, PartialEq)]
pub struct Nats {
    /// At least one.
    pub servers: Vec<ServerAddr>,
    /// Who we are.
    pub login: NatsLogin,
    /// None: TLS only where an address says so.
    pub tls: Option<NatsTls>,
    /// How often a quiet connection is tried.
    pub ping_interval: Duration,
}

impl std::fmt::Debug for Nats {
    /// Addresses may hold passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers: Vec<_> = self.servers.iter().map(|server| (server.host(), server.port())).collect();
        f.debug_struct("Nats").field("servers", &servers).field("tls", &self.tls).finish_non_exhaustive()
    }
}

/// Who we are at the NATS servers.
#[derive(Clone, Debug, PartialEq)]
pub enum NatsLogin {
    /// Nobody is asked, or the address says it.
    None,
    /// A user.
    User {
        /// The name.
        user: String,
        /// May be empty.
        password: Secret,
    },
    /// Whoever has the token.
    Token(Secret),
}

/// TLS to the NATS servers.
#[derive(Clone, Debug, PartialEq)]
pub struct NatsTls {
    /// Who vouches for them; none: the system's authorities.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key.
    pub own: Option<(PathBuf, PathBuf)>,
}
