//! The configuration file as written: the one definition of every key. The parser, the JSON Schema, the reference, the flags and
//! the environment variables come from it. Does not know what a combination of keys means.
//!
//! The comments on fields are the text of `docs/reference/config.md`. The first paragraph of a comment stands in the table of its
//! section; the other paragraphs stand below the table.

mod answer;
mod cache;
mod caching;
mod changes;
mod client_ip_header;
mod compress;
mod early_hints;
mod fair;
mod geo;
mod health_check;
mod hedge;
mod log;
mod low;
mod member_tls;
mod outgoing_tls;
mod platform;
mod pool;
mod postal;
mod queue;
mod rate_limit;
mod registrar;
mod route;
mod section;
mod server;
mod sticky;
mod tls;
mod traces;
mod when;
mod workers;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::{Redirect, Respond, Static};
pub use cache::Cache;
pub use caching::{CacheSwitch, Caching, Precedence, Query, SetCookie, Storing};
pub use changes::{HeaderChanges, Rewrite};
pub use client_ip_header::ClientIpHeader;
pub use compress::{Compress, Effort, Encoding, MediaType};
pub use early_hints::{EarlyHintLinks, EarlyHints, EarlyHintsTable, HintedLink, is_hinted};
pub use fair::FairBy;
pub use geo::{Geo, Lookups};
pub use health_check::{Ejection, HealthCheck};
pub use hedge::{Hedge, HedgeAfter, HedgeSwitch, Share};
pub use log::{Log, LogLevel};
pub use low::LowIf;
pub use member_tls::MemberTls;
pub use outgoing_tls::OutgoingTls;
pub use platform::{Compat, ForwardedClientCert, ForwardedProto, Platform, ZonePreference};
pub use pool::{Bind, Choice, Gc, MemberProtocol, Poison, Pool};
pub use postal::Postal;
pub use queue::{Order, Policy, Queue};
pub use rate_limit::RateLimit;
pub use registrar::{Registrar, Sharding};
pub use route::{Buffer, Priority, Route};
pub use server::{AccessLog, Server};
pub use sticky::{SameSite, StickyBy, StickySwitch, StickyTable, is_token};
pub use tls::{Certificate, ClientCertificates, Hsts, MinVersion, Tls};
pub use traces::Traces;
pub use when::{MethodName, Saying, When, WhenNot};
pub use workers::{NumberOfWorkers, WorkerRange};

/// Hostler's configuration file, `hostler.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct File {
    /// Listeners, limits and trusted proxies. They apply to all requests.
    pub server: Server,
    /// TLS for clients: addresses, certificates and rules. Without `listen` Hostler accepts no TLS.
    pub tls: Tls,
    /// A pool is one queue, and the workers or members that serve it. Its name has letters, digits, `-` and `_`.
    ///
    /// A **worker** is a Node process that Hostler starts (`command`). A **member** is a server that Hostler does
    /// not start (`members`).
    pub pools: BTreeMap<String, Pool>,
    /// A route leads requests to a pool or to another target. The order of the routes matters only among routes with the
    /// same `match`.
    ///
    /// If several routes match a request, Hostler uses the first of this list:
    ///
    /// - a route with exactly this host, then one with the longest wildcard host, then one without a host;
    /// - among routes that are equal in this, an exact path, then the longest path with `/*`;
    /// - among routes with the same `match`, those with `when` in the order of the file, then the one without.
    ///
    /// A route whose `when` a request does not meet does not match it: the next route of this list is asked.
    ///
    /// Without any `[[routes]]`, all requests go to the only pool.
    pub routes: Vec<Route>,
    /// Routes that other programs register over NATS, by Cloud Foundry's router protocol.
    ///
    /// A route in `[[routes]]` takes precedence over a registered route for the same host and path. It also takes
    /// precedence over registered longer paths of that host, unless `allow_longer_paths` is set.
    #[schemars(with = "Registrar")]
    pub registrar: Option<Registrar>,
    /// How Hostler treats requests of registered routes, in the way of Cloud Foundry's gorouter.
    #[schemars(with = "Platform")]
    pub platform: Option<Platform>,
    /// Where Hostler stores the responses of routes with `cache`: in memory, and in memcached.
    pub cache: Cache,
    /// Which lines the log has, and what they must not show. `server.access_log` is the format.
    pub log: Log,
    /// Traces of requests for an OpenTelemetry collector. Without `endpoint` there are none.
    pub traces: Traces,
    /// The data for location lookups of IP addresses. Routes with `geo = true` answer them.
    #[schemars(with = "Geo")]
    pub geo: Option<Geo>,
    /// The data for lookups of postal codes. Routes with `postal = true` answer them.
    #[schemars(with = "Postal")]
    pub postal: Option<Postal>,
}
