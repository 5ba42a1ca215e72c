//! What all workers of one Hostler share: the runtime directory, the boot gate, the guard and the log. Knows no pool.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::Mode;
use tempfile::TempDir;

use super::boot_gate::{BootGate, BootTurn, Turns};
use super::cpus::{CpuBoard, FreeCpus};
use super::guard::{DIRECTORY_PREFIX, Guard, GuardCommand};
use super::log::LogSink;
use super::scaling::Resources;

/// `sun_path` has 108 bytes on Linux and 104 elsewhere, and the last one is 0.
const SOCKET_PATH_LIMIT: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// The longest file name made here: pool, worker number, serial number and ending.
const FILE_NAME_LIMIT: usize = 48;
const POOL_NAME_LIMIT: usize = 16;

/// The parts of a [`SupervisorContext`].
pub struct SupervisorContextSettings {
    /// Directories in which the runtime directory may be made, the best first: usually `$XDG_RUNTIME_DIR` and the
    /// temporary directory.
    pub parents: Vec<PathBuf>,
    /// The text of packages/worker/preload.cjs.
    pub preload: Cow<'static, str>,
    /// How to start the guard process.
    pub guard: GuardCommand,
    /// Receives the log of all workers.
    pub log: LogSink,
    /// How many cores Hostler may use. No more workers boot at the same time, unless they only wait.
    pub cores: usize,
    /// The soft limit on open files for workers, if it differs from Hostler's own.
    pub open_files: Option<u64>,
    /// Bytes of memory for the workers of all pools whose number of workers is not fixed. `None`: a share of the machine's
    /// memory, or of the control group's.
    pub worker_memory: Option<u64>,
    /// How many workers each pool had in the process that this one replaces.
    pub workers_before: BTreeMap<String, usize>,
}

/// Why a supervisor context could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorContextError {
    /// No directory for the runtime directory. Holds one reason for each that was tried.
    #[error("no directory for the workers' sockets: {}", .0.join("; "))]
    NoDirectory(Vec<String>),
    /// The preload could not be written.
    #[error("cannot write {path}: {source}")]
    Preload {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The guard did not start.
    #[error("cannot start the guard process {program}: {source}")]
    Guard {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// What all workers of one Hostler share. A clone is cheap. Dropping the last clone removes the runtime directory and
/// ends the guard.
#[derive(Clone)]
pub struct SupervisorContext(Arc<ContextInner>);

struct ContextInner {
    // Dropped in this order: first the guard, which ends in peace, then the directory that it would remove.
    guard: Guard,
    directory: TempDir,
    preload: PathBuf,
    boots: BootGate,
    serial: AtomicU64,
    ports: Mutex<BTreeSet<u16>>,
    log: LogSink,
    open_files: Option<u64>,
    resources: Arc<Resources>,
    cpus: CpuBoard,
    workers_before: BTreeMap<String, usize>,
}

impl SupervisorContext {
    /// Makes the runtime directory, writes the preload into it, and starts the guard.
    pub fn new(settings: SupervisorContextSettings) -> Result<Self, SupervisorContextError> {
        let directory = make_directory(&settings.parents)?;
        let preload = directory.path().join("preload.cjs");
        std::fs::write(&preload, settings.preload.as_bytes())
            .map_err(|source| SupervisorContextError::Preload { path: preload.clone(), source })?;
        let program = settings.guard.program.clone();
        let guard = Guard::start(settings.guard, directory.path())
            .map_err(|source| SupervisorContextError::Guard { program, source })?;
        Ok(Self(Arc::new(ContextInner {
            guard,
            directory,
            preload,
            boots: BootGate::new(settings.cores, Path::new("/proc"), Path::new("/sys/fs/cgroup")),
            serial: AtomicU64::new(1),
            ports: Mutex::default(),
            log: settings.log,
            open_files: settings.open_files,
            resources: Arc::new(Resources::new(settings.worker_memory)),
            cpus: CpuBoard::default(),
            workers_before: settings.workers_before,
        })))
    }

    /// Changes the memory for workers, as in [`SupervisorContextSettings::worker_memory`].
    pub fn set_worker_memory(&self, limit: Option<u64>) {
        self.0.resources.set_limit(limit);
    }

    /// Frees workers with `cpu = "auto"` from their cores while another process of Hostler starts beside this one.
    pub fn free_cpus(&self) -> FreeCpus {
        self.0.cpus.free_all()
    }

    pub(super) fn cpus(&self) -> &CpuBoard {
        &self.0.cpus
    }

    pub(super) fn resources(&self) -> &Arc<Resources> {
        &self.0.resources
    }

    pub(super) fn workers_before(&self, pool: &str) -> Option<usize> {
        self.0.workers_before.get(pool).copied()
    }

    /// The private runtime directory.
    pub fn directory(&self) -> &Path {
        self.0.directory.path()
    }

    pub(super) fn preload(&self) -> &Path {
        &self.0.preload
    }

    pub(super) fn guard(&self) -> &Guard {
        &self.0.guard
    }

    pub(super) fn log(&self) -> LogSink {
        Arc::clone(&self.0.log)
    }

    /// Sets the soft limit on open files of a process that has just started. Hostler's own limit is as high as the system
    /// allows, but programs that use `select` must not have descriptors above 1024.
    pub(super) fn limit_open_files(&self, process: u32) {
        if let Some(soft) = self.0.open_files {
            limit_open_files(process, soft);
        }
    }

    /// Waits until a worker may boot. The boot ends when the turn is dropped.
    pub(super) async fn turn(&self, kind: Turns) -> BootTurn {
        self.0.boots.turn(kind).await
    }

    /// The beginning of unused paths, for one start of one worker.
    pub(super) fn stem(&self, pool: &str, worker: usize) -> Stem {
        let serial = self.0.serial.fetch_add(1, Ordering::Relaxed);
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name: String = pool.chars().filter(is_plain).take(POOL_NAME_LIMIT).collect();
        Stem { directory: self.directory().to_owned(), name: format!("{name}-{worker}-{serial}.") }
    }

    /// A free loopback port. No other worker gets it meanwhile.
    pub(super) fn free_port(&self) -> io::Result<Port> {
        for _ in 0..64 {
            let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
            if self.0.ports.lock().unwrap_or_else(PoisonError::into_inner).insert(address.port()) {
                return Ok(Port { address, context: self.clone() });
            }
        }
        Err(io::Error::other("no free port on the loopback interface"))
    }
}

/// The paths of one start of one worker. Dropping it removes the files that are left.
pub(super) struct Stem {
    directory: PathBuf,
    name: String,
}

impl Stem {
    pub fn path(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("{}{ending}", self.name))
    }
}

impl Drop for Stem {
    fn drop(&mut self) {
        // The preload makes files with other endings, so all files that begin with this stem are removed.
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if entry.file_name().as_bytes().starts_with(self.name.as_bytes()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// A port that no other worker gets while this value lives.
pub(super) struct Port {
    pub address: SocketAddr,
    context: SupervisorContext,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.context.0.ports.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.address.port());
    }
}

/// A private directory, with a path short enough for the names of sockets in it.
fn make_directory(parents: &[PathBuf]) -> Result<TempDir, SupervisorContextError> {
    let mut refusals = Vec::new();
    for parent in parents {
        let directory = tempfile::Builder::new().prefix(DIRECTORY_PREFIX).rand_bytes(6).tempdir_in(parent);
        match directory.and_then(private) {
            Ok(directory)
                if directory.path().as_os_str().len() + 1 + FILE_NAME_LIMIT <= SOCKET_PATH_LIMIT =>
            {
                return Ok(directory);
            }
            Ok(_) => refusals.push(format!("{}: too long for a socket's path", parent.display())),
            Err(error) => refusals.push(format!("{}: {error}", parent.display())),
        }
    }
    Err(SupervisorContextError::NoDirectory(refusals))
}

/// Absolute, because workers run in other directories. Mode 0700 with any umask.
fn private(directory: TempDir) -> io::Result<TempDir> {
    if !directory.path().is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path"));
    }
    rustix::fs::chmod(directory.path(), Mode::RWXU)?;
    Ok(directory)
}

#[cfg(target_os = "linux")]
fn limit_open_files(process: u32, soft: u64) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Some(process) = Pid::from_raw(process.cast_signed()) {
        // The process may have ended already.
        let _ = prlimit(Some(process), Resource::Nofile, Rlimit { current: Some(soft), ..limit });
    }
}

/// Only Linux sets a limit of another process. Elsewhere the process keeps Hostler's own.
#[cfg(not(target_os = "linux"))]
fn limit_open_files(_: u32, _: u64) {}
