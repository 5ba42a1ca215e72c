//! One worker's process group: how it is started, signalled and seen to its end; knows nothing of readiness.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, test_kill_process_group, waitpgid,
};
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::sleep;

use super::guard::Watched;
use super::news::{News, Wire};
use super::settings::{Bind, WorkerSettings};
use super::yard::{Port, Stem, Yard};

const LISTEN_FD: i32 = 3;
const CHANNEL_FD: i32 = 4;
/// How often an orphaned group is looked at; there is no event for the end of a process that is not our child.
const GLANCE: Duration = Duration::from_millis(20);
const GLANCES: u32 = 100;

/// What only one worker's start is told, besides the settings.
pub(super) struct Birth<'a> {
    pub settings: &'a WorkerSettings,
    pub yard: &'a Yard,
    pub pool: &'a str,
    pub index: usize,
    pub generation: u64,
}

/// A started process and the ends of everything that leads to it.
pub(super) struct Born {
    pub process: Process,
    pub channel: UnixStream,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    pub ways: Ways,
}

/// Where the app may come to listen, and what is kept for it until the process is gone.
pub(super) enum Ways {
    Socket { inherited: PathBuf, own: PathBuf, control: Option<UnixListener>, _stem: Stem },
    Port(Port),
}

impl Birth<'_> {
    /// Starts the process: no shell, a group of its own, nothing inherited but what is named here.
    pub fn spawn(&self) -> io::Result<Born> {
        let (program, args) =
            self.settings.command.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut descriptors = vec![FdMapping { parent_fd: theirs.into(), child_fd: CHANNEL_FD }];
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.settings.cwd).env_clear();
        command.envs(self.settings.env.iter().filter(|(name, _)| !is_ours(name)).cloned());
        command.env("NODE_CHANNEL_FD", CHANNEL_FD.to_string()).env("NODE_CHANNEL_SERIALIZATION_MODE", "json");
        command.env("HOSTLER_POOL", self.pool).env("HOSTLER_WORKER", self.index.to_string());
        command.env("HOSTLER_GENERATION", self.generation.to_string());
        command.env("NODE_APP_INSTANCE", (self.index - 1).to_string());
        let ways = match self.settings.bind {
            Bind::Socket => {
                let (ways, listener) = self.socket(&mut command)?;
                descriptors.push(FdMapping { parent_fd: listener, child_fd: LISTEN_FD });
                ways
            }
            Bind::Port => self.port(&mut command)?,
        };
        command.fd_mappings(descriptors).map_err(io::Error::other)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        // With `command` go our copies of the descriptors: a dead worker then refuses connections at once.
        let mut child = command.spawn().map_err(|error| explain(error, program, &self.settings.cwd))?;
        drop(command);

        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let process = Process::new(child, self.yard)?;
        Ok(Born { process, channel: ours, stdout, stderr, ways })
    }

    fn socket(&self, command: &mut Command) -> io::Result<(Ways, OwnedFd)> {
        let stem = self.yard.stem(self.pool, self.index);
        let (inherited, own, control) = (stem.path("fd"), stem.path("app"), stem.path("ctl"));
        let listener = UnixListener::bind(&inherited)?;
        let inode = rustix::fs::fstat(listener.as_fd())?.st_ino;
        let control_listener = UnixListener::bind(&control)?;
        command
            .env("HOSTLER_LISTEN_FD", LISTEN_FD.to_string())
            .env("HOSTLER_LISTEN_INODE", inode.to_string());
        command.env("HOSTLER_LISTEN_PATH", &own).env("HOSTLER_CONTROL_PATH", &control);
        if let Some(port) = self.settings.port {
            command.env("HOSTLER_APP_PORT", port.to_string());
        }
        let before = self.settings.env.iter().rev().find(|(name, _)| name == "NODE_OPTIONS");
        let before = before.map(|(_, value)| value.as_os_str()).unwrap_or_default();
        command.env("NODE_OPTIONS", with_preload(before, self.yard.preload()));
        let ways = Ways::Socket { inherited, own, control: Some(control_listener), _stem: stem };
        Ok((ways, listener.into()))
    }

    fn port(&self, command: &mut Command) -> io::Result<Ways> {
        let port = self.yard.free_port()?;
        command.env("PORT", port.address.port().to_string());
        command.env("HOST", "127.0.0.1").env("HOSTNAME", "127.0.0.1");
        Ok(Ways::Port(port))
    }
}

/// Names that must not come from a Hostler around this one.
fn is_ours(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"HOSTLER_LISTEN_")
        || name == b"HOSTLER_CONTROL_PATH"
        || name == b"HOSTLER_APP_PORT"
        || name.starts_with(b"NODE_CHANNEL_")
}

/// `NODE_OPTIONS` with our `--require` at the end, quoted as Node reads it: `"` and `\` with a `\` before them.
fn with_preload(before: &OsStr, preload: &Path) -> OsString {
    let mut options = before.to_owned();
    if !options.is_empty() {
        options.push(" ");
    }
    let path = preload.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    options.push(format!("--require \"{path}\""));
    options
}

/// "No such file" does not say which: the program, or the directory it was to run in.
fn explain(error: io::Error, program: &OsStr, cwd: &Path) -> io::Error {
    let program = program.to_string_lossy();
    let what = match error.kind() {
        io::ErrorKind::NotFound if !cwd.is_dir() => format!("its directory {} does not exist", cwd.display()),
        io::ErrorKind::NotFound => format!("there is no program {program:?}"),
        _ => format!("cannot start {program:?}: {error}"),
    };
    io::Error::new(error.kind(), what)
}

/// A process group that ends with this value, if not before.
pub(super) struct Process {
    child: Child,
    group: Pid,
    exit: Option<Exit>,
    _watched: Watched,
}

/// How a process ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit(Option<ExitStatus>);

impl Process {
    fn new(child: Child, yard: &Yard) -> io::Result<Self> {
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = group.ok_or_else(|| io::Error::other("a process without a number"))?;
        Ok(Self { child, group, exit: None, _watched: yard.guard().watch(group) })
    }

    /// The process that we started; not always the one that listens.
    pub fn pid(&self) -> u32 {
        self.group.as_raw_pid().cast_unsigned()
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Waits for the end. When the process that we started has ended, the rest of its group is killed; if
    /// `patient`, as during a graceful stop, the rest may first finish: npm may go before the app does.
    /// Can be dropped and called again.
    pub async fn ended(&mut self, patient: bool) -> Exit {
        let exit = match self.exit {
            Some(exit) => exit,
            None => *self.exit.insert(Exit(self.child.wait().await.ok())),
        };
        while patient && !is_gone(self.group) {
            sleep(GLANCE).await;
        }
        self.kill();
        exit
    }

    /// A group that is gone already is as good. Its number cannot belong to others while a member lives, and the
    /// last signal follows the leader's end at once.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill();
        }
        // In a container Hostler may be process 1, whose children its workers' orphans become.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(bury(self.group));
        }
    }
}

async fn bury(group: Pid) {
    for _ in 0..GLANCES {
        if is_gone(group) {
            return;
        }
        sleep(GLANCE).await;
    }
}

/// Tells of the end of a process that is not our child.
pub(super) async fn tell_end(pid: u32, wire: Wire) {
    let Some(number) = Pid::from_raw(pid.cast_signed()) else { return };
    match pidfd_open(number, PidfdFlags::NONBLOCK).map(watched) {
        // Readable when the process has ended, also before its parent has noticed.
        Ok(Ok(process)) => drop(process.readable().await),
        Err(Errno::SRCH) => {}
        // An old kernel, or no descriptor left: a closed channel tells as well, in most cases.
        _ => return,
    }
    wire.send(News::Gone { pid }).await;
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that close what they lent; OwnedFd never does"
)]
fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(descriptor)
}

/// Whether nobody is left in the group, having reaped those who are ours. Only for groups whose leader has been
/// reaped by its owner.
fn is_gone(group: Pid) -> bool {
    while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
    test_kill_process_group(group).is_err()
}

impl Exit {
    /// A SIGKILL that we did not send is the kernel's (out of memory) or an operator's.
    pub fn was_killed(self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        self.0.and_then(|status| status.signal()) == Some(Signal::KILL.as_raw())
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::os::unix::process::ExitStatusExt;
        match self.0.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => write!(f, "exit code {code}"),
            Some((None, Some(signal))) => write!(f, "signal {signal}{}", signal_name(signal)),
            _ => f.write_str("unknown end"),
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preload_is_added_to_node_options_quoted_as_node_reads_it() {
        let cases = [
            ("", "/run/a/preload.cjs", r#"--require "/run/a/preload.cjs""#),
            ("--max-old-space-size=64", "/a b/p.cjs", r#"--max-old-space-size=64 --require "/a b/p.cjs""#),
            ("", r#"/a"b\c"#, r#"--require "/a\"b\\c""#),
        ];
        for (before, path, expected) in cases {
            assert_eq!(with_preload(OsStr::new(before), Path::new(path)), *expected);
        }
    }

    #[test]
    fn what_a_hostler_around_this_one_has_set_is_not_passed_on() {
        for name in ["HOSTLER_LISTEN_FD", "HOSTLER_CONTROL_PATH", "NODE_CHANNEL_FD", "HOSTLER_APP_PORT"] {
            assert!(is_ours(OsStr::new(name)), "{name}");
        }
        for name in ["NODE_OPTIONS", "PATH", "HOSTLER_LOG"] {
            assert!(!is_ours(OsStr::new(name)), "{name}");
        }
    }
}
