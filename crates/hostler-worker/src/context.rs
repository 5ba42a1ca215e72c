//! What all workers of one Hostler share: the runtime directory, the boot gate, the guard and the log. Knows no pool.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::{AddressFamily, SocketType};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::boot_gate::{BootGate, BootTurn, Turns};
use super::cpus::{CpuBoard, FreeCpus};
use super::guard::{Guard, GuardCommand};
use super::log::{LogSink, WorkerLog};
use super::memory_group::{KillCount, MemoryGroups};
use super::runtime_folder::{KeptFiles, PRELOAD, RuntimeFolder, remove_abandoned};
use super::scaling::Resources;

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
    #[error("no folder for the workers' sockets: {}", .0.join("; "))]
    NoDirectory(Vec<String>),
    /// The preload could not be written. The error names the file.
    #[error("{0}")]
    Preload(io::Error),
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
    // Dropped in this order: first the guard, which ends in peace, then the folder that it would remove.
    guard: Guard,
    folder: Mutex<HeldFolder>,
    parents: Mutex<Vec<PathBuf>>,
    boots: BootGate,
    serial: AtomicU64,
    ports: Mutex<BTreeSet<u16>>,
    log: LogSink,
    open_files: Option<u64>,
    resources: Arc<Resources>,
    cpus: CpuBoard,
    workers_before: Mutex<BTreeMap<String, usize>>,
    kills: Mutex<KillCount>,
}

/// The runtime directory, and the files that it must have.
struct HeldFolder {
    folder: Arc<RuntimeFolder>,
    files: KeptFiles,
}

impl SupervisorContext {
    /// Makes the runtime directory, writes the preload into it, and starts the guard. Needs a runtime.
    pub fn new(settings: SupervisorContextSettings) -> Result<Self, SupervisorContextError> {
        let folder =
            RuntimeFolder::make_in(&settings.parents).map_err(SupervisorContextError::NoDirectory)?;
        let files = KeptFiles::from([(PRELOAD, settings.preload.into_owned().into_bytes())]);
        folder.restore(&files).map_err(SupervisorContextError::Preload)?;
        let program = settings.guard.program.clone();
        let guard = Guard::start(settings.guard, folder.path())
            .map_err(|source| SupervisorContextError::Guard { program, source })?;
        let parents = settings.parents.clone();
        spawn_blocking(move || remove_abandoned(&parents));
        Ok(Self(Arc::new(ContextInner {
            guard,
            folder: Mutex::new(HeldFolder { folder: Arc::new(folder), files }),
            parents: Mutex::new(settings.parents),
            boots: BootGate::new(settings.cores, Path::new("/proc"), Path::new("/sys/fs/cgroup")),
            serial: AtomicU64::new(1),
            ports: Mutex::default(),
            log: settings.log,
            open_files: settings.open_files,
            resources: Arc::new(Resources::new(settings.worker_memory)),
            cpus: CpuBoard::default(),
            workers_before: Mutex::new(settings.workers_before),
            kills: Mutex::default(),
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
        self.before().get(pool).copied()
    }

    /// Pools that start from now on are no successors of the pools of the process before, whatever their names are.
    pub fn forget_workers_before(&self) {
        self.before().clear();
    }

    fn before(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.workers_before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The private runtime directory.
    pub fn directory(&self) -> PathBuf {
        self.held().folder.path().to_owned()
    }

    /// Writes a file into the runtime directory. It is written again whenever it was removed.
    ///
    /// Errors: those of the system.
    pub fn keep_file(&self, name: &'static str, text: &str) -> io::Result<()> {
        let mut held = self.held();
        held.files.insert(name, text.into());
        held.folder.write(name, text.as_bytes())
    }

    /// The runtime directory with all its files, for the start of a worker. What is missing is made again: programs that clean up
    /// temporary folders do not know that it is in use.
    pub(super) fn folder(&self, log: &WorkerLog) -> io::Result<Arc<RuntimeFolder>> {
        let mut held = self.held();
        if !held.folder.is_there() {
            let lost = held.folder.path().to_owned();
            // A folder that another program has made at this path is not used.
            let made = RuntimeFolder::make_at(&lost).or_else(|_| {
                let refused = |why| io::Error::other(SupervisorContextError::NoDirectory(why).to_string());
                // A copy: a reload does not wait for a file system that does not answer.
                let parents = self.parents().clone();
                RuntimeFolder::make_in(&parents).map_err(refused)
            })?;
            self.0.guard.guard_directory(made.path());
            let place =
                if made.path() == lost { "there".to_owned() } else { made.path().display().to_string() };
            log.warn(format!(
                "the folder of the workers' sockets, {}, was removed; Hostler makes it again: {place}",
                lost.display()
            ));
            held.folder = Arc::new(made);
        }
        held.folder.restore(&held.files)?;
        Ok(Arc::clone(&held.folder))
    }

    /// Why a process was killed, if the kernel killed it because no memory was left. `before`: how many processes the kernel had killed for
    /// this reason when the process was started. None if it was killed for another reason.
    pub(super) fn killed_for_memory(&self, before: Option<u64>) -> Option<String> {
        let groups = MemoryGroups::own();
        let (before, now) = before.zip(groups.kills())?;
        if !self.0.kills.lock().unwrap_or_else(PoisonError::into_inner).explains(before, now) {
            return None;
        }
        let limit =
            groups.least_limit().map_or(String::new(), |limit| format!(" (limit {} MiB)", limit >> 20));
        Some(format!("the kernel has killed it because no memory was left{limit}"))
    }

    /// Changes the directories of [`SupervisorContextSettings::parents`]. The runtime directory stays where it is, unless it is removed.
    pub fn set_parents(&self, parents: Vec<PathBuf>) {
        *self.parents() = parents;
    }

    fn parents(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.0.parents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, HeldFolder> {
        self.0.folder.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(super) fn start_paths(&self, folder: &Arc<RuntimeFolder>, pool: &str, worker: usize) -> StartPaths {
        let serial = self.0.serial.fetch_add(1, Ordering::Relaxed);
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name: String = pool.chars().filter(is_plain).take(POOL_NAME_LIMIT).collect();
        StartPaths { folder: Arc::clone(folder), name: format!("{name}-{worker}-{serial}.") }
    }

    /// A free port, with the loopback address. No other worker gets it meanwhile.
    pub(super) fn free_port(&self) -> io::Result<Port> {
        for _ in 0..64 {
            let port = unused_port()?;
            if self.0.ports.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
                let address = (Ipv4Addr::LOCALHOST, port).into();
                return Ok(Port { address, context: self.clone() });
            }
        }
        Err(io::Error::other("no free port"))
    }
}

/// A port that is free on all addresses, because most apps listen on all of them.
fn unused_port() -> io::Result<u16> {
    // A socket of IPv6 is one of IPv4 as well. Where there is no IPv6, apps cannot listen there either.
    let any = unused_port_of(Ipv6Addr::UNSPECIFIED.into(), AddressFamily::INET6);
    any.or_else(|_| unused_port_of(Ipv4Addr::UNSPECIFIED.into(), AddressFamily::INET))
}

fn unused_port_of(any: IpAddr, family: AddressFamily) -> io::Result<u16> {
    // It is bound and does not listen, so no client can connect.
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::net::bind(&socket, &SocketAddr::new(any, 0))?;
    Ok(SocketAddr::try_from(rustix::net::getsockname(&socket)?)?.port())
}

/// The paths of one start of one worker. Dropping it removes the files that are left.
pub(super) struct StartPaths {
    folder: Arc<RuntimeFolder>,
    name: String,
}

impl StartPaths {
    pub fn path(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("{}{ending}", self.name))
    }
}

impl Drop for StartPaths {
    fn drop(&mut self) {
        let (folder, name) = (Arc::clone(&self.folder), std::mem::take(&mut self.name));
        let remove = move || remove_files(&folder, &name);
        match Handle::try_current() {
            // This thread watches all workers, and a file system that does not answer would stop it. In a task of its own: if the system refuses a
            // thread, only that task panics.
            Ok(runtime) => drop(runtime.spawn(async move { spawn_blocking(remove).await })),
            Err(_) => remove(),
        }
    }
}

/// The preload makes files with other endings, so all files that begin with this name are removed.
fn remove_files(folder: &RuntimeFolder, name: &str) {
    if !folder.is_there() {
        return;
    }
    for entry in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(name.as_bytes()) {
            let _ = std::fs::remove_file(entry.path());
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

#[cfg(target_os = "linux")]
fn limit_open_files(process: u32, soft: u64) {
    use rustix::process::{Resource, getrlimit};
    limit_open_files_to(process, soft, getrlimit(Resource::Nofile).maximum);
}

#[cfg(target_os = "linux")]
fn limit_open_files_to(process: u32, soft: u64, hard: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    if let Some(process) = Pid::from_raw(process.cast_signed()) {
        // The process may have ended already.
        let _ = prlimit(Some(process), Resource::Nofile, Rlimit { current: Some(soft), maximum: hard });
    }
}

/// Only Linux sets a limit of another process. Elsewhere the process keeps Hostler's own.
#[cfg(not(target_os = "linux"))]
fn limit_open_files(_: u32, _: u64) {}

/// Sets the soft limit on open files of a Node process to its hard limit, as Node does at its start. If this thread was held up, it has set the soft
/// limit only after that.
#[cfg(target_os = "linux")]
pub(super) fn raise_open_files(process: u32) {
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap_or_default();
    // `Max open files            1024                 4096                 files`
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    if let Some(hard) = line.and_then(|line| line.split_whitespace().nth(4)?.parse().ok()) {
        limit_open_files_to(process, hard, Some(hard));
    }
}

/// Elsewhere Hostler sets no limit of another process.
#[cfg(not(target_os = "linux"))]
pub(super) fn raise_open_files(_: u32) {}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn an_unused_port_is_free_on_all_addresses() {
        // Of 28,000 ports. A port that is free on 127.0.0.1 alone would be one of these in 97 of 100 runs.
        let others: Vec<_> =
            (0..500).map(|_| TcpListener::bind((Ipv4Addr::new(127, 0, 0, 3), 0)).unwrap()).collect();
        let taken: BTreeSet<_> = others.iter().map(|other| other.local_addr().unwrap().port()).collect();
        assert!((0..200).all(|_| !taken.contains(&unused_port().unwrap())));
    }
}
