//! What the operator writes: the one definition of every key, from which the parser, the JSON Schema, the
//! reference, the flags and the environment variables are made. Knows not what a combination of keys means.
//!
//! The comments on fields are the text of `docs/reference/config.md`.

mod answer;
mod cache;
mod caching;
mod changes;
mod compress;
mod geo;
mod health_check;
mod member_tls;
mod platform;
mod pool;
mod postal;
mod registrar;
mod route;
mod server;
mod tls;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::{Redirect, Respond, Static};
pub use cache::Cache;
pub use caching::{CacheSwitch, Caching, Precedence, Query, SetCookie};
pub use changes::{HeaderChanges, Rewrite};
pub use compress::{Compress, Effort, Encoding, MediaType};
pub use geo::{Geo, Lookups};
pub use health_check::{Ejection, HealthCheck};
pub use member_tls::MemberTls;
pub use platform::{Compat, ForwardedClientCert, ForwardedProto, Platform, ZonePreference};
pub use pool::{Bind, Choice, Gc, MemberProtocol, Poison, Policy, Pool, Queue};
pub use postal::Postal;
pub use registrar::{NatsTls, Registrar, Sharding};
pub use route::{Buffer, Priority, Route};
pub use server::{AccessLog, ClientIpHeader, Server};
pub use tls::{Certificate, ClientCertificates, Hsts, MinVersion, Tls};

/// Hostler's configuration file, `hostler.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct File {
    /// Listeners, limits and trust: what holds for every request.
    pub server: Server,
    /// TLS for clients: where, with which certificates, and whether it is a must. Without `listen` there is none.
    pub tls: Tls,
    /// A pool is one queue and whoever serves it: Node workers that Hostler starts (`command`), or endpoints
    /// that somebody else runs (`members`). Its name has letters, digits, `-` and `_`.
    pub pools: BTreeMap<String, Pool>,
    /// Which requests go where; the order does not matter. A route with the host itself wins over one with a
    /// wildcard, a longer wildcard over a shorter one, any of them over a route without host; among those
    /// that are left the longest path wins, an exact one over one with `/*`. Without any `[[routes]]`,
    /// everything goes to the only pool.
    pub routes: Vec<Route>,
    /// Routes that register themselves, over NATS, by Cloud Foundry's router protocol. A route under `[[routes]]` wins over
    /// a registered one for the same host and path, and over one for a longer path of that host (`allow_longer_paths`).
    #[schemars(with = "Registrar")]
    pub registrar: Option<Registrar>,
    /// What becomes of requests by routes that members have registered, in the way of Cloud Foundry's gorouter.
    #[schemars(with = "Platform")]
    pub platform: Option<Platform>,
    /// Where routes with `cache` keep their answers: in memory, and in memcached beside it.
    pub cache: Cache,
    /// Where addresses are: the data of routes with `geo = true`, which Hostler answers itself.
    #[schemars(with = "Geo")]
    pub geo: Option<Geo>,
    /// Where postal codes are: the data of routes with `postal = true`, which Hostler answers itself.
    #[schemars(with = "Postal")]
    pub postal: Option<Postal>,
}
