//! What the program says about its workers, and the two things it does for them; knows no process.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use super::exit_watch::ExitWatch;

/// The workers of one pool. The default runs nothing: no program, no worker, no time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerSettings {
    /// Program and arguments; no shell reads them.
    pub command: Vec<String>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The whole environment, before what Hostler adds.
    pub env: BTreeMap<String, String>,
    /// How the app gets its address.
    pub bind: Bind,
    /// The port whose `listen()` is the app's; without it, the first is.
    pub port: Option<u16>,
    /// How many workers.
    pub count: usize,
    /// How many more stand by.
    pub spares: Spares,
    /// Seconds of CPU a second that boots after deaths may take.
    pub boot_cpu: f64,
    /// Requests at once for each.
    pub slots: Slots,
    /// How long one may take until it is ready.
    pub start_timeout: Duration,
    /// How long one may take to stop.
    pub stop_timeout: Duration,
    /// A path that answers 2xx once the app is ready.
    pub health: Option<String>,
    /// Paths that each worker renders before it counts as ready.
    pub warmup: Vec<String>,
    /// How long one may hold a request, or be silent while it holds any, before it is taken for hung.
    pub hang_timeout: Duration,
    /// When one is replaced although nothing is wrong with it.
    pub recycling: Recycling,
    /// Whether garbage is collected while one is idle.
    pub collect_when_idle: bool,
}

/// What becomes of settings that are changed while the workers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsChange {
    /// They are the same.
    None,
    /// All are in force.
    Applied,
    /// Some are in force for those workers only that boot from now on.
    NeedsRestart,
}

impl WorkerSettings {
    /// What it takes to get from these settings to `new` ones.
    pub(super) fn change_to(&self, new: &Self) -> SettingsChange {
        match self.boots_like(new) {
            false => SettingsChange::NeedsRestart,
            true if self == new => SettingsChange::None,
            true => SettingsChange::Applied,
        }
    }

    /// Whether a worker that was booted with one is no other than one booted with the other.
    pub(super) fn boots_like(&self, other: &Self) -> bool {
        (&self.command, &self.cwd, &self.env, self.bind, self.port)
            == (&other.command, &other.cwd, &other.env, other.bind, other.port)
    }
}

/// Requests at once for one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slots {
    /// As many as somebody has said.
    Fixed(usize),
    /// As many as keep its event loop busy without queueing inside Node.
    #[default]
    Auto,
}

/// How many workers stand by, ready and without requests, to take the place of one that dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spares {
    /// One for as long as workers die often, if there are at least two.
    #[default]
    Auto,
    /// So many, always.
    Fixed(usize),
}

/// When a worker is replaced although nothing is wrong with it; nothing set: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recycling {
    /// After so many requests.
    pub max_requests: Option<u64>,
    /// After so long.
    pub max_age: Option<Duration>,
    /// Beyond so many bytes of resident memory.
    pub max_memory: Option<u64>,
}

/// How an app gets its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bind {
    /// The preload puts its `listen()` onto a Unix socket.
    #[default]
    Socket,
    /// It reads `PORT` and `HOST`.
    Port,
}

/// Where a worker answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerAddress {
    /// On a Unix socket.
    Unix(PathBuf),
    /// On a TCP port.
    Tcp(SocketAddr),
}

impl fmt::Display for WorkerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// Which worker an endpoint belongs to.
#[derive(Clone, Debug)]
pub struct WorkerFacts {
    /// Its number in the pool, from 1.
    pub index: usize,
    /// How many times it has been started.
    pub generation: u64,
    /// The process that listens.
    pub pid: u32,
    /// What becomes of it.
    pub exit_watch: ExitWatch,
}

/// What a [`Probe`] brings back: the status of the answer, or why there is none.
pub type Probing = Pin<Box<dyn Future<Output = Result<u16, String>> + Send>>;

/// Asks a worker for a path. HTTP is the program's business, so health and warm-up go through this.
pub trait Probe: Send + Sync {
    /// GETs `path` at `address`, reads the whole answer, and gives up after `timeout`.
    fn get(&self, address: &WorkerAddress, path: &str, timeout: Duration) -> Probing;
}
