//! The guard: a small process that outlives Hostler by a second, to end its workers should it die without a word.
//! This file has both its ends; it knows no worker, only process groups.
//!
//! A worker in an infinite loop notices nothing, and children of an app have never heard of us, so neither a closed
//! channel nor the preload is enough. The guard reads lines from its standard input: `dir PATH`, `+PGID`, `-PGID`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

/// Only directories so named are ever removed by the guard.
pub(super) const DIRECTORY_PREFIX: &str = "hostler-";
/// The least time between two who fill the post.
const REST: Duration = Duration::from_secs(1);

/// How the guard is started: a program that calls [`run`].
#[derive(Clone, Debug)]
pub struct GuardCommand {
    /// The program, as a rule Hostler's own.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// Hostler's end.
#[derive(Clone)]
pub(super) struct Guard(Arc<Post>);

struct Post {
    command: GuardCommand,
    directory: PathBuf,
    told: Mutex<Told>,
    /// The guard does not take what it is told.
    deaf: Arc<Notify>,
    /// Ends with the post.
    _held: oneshot::Sender<Infallible>,
}

/// What the guard has been told, and the way to tell it more.
struct Told {
    groups: BTreeSet<i32>,
    pipe: Option<File>,
}

impl Guard {
    /// Starts the guard and whoever replaces it should it die; needs a runtime.
    pub fn start(command: GuardCommand, directory: &Path) -> io::Result<Self> {
        let mut told = Told { groups: BTreeSet::new(), pipe: None };
        let child = told.hire(&command, directory)?;
        let (held, given_up) = oneshot::channel();
        let deaf = Arc::new(Notify::new());
        let post =
            Post { command, directory: directory.into(), told: told.into(), deaf: deaf.clone(), _held: held };
        let post = Arc::new(post);
        tokio::spawn(relieve(Arc::downgrade(&post), child, deaf, given_up));
        Ok(Self(post))
    }

    /// Has the group ended should Hostler die while the returned value lives.
    pub fn watch(&self, group: Pid) -> Watched {
        let group = group.as_raw_pid();
        self.0.tell(&format!("+{group}\n"), |groups| groups.insert(group));
        Watched { guard: self.clone(), group }
    }
}

/// A group that the guard knows of; forgotten when dropped.
pub(super) struct Watched {
    guard: Guard,
    group: i32,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.guard.0.tell(&format!("-{}\n", self.group), |groups| groups.remove(&self.group));
    }
}

impl Post {
    /// What a guard that dies does not hear, its successor is told.
    fn tell(&self, line: &str, change: impl FnOnce(&mut BTreeSet<i32>) -> bool) {
        let mut told = self.told();
        change(&mut told.groups);
        if told.tell(line).is_err() {
            self.deaf.notify_one();
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    /// Another guard, in the place of one that is gone.
    fn hire(&mut self, command: &GuardCommand, directory: &Path) -> io::Result<Child> {
        let (mut child, pipe) = spawn(command)?;
        self.pipe = Some(pipe);
        self.tell_all(directory).inspect_err(|_| drop(child.start_kill()))?;
        Ok(child)
    }

    fn tell_all(&self, directory: &Path) -> io::Result<()> {
        self.tell(&format!("dir {}\n", directory.display()))?;
        self.groups.iter().try_for_each(|group| self.tell(&format!("+{group}\n")))
    }

    /// Lines shorter than a pipe's atomic write go whole or not at all; the pipe never blocks Hostler.
    fn tell(&self, line: &str) -> io::Result<()> {
        let mut pipe = self.pipe.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        match pipe.write(line.as_bytes())? {
            written if written == line.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

/// Replaces each guard that dies until the post is given up. While there is none, the workers still have the closed channel.
async fn relieve(
    post: Weak<Post>,
    mut child: Child,
    deaf: Arc<Notify>,
    mut given_up: oneshot::Receiver<Infallible>,
) {
    let mut hired = Instant::now();
    loop {
        tokio::select! {
            _ = &mut given_up => break,
            _ = child.wait() => {}
            // Not by closing its pipe: that would tell it that Hostler has died.
            () = deaf.notified() => {
                let _ = child.start_kill();
                continue;
            }
        }
        // One that dies at once must not be replaced at once.
        sleep_until(hired + REST).await;
        hired = Instant::now();
        let Some(post) = post.upgrade() else { return };
        // Should that fail, the dead one is found dead again.
        let successor = post.told().hire(&post.command, &post.directory);
        child = successor.unwrap_or(child);
    }
    // Its pipe is closed and it has no groups left: it goes by itself.
    let _ = child.wait().await;
}

fn spawn(command: &GuardCommand) -> io::Result<(Child, File)> {
    let mut process = Command::new(&command.program);
    process.args(&command.args).arg0("hostler-guard").current_dir("/");
    process.process_group(0); // a Ctrl-C is not for it
    process.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = process.spawn()?;
    let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.into_owned_fd()?;
    rustix::io::ioctl_fionbio(&stdin, true)?;
    Ok((child, stdin.into()))
}

/// The guard's own end: the whole life of that process.
pub fn run() -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let signals = {
        let _inside = runtime.enter();
        // It goes when its input ends and at no other time: who signals it means Hostler. To listen is to ignore.
        [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal)
    };
    let mut groups = BTreeSet::new();
    let mut directory = None;
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        match line.split_at_checked(1) {
            Some(("+", group)) => drop(group.parse().map(|group: i32| groups.insert(group))),
            Some(("-", group)) => drop(group.parse().map(|group: i32| groups.remove(&group))),
            _ => directory = line.strip_prefix("dir ").map(PathBuf::from).or(directory),
        }
    }
    if !groups.is_empty() {
        end(&groups, Signal::TERM);
        runtime.block_on(async { tokio::time::sleep(Duration::from_secs(1)).await });
        end(&groups, Signal::KILL);
    }
    if let Some(directory) = directory.filter(|path| is_ours(path)) {
        let _ = std::fs::remove_dir_all(directory);
    }
    drop(signals);
    ExitCode::SUCCESS
}

fn end(groups: &BTreeSet<i32>, signal: Signal) {
    for group in groups.iter().filter_map(|&group| Pid::from_raw(group)) {
        // Gone already is as good.
        let _ = kill_process_group(group, signal);
    }
}

fn is_ours(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    directory.is_absolute() && name.starts_with(DIRECTORY_PREFIX)
}
