//! The meaning of the configuration: plain data that has been checked. Does not know where it was written.
//!
//! A [`Config`] needs no further checks: names refer to pools that exist, numbers are in their ranges, addresses are resolved.

mod answer;
mod cache;
mod health_check;
mod log;
mod lookups;
mod pool;
mod rate_limit;
mod registrar;
mod server;
mod sticky;
mod traces;
mod when;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hostler_coding::EncodingPlan;

use super::file::{Buffer, EarlyHintLinks, FairBy, Platform, Priority};
use super::pattern::MatchPattern;
use crate::tls::{CertificateFiles, ClientCertificates, TlsVersion};
pub use answer::{Body, Changes, HeaderChange, LoadedFile, Piece, Redirect, Respond, Rewrite, StaticFiles};
pub use cache::Cache;
pub use health_check::{Ejection, HealthCheck};
pub use log::Log;
pub use lookups::{Geo, Postal};
pub use pool::{Endpoint, Members, Poison, Pool, PoolMembers, Queue};
pub use rate_limit::{RateLimit, RequestRate};
pub use registrar::{Advertise, Nats, NatsLogin, NatsTls, Registrar};
pub use server::Server;
pub use sticky::Sticky;
pub use traces::{CollectorAddress, Traces};
pub use when::Conditions;

/// The whole configuration of one running Hostler.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The file. `None` with `hostler run`.
    pub path: Option<PathBuf>,
    /// Listeners, limits and trusted proxies.
    pub server: Server,
    /// TLS for clients.
    pub tls: Option<Tls>,
    /// Pools in order of their names, which are unique.
    pub pools: Vec<Pool>,
    /// Routes in the order written; no two have the same pattern and the same conditions.
    pub routes: Vec<Route>,
    /// How other programs register routes. `None`: they cannot.
    pub registrar: Option<Registrar>,
    /// How Hostler treats registered routes. `None`: nothing is written, and there are no registered routes.
    pub platform: Option<Platform>,
    /// Where Hostler stores responses.
    pub cache: Cache,
    /// What the log has.
    pub log: Log,
    /// Which requests have traces, and where these go.
    pub traces: Traces,
    /// The data of location lookups. It exists if a route has `geo`.
    pub geo: Option<Geo>,
    /// The data of postal codes. It exists if a route has `postal`.
    pub postal: Option<Postal>,
    /// How many file descriptors are left besides connections, workers and members. `None`: without end.
    pub spare_descriptors: Option<usize>,
    /// Warnings, one sentence each, with file and line.
    pub warnings: Vec<String>,
}

/// The `[tls]` section. [`super::file::Tls`] describes each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// At least one address. No address is there twice, or in `server.listen`, too.
    pub listen: Vec<SocketAddr>,
    /// At least one. The files were valid when they were read.
    pub certificates: Vec<CertificateFiles>,
    /// A client never gets a certificate for another name.
    pub strict_sni: bool,
    /// The lowest version that Hostler accepts.
    pub min_version: TlsVersion,
    /// Whether clients show certificates, and who must have signed them.
    pub client_certificates: Option<ClientCertificates>,
    /// Whether clients without TLS are redirected ...
    pub redirect_http: bool,
    /// ... to this port, or to that of the first listener.
    pub public_port: Option<u16>,
    /// The value of `Strict-Transport-Security`.
    pub hsts: Option<String>,
}

/// A pattern, its target, and limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its name in logs and status: the pattern, and what the conditions are about. No other route has it.
    pub name: String,
    /// The requests that it matches.
    pub pattern: MatchPattern,
    /// What these requests must meet besides. `None`: nothing.
    pub when: Option<Conditions>,
    /// The target.
    pub target: Target,
    /// Whether a request's body is read whole before it takes a slot.
    pub buffer: Buffer,
    /// TRACE goes to the pool.
    pub trace: bool,
    /// The size of a request body: the route's own limit, or the server's.
    pub max_body_size: u64,
    /// The compression of its responses: the route's own setting, or the server's.
    pub compress: Option<Arc<EncodingPlan>>,
    /// Which requests get a slot first.
    pub priority: Priority,
    /// Under which keys its requests share the slots of their pool, in place of the pool's own list.
    pub fair: Option<Vec<FairBy>>,
    /// How many requests it takes in a time.
    pub rate_limit: Option<RateLimit>,
    /// The response if the pool gives none. Only with [`Target::Pool`].
    pub fallback: Option<Fallback>,
    /// Files that come before the pool. Only with [`Target::Pool`].
    pub files_first: Option<StaticFiles>,
    /// How Hostler stores its responses. Only with [`Target::Pool`].
    pub caching: Option<Caching>,
    /// The links that a browser gets while its request waits. Only with [`Target::Pool`].
    pub early_hints: Option<EarlyHints>,
    /// The changes of heads and of the path.
    pub changes: Changes,
}

/// The links that a browser gets while its request waits.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyHints {
    /// Which links.
    pub links: EarlyHintLinks,
    /// HTTP/1.1 clients get them, too.
    pub http1: bool,
}

/// How Hostler stores the responses of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// Which responses, and for how long.
    pub rules: hostler_cache::CachingRules,
    /// Which part of the query belongs to the cache key.
    pub query: hostler_cache::Query,
    /// Whether Hostler stores responses.
    pub stores: bool,
    /// Whether equal requests share a response that cannot be stored.
    pub collapses: bool,
}

/// The response if a pool gives none.
#[derive(Clone, Debug, PartialEq)]
pub enum Fallback {
    /// A file, for clients that accept its type.
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

/// The target of a route.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A pool.
    Pool {
        /// The name of a pool in [`Config::pools`].
        name: String,
        /// The route's own limit, or the pool's.
        request_timeout: Duration,
    },
    /// A fixed response.
    Respond(Respond),
    /// A folder whose files are responses.
    Static(StaticFiles),
    /// Another URL.
    Redirect(Redirect),
    /// Lookups that Hostler answers from its own data. At least one of the two.
    Native {
        /// Locations of IP addresses.
        geo: bool,
        /// Postal codes.
        postal: bool,
    },
}
