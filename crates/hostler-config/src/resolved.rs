//! What the configuration means: plain data in which everything has been checked. Knows not who wrote it, nor
//! where.
//!
//! Whoever holds a [`Config`] need not validate: names refer to pools that exist, ranges hold, addresses are
//! resolved.

mod answer;
mod cache;
mod health_check;
mod lookups;
mod registrar;
mod server;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hostler_coding::EncodingPlan;
use hostler_worker::{Slots, WorkerSettings};

use super::client_tls::ClientTls;
use super::file::{Buffer, Choice, MemberProtocol, Platform, Policy, Priority};
use super::pattern::MatchPattern;
use crate::tls::{CertificateFiles, ClientCertificates, TlsVersion};
pub use answer::{Body, Changes, HeaderChange, Piece, Redirect, Respond, Rewrite, StaticFiles};
pub use cache::Cache;
pub use health_check::{Ejection, HealthCheck};
pub use lookups::{Geo, Postal};
pub use registrar::{Advertise, Nats, NatsLogin, NatsTls, Registrar};
pub use server::Server;

/// The whole configuration of one running Hostler.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The file it came from; none with `hostler run`.
    pub path: Option<PathBuf>,
    /// Listener, limits and trust.
    pub server: Server,
    /// TLS for clients.
    pub tls: Option<Tls>,
    /// Pools in order of their names, which are unique.
    pub pools: Vec<Pool>,
    /// Routes in the order written; no two have the same pattern.
    pub routes: Vec<Route>,
    /// How routes register themselves; none: they do not.
    pub registrar: Option<Registrar>,
    /// How registered routes are treated, if anything was said of it.
    pub platform: Option<Platform>,
    /// Where answers are stored.
    pub cache: Cache,
    /// Where addresses are; always there if a route's target says `geo`.
    pub geo: Option<Geo>,
    /// Where postal codes are; always there if a route's target says `postal`.
    pub postal: Option<Postal>,
    /// What is allowed but probably not meant. One sentence each, already with file and line.
    pub warnings: Vec<String>,
}

/// The `[tls]` section. Each field is described at its key: [`super::file::Tls`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// At least one address, none twice, nor in `server.listen`.
    pub listen: Vec<SocketAddr>,
    /// At least one; their files were good when they were looked at.
    pub certificates: Vec<CertificateFiles>,
    /// Nobody is shown a certificate for another name.
    pub strict_sni: bool,
    /// The lowest version that is spoken.
    pub min_version: TlsVersion,
    /// Certificates of clients.
    pub client_certificates: Option<ClientCertificates>,
    /// Clients without TLS are sent to it ...
    pub redirect_http: bool,
    /// ... by this port, or that of the first listener.
    pub public_port: Option<u16>,
    /// The value of `Strict-Transport-Security`.
    pub hsts: Option<String>,
}

/// One queue and whoever serves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Unique; letters, digits, `-` and `_`.
    pub name: String,
    /// Who fills the pool.
    pub source: PoolMembers,
    /// Under which names others are told of it.
    pub announce: Vec<String>,
    /// Which free member gets the next request.
    pub choice: Choice,
    /// Where requests wait for a slot.
    pub queue: Queue,
    /// How long a client waits for its answer, unless the route says otherwise.
    pub request_timeout: Duration,
    /// How long connecting to a member may take.
    pub connect_timeout: Duration,
    /// How many tunnels one worker or member may have.
    pub max_tunnels: usize,
    /// How long a tunnel may be without a byte in either direction.
    pub tunnel_idle_timeout: Duration,
    /// What becomes of a request that takes worker after worker down with it.
    pub poison: Poison,
    /// What becomes of members that let requests wait in vain.
    pub ejection: Ejection,
}

impl Pool {
    /// Requests at once for each worker or member.
    pub fn slots(&self) -> Slots {
        match &self.source {
            PoolMembers::Workers(workers) => workers.slots,
            PoolMembers::Members(members) => Slots::Fixed(members.slots),
        }
    }
}

/// When a request is taken for one that kills workers, and what becomes of those like it.
#[derive(Clone, Debug, PartialEq)]
pub struct Poison {
    /// Deaths of workers in the middle of one request; 0: never.
    pub kills: usize,
    /// How long its method and URL are refused.
    pub keep_off: Duration,
}

/// Where requests wait for a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// How many may wait; 0: nobody waits.
    pub limit: usize,
    /// How long one may wait.
    pub timeout: Duration,
    /// Who is served first, and who is refused.
    pub policy: Policy,
}

/// Who fills a pool.
#[derive(Clone, Debug, PartialEq)]
pub enum PoolMembers {
    /// Node processes that Hostler starts and watches. Their environment has the pool's own variables only; it is completed
    /// when the pool starts.
    Workers(WorkerSettings),
    /// Endpoints that somebody else runs.
    Members(Members),
}

/// Endpoints that somebody else runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members {
    /// At least one, none twice.
    pub endpoints: Vec<Endpoint>,
    /// Requests at once for each, at least 1.
    pub slots: usize,
    /// What is spoken to them.
    pub protocol: MemberProtocol,
    /// Whom to trust among them; where there is an [`Endpoint::Tls`].
    pub tls: Option<ClientTls>,
    /// How they are checked, if they are.
    pub health_check: Option<HealthCheck>,
}

/// Where a member listens. Displays as it is written in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// An address or a name; a name is looked up at each connect, since it may move while Hostler runs.
    Tcp {
        /// IPv6 addresses without brackets.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// The same, over TLS.
    Tls {
        /// IPv6 addresses without brackets.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// An absolute path.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Tls { host, port } if host.contains(':') => write!(f, "https://[{host}]:{port}"),
            Self::Tls { host, port } => write!(f, "https://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Host and path lead to a target, under these limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// What it matches.
    pub pattern: MatchPattern,
    /// Where it leads.
    pub target: Target,
    /// Whether a request's body is read whole before it takes a slot.
    pub buffer: Buffer,
    /// TRACE goes to the pool.
    pub trace: bool,
    /// Bytes of request body: the route's own limit, else the server's.
    pub max_body_size: u64,
    /// How its answers are encoded: as it says itself, else as the server does.
    pub compress: Option<Arc<EncodingPlan>>,
    /// Which requests get a slot first.
    pub priority: Priority,
    /// The answer where the pool has none; only beside [`Target::Pool`].
    pub fallback: Option<Fallback>,
    /// Files that come before the pool; only beside [`Target::Pool`].
    pub files_first: Option<StaticFiles>,
    /// How its answers are kept; only beside [`Target::Pool`].
    pub caching: Option<Caching>,
    /// What is changed on the way through.
    pub changes: Changes,
}

/// How a route's answers are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// Which may be, and for how long.
    pub rules: hostler_cache::CachingRules,
    /// What of a query makes another answer.
    pub query: hostler_cache::Query,
    /// Whether any are.
    pub stores: bool,
    /// Those who wait for the same answer share it though it cannot be kept.
    pub collapses: bool,
}

/// The answer where a pool has none.
#[derive(Clone, Debug, PartialEq)]
pub enum Fallback {
    /// A file, for those that ask for a page.
    File(Arc<LoadedFile>),
    /// The client-side fallback of each job of a Hypernova batch; never beside [`Buffer::None`].
    Hypernova,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.path.display().fmt(f),
            Self::Hypernova => f.write_str("hypernova"),
        }
    }
}

/// A file that is an answer, as it was when the configuration was loaded: where a pool has none, or always.
#[derive(Clone, PartialEq)]
pub struct LoadedFile {
    /// Absolute if the file's folder is.
    pub path: PathBuf,
    /// What it is, by its extension.
    pub content_type: String,
    /// Never empty.
    pub body: Bytes,
}

impl fmt::Debug for LoadedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, content_type, body } = self;
        let body = format_args!("{} bytes", body.len());
        f.debug_struct("LoadedFile")
            .field("path", path)
            .field("content_type", content_type)
            .field("body", &body)
            .finish()
    }
}

/// What a route leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A pool.
    Pool {
        /// The name of a pool in [`Config::pools`].
        name: String,
        /// The route's own limit, else the pool's.
        request_timeout: Duration,
    },
    /// An answer that needs no worker.
    Respond(Respond),
    /// A folder whose files are answers.
    Static(StaticFiles),
    /// Another URL.
    Redirect(Redirect),
    /// What Hostler answers out of its own data; at least one of the two.
    Native {
        /// Where addresses are.
        geo: bool,
        /// Where postal codes are.
        postal: bool,
    },
}
