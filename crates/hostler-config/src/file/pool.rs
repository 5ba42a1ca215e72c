//! The keys of a pool, as written. Does not know which of them fit together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::section::section;
use super::{
    Ejection, HealthCheck, HedgeSwitch, MemberTls, NumberOfWorkers, Queue, RateLimit, StickyBy, StickySwitch,
};
use crate::value::{
    Announced, Auto, CommandLine, Count, Cpus, Meaning, MemberAddress, OneOrMany, Period, Plain, RequestPath,
    Size, Slots, Spares,
};

section! {
    /// A `[pools.NAME]` section.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Pool {
        /// The program of one worker: `"node server.js"`, `"npm start"` or `["node", "server.js"]`. A pool has either
        /// `command` or `members`.
        ///
        /// Hostler splits a string into words by the quoting rules of a shell. No shell runs it: variables, globs and
        /// pipes have no effect.
        #[schemars(with = "CommandLine", extend("x-default" = "none"))]
        pub command: Option<CommandLine> = None,
        /// The servers of the pool, which Hostler does not start. Example: `["10.0.0.5:3000", "10.0.0.6:3000"]`.
        ///
        /// - `"10.0.0.5:3000"`: an address.
        /// - `"app.internal:3000"`: a name, which Hostler looks up at each connect.
        /// - `"https://10.0.0.5:8443"`: with TLS; see `tls`.
        /// - `"unix:/run/app.sock"`: a Unix socket.
        ///
        /// A pool with `members` has no `command`, and keys that are for workers only are errors.
        #[schemars(with = "Vec<MemberAddress>", extend("x-default" = "none"))]
        pub members: Option<Vec<MemberAddress>> = None,
        /// The hosts, with or without a path, for which this pool registers itself at other routers. Example:
        /// `["shop.example.com"]`.
        ///
        /// The routers listen to the NATS servers of `[registrar]`: other Hostlers, or Cloud Foundry's gorouter. The
        /// pool is registered while a worker is ready, or a member is healthy (`health_check`). Before Hostler stops
        /// accepting clients, it unregisters the pool.
        pub announce: OneOrMany<Announced> = OneOrMany(Vec::new()),
        /// The protocol that Hostler uses to `members`. To workers it always uses HTTP/1.1.
        pub protocol: MemberProtocol = MemberProtocol::Http1,
        /// TLS to members that begin with `https://`: which certificates Hostler accepts, and which one it shows.
        pub tls: MemberTls = MemberTls::default(),
        /// Health checks of `members`. A member that fails them gets no requests. For workers see `health`.
        pub health_check: HealthCheck = HealthCheck::default(),
        /// When a member that does not answer gets no requests for a while (Envoy: outlier detection).
        pub ejection: Ejection = Ejection::default(),
        /// Whether Hostler sends a request to a second member if the first one has not begun its response in the usual time: `true`,
        /// `false`, or a table. For `members` only.
        ///
        /// Only for GET and HEAD without a body. The first response counts, and Hostler cancels the other request.
        /// `true` means `{ after = "p95", budget = "2%" }`. Set it if some responses of the members are slow for
        /// reasons that have nothing to do with the request, such as a pause or a cold cache. See
        /// [Second tries](../guide/members.md#second-tries).
        pub hedge: HedgeSwitch = HedgeSwitch::Word(false),
        /// The number of workers that run the `command`. Each worker is one process.
        ///
        /// - `"auto"`: one for each core.
        /// - A number: always this number of workers. An app that computes gains nothing from more workers than cores.
        ///   Use fewer if the machine has too little memory.
        /// - `{ min = 1, max = 4 }`: as many as the load needs. Hostler starts a worker when requests wait or the workers
        ///   are busy, and stops one that is not needed (`shrink_after`). Set it if many apps share a machine.
        /// - `{ min = 0, max = 4 }`: the same, and an app without requests has no process.
        ///
        /// See [Many apps on one machine](../guide/many-apps.md).
        #[schemars(with = "NumberOfWorkers", extend("x-default" = "`\"auto\"`"))]
        pub workers: NumberOfWorkers = NumberOfWorkers::Word(Auto),
        /// The time after which Hostler stops workers that are not needed. For `workers = { min, max }` only.
        ///
        /// After this time without a request and without a tunnel, the pool shrinks to `workers.min`. After this time with
        /// little load, it shrinks by one worker. Lower it if memory is short. Raise it if the app boots slowly and is
        /// used only now and then.
        pub shrink_after: Period = Period::seconds(300) => worker.shrink_after,
        /// The time for which a request may wait until an app that is asleep has a worker. For `workers = { min = 0 }`
        /// only.
        ///
        /// This time does not count for `queue.timeout` and `request_timeout`. Over it, Hostler answers 503
        /// (`wake_timeout`) with `Retry-After`. The worker goes on with its start. Raise it if the app boots slowly;
        /// `start_timeout` limits the start itself.
        pub wake_timeout: Period = Period::seconds(30),
        /// The number of additional workers that are booted and warm, but get no requests. A spare takes the place of a
        /// worker that dies or is blocked.
        ///
        /// It does so at once, until the new worker is ready or the event loop of the blocked one turns again. A worker is blocked if it
        /// has requests and its event loop has not turned for 3 s. Each spare takes the memory of a worker. The numbers of spares
        /// (`HOSTLER_WORKER`) follow those of the workers.
        ///
        /// - `"auto"`: one spare while workers die often or are blocked. Hostler starts it at the second death of a ready worker within
        ///   30 s, or when a worker is blocked. It stops the spare when no worker has died or was blocked for 60 s, and none is missing or
        ///   blocked. With `workers = 1` there is none, because such an app may not allow a second process for long.
        /// - `0`: none.
        ///
        /// Set `1` if the app boots slowly and no request may wait for a boot after a worker has died. See
        /// [Spares](../concepts/boots.md#spares).
        pub spares: Spares = Spares::Word(Auto) => worker.spares,
        /// The share of all cores, in percent, that boots of workers after deaths may take.
        ///
        /// If a worker dies while it serves, Hostler starts it again at once. The first half minute of the share may be
        /// used at once. Over the share, the worker waits until boots are within it again, and 30 s at most.
        pub restart_cpu: Count<1, 100> = Count(50),
        /// The CPUs on which the main thread of a worker runs: the thread that runs the app's code.
        ///
        /// - `"auto"`: each worker has a core of its own while the workers of all pools are not more than the cores that Hostler may use.
        ///   A worker has all CPUs while another one boots, while other work keeps its core busy, and if the CPU limit of the control
        ///   group is below the number of CPUs. The status says which CPUs a worker has, and why. Set it if pages that are rendered
        ///   sometimes take much longer than usual, and measure.
        /// - `"off"`: all CPUs.
        /// - Lists of CPUs, with blanks between them: worker 1 runs on the CPUs of the first list, worker 2 on those of the second one;
        ///   after the last list, the first one follows. Example: `"2 3"` gives worker 1 CPU 2 and worker 2 CPU 3; `"0-3"` gives all
        ///   workers the CPUs 0 to 3. Set it if you have divided the machine by yourself (`isolcpus`, NUMA).
        ///
        /// All other threads of a worker, and the programs that it starts, may use all CPUs. See [CPUs of workers](../concepts/cpus.md).
        pub cpu: Cpus = Cpus(hostler_worker::CpuSetting::Off) => worker.cpu,
        /// How many requests each worker or member gets at the same time.
        ///
        /// - `"auto"`, only for workers: a worker gets one more request if its event loop can begin it at once. So a page
        ///   that computes has its worker alone, and an API that waits for a database gets all requests that come.
        /// - A number: the slots of each worker or member. Set it if you know it better, for example `1` if an app must
        ///   not begin a second request while the first one waits.
        ///
        /// The other requests wait in the queue. See [Concurrency](../concepts/concurrency.md).
        #[schemars(with = "Slots", extend("x-default" = "`\"auto\"` for workers, 64 for members"))]
        pub concurrency: Option<Slots> = None,
        /// The most requests that a worker with `concurrency = "auto"` gets at the same time.
        ///
        /// Each request that waits inside a worker takes memory there. Lower it if a worker takes too much memory during
        /// a burst. Raise it if more long polls than that wait in a worker: pages then wait in the queue behind them.
        #[schemars(with = "Count<1, 100_000>", extend("x-default" = "1000"))]
        pub max_concurrency: Option<Count<1, 100_000>> = None,
        /// Which of the free workers or members gets the next request.
        pub choice: Choice = Choice::Warm,
        /// Sends all requests of a client to the same worker or member. For an app that keeps state of its clients in
        /// memory.
        ///
        /// The value says what Hostler recognises a client by.
        ///
        /// - `"auto"`: only requests of one Engine.IO session, so that Socket.IO works with several workers.
        /// - `"cookie"`: Hostler sets a cookie.
        /// - `"address"`: the client's address; an IPv6 client is its /64 network.
        /// - `"header:X-User"`, `"query:sid"`, `"cookie:session"`: the value of a header field, of a parameter of the query,
        ///   or of a cookie that the app sets. A request without it goes to any worker.
        /// - `"off"`: no.
        ///
        /// All ways but `"off"` include Engine.IO sessions. See [Sticky sessions](../guide/sticky.md).
        pub sticky: StickySwitch = StickySwitch::Word(StickyBy::Auto),
        /// How a worker gets the address on which it listens.
        pub bind: Bind = Bind::Socket => worker.bind,
        /// The port on which the app itself calls `listen()`. Only with `bind = "socket"`.
        ///
        /// Set it only if a worker opens another port first (metrics, an inspector). Otherwise Hostler takes the
        /// worker's first TCP `listen()`.
        #[schemars(with = "Count<1, 65535>", extend("x-default" = "the first port on which the app listens"))]
        pub port: Option<Count<1, 65535>> = None => worker.port,
        /// Environment variables of the workers, in addition to Hostler's own. Example: `{ NODE_ENV = "production" }`.
        ///
        /// Numbers and booleans become text.
        pub env: BTreeMap<String, Plain> = BTreeMap::new(),
        /// The working directory of the workers. A relative path starts at the folder of the configuration file. The
        /// folder must exist.
        pub cwd: String = ".".into(),
        /// Where Node keeps compiled code, so that the next boot need not compile it again. For Node 22.1 or newer.
        ///
        /// - `"auto"`: in the first of these folders that is set, in a folder for this app: `$CACHE_DIRECTORY` (systemd:
        ///   `CacheDirectory=`), `$XDG_CACHE_HOME/hostler` or `$HOME/.cache/hostler`. If Hostler cannot write there, it
        ///   keeps the cache only until it ends.
        /// - `"off"`: nowhere. Set it if workers measure the coverage of tests.
        /// - A folder. A relative path starts at the folder of the configuration file. Set it to put the cache into the
        ///   image of a container. Hostler refuses a folder that other users can change.
        ///
        /// A `NODE_COMPILE_CACHE` or `NODE_DISABLE_COMPILE_CACHE` in the workers' environment wins. See
        /// [Compile cache](../concepts/boots.md#compile-cache).
        pub compile_cache: String = "auto".into(),
        /// Paths that Hostler requests from each new worker before the worker gets requests of clients. Example: `["/",
        /// "/cart"]`.
        ///
        /// So no client waits for cold caches and uncompiled code. Hostler uses GET, and the status of the response
        /// does not matter. The worker gets as many of these requests at once as it has slots (`concurrency`), in this
        /// order.
        pub warmup: Vec<RequestPath> = Vec::new() => worker.warmup,
        /// A path that answers 2xx as soon as a worker is ready. Example: `"/healthz"`.
        ///
        /// Without it, a worker is ready as soon as it listens. With `bind = "port"` it is also ready when it sends
        /// `'ready'`, as under PM2. With `bind = "socket"` that message changes nothing.
        #[schemars(with = "RequestPath", extend("x-default" = "none"))]
        pub health: Option<RequestPath> = None => worker.health,
        /// The time for a worker to become ready, from its start.
        ///
        /// Over it, Hostler kills the worker, logs its last output, and starts another one. The warm-up must fit into
        /// the same time; a warm-up that does not ends there, and the worker gets requests. Raise it if the app boots
        /// slowly.
        pub start_timeout: Period = Period::seconds(30) => worker.start_timeout,
        /// The time for a worker to end after Hostler tells it to (by the message `'shutdown'` if the app listens for
        /// it, and by SIGTERM).
        ///
        /// Over it, Hostler sends SIGKILL.
        pub stop_timeout: Period = Period::seconds(10) => worker.stop_timeout,
        /// The time until the response begins, from the moment when Hostler has read the request. A route can have its
        /// own limit.
        ///
        /// Time in the queue counts, and on a route with `buffer = "none"` also the time in which the client sends the
        /// body. Over it, Hostler answers 504 (`answer_timeout`). With `concurrency = "auto"` it closes the connection
        /// to the worker, so that the app can cancel its work; otherwise the slot stays taken until the worker or
        /// member has finished. A request that still waits in the queue gets 503 (`queue_timeout`). A response that has
        /// begun may take as long as it needs, if it does not pause for `response_idle_timeout`.
        pub request_timeout: Period = Period::seconds(30),
        /// The time after which a worker counts as hung.
        ///
        /// A worker is hung if its event loop does not turn for that long while it has requests. With a number in
        /// `concurrency` it is also hung if a request gets no response for that long. Hostler then logs its call stack,
        /// kills it, and starts another one. The time must not be less than `request_timeout`, including that of the
        /// routes.
        #[schemars(with = "Period", extend("x-default" = "twice the longest `request_timeout`"))]
        pub hang_timeout: Option<Period> = None,
        /// The number of requests after which Hostler replaces a worker.
        ///
        /// Each worker has its own number, at random from 80 % to 100 % of this one, so that the workers do not end
        /// together. Hostler checks it each second.
        ///
        /// Hostler starts a new worker first. When that is ready, it takes over, and the old worker finishes its
        /// requests and ends. Hostler replaces one worker of a pool at a time. Set it for an app that leaks memory or
        /// gets slower.
        #[schemars(with = "Count<1, 1_000_000_000>", extend("x-default" = "no limit"))]
        pub max_requests: Option<Count<1, 1_000_000_000>> = None => worker.recycling.max_requests,
        /// The age at which Hostler replaces a worker, in the same way as with `max_requests`.
        #[schemars(with = "Period", extend("x-default" = "no limit"))]
        pub max_age: Option<Period> = None => worker.recycling.max_age,
        /// The resident memory at which Hostler replaces a worker, in the same way as with `max_requests`. Example: `"1
        /// GiB"`.
        ///
        /// Node alone takes about 45 MiB. The limit is for apps that leak memory. It does not protect the machine: for
        /// a moment the old and the new worker exist side by side. It does not count in the first 10 s of a worker. If a
        /// worker has more from its start on, so has its successor: then Hostler waits 30 s before the next such
        /// replacement, and longer each time, up to 16 minutes.
        #[schemars(with = "Size<MEMORY_LEAST, MEMORY_MOST>", extend("x-default" = "no limit"))]
        pub max_memory: Option<Size<MEMORY_LEAST, MEMORY_MOST>> = None => worker.recycling.max_memory,
        /// Whether Hostler asks workers to collect garbage while they have no requests.
        pub gc: Gc = Gc::Off => worker.collect_when_idle,
        /// The number of tunnels of one worker or member. A tunnel is a connection that has changed to another
        /// protocol, such as WebSocket.
        ///
        /// A tunnel takes no slot. Over the limit, another worker gets the next tunnel. If none has room, the client
        /// gets 503 (`too_many_tunnels`) with `Retry-After`. `0`: no tunnels. Each tunnel also takes one connection of
        /// `server.max_connections` and two file descriptors.
        pub max_tunnels: Count<0, 1_000_000> = Count(10_000),
        /// The time for which a tunnel may be without a byte in either direction.
        ///
        /// Over it, Hostler closes the tunnel, a WebSocket with 1001. An app that pings its clients more often does not
        /// reach the limit.
        pub tunnel_idle_timeout: Period = Period::seconds(3600),
        /// The time for which a response that has begun may pause: no byte comes from the worker.
        ///
        /// Over it, Hostler closes the connections to the client and to the worker. The client sees that the response is not
        /// whole, and the slot is free when the worker has closed its side. Time in which Hostler waits for the client, or in
        /// which the worker takes the body of the request, does not count. Raise it for an app that sends nothing for minutes
        /// in the middle of a response. Streams have `stream_idle_timeout` instead.
        pub response_idle_timeout: Period = Period::seconds(300),
        /// The number of streams of one worker or member. A stream is a response without end, such as an event stream
        /// (`text/event-stream`).
        ///
        /// A stream takes no slot once its header has come. Over the limit, another worker gets the next stream. If none
        /// has room, the client gets 503 (`too_many_streams`) with `Retry-After`. `0`: no streams. Each stream also takes
        /// one connection of the worker. Lower it if each stream takes much memory or time of the worker. See
        /// [Event streams](../guide/streams.md).
        pub max_streams: Count<0, 1_000_000> = Count(10_000),
        /// The time for which a stream may be without a byte from the worker.
        ///
        /// Over it, Hostler ends the stream, and an `EventSource` connects again. An app that sends a comment (`:`) more
        /// often does not reach the limit. Lower it to find clients that have disappeared sooner.
        pub stream_idle_timeout: Period = Period::seconds(3600),
        /// The time to connect to a worker or member. Over it, Hostler tries another one.
        pub connect_timeout: Period = Period::seconds(5),
        /// The queue of the pool: requests wait in it while every slot is taken.
        pub queue: Queue = Queue::default(),
        /// How many requests, and how much worker time, each client may have in the time `per`, on all routes to the
        /// pool. Over it, Hostler answers 429 (`rate_limited`).
        ///
        /// A route may have a limit of its own besides. See [Rate limits](../guide/rate-limits.md).
        pub rate_limit: RateLimit = RateLimit::default(),
        /// What Hostler does with a request that kills one worker after another. For workers only.
        pub poison: Poison = Poison::default(),
    }
}

/// Node needs at least this much.
const MEMORY_LEAST: u64 = 32 << 20;
const MEMORY_MOST: u64 = 1 << 40;

/// A `[pools.NAME.poison]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Poison {
    /// The number of workers that may die because of requests with the same method, host and URL, without a response in
    /// between.
    ///
    /// When it is reached, Hostler does not send the request again, and answers all requests like it with 502
    /// (`poison`) for `keep_off`. If all these workers died because of requests of one client, only this client gets
    /// the 502. If workers have several slots, Hostler tries a suspect request in an idle worker, so that it does not
    /// blame other requests. If none is idle, a busy worker gets it, and no other request after it. Another request may
    /// be the reason if this worker dies, so the limit is then one death higher. `0`: never.
    pub kills: Count<0, 1000>,
    /// The time for which Hostler refuses such requests. Then a worker gets one of them again.
    pub keep_off: Period,
}

impl Default for Poison {
    fn default() -> Self {
        Self { kills: Count(2), keep_off: Period::seconds(60) }
    }
}

/// Whether workers are asked to collect garbage while they have no requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gc {
    /// No. Node collects when it needs memory, also in the middle of a request.
    Off,
    /// Hostler asks a worker without requests to collect while no request waits in the queue. So pauses fall
    /// between requests. Only with `bind = "socket"`.
    Idle,
}

/// Whether a worker collects garbage while it is idle.
impl Meaning<bool> for Gc {
    fn meaning(&self) -> bool {
        *self == Self::Idle
    }
}

/// Which of the free workers or members gets the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The one that was used last, because its caches and its compiled code are warm. The others stay cold until a
    /// burst; see `warmup`.
    Warm,
    /// Each one in turn.
    RoundRobin,
    /// The one with the most free slots.
    LeastBusy,
}

/// The protocol to members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberProtocol {
    #[default]
    /// HTTP/1.1, one request at a time on each connection.
    Http1,
    /// HTTP/2, many requests at a time on one connection. With TLS, Hostler negotiates it (ALPN), and falls back to
    /// HTTP/1.1 if the member does not offer it. Without TLS, Hostler begins with it (prior knowledge, h2c). A
    /// WebSocket has an HTTP/1.1 connection of its own.
    Http2,
}

/// How a worker gets the address on which it listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bind {
    /// A preload replaces the app's own `listen()` by a Unix socket of Hostler. The worker opens no TCP port.
    Socket,
    /// The app gets a free loopback port in PORT, and 127.0.0.1 in HOST and HOSTNAME. There is no preload.
    Port,
}

impl Meaning<hostler_worker::Bind> for Bind {
    fn meaning(&self) -> hostler_worker::Bind {
        match self {
            Self::Socket => hostler_worker::Bind::Socket,
            Self::Port => hostler_worker::Bind::Port,
        }
    }
}
