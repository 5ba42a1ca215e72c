//! The keys of a pool, as written. Knows not which of them fit together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::value::{Command, Count, MemberAddress, Period, Plain, RequestPath};

/// A `[pools.NAME]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Pool {
    /// The program that one worker runs, such as `"node server.js"`, `"npm start"` or `["node",
    /// "server.js"]`. A string is split into words with a shell's quoting rules, but no shell runs it: no
    /// variables, globs or pipes. Either this or `members`.
    #[schemars(with = "Command", extend("x-default" = "none"))]
    pub command: Option<Command>,
    /// Endpoints that somebody else runs, spoken to in HTTP/1.1: `"10.0.0.5:3000"`, `"app.internal:3000"`
    /// (looked up at each connect), `"unix:/run/app.sock"`. Either this or `command`; keys about workers have
    /// no meaning beside it and are refused.
    #[schemars(with = "Vec<MemberAddress>", extend("x-default" = "none"))]
    pub members: Option<Vec<MemberAddress>>,
    /// How many workers run the `command`.
    #[schemars(with = "Count<1, 1024>", extend("x-default" = "one a core"))]
    pub workers: Option<Count<1, 1024>>,
    /// Requests that one worker or member is given at once: its slots. 1 is right for work that keeps the CPU
    /// busy, such as rendering; more for work that waits, such as an API in front of a database. Over it:
    /// requests wait in the queue.
    #[schemars(with = "Count<1, 1024>", extend("x-default" = "1 for workers, 64 for members"))]
    pub concurrency: Option<Count<1, 1024>>,
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
    /// Paths that each worker has to answer with GET before it counts as ready, so that no client pays for
    /// cold caches and uncompiled code. What it answers does not matter.
    pub warmup: Vec<RequestPath>,
    /// A path that answers 2xx once a worker is ready. Without it a worker is ready when it says so
    /// (`process.send('ready')`) or listens.
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
    /// The time a worker may take for one request before it is taken for hung. Over it: it is killed and
    /// replaced. Not below `request_timeout`, the routes' own included.
    #[schemars(with = "Period", extend("x-default" = "2 x the longest request_timeout"))]
    pub hang_timeout: Option<Period>,
    /// The time that connecting to a worker or member may take. Over it: another one is tried.
    pub connect_timeout: Period,
    /// Where requests wait, in order of arrival, when every slot is taken.
    pub queue: Queue,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            command: None,
            members: None,
            workers: None,
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
            connect_timeout: Period::seconds(5),
            queue: Queue::default(),
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
}

impl Default for Queue {
    fn default() -> Self {
        Self { limit: Count(100), timeout: Period::seconds(5) }
    }
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

/// How a worker gets the address it listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bind {
    /// A preload turns the app's own `listen()` into a Unix socket of Hostler's; no TCP port is opened.
    Socket,
    /// The app is told a free loopback port in PORT, and 127.0.0.1 in HOST and HOSTNAME; no preload.
    Port,
}
