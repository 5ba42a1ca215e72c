//! The keys of a pool, as written. Knows not which of them fit together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ejection, HealthCheck, MemberTls};
use crate::value::{
    Announced, CommandLine, Count, MemberAddress, OneOrMany, Period, Plain, RequestPath, Size, Slots, Spares,
};

/// A `[pools.NAME]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Pool {
    /// The program that one worker runs, such as `"node server.js"`, `"npm start"` or `["node",
    /// "server.js"]`. A string is split into words with a shell's quoting rules, but no shell runs it: no
    /// variables, globs or pipes. Either this or `members`.
    #[schemars(with = "CommandLine", extend("x-default" = "none"))]
    pub command: Option<CommandLine>,
    /// Endpoints that somebody else runs: `"10.0.0.5:3000"`, `"app.internal:3000"` (looked up at each connect),
    /// `"https://10.0.0.5:8443"` (over TLS, see `tls`), `"unix:/run/app.sock"`. Either this or `command`; keys about
    /// workers have no meaning beside it and are refused.
    #[schemars(with = "Vec<MemberAddress>", extend("x-default" = "none"))]
    pub members: Option<Vec<MemberAddress>>,
    /// Hosts, with or without a path, for which this pool registers itself with the routers that listen to the NATS servers of
    /// `[registrar]`: another Hostler, or Cloud Foundry's. They are told as long as a worker is ready, and that it is over
    /// before clients are let in no more.
    pub announce: OneOrMany<Announced>,
    /// What is spoken to `members`. Workers are always spoken to in HTTP/1.1.
    pub protocol: MemberProtocol,
    /// Whom to trust, and who we are, at members that begin with `https://`.
    pub tls: MemberTls,
    /// Whether and how `members` are checked: one that fails gets no requests. For workers see `health`.
    pub health_check: HealthCheck,
    /// What becomes of `members` that let requests wait in vain.
    pub ejection: Ejection,
    /// How many workers run the `command`.
    #[schemars(with = "Count<1, 1024>", extend("x-default" = "one a core"))]
    pub workers: Option<Count<1, 1024>>,
    /// Workers more that stand by, booted and warm, without requests. One takes the place of a worker that dies, at once and
    /// until that one is back. Each takes the memory of a worker, and has the numbers after those of the workers
    /// (`HOSTLER_WORKER`). `"auto"`: one from the second death of workers that were ready in 30 s on, until none has died
    /// for 60 s; none with `workers = 1`, since such an app may bear no second process for long. 0: never.
    pub spares: Spares,
    /// The share of all cores, in percent, that boots of workers which have died may take: a worker that dies while it serves
    /// is started again at once. After half a minute of that share used up at once, over it: the worker rests until boots
    /// are within the share again, 30 s at most.
    pub restart_cpu: Count<1, 100>,
    /// Requests that one worker or member is given at once: its slots. 1 is right for work that keeps the CPU
    /// busy, such as rendering; more for work that waits, such as an API in front of a database. `"auto"` finds
    /// the number, from 1 to 64, by how busy a worker's event loop is; for workers with `bind = "socket"` only.
    /// Over it: requests wait in the queue.
    #[schemars(with = "Slots", extend("x-default" = "1 for workers, 64 for members"))]
    pub concurrency: Option<Slots>,
    /// Which of the free workers or members gets the next request.
    pub choice: Choice,
    /// How a worker gets the address it listens on.
    pub bind: Bind,
    /// The port on which the app itself calls `listen()`. Only needed where a worker opens another port first
    /// (metrics, an inspector): otherwise its first TCP `listen()` is taken for the app's. Only with `bind =
    /// "socket"`.
    #[schemars(with = "Count<1, 65535>", extend("x-default" = "the first that the app listens on"))]
    pub port: Option<Count<1, 65535>>,
    /// Environment variables for the workers, added to Hostler's own. Numbers and booleans are taken as their
    /// text.
    pub env: BTreeMap<String, Plain>,
    /// The workers' working directory; relative to the file's folder. It must exist.
    pub cwd: String,
    /// Paths that each worker has to answer with GET before it counts as ready, so that no client pays for cold caches and uncompiled
    /// code. What it answers does not matter. The worker gets as many of them at once as it has slots (`concurrency`), in this order: a
    /// worker that gets bursts is warmed by a small burst.
    pub warmup: Vec<RequestPath>,
    /// A path that answers 2xx once a worker is ready. Without it a worker is ready as soon as it listens. With `bind = "port"` it is also
    /// ready when it sends `'ready'`, as under PM2; with `bind = "socket"` that message changes nothing.
    #[schemars(with = "RequestPath", extend("x-default" = "none"))]
    pub health: Option<RequestPath>,
    /// The time a worker has from its start until it is ready, warm-up included. Over it: it is killed, its
    /// last output is logged, and another is started.
    pub start_timeout: Period,
    /// The time a worker has to end after it has been told to (`'shutdown'` where the app hears it, SIGTERM).
    /// Over it: SIGKILL.
    pub stop_timeout: Period,
    /// The time a client waits for its answer to begin, from the moment its request has been read, time in the
    /// queue included. Over it: 504, and the slot stays taken until the worker has finished; 503 if the request
    /// still waits in the queue. An answer that has begun may take as long as it likes. A route can have its own.
    pub request_timeout: Period,
    /// The time a worker may take for one request, or not turn its event loop while it has any, before it is taken for hung.
    /// Over it: its call stack is taken and logged, and it is killed and replaced. Not below `request_timeout`, the
    /// routes' own included.
    #[schemars(with = "Period", extend("x-default" = "2 x the longest request_timeout"))]
    pub hang_timeout: Option<Period>,
    /// Requests after which a worker is replaced, looked at each second. Each worker's own number is drawn from 80 to 100 %
    /// of it, so that they do not all end together. Over it: another one is started and takes its place once
    /// it is ready; the old one finishes what it has and ends. Never two of a pool at a time.
    #[schemars(with = "Count<1, 1_000_000_000>", extend("x-default" = "no limit"))]
    pub max_requests: Option<Count<1, 1_000_000_000>>,
    /// The age at which a worker is replaced; drawn, looked at and replaced as with `max_requests`.
    #[schemars(with = "Period", extend("x-default" = "no limit"))]
    pub max_age: Option<Period>,
    /// Resident memory that a worker may take, as the system counts it: Node alone takes about 45 MiB. Over it: it is
    /// replaced as with `max_requests`. A limit for those that leak, not for the machine: for a moment old and
    /// new live side by side.
    #[schemars(with = "Size<MEMORY_LEAST, MEMORY_MOST>", extend("x-default" = "no limit"))]
    pub max_memory: Option<Size<MEMORY_LEAST, MEMORY_MOST>>,
    /// Whether workers are asked to collect garbage while they have nothing to do.
    pub gc: Gc,
    /// Tunnels that one worker or member may have: connections that went over to another protocol, such as WebSockets. They take
    /// no slots. Over it: another worker gets the next; where none takes more, 503 with Retry-After. 0: none at all. Each
    /// costs a connection of `server.max_connections`, too, and two file descriptors.
    pub max_tunnels: Count<0, 1_000_000>,
    /// The time a tunnel may be without a byte in either direction. Over it: it is closed, a WebSocket with 1001. An
    /// application that pings its clients never gets there.
    pub tunnel_idle_timeout: Period,
    /// The time that connecting to a worker or member may take. Over it: another one is tried.
    pub connect_timeout: Period,
    /// Where requests wait when every slot is taken.
    pub queue: Queue,
    /// What becomes of a request that takes worker after worker down with it; for workers only.
    pub poison: Poison,
}

/// No Node gets by with less.
const MEMORY_LEAST: u64 = 32 << 20;
const MEMORY_MOST: u64 = 1 << 40;

impl Default for Pool {
    fn default() -> Self {
        Self {
            command: None,
            members: None,
            announce: OneOrMany(Vec::new()),
            protocol: MemberProtocol::Http1,
            tls: MemberTls::default(),
            health_check: HealthCheck::default(),
            ejection: Ejection::default(),
            workers: None,
            spares: Spares::Auto,
            restart_cpu: Count(50),
            concurrency: None,
            choice: Choice::Warm,
            bind: Bind::Socket,
            port: None,
            env: BTreeMap::new(),
            cwd: ".".into(),
            warmup: Vec::new(),
            health: None,
            start_timeout: Period::seconds(30),
            stop_timeout: Period::seconds(10),
            request_timeout: Period::seconds(30),
            hang_timeout: None,
            max_requests: None,
            max_age: None,
            max_memory: None,
            gc: Gc::Off,
            max_tunnels: Count(10_000),
            tunnel_idle_timeout: Period::seconds(3600),
            connect_timeout: Period::seconds(5),
            queue: Queue::default(),
            poison: Poison::default(),
        }
    }
}

/// A `[pools.NAME.queue]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Queue {
    /// Requests that may wait. Over it: 503 with Retry-After, at once. 0: nobody waits, a request finds a
    /// free slot or is refused.
    pub limit: Count<0, 1_000_000>,
    /// How long a request may wait for a slot. Over it: 503 with Retry-After.
    pub timeout: Period,
    /// In which order requests are served, and who is refused when more come than can be served.
    pub policy: Policy,
}

impl Default for Queue {
    fn default() -> Self {
        Self { limit: Count(100), timeout: Period::seconds(5), policy: Policy::Adaptive }
    }
}

/// In which order requests are served, and who is refused when more come than can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// In order of arrival as long as the queue drains now and then. When it does not (standing overload): newest first,
    /// and a request that could not be served in time is refused early, with 503 and Retry-After.
    Adaptive,
    /// In order of arrival, always; refused is who finds the queue full or waits too long.
    Fifo,
}

/// A `[pools.NAME.poison]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Poison {
    /// Workers that may die over one method, host and URL, one after the other with no answer in between. At so many: it is
    /// not sent again, and all like it are refused with 502 (`poison`) for `keep_off`. Where a worker has several
    /// slots, a suspect is tried alone, so that its neighbours are not blamed. 0: nothing is ever kept off.
    pub kills: Count<0, 1000>,
    /// How long such requests are refused before one is given to a worker again.
    pub keep_off: Period,
}

impl Default for Poison {
    fn default() -> Self {
        Self { kills: Count(2), keep_off: Period::seconds(60) }
    }
}

/// Whether workers are asked to collect garbage while they have nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gc {
    /// Node collects when it finds that it has to, in the middle of a request or not.
    Off,
    /// A worker without a request is asked to collect when nobody waits in the queue, so that pauses fall between
    /// requests; with `bind = "socket"` only.
    Idle,
}

/// Which of the free workers or members gets the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The one used last: its caches and compiled code are warm. The others stay cold until a burst; see
    /// `warmup`.
    Warm,
    /// Each in turn.
    RoundRobin,
    /// The one with the most free slots.
    LeastBusy,
}

/// What is spoken to members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberProtocol {
    #[default]
    /// HTTP/1.1, one request at a time on each connection.
    Http1,
    /// HTTP/2, many requests at a time on one connection: over TLS as agreed upon with the member (ALPN), else by prior knowledge
    /// (h2c). A connection that is to leave HTTP, such as a WebSocket's, still begins in HTTP/1.1 and is one of its own.
    Http2,
}

/// How a worker gets the address it listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bind {
    /// A preload turns the app's own `listen()` into a Unix socket of Hostler's; no TCP port is opened.
    Socket,
    /// The app is told a free loopback port in PORT, and 127.0.0.1 in HOST and HOSTNAME; no preload.
    Port,
}
