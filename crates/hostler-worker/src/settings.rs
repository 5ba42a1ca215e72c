//! The settings of the workers of a pool, and the probe that the program provides. Knows no process.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use super::cpus::CpuSetting;
use super::development::Development;
use super::exit_watch::ExitWatch;

/// The workers of one pool. The default has no program, no worker and no time limits, so it runs nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerSettings {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The whole environment, without the variables that Hostler adds.
    pub env: BTreeMap<String, String>,
    /// How the app gets its address.
    pub bind: Bind,
    /// The port of the app's `listen()`. `None`: the first `listen()` is the app's.
    pub port: Option<u16>,
    /// Where Node keeps compiled code.
    pub compile_cache: CompileCache,
    /// How many workers, or the greatest number if there is a least one.
    pub count: usize,
    /// The least number of workers, if it is not `count`: Hostler finds the number between. 0: the pool may sleep.
    pub least: Option<usize>,
    /// How long the pool must need fewer workers before it shrinks.
    pub shrink_after: Duration,
    /// The number of spares.
    pub spares: Spares,
    /// Seconds of CPU in each second that boots after deaths may use.
    pub boot_cpu: f64,
    /// On which CPUs the main threads of workers run.
    pub cpu: CpuSetting,
    /// How many requests a worker gets at once.
    pub slots: Slots,
    /// How long a worker may take until it is ready.
    pub start_timeout: Duration,
    /// How long a worker may take to stop.
    pub stop_timeout: Duration,
    /// A path that answers 2xx once the app is ready.
    pub health: Option<String>,
    /// Paths that each worker renders before it counts as ready.
    pub warmup: Vec<String>,
    /// How long a worker may hold a request, or be silent while it holds one, before it counts as hung.
    pub hang_timeout: Duration,
    /// When a healthy worker is replaced.
    pub recycling: Recycling,
    /// Whether a worker collects garbage while it is idle.
    pub collect_when_idle: bool,
    /// What differs in development.
    pub development: Development,
}

/// When settings that change while the workers run take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsChange {
    /// They are the same.
    None,
    /// All are in force.
    Applied,
    /// Some changes apply only to workers that boot from now on.
    NeedsRestart,
}

impl WorkerSettings {
    /// When the change from these settings to `new` ones takes effect.
    pub(super) fn change_to(&self, new: &Self) -> SettingsChange {
        match self.boots_like(new) {
            false => SettingsChange::NeedsRestart,
            true if self == new => SettingsChange::None,
            true => SettingsChange::Applied,
        }
    }

    /// How long a worker that was replaced may finish its requests.
    pub(super) fn retire_timeout(&self) -> Duration {
        self.development.retire_timeout.unwrap_or(self.hang_timeout)
    }

    /// Whether workers that were booted with these settings and with `other` are the same.
    pub(super) fn boots_like(&self, other: &Self) -> bool {
        (&self.command, &self.cwd, &self.env, self.bind, self.port)
            == (&other.command, &other.cwd, &other.env, other.bind, other.port)
            && self.compile_cache == other.compile_cache
            && self.development == other.development
    }
}

/// Requests at once for one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// This number.
    Fixed(usize),
    /// As many as its event loop can begin at once.
    Auto {
        /// The limit.
        most: usize,
    },
}

impl Slots {
    /// The limit of [`Self::Auto`] without another one.
    pub const MOST: usize = 1_000;
    /// Many apps have this many requests at once. Descriptors for so many connections are kept for each worker with [`Self::Auto`].
    pub const USUAL: usize = 32;
}

impl Default for Slots {
    fn default() -> Self {
        Self::Auto { most: Self::MOST }
    }
}

/// The number of spares: workers that are ready and get requests only when another worker has died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spares {
    /// One spare while workers die often, if the pool has at least two workers.
    #[default]
    Auto,
    /// So many, always.
    Fixed(usize),
}

/// When a healthy worker is replaced. Without a limit: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recycling {
    /// After this number of requests.
    pub max_requests: Option<u64>,
    /// After so long.
    pub max_age: Option<Duration>,
    /// Above this number of bytes of resident memory.
    pub max_memory: Option<u64>,
}

/// Where Node keeps compiled code from one boot to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CompileCache {
    /// Nowhere.
    #[default]
    Off,
    /// In a folder for this app, in the cache folder of the service or of the user.
    Auto,
    /// In this folder.
    Folder(PathBuf),
}

/// How an app gets its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bind {
    /// The preload redirects its `listen()` to a Unix socket.
    #[default]
    Socket,
    /// It reads `PORT` and `HOST`.
    Port,
}

/// The address at which a worker answers.
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

/// The worker of an endpoint.
#[derive(Clone, Debug)]
pub struct WorkerFacts {
    /// Its number in the pool, from 1.
    pub index: usize,
    /// How many times it has been started.
    pub generation: u64,
    /// How many restarts of its pool had been ordered when it was started.
    pub release: u64,
    /// The process that listens.
    pub pid: u32,
    /// What becomes of it.
    pub exit_watch: ExitWatch,
}

/// The result of a [`Probe`]: the status of the answer, or why there is none.
pub type Probing = Pin<Box<dyn Future<Output = Result<u16, String>> + Send>>;

/// Requests a path from a worker, for health checks and warm-up. The program implements it, because this crate knows no HTTP.
pub trait Probe: Send + Sync {
    /// GETs `path` at `address`, reads the whole answer, and gives up after `timeout`.
    fn get(&self, address: &WorkerAddress, path: &str, timeout: Duration) -> Probing;
}
