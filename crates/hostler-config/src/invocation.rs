//! The inputs of one run of Hostler: the file, keys of the command line, the environment and the machine. Loads nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hostler_worker::{CpuList, MemoryGroups};
use rustix::net::{AddressFamily, SocketType, socket};

use crate::document::KeyPath;
use crate::source::{self, Setting};

/// The inputs of one run of Hostler.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The file, relative to the folder in which Hostler was started. `None` with `hostler run`.
    pub file: Option<PathBuf>,
    /// Keys that are set on the command line. The later of two equal keys counts.
    pub settings: Vec<Setting>,
    /// The environment and the machine.
    pub load_context: LoadContext,
}

impl Invocation {
    /// Whether `hostler run` got no address for the admin listener. Then Hostler may use another one than the default.
    pub fn may_move_admin(&self) -> bool {
        const KEY: &str = "server.admin";
        self.file.is_none()
            && !self.load_context.environment.contains_key(&source::variable(&KeyPath::of(KEY)))
            && self.settings.iter().all(|setting| setting.key != KEY)
    }
}

/// The environment of Hostler. It is a parameter, so that loading depends on nothing else except files and name lookups.
#[derive(Clone, Debug)]
pub struct LoadContext {
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// The folder in which Hostler was started.
    pub folder: PathBuf,
    /// The system's folder for temporary files.
    pub temp_dir: PathBuf,
    /// Cores that this process may use.
    pub cores: usize,
    /// The CPUs of the machine that are in use. `None`: the system does not tell.
    pub cpus: Option<CpuList>,
    /// The hard limit of open files of this process (`ulimit -Hn`). `None`: no limit.
    pub open_files: Option<usize>,
    /// The soft limit of open files at the start (`ulimit -Sn`). Workers get it back.
    pub soft_open_files: Option<u64>,
    /// The lowest limit of memory of the control groups of this process, in bytes. `None`: no limit.
    pub memory: Option<u64>,
    /// The kernel has IPv6.
    pub has_ipv6: bool,
    /// How many workers the pools had in the process that this one replaces.
    pub workers_before: BTreeMap<String, usize>,
}

impl LoadContext {
    /// The context of this process. Nothing else reads the environment.
    pub fn of_process() -> Self {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let open_files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        // If the folder was removed, each relative path gets an error.
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let environment: BTreeMap<_, _> =
            std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
        let folder = as_named(environment.get("PWD").map(Path::new), folder);
        Self {
            open_files: open_files.maximum.and_then(|most| usize::try_from(most).ok()),
            soft_open_files: open_files.current,
            memory: MemoryGroups::own().least_limit(),
            has_ipv6: has_ipv6(),
            workers_before: BTreeMap::new(),
            environment,
            temp_dir: temp_dir(&std::env::temp_dir(), &folder),
            folder,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpus: std::fs::read_to_string("/sys/devices/system/cpu/online")
                .ok()
                .and_then(|list| list.trim().parse().ok()),
        }
    }
}

/// The working folder by the name that it has in the shell (`PWD`). The system forgets a link on the way to it, and a deploy that lets the
/// link lead to another version would then change nothing.
fn as_named(named: Option<&Path>, folder: PathBuf) -> PathBuf {
    match named {
        Some(named) if named.is_absolute() && named.canonicalize().is_ok_and(|real| real == folder) => {
            named.to_owned()
        }
        _ => folder,
    }
}

/// `TMPDIR` may be relative, or empty: that counts as not set, and not as the folder in which Hostler was started.
fn temp_dir(written: &Path, folder: &Path) -> PathBuf {
    match written.as_os_str().is_empty() {
        true => PathBuf::from("/tmp"),
        false => folder.join(written),
    }
}

/// IPv6 can be switched off when the machine boots (`ipv6.disable=1`), or for one service. Then it has no sockets.
fn has_ipv6() -> bool {
    socket(AddressFamily::INET6, SocketType::STREAM, None).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_folder_keeps_the_name_of_a_link_that_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let (release, link) = (real.join("1"), real.join("current"));
        std::fs::create_dir(&release).unwrap();
        std::os::unix::fs::symlink("1", &link).unwrap();
        let of = |named: Option<&Path>| as_named(named, release.clone());
        assert_eq!(of(Some(&link)), link);
        for other in [None, Some(Path::new("current")), Some(Path::new("/")), Some(&*real.join("2"))] {
            assert_eq!(of(other), release, "{other:?}");
        }
    }

    #[test]
    fn the_folder_for_temporary_files_is_absolute() {
        let of = |written: &str| temp_dir(Path::new(written), Path::new("/home/app"));
        assert_eq!(
            [of("/var/tmp"), of("tmp"), of("")],
            ["/var/tmp", "/home/app/tmp", "/tmp"].map(PathBuf::from)
        );
    }
}
