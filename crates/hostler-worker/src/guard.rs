//! The guard: a small process that outlives Hostler by a second, to end its workers should it die without a word.
//! This file has both its ends; it knows no worker, only process groups.
//!
//! A worker in an infinite loop notices nothing, and children of an app have never heard of us, so neither a closed
//! channel nor the preload is enough. The guard reads lines from its standard input: `dir PATH`, `+PGID`, `-PGID`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::process::end_of;

/// Only directories so named are ever removed by the guard.
pub(super) const DIRECTORY_PREFIX: &str = "hostler-";
/// The least time between two who are started.
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
pub(super) struct Guard(Arc<GuardState>);

struct GuardState {
    command: GuardCommand,
    directory: PathBuf,
    held: Mutex<Held>,
}

/// The process, and what it has been told.
struct Held {
    process: Child,
    /// What he reads.
    orders: File,
    groups: BTreeSet<i32>,
}

impl Guard {
    /// Starts the guard, and whoever replaces it should it die; needs a runtime.
    pub fn start(command: GuardCommand, directory: &Path) -> io::Result<Self> {
        let groups = BTreeSet::new();
        let (process, orders) = spawn(&command, directory, &groups)?;
        let held = Held { process, orders, groups };
        let state = Arc::new(GuardState { command, directory: directory.into(), held: held.into() });
        tokio::spawn(relieve(Arc::downgrade(&state)));
        Ok(Self(state))
    }

    /// Has the group ended should Hostler die while the returned value lives.
    pub fn watch(&self, group: Pid) -> WatchedGroup {
        let group = group.as_raw_pid();
        self.0.tell(&format!("+{group}\n"), |groups| groups.insert(group));
        WatchedGroup { guard: self.clone(), group }
    }
}

/// A group that the guard knows of; forgotten when dropped.
pub(super) struct WatchedGroup {
    guard: Guard,
    group: i32,
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        self.guard.0.tell(&format!("-{}\n", self.group), |groups| groups.remove(&self.group));
    }
}

impl GuardState {
    /// What a guard that dies does not hear, its successor is told. One that does not listen is ended, and not by closing its
    /// pipe: that would tell it that Hostler has died.
    fn tell(&self, line: &str, change: impl FnOnce(&mut BTreeSet<i32>) -> bool) {
        let mut held = self.held();
        change(&mut held.groups);
        if tell(&held.orders, line).is_err() {
            let _ = held.process.kill();
        }
    }

    /// Puts another guard in the place of one that is gone.
    fn refill(&self) -> io::Result<()> {
        let known = self.held().groups.clone();
        let (process, orders) = spawn(&self.command, &self.directory, &known)?;
        let mut held = self.held();
        held.bury();
        (held.process, held.orders) = (process, orders);
        // What has changed since was told to the one before.
        let lines = held.groups.difference(&known).map(|group| format!("+{group}\n"));
        let lines: Vec<_> =
            lines.chain(known.difference(&held.groups).map(|group| format!("-{group}\n"))).collect();
        lines.iter().try_for_each(|line| tell(&held.orders, line))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn bury(&mut self) {
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // All groups have been forgotten, and the directory is removed by its owner: it has nothing left to do.
        self.bury();
    }
}

/// Replaces each guard that dies until nobody needs one. While there is none, the workers still have the closed channel.
async fn relieve(state: Weak<GuardState>) {
    while let Some(pid) = state.upgrade().map(|state| state.held().process.id()) {
        let rest = sleep(REST);
        end_of(pid).await;
        // One that dies at once must not be replaced at once.
        rest.await;
        if let Some(state) = state.upgrade() {
            // Should that fail, the next is found dead, too.
            let _ = state.refill();
        }
    }
}

/// Starts one that knows all from its first moment: should Hostler die in the next, it is there to be read.
fn spawn(command: &GuardCommand, directory: &Path, groups: &BTreeSet<i32>) -> io::Result<(Child, File)> {
    let (read, written) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&written, true)?;
    let orders = File::from(written);
    tell(&orders, &format!("dir {}\n", directory.display()))?;
    groups.iter().try_for_each(|group| tell(&orders, &format!("+{group}\n")))?;
    let process = Command::new(&command.program)
        .args(&command.args)
        .arg0("hostler-guard")
        .process_group(0) // a Ctrl-C is not for it
        .current_dir("/")
        .stdin(read)
        .stdout(Stdio::null())
        // Whoever reads our errors should see their end when we end.
        .stderr(Stdio::null())
        .spawn()?;
    Ok((process, orders))
}

/// Lines shorter than a pipe's atomic write go whole or not at all; the pipe never blocks Hostler.
fn tell(mut orders: &File, line: &str) -> io::Result<()> {
    match orders.write(line.as_bytes())? {
        written if written == line.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
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
