//! An upgrade as the old process sees it, and what each process tells the other one afterwards. Does not know what the other one does.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hostler_engine::cache::Telling;
use hostler_engine::journal::Level;

use super::boot;
use super::channel::SuccessorMessage;
use super::pools::{self, RunningPool};
use super::predecessor::Handover;
use super::running::{RunningServer, Takeover};
use super::successor::{Legacy, Successor};
use crate::admin::{CommandDone, CommandError};

/// How long a successor may take to accept connections after it was allowed to. It has nothing to wait for.
const BEGIN_LIMIT: Duration = Duration::from_secs(20);

/// Starts the program and lets it take over once it is ready. If that fails before the takeover, nothing has changed here.
pub(super) async fn upgrade(running: &Arc<RunningServer>) -> Result<CommandDone, CommandError> {
    let Ok(_turn) = running.changes.try_acquire() else {
        return Err(CommandError::Refused("a reload or an upgrade is under way".into()));
    };
    let Some(listeners) = running.listeners.load_full() else {
        return Err(CommandError::Refused("this Hostler is stopping".into()));
    };
    refuse_if_lost(running)?;
    let restarts = running.restarts.load(Ordering::Relaxed);
    let time_limit = running.config.load().server.upgrade_timeout;
    let failed = |error: &dyn std::fmt::Display| CommandError::Failed(error.to_string());
    let sockets = listeners.copies().map_err(|error| failed(&error))?;
    drop(listeners);
    let known = registrations(running).await.map_err(|error| failed(&error))?;
    let soft = running.invocation.load_context.soft_open_files;
    let broken = boot::broken(&running.pools.load());
    let legacy = Legacy {
        registrations: known,
        sticky_key: running.pool_context.sticky_key.clone(),
        workers: workers(&running.pools.load()),
        broken: broken.clone(),
    };
    // The workers of the successor need the cores of ours. If the upgrade fails, ours get them back.
    let free_cpus = running.pool_context.free_cpus();
    let started = Successor::start(&running.program, soft, sockets, legacy, time_limit).await;
    let mut new = started.map_err(|error| failed(&error))?;
    let pid = new.pid();
    running.journal.event(Level::Info, &format!("upgrade: the new process (pid {pid}) is ready"));
    if let Some(registering) = &running.registering {
        registering.catch_up().await;
    }
    let newest = registrations(running).await.map_err(|error| failed(&error))?;
    // After the last wait before it begins: a stop may have begun meanwhile, or a pool may have been paused. An early return drops the
    // successor, which ends its process.
    if running.listeners.load().is_none() {
        return Err(CommandError::Refused("this Hostler is stopping".into()));
    }
    refuse_if_lost(running)?;
    refuse_if_restarted(running, restarts)?;
    let purges = running.shared_cache.undelivered();
    // From its first client on.
    let telling = Telling::begin(&running.shared_cache);
    running.takeover.send_replace(Takeover::Begins(pid));
    let begun = new.begin(newest.as_ref(), purges, BEGIN_LIMIT).await;
    running.takeover.send_replace(if begun.is_ok() { Takeover::Done(pid) } else { Takeover::NotYet });
    begun.map_err(|error| failed(&error))?;
    tokio::spawn(follow(new, telling, running.clone()));
    if let Some(free_cpus) = free_cpus {
        free_cpus.for_good();
    }
    let taken = format!("pid {pid} has taken over from pid {}", std::process::id());
    let skipped = broken
        .iter()
        .map(|pool| format!("pool {pool}: no worker was ready, so the upgrade has not waited for it"));
    Ok(std::iter::once(taken).chain(skipped).collect())
}

/// Refuses an upgrade after which a state would be lost. The kernel ends a container with its process 1. A successor knows neither that this process
/// was told to stop soon, and would go on, nor that a pool is paused, and would serve the requests that the pause holds.
fn refuse_if_lost(running: &RunningServer) -> Result<(), CommandError> {
    if std::process::id() == 1 {
        let why = "this Hostler is process 1 of its container, which ends with it: replace the container";
        return Err(CommandError::Refused(why.into()));
    }
    if running.connections().is_end_announced() {
        return Err(CommandError::Refused("this Hostler was told to drain and stop (SIGUSR1)".into()));
    }
    let fate = |_: &RunningPool| Some("would serve in the new process");
    pools::keep_pauses(&running.pools.load(), fate).map_err(CommandError::Refused)
}

/// Refuses the upgrade if workers were restarted meanwhile: a restart deploys a new version of an app, and the successor's workers may have booted
/// with the old one.
fn refuse_if_restarted(running: &RunningServer, before: usize) -> Result<(), CommandError> {
    match running.restarts.load(Ordering::Relaxed) == before {
        true => Ok(()),
        false => Err(CommandError::Refused(
            "workers were restarted meanwhile, and those of the new process may be older: upgrade again"
                .into(),
        )),
    }
}

/// Exchanges messages with the successor: a stop, a purge, and what unsafe methods make void are for both processes. The channel stays open as
/// long as this process lives, so that the successor sees its end.
async fn follow(successor: Successor, telling: Telling, running: Arc<RunningServer>) {
    let tells = async {
        while successor.tell(telling.next().await).await {}
        // What it has said before its end is still heard.
        pending::<()>().await
    };
    let hears = async {
        while let Some(word) = successor.says().await {
            match word {
                SuccessorMessage::Stopping => running.successor_stops.notify_one(),
                SuccessorMessage::Purged { purges } => telling.heard(purges).await,
                _ => {}
            }
        }
    };
    tokio::select! {
        () = tells => {}
        () = hears => {}
    }
    drop(telling);
    pending().await
}

/// In the new process: it accepts connections. From now on both tell each other what unsafe methods make void, until the old one has ended.
pub(super) async fn begun(predecessor: Option<Arc<Handover>>, telling: Option<Telling>) {
    // First, because the old one waits for this message.
    Handover::begun(predecessor.as_deref()).await;
    let (Some(predecessor), Some(telling)) = (predecessor, telling) else { return };
    tokio::spawn(async move {
        let tells = async {
            while predecessor.tell(telling.next().await).await {}
            pending::<()>().await
        };
        let hears = async {
            while let Some(purges) = predecessor.hear().await {
                telling.heard(purges).await;
            }
        };
        tokio::select! {
            () = tells => {}
            () = hears => {}
        }
    });
}

/// A file with the registered routes.
async fn registrations(running: &RunningServer) -> io::Result<Option<OwnedFd>> {
    match &running.registering {
        // A reload may have changed the folder.
        Some(registering) => {
            let folder = running.config.load().server.temp_dir.clone();
            registering.export(folder, running.advertised(), running.announced()).await.map(Some)
        }
        None => Ok(None),
    }
}

/// How many workers each pool has whose number is not fixed, for the successor.
fn workers(pools: &[RunningPool]) -> String {
    let wanted = |pool: &RunningPool| {
        let scaling = pool.supervisor.as_ref()?.scaling()?;
        Some(format!("{}={}", pool.name, scaling.wanted))
    };
    pools.iter().filter_map(wanted).collect::<Vec<_>>().join(",")
}
