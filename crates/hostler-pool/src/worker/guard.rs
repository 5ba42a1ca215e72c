//! The guard: a small process that outlives Hostler by a second, to end its workers should it die without a word.
//! This file has both its ends; it knows no worker, only process groups.
//!
//! A worker in an infinite loop notices nothing, and children of an app have never heard of us, so neither a closed
//! channel nor the preload is enough. The guard reads lines from its standard input: `dir PATH`, `+PGID`, `-PGID`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

/// Only directories so named are ever removed by the guard.
pub(super) const DIRECTORY_PREFIX: &str = "hostler-";

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
pub(super) struct Guard(Arc<Mutex<Post>>);

struct Post {
    command: GuardCommand,
    directory: PathBuf,
    groups: BTreeSet<i32>,
    process: Child,
}

impl Guard {
    pub fn start(command: GuardCommand, directory: &Path) -> io::Result<Self> {
        let mut process = spawn(&command)?;
        announce(&mut process, directory, &BTreeSet::new())?;
        let directory = directory.to_owned();
        Ok(Self(Arc::new(Mutex::new(Post { command, directory, groups: BTreeSet::new(), process }))))
    }

    /// Has the group ended should Hostler die while the returned value lives.
    pub fn watch(&self, group: Pid) -> Watched {
        let mut post = self.lock();
        post.groups.insert(group.as_raw_pid());
        post.tell(format_args!("+{}\n", group.as_raw_pid()));
        Watched { guard: self.clone(), group }
    }

    fn lock(&self) -> MutexGuard<'_, Post> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A group that the guard knows of; forgotten when dropped.
pub(super) struct Watched {
    guard: Guard,
    group: Pid,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut post = self.guard.lock();
        post.groups.remove(&self.group.as_raw_pid());
        post.tell(format_args!("-{}\n", self.group.as_raw_pid()));
    }
}

impl Post {
    /// Should the guard have died, another one takes its place and is told everything. If even that fails, the
    /// workers still have the closed channel; the next call tries again.
    fn tell(&mut self, line: std::fmt::Arguments<'_>) {
        let told =
            self.process.stdin.as_mut().is_some_and(|stdin| write_whole(stdin, &line.to_string()).is_ok());
        if told {
            return;
        }
        if let Ok(mut process) = spawn(&self.command)
            && announce(&mut process, &self.directory, &self.groups).is_ok()
        {
            let mut dead = std::mem::replace(&mut self.process, process);
            let _ = dead.kill().and_then(|()| dead.wait());
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        // All groups have been forgotten, and the directory is removed by its owner: it has nothing left to do.
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

fn spawn(command: &GuardCommand) -> io::Result<Child> {
    let mut process = Command::new(&command.program)
        .args(&command.args)
        .arg0("hostler-guard")
        .process_group(0) // a Ctrl-C is not for it
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    if let Some(stdin) = &process.stdin
        && let Err(error) = rustix::io::ioctl_fionbio(stdin, true)
    {
        let _ = process.kill().and_then(|()| process.wait());
        return Err(error.into());
    }
    Ok(process)
}

fn announce(process: &mut Child, directory: &Path, groups: &BTreeSet<i32>) -> io::Result<()> {
    let stdin = process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    write_whole(stdin, &format!("dir {}\n", directory.display()))?;
    groups.iter().try_for_each(|group| write_whole(stdin, &format!("+{group}\n")))
}

/// Lines shorter than a pipe's atomic write go whole or not at all; the pipe never blocks Hostler.
fn write_whole(stdin: &mut impl Write, line: &str) -> io::Result<()> {
    match stdin.write(line.as_bytes())? {
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
