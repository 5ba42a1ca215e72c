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
mod member_tls;
mod platform;
mod pool;
mod postal;
mod registrar;
mod route;
mod tls;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::{Address, AdminAddress, Count, Delay, OneOrMany, Period, Proxy, Size, Switch};
pub use answer::{Redirect, Respond, Static};
pub use cache::Cache;
pub use caching::{CacheSwitch, Caching, Precedence, Query, SetCookie};
pub use changes::{HeaderChanges, Rewrite};
pub use compress::{Compress, Effort, Encoding};
pub use geo::{Geo, Lookups};
pub use member_tls::MemberTls;
pub use platform::{Compat, ForwardedClientCert, ForwardedProto, Platform, ZonePreference};
pub use pool::{Bind, Choice, Gc, MemberProtocol, Poison, Policy, Pool, Queue};
pub use postal::Postal;
pub use registrar::{NatsTls, Registrar, Sharding};
pub use route::{Buffer, Priority, Route};
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
    /// a registered one for the same host and path.
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

/// The `[server]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Server {
    /// Where clients connect. `":8080"` is every address of the machine, IPv4 and IPv6; a name such as
    /// `localhost` is looked up once, at the start, and means its first IPv4 address if it has one; port 0 is
    /// a free port.
    pub listen: OneOrMany<Address>,
    /// Where `hostler status` and `GET /status` are answered, without any password: never a public address.
    /// `"off"` for none.
    pub admin: AdminAddress,
    /// Data-plane runtimes, each a thread with its own share of the connections.
    #[schemars(with = "Count<1, 1024>", extend("x-default" = "one a core"))]
    pub threads: Option<Count<1, 1024>>,
    /// The time a client has to send the head of a request, from its first byte to its last. Over it: 408 and
    /// the connection is closed.
    pub header_timeout: Period,
    /// The longest pause a client may make while it sends a body; any byte starts it anew. Over it: 408 and
    /// the connection is closed.
    pub body_timeout: Period,
    /// The longest time in which a client may take nothing of its answer; any byte taken starts it anew. Over
    /// it: the connection is closed.
    pub send_timeout: Period,
    /// How long a kept-alive connection may be without a request. Over it: it is closed, between requests, so
    /// nothing is lost.
    pub idle_timeout: Period,
    /// How long a stop (SIGTERM, SIGINT) waits for accepted requests to finish. Over it, or at a second
    /// signal: what is left is cut off.
    pub drain_timeout: Period,
    /// How long SIGUSR1 lets all go on while health checks fail already (503), so that a balancer in front looks elsewhere;
    /// then it is a stop.
    pub drain_wait: Delay,
    /// How long a new program that takes over (`hostler upgrade`, SIGUSR2) may need until its workers are ready.
    /// Over it: it is ended, and the running one goes on as before. A pool that is new at `hostler reload` has as long for
    /// its first worker.
    pub upgrade_timeout: Period,
    /// Bytes of the request line and all header fields together. Over it: 431 (RFC 6585, section 5). Workers are told to
    /// take as much, unless `NODE_OPTIONS` has a `--max-http-header-size`: Node by itself stops at 16 KiB.
    pub max_header_size: Size<8192, 1_048_576>,
    /// Header fields in one request. Over it: 431 (RFC 6585, section 5). In an answer of a member: 502.
    pub max_header_fields: Count<1, 1000>,
    /// Bytes of a request's body. Over it: 413 (RFC 9110, section 15.5.14), at once if Content-Length says
    /// so. A route can have its own.
    pub max_body_size: Size<1, 1_099_511_627_776>,
    /// Bytes of a request's body that are held in memory while it is read; a longer body goes to a temporary
    /// file.
    pub body_memory: Size<0, 1_073_741_824>,
    /// The folder for bodies over `body_memory`; relative to the file's folder. It must exist.
    #[schemars(with = "String", extend("x-default" = "the system's: TMPDIR or /tmp"))]
    pub temp_dir: Option<String>,
    /// Bytes of one answer that are held for a client slower than its worker. Once it is full the worker has
    /// to wait for the client, and its slot with it.
    pub answer_buffer: Size<4096, 1_073_741_824>,
    /// Whether answers are compressed on their way to clients that take it: `true`, or a table that says which and how. A route
    /// can have its own. Off by default: many apps compress by themselves, and a page with both a secret and what a
    /// stranger makes it repeat gives the secret away by its length (BREACH). `docs/concepts/compression.md` says what becomes of
    /// an answer.
    #[schemars(extend("x-default" = "`false`"))]
    pub compress: Switch<Compress>,
    /// Bytes of memory for all encoders together. Over it: answers go out as they are.
    pub compress_memory: Size<0, 1_099_511_627_776>,
    /// Client connections at once. Over it: 503 with Retry-After, and the connection is closed; with TLS it is just
    /// closed, before the handshake.
    pub max_connections: Count<1, 1_000_000>,
    /// Clients may speak HTTP/2: over TLS those that ask for it, without it those that begin with it (prior knowledge).
    pub http2: bool,
    /// Requests and tunnels that one HTTP/2 connection may have under way at once. A client is told; a stream over it is
    /// refused, and can safely be tried again.
    pub http2_max_streams: Count<1, 100_000>,
    /// Bytes of one request's body that an HTTP/2 client may send before Hostler has taken them. More of it makes a large
    /// upload over a long way faster.
    pub http2_stream_window: Size<65_536, 1_073_741_824>,
    /// The same, for all bodies of a connection together: the most memory that they can take before they are taken.
    pub http2_connection_window: Size<65_536, 1_073_741_824>,
    /// One line an exchange on standard output, as JSON or for people.
    pub access_log: AccessLog,
    /// Whose forwarding headers (`X-Forwarded-*`, `Forwarded`, ...) are believed: networks or single
    /// addresses. From anybody else they are removed. A malformed entry stops
    /// the start: trusting too few breaks an app, trusting too many opens it.
    pub trusted_proxies: Vec<Proxy>,
    /// Instead of `trusted_proxies`, for proxies whose addresses nobody can list (some CDNs): how many of them each request has come
    /// through. So many entries of `client_ip_header` are counted from the right, or its one address is taken; a request with fewer
    /// has come round one of them, and its client is the other end of its connection. Everybody's forwarding headers are passed on, and whoever
    /// reaches Hostler round a proxy can claim any address: allow it no other way in. 0: not by number.
    pub trusted_hops: Count<0, 32>,
    /// Load balancers that send a PROXY header (version 1 or 2) before anything else: networks or single addresses. A connection
    /// from one of them must begin with it, within `header_timeout`, before TLS if that is spoken; the client's address is
    /// then the one it names. Anybody else's connection must begin without. Whoever is named is in turn compared with
    /// `trusted_proxies`.
    pub proxy_protocol: Vec<Proxy>,
    /// The one header in which a trusted proxy names the client; it is read from the right, past trusted
    /// proxies, to the first address that is not trusted. The other fields of its kind are passed on from
    /// a trusted proxy and removed from anybody else; they name nobody.
    pub client_ip_header: ClientIpHeader,
}

impl Default for Server {
    fn default() -> Self {
        let local = |port| Address { host: Some("127.0.0.1".into()), port };
        Self {
            listen: OneOrMany(vec![local(8080)]),
            admin: AdminAddress::At(local(8081)),
            threads: None,
            header_timeout: Period::seconds(10),
            body_timeout: Period::seconds(30),
            send_timeout: Period::seconds(30),
            idle_timeout: Period::seconds(75),
            drain_timeout: Period::seconds(30),
            drain_wait: Delay::seconds(20),
            upgrade_timeout: Period::seconds(60),
            max_header_size: Size(64 << 10),
            max_header_fields: Count(100),
            max_body_size: Size(10 << 20),
            body_memory: Size(256 << 10),
            temp_dir: None,
            answer_buffer: Size(1 << 20),
            compress: Switch::Plain(false),
            compress_memory: Size(64 << 20),
            max_connections: Count(10_000),
            http2: true,
            http2_max_streams: Count(128),
            http2_stream_window: Size(256 << 10),
            http2_connection_window: Size(1 << 20),
            access_log: AccessLog::Json,
            trusted_proxies: Vec::new(),
            trusted_hops: Count(0),
            proxy_protocol: Vec::new(),
            client_ip_header: ClientIpHeader::XForwardedFor,
        }
    }
}

/// Form of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessLog {
    /// One JSON object a line.
    Json,
    /// One short line for people.
    Pretty,
    /// One line as Cloud Foundry's gorouter writes it; everything else is as with `"json"`.
    Gorouter,
    /// No access log.
    Off,
}

/// The header in which a trusted proxy names the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClientIpHeader {
    /// What most proxies append to.
    #[serde(rename = "X-Forwarded-For")]
    XForwardedFor,
    /// One address; nginx's habit.
    #[serde(rename = "X-Real-IP")]
    XRealIp,
    /// RFC 7239.
    #[serde(rename = "Forwarded")]
    Forwarded,
    /// Cloudflare.
    #[serde(rename = "CF-Connecting-IP")]
    CfConnectingIp,
    /// Akamai, and Cloudflare Enterprise.
    #[serde(rename = "True-Client-IP")]
    TrueClientIp,
}

impl ClientIpHeader {
    /// The field's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "X-Forwarded-For",
            Self::XRealIp => "X-Real-IP",
            Self::Forwarded => "Forwarded",
            Self::CfConnectingIp => "CF-Connecting-IP",
            Self::TrueClientIp => "True-Client-IP",
        }
    }
}
