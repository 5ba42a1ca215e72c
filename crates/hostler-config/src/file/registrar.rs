//! The keys of `[registrar]`, as written: routes that other programs register.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Buffer, Choice, Ejection, MemberTls, OutgoingTls, Queue};
use crate::value::{Count, Delay, MemberAddress, NatsAddress, OneOrMany, Period, Secret, Size};

/// The `[registrar]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Registrar {
    /// NATS servers. Hostler uses one of them, and another one if that fails. Example: `["nats://10.0.2.1:4222"]`.
    ///
    /// `tls://` in place of `nats://` means TLS. Hostler tries to reconnect until it succeeds. Without a connection,
    /// the routes stay as they are.
    ///
    /// An address may contain the login, such as `nats://user:password@10.0.2.1:4222`, or a token in place of both.
    /// Hostler uses it for all servers. It does not count if `user` or `token` is set.
    pub nats: OneOrMany<NatsAddress>,
    /// The user at the NATS servers.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub user: Option<String>,
    /// The password of the user. Use the environment variable, so that the file does not contain it.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub password: Option<Secret>,
    /// A token for the NATS servers, in place of user and password.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub token: Option<Secret>,
    /// TLS to the NATS servers. The table alone, even if it is empty, enables TLS.
    #[schemars(with = "OutgoingTls")]
    pub nats_tls: Option<OutgoingTls>,
    /// Whether Hostler accepts registrations of other programs. `false` is for a machine that only announces its own
    /// pools (`announce`).
    #[schemars(with = "bool", extend("x-default" = "`true`, unless a pool has `announce`"))]
    pub accept: Option<bool>,
    /// The address at which others reach the pools with `announce`: `"10.0.0.5:8080"`, or
    /// `"https://app1.internal:8443"`.
    ///
    /// With `https://`, the certificate at that address must have this name. Set it if `server.listen` is not an
    /// address that others can reach.
    #[schemars(with = "MemberAddress", extend("x-default" = "the first address of `server.listen`"))]
    pub advertise: Option<MemberAddress>,
    /// The time after which Hostler tests a quiet connection to NATS. After two tests without an answer it connects
    /// again.
    ///
    /// With `suspend_pruning`, Hostler tests more often if `stale_threshold` is short, so that no member expires before Hostler notices
    /// that a NATS server hangs: at least four times between `register_interval` and `stale_threshold`.
    pub ping_interval: Period,
    /// The interval at which Hostler asks clients to register (`minimumRegisterIntervalInSeconds`), in whole
    /// seconds.
    pub register_interval: Period,
    /// The time after which Hostler removes a member that has not registered again. A registration can name a shorter
    /// time.
    ///
    /// A member with TLS stays until it unregisters or Hostler cannot connect to it, because its certificate shows
    /// that it is still the same program.
    pub stale_threshold: Period,
    /// Whether a registration may take paths away from a route in `[[routes]]` with the same host.
    ///
    /// Example: the file has the route `shop.example.com/*`, and an app registers `shop.example.com/api`. With
    /// `true`, the app gets the requests below `/api`. With `false`, Hostler does not serve the registered route
    /// while the other one exists.
    pub allow_longer_paths: bool,
    /// The size of one registration. Over it, Hostler refuses the registration.
    pub max_message_size: Size<1024, 67_108_864>,
    /// The number of URIs in one registration. Over it, Hostler refuses the registration.
    pub max_uris: Count<1, 1_000_000>,
    /// The number of registered routes. Over it, Hostler refuses new ones; the known ones stay.
    pub max_routes: Count<1, 10_000_000>,
    /// The memory of all registered routes and their members, as Hostler estimates it. Over it, Hostler refuses new
    /// ones; the known ones stay.
    ///
    /// A route with one member takes about 5 KiB.
    pub max_memory: Size<65_536, 1_099_511_627_776>,
    /// The interval at which Hostler removes members that have not registered again in time.
    pub prune_interval: Period,
    /// Whether all members stay while NATS is not reachable.
    ///
    /// Once NATS is back, each member has a whole `stale_threshold` to register again.
    pub suspend_pruning: bool,
    /// The time for which a start waits for registrations before Hostler accepts clients.
    ///
    /// If the programs that register do not listen to `router.start` (route-registrar does not), set it to their
    /// interval. The new process of `hostler upgrade` gets the registrations from the old one, and waits only if
    /// there are none.
    pub start_delay: Delay,
    /// The time for which a route stays after its last member has left.
    ///
    /// In this time, requests for it get 503 (`no_member`), unless a shorter path has members. After it, the route
    /// does not exist.
    pub keep_empty: Delay,
    /// Which registrations Hostler accepts, by their isolation segment.
    pub sharding: Sharding,
    /// The isolation segments of this Hostler.
    pub isolation_segments: Vec<String>,
    /// Which of a route's free members gets the next request. A registration may ask for another rule
    /// (`options.loadbalancing`).
    pub choice: Choice,
    /// The number of slots of each member: the requests that it gets at the same time. `0`: no limit.
    pub concurrency: Count<0, 1_000_000>,
    /// TLS to members that register a `tls_port`. `server_name` is not allowed here: each member registers its own
    /// (`server_cert_domain_san`).
    #[schemars(with = "MemberTls")]
    pub member_tls: Option<MemberTls>,
    /// When a member that does not answer gets no requests for a while. Hostler counts for each route.
    pub ejection: Ejection,
    /// The queue of each route: requests wait in it while no member has a free slot.
    pub queue: Queue,
    /// The time until the response begins. Over it, Hostler answers 504 (`answer_timeout`).
    pub request_timeout: Period,
    /// The time for which a response that has begun may pause. Over it, Hostler ends the connections to client and member.
    pub response_idle_timeout: Period,
    /// The time to connect to a member. Over it, Hostler tries another one.
    pub connect_timeout: Period,
    /// The time for which a tunnel may be without a byte in either direction. Over it, Hostler closes the tunnel.
    pub tunnel_idle_timeout: Period,
    /// The time for which a stream may be without a byte from the member. Over it, Hostler ends the stream.
    pub stream_idle_timeout: Period,
    /// Whether Hostler reads a request's body completely before the request takes a slot.
    pub buffer: Buffer,
    /// The size of a request body. Over it, Hostler answers 413 (`body_too_large`).
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
            response_idle_timeout: Period::seconds(300),
            stream_idle_timeout: Period::seconds(3600),
            buffer: Buffer::Full,
            max_body_size: None,
        }
    }
}

/// Which registrations Hostler accepts, by their isolation segment.
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
