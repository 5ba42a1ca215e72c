//! What the operator writes about routes that register themselves: the `[registrar]` section.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Buffer, Choice, Ejection, MemberTls, Queue};
use crate::value::{Count, Delay, MemberAddress, NatsAddress, OneOrMany, Period, Secret, Size};

/// The `[registrar]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Registrar {
    /// NATS servers: one is used, the others stand by. `tls://` instead of `nats://` asks for TLS. The connection is made again
    /// for ever; without it, the routes stay as they are.
    pub nats: OneOrMany<NatsAddress>,
    /// The user at the NATS servers.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub user: Option<String>,
    /// The user's password; better in the variable than in the file.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub password: Option<Secret>,
    /// A token for the NATS servers, in place of user and password.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub token: Option<Secret>,
    /// TLS to the NATS servers. The table alone, even if it is empty, asks for it.
    #[schemars(with = "NatsTls")]
    pub nats_tls: Option<NatsTls>,
    /// Whether others' routes are taken. A machine with nothing but workers of its own has no use for them.
    #[schemars(with = "bool", extend("x-default" = "true, unless a pool has `announce`"))]
    pub accept: Option<bool>,
    /// The address under which others reach the pools that `announce`: `"10.0.0.5:8080"`, or `"https://app1.internal:8443"`,
    /// whose certificate they are to find.
    #[schemars(with = "MemberAddress", extend("x-default" = "the first of `server.listen`"))]
    pub advertise: Option<MemberAddress>,
    /// How often a quiet connection to NATS is tried. After two without an answer it is made anew.
    pub ping_interval: Period,
    /// How often clients are asked to register (`minimumRegisterIntervalInSeconds`), in whole seconds.
    pub register_interval: Period,
    /// How long a member stays that is not registered again, unless it asks for less. A member with TLS stays until it is
    /// unregistered or cannot be reached: its certificate says whether it is still the same.
    pub stale_threshold: Period,
    /// Whether a registration may take paths away from a route under `[[routes]]` with the same host: whether `shop.example.com/api`
    /// is served by who has registered for it although there is a route `shop.example.com/*`. If not, the registered route is not
    /// served for as long as there is the other one.
    pub allow_longer_paths: bool,
    /// Bytes of one registration. Over it: it is refused.
    pub max_message_size: Size<1024, 67_108_864>,
    /// URIs in one registration. Over it: it is refused.
    pub max_uris: Count<1, 1_000_000>,
    /// Registered routes in all. Over it: further ones are refused; what is known goes on.
    pub max_routes: Count<1, 10_000_000>,
    /// Memory that registered routes and their members may take, as far as Hostler can tell: about 5 KiB for a route with one member.
    /// Over it: further ones are refused; what is known goes on.
    pub max_memory: Size<65_536, 1_099_511_627_776>,
    /// How often members that have gone silent are looked for.
    pub prune_interval: Period,
    /// Whether everybody stays while NATS is away, and gets a whole `stale_threshold` once it is back.
    pub suspend_pruning: bool,
    /// How long the start waits for registrations before clients are let in; `hostler upgrade` waits as long. As long as the interval of your
    /// clients, if they do not listen to `router.start` (route-registrar does not).
    pub start_delay: Delay,
    /// How long a route stays whose last member has left: until then requests for it are refused with 503, unless a shorter path has
    /// members; afterwards there is no such route.
    pub keep_empty: Delay,
    /// Which registrations are taken, by their isolation segment.
    pub sharding: Sharding,
    /// The isolation segments that are ours.
    pub isolation_segments: Vec<String>,
    /// Which of a route's free members gets the next request; a registration may say otherwise (`options.loadbalancing`).
    pub choice: Choice,
    /// Requests that one member of a route is given at once; 0: as many as come.
    pub concurrency: Count<0, 1_000_000>,
    /// How members are checked that register a `tls_port`; `server_name` is what each says itself
    /// (`server_cert_domain_san`).
    #[schemars(with = "MemberTls")]
    pub member_tls: Option<MemberTls>,
    /// What becomes of members that let requests wait in vain; counted for each route.
    pub ejection: Ejection,
    /// Where requests wait that no member has room for.
    pub queue: Queue,
    /// How long a client waits for its answer to begin. Over it: 504.
    pub request_timeout: Period,
    /// How long connecting to a member may take.
    pub connect_timeout: Period,
    /// How long a tunnel may be without a byte in either direction.
    pub tunnel_idle_timeout: Period,
    /// Whether a request's body is read whole before it takes a slot.
    pub buffer: Buffer,
    /// Bytes of a request's body. Over it: 413.
    #[schemars(with = "Size<1, 1_099_511_627_776>", extend("x-default" = "that of `[server]`"))]
    pub max_body_size: Option<Size<1, 1_099_511_627_776>>,
}

impl Default for Registrar {
    fn default() -> Self {
        Self {
            nats: OneOrMany(Vec::new()),
            user: None,
            password: None,
            token: None,
            nats_tls: None,
            accept: None,
            advertise: None,
            ping_interval: Period::seconds(20),
            register_interval: Period::seconds(20),
            stale_threshold: Period::seconds(120),
            allow_longer_paths: false,
            max_message_size: Size(256 << 10),
            max_uris: Count(1000),
            max_routes: Count(50_000),
            max_memory: Size(256 << 20),
            prune_interval: Period::seconds(30),
            suspend_pruning: true,
            start_delay: Delay::seconds(5),
            keep_empty: Delay::seconds(30),
            sharding: Sharding::All,
            isolation_segments: Vec::new(),
            choice: Choice::RoundRobin,
            concurrency: Count(500),
            member_tls: None,
            ejection: Ejection::default(),
            queue: Queue::default(),
            request_timeout: Period::seconds(60),
            connect_timeout: Period::seconds(5),
            tunnel_idle_timeout: Period::seconds(3600),
            buffer: Buffer::Full,
            max_body_size: None,
        }
    }
}

/// A `[registrar.nats_tls]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct NatsTls {
    /// Certificates (PEM) of whoever may vouch for the servers; relative to the file's folder.
    #[schemars(with = "String", extend("x-default" = "those of the system"))]
    pub ca: Option<String>,
    /// Our own certificate with its chain (PEM), for servers that want one.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub cert: Option<String>,
    /// Its key (PEM).
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub key: Option<String>,
}

/// Which registrations are taken, by their isolation segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharding {
    /// All.
    All,
    /// Those without a segment, and those of `isolation_segments`.
    SharedAndSegments,
    /// Those of `isolation_segments`.
    Segments,
}
