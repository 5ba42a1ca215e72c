//! The processes that Hostler itself has started, and what process 1 does with all others that become its children. Knows no workers.
//!
//! In a container Hostler is often process 1. The kernel makes process 1 the parent of each process whose parent has ended, and such a
//! process stays a zombie until process 1 asks for its status. Of its own children each part of Hostler waits for those that it has started,
//! so no other part may ask for their status.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, waitpid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::process_files::{processes, stat_after_name};

/// Orphans often end together. One look at all processes is enough for them.
const PAUSE: Duration = Duration::from_millis(100);

static OWN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A process that Hostler has started. As long as this value lives, only its owner asks for the status of the process.
#[derive(Debug)]
pub struct OwnChild(i32);

impl OwnChild {
    /// Starts a process with `spawn`. `pid` is its number.
    ///
    /// Errors: those of `spawn`.
    pub fn start<C>(
        spawn: impl FnOnce() -> io::Result<C>,
        pid: impl FnOnce(&C) -> Option<u32>,
    ) -> io::Result<(C, Self)> {
        // No zombie is reaped between the start and the entry.
        let mut own = own();
        let child = spawn()?;
        let pid = pid(&child).ok_or_else(|| io::Error::other("a process without a number"))?.cast_signed();
        own.insert(pid);
        Ok((child, Self(pid)))
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        own().remove(&self.0);
    }
}

fn own() -> MutexGuard<'static, BTreeSet<i32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for the status of each child that Hostler has not started, as process 1 must. Runs until it is dropped. Does nothing in any other
/// process: there, orphans have another parent.
pub async fn reap_orphans() {
    let Ok(mut deaths) = signal(SignalKind::child()) else { return };
    if std::process::id() != 1 {
        return;
    }
    loop {
        // An error means that the runtime ends.
        let _ = tokio::task::spawn_blocking(reap).await;
        if deaths.recv().await.is_none() {
            return;
        }
        sleep(PAUSE).await;
    }
}

fn reap() {
    // Starts of processes wait for the lock, so it is not held while all of /proc is read.
    zombies().for_each(reap_unless_own);
}

fn reap_unless_own(zombie: Pid) {
    // Held until the end: meanwhile no own process can get this number.
    let own = own();
    if !own.contains(&zombie.as_raw_pid()) {
        // Another part of Hostler may have been faster: it waits for the whole group of a worker.
        let _ = waitpid(Some(zombie), WaitOptions::NOHANG);
    }
}

/// The children of this process that have ended.
fn zombies() -> impl Iterator<Item = Pid> {
    let ours = std::process::id().to_string();
    processes().filter_map(move |pid| {
        let stat = stat_after_name(pid)?;
        let mut fields = stat.split_ascii_whitespace();
        let is_ours = fields.next() == Some("Z") && fields.next() == Some(&ours);
        Pid::from_raw(pid.cast_signed()).filter(|_| is_ours)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn own_children_keep_their_status_until_their_owner_asks() {
        let (mut child, own) =
            OwnChild::start(|| Command::new("sh").args(["-c", "exit 3"]).spawn(), |child| Some(child.id()))
                .unwrap();
        let pid = Pid::from_child(&child);
        while !zombies().any(|zombie| zombie == pid) {
            std::thread::yield_now();
        }
        reap_unless_own(pid);
        assert_eq!(child.wait().unwrap().code(), Some(3));
        drop(own);
        assert!(!super::own().contains(&pid.as_raw_pid()));
    }

    #[test]
    fn a_child_that_hostler_has_not_started_is_reaped() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        while !zombies().any(|zombie| zombie == pid) {
            std::thread::yield_now();
        }
        reap_unless_own(pid);
        assert!(child.wait().is_err(), "its status is gone");
    }
}
