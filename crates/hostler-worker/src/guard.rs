//! The guard: a small process that ends the workers if Hostler dies without stopping them. This file has both sides. It
//! knows no workers, only process groups.
//!
//! Without a guard, the preload ends its process when the channel to Hostler closes. A worker in an infinite loop does not
//! notice that, and child processes of an app do not run the preload. The guard reads lines from its standard input:
//! `dir PATH`, `+PGID`, `-PGID`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::own_children::OwnChild;
use super::process_end::end_of;
use super::process_files::groups_below;

/// The guard removes only directories whose names begin like this.
pub(super) const DIRECTORY_PREFIX: &str = "hostler-";
/// The shortest time between two starts of a guard.
const REST: Duration = Duration::from_secs(1);

/// How to start the guard: a program that calls [`run`].
#[derive(Clone, Debug)]
pub struct GuardCommand {
    /// The program, usually Hostler itself.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// Hostler's side.
#[derive(Clone)]
pub(super) struct Guard(Arc<GuardState>);

struct GuardState {
    command: GuardCommand,
    held: Mutex<Held>,
}

/// The guard process, and the groups it was told.
struct Held {
    process: Child,
    own: OwnChild,
    /// The standard input of the guard.
    orders: File,
    groups: BTreeSet<i32>,
    /// The folder that it removes.
    directory: PathBuf,
}

impl Guard {
    /// Starts the guard, and a task that replaces it if it dies. Needs a runtime.
    pub fn start(command: GuardCommand, directory: &Path) -> io::Result<Self> {
        let groups = BTreeSet::new();
        let ((process, own), orders) = spawn(&command, directory, &groups)?;
        let held = Held { process, own, orders, groups, directory: directory.into() };
        let state = Arc::new(GuardState { command, held: held.into() });
        tokio::spawn(relieve(Arc::downgrade(&state)));
        Ok(Self(state))
    }

    /// If Hostler dies while the returned value lives, the guard ends this group.
    pub fn watch(&self, group: Pid) -> WatchedGroup {
        let group = group.as_raw_pid();
        self.0.tell(&format!("+{group}\n"), |held| {
            held.groups.insert(group);
        });
        WatchedGroup { guard: self.clone(), group }
    }

    /// From now on the guard removes this folder, and no other.
    pub fn guard_directory(&self, directory: &Path) {
        let change = |held: &mut Held| held.directory = directory.into();
        self.0.tell(&format!("dir {}\n", directory.display()), change);
    }
}

/// A group that the guard knows. Dropping it tells the guard to forget the group.
pub(super) struct WatchedGroup {
    guard: Guard,
    group: i32,
}

impl WatchedGroup {
    /// Another group that the guard ends.
    pub fn watch_also(&self, group: Pid) -> Self {
        self.guard.watch(group)
    }
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        self.guard.0.tell(&format!("-{}\n", self.group), |held| {
            held.groups.remove(&self.group);
        });
    }
}

impl GuardState {
    /// Writes a line to the guard. If the guard has died, the next one gets all groups. If it does not read, it is
    /// killed; closing its pipe instead would tell it that Hostler has died.
    fn tell(&self, line: &str, change: impl FnOnce(&mut Held)) {
        let mut held = self.held();
        change(&mut held);
        if tell(&held.orders, line).is_err() {
            let _ = held.process.kill();
        }
    }

    /// Starts a new guard in place of one that is gone.
    fn refill(&self) -> io::Result<()> {
        let (known, directory) = {
            let held = self.held();
            (held.groups.clone(), held.directory.clone())
        };
        let ((process, own), orders) = spawn(&self.command, &directory, &known)?;
        let mut held = self.held();
        held.reap();
        (held.process, held.own, held.orders) = (process, own, orders);
        // Changes since then went to the guard before.
        let lines = held.groups.difference(&known).map(|group| format!("+{group}\n"));
        let lines: Vec<_> =
            lines.chain(known.difference(&held.groups).map(|group| format!("-{group}\n"))).collect();
        lines.iter().try_for_each(|line| tell(&held.orders, line))?;
        tell(&held.orders, &format!("dir {}\n", held.directory.display()))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn reap(&mut self) {
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // All groups are forgotten, and the owner of the directory removes it. So the guard has nothing left to do.
        self.reap();
    }
}

/// Replaces each guard that dies, until none is needed. Until then, workers still end when their channel to Hostler closes.
async fn relieve(state: Weak<GuardState>) {
    while let Some(pid) = state.upgrade().map(|state| state.held().process.id()) {
        let rest = sleep(REST);
        end_of(pid).await;
        // If a guard dies at once, the next must not start at once.
        rest.await;
        if let Some(state) = state.upgrade() {
            // If this fails, the next look finds the guard dead again.
            let _ = state.refill();
        }
    }
}

/// Starts a guard that has all groups in its pipe from the start: it can read them even if Hostler dies right after.
fn spawn(
    command: &GuardCommand,
    directory: &Path,
    groups: &BTreeSet<i32>,
) -> io::Result<((Child, OwnChild), File)> {
    let (read, written) = io::pipe()?;
    rustix::io::ioctl_fionbio(&written, true)?;
    let orders = File::from(OwnedFd::from(written));
    tell(&orders, &format!("dir {}\n", directory.display()))?;
    groups.iter().try_for_each(|group| tell(&orders, &format!("+{group}\n")))?;
    let mut guard = Command::new(&command.program);
    guard
        .args(&command.args)
        .arg0("hostler-guard")
        .process_group(0) // a Ctrl-C must not reach it
        .current_dir("/")
        .stdin(read)
        .stdout(Stdio::null())
        // A reader of Hostler's standard error must see its end when Hostler ends.
        .stderr(Stdio::null());
    let process = OwnChild::start(|| guard.spawn(), |child| Some(child.id()))?;
    Ok((process, orders))
}

/// A line shorter than a pipe's atomic write is written whole or not at all. The pipe never blocks Hostler.
fn tell(mut orders: &File, line: &str) -> io::Result<()> {
    match orders.write(line.as_bytes())? {
        written if written == line.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// The guard's side: the main function of the guard process.
pub fn run() -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let signals = {
        let _inside = runtime.enter();
        // The guard ends only when its input ends. A signal is meant for Hostler, so the guard listens for signals and
        // ignores them.
        [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit(), SignalKind::hangup()]
            .map(signal)
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
        // Before the signal: what an ended process has started is not found.
        let below: Vec<_> = groups.iter().flat_map(|group| groups_below(group.cast_unsigned())).collect();
        groups.extend(below.into_iter().map(Pid::as_raw_pid));
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
        // The group may be gone already.
        let _ = kill_process_group(group, signal);
    }
}

fn is_ours(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    directory.is_absolute() && name.starts_with(DIRECTORY_PREFIX)
}
