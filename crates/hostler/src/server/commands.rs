//! Carries out commands, each in its own task, so that it completes even if its sender has left. Does not know where a command comes
//! from.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hostler_config::nearest;
use hostler_engine::journal::Level;
use hostler_worker::Rotation;
use tokio::task::JoinHandle;

use super::notify::Notify;
use super::pools::RunningPool;
use super::predecessor::Handover;
use super::running::RunningServer;
use super::signals::SignalAction;
use super::{cache, reload, stop, upgrade};
use crate::admin::{AdminCommand, CommandDone, CommandError, PendingCommand, Purging};

pub(super) fn spawn(running: &Arc<RunningServer>, pending: PendingCommand) {
    let running = running.clone();
    tokio::spawn(async move {
        let name = name(&pending.command);
        let outcome = run(&running, pending.command).await;
        log(&running, name, &outcome);
        // The sender may have left.
        let _ = pending.answer.send(outcome);
    });
}

/// A command from a signal. Its result goes to the log, and then `ended` runs. Who sends a signal gets no answer, so one that waited until a
/// successor has taken over is passed on to it.
pub(super) fn spawn_for_signal(
    running: &Arc<RunningServer>,
    action: SignalAction,
    command: AdminCommand,
    ended: impl FnOnce() + Send + 'static,
) {
    let running = running.clone();
    let name = name(&command);
    running.journal.event(Level::Info, &format!("{}: {name}", action.signal()));
    tokio::spawn(async move {
        let outcome = run(&running, command).await;
        let is_for_successor = matches!(outcome, Err(CommandError::TakenOver { .. }));
        if !is_for_successor {
            log(&running, name, &outcome);
        }
        ended();
        if is_for_successor {
            stop::pass_on(&running, action);
        }
    });
}

/// Reloads, and tells the service manager when that begins and ends. Until the manager knows that Hostler is ready, the end of a reload would
/// tell it so too early.
pub(super) fn reload_for_signal(running: &Arc<RunningServer>, notify: &Notify, booting: &JoinHandle<()>) {
    let notify = booting.is_finished().then(|| notify.clone());
    notify.iter().for_each(Notify::reloading);
    spawn_for_signal(running, SignalAction::Reload, AdminCommand::Reload, move || {
        notify.iter().for_each(Notify::reloaded);
    });
}

fn log(running: &RunningServer, name: &str, outcome: &Result<CommandDone, CommandError>) {
    let (level, text) = match outcome {
        Ok(done) => (Level::Info, done.join("\n")),
        Err(error) => (Level::Error, error.to_string()),
    };
    text.lines().for_each(|line| running.journal.event(level, &format!("{name}: {line}")));
}

async fn run(running: &Arc<RunningServer>, command: AdminCommand) -> Result<CommandDone, CommandError> {
    match command {
        AdminCommand::Reload => reload::reload(running).await,
        AdminCommand::Upgrade => upgrade::upgrade(running).await,
        AdminCommand::Restart(None) => restart_all(running).await,
        AdminCommand::Restart(Some(pool)) => {
            let pool = find(running, &pool)?;
            begin_restart(running, std::slice::from_ref(&pool))?;
            restart(&pool).await.map(|done| vec![done])
        }
        AdminCommand::Pause(pool, longest) => pause(running, &find(running, &pool)?, longest),
        AdminCommand::Resume(pool) => resume(&find(running, &pool)?),
        AdminCommand::Rotate(pool, worker, rotation) => {
            rotate(&find(running, &pool)?, worker, rotation).await
        }
        AdminCommand::Purge(purging) => purge(running, purging).await,
    }
}

/// Restarts all pools at once. Each pool replaces one worker at a time.
async fn restart_all(running: &RunningServer) -> Result<CommandDone, CommandError> {
    let pools = running.pools.load_full();
    begin_restart(running, &pools)?;
    let restarts = pools.iter().filter(|pool| pool.supervisor.is_some()).cloned();
    let restarts: Vec<_> = restarts.map(|pool| tokio::spawn(async move { restart(&pool).await })).collect();
    if restarts.is_empty() {
        return Err(CommandError::Refused("no pool has workers".into()));
    }
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for restart in restarts {
        match restart.await {
            Ok(Ok(text)) => done.push(text),
            Ok(Err(error)) => problems.push(error.to_string()),
            Err(error) => problems.push(error.to_string()),
        }
    }
    if problems.is_empty() {
        Ok(done)
    } else {
        Err(CommandError::Failed([problems, done].concat().join("\n")))
    }
}

/// An upgrade must know of it.
fn begin_restart(running: &RunningServer, pools: &[RunningPool]) -> Result<(), CommandError> {
    running.takeover.borrow().allows_orders()?;
    if pools.iter().any(|pool| pool.supervisor.is_some()) {
        running.restarts.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

async fn restart(pool: &RunningPool) -> Result<String, CommandError> {
    let name = &pool.name;
    let Some(supervisor) = &pool.supervisor else {
        return Err(CommandError::Refused(format!(
            "pool {name}: Hostler does not run its members and cannot restart them"
        )));
    };
    match supervisor.restart().await {
        Ok(restarted) if restarted.workers == 1 => Ok(format!("pool {name}: 1 worker replaced")),
        Ok(restarted) => Ok(format!("pool {name}: {} workers replaced", restarted.workers)),
        Err(error) => Err(CommandError::Failed(format!("pool {name}: {error}"))),
    }
}

fn pause(
    running: &RunningServer,
    pool: &RunningPool,
    longest: Duration,
) -> Result<CommandDone, CommandError> {
    running.takeover.borrow().allows_orders()?;
    let limit = humantime::format_duration(longest).to_string();
    let (journal, name) = (running.journal.clone(), pool.name.clone());
    let text = format!("pool {name}: the pause was not ended within {limit}; Hostler resumes the pool");
    let told = move || journal.event(Level::Warn, &text);
    pool.pause(longest, told);
    Ok(vec![format!("pool {} holds its requests, for {limit} at most", pool.name)])
}

fn resume(pool: &RunningPool) -> Result<CommandDone, CommandError> {
    if !pool.pool.is_paused() {
        return Err(CommandError::Refused(format!("pool {} is not paused", pool.name)));
    }
    pool.resume();
    Ok(vec![format!("pool {} is resumed", pool.name)])
}

async fn purge(running: &RunningServer, purging: Purging) -> Result<CommandDone, CommandError> {
    running.takeover.borrow().allows_orders()?;
    let config = running.config.load_full();
    let meant = cache::resolve(&config, purging)?;
    Handover::purged(running.predecessor.as_deref(), meant.clone()).await;
    Ok(cache::purge(&config, &running.shared_cache, meant).await)
}

async fn rotate(pool: &RunningPool, worker: usize, rotation: Rotation) -> Result<CommandDone, CommandError> {
    let name = &pool.name;
    let Some(supervisor) = &pool.supervisor else {
        return Err(CommandError::Refused(format!("pool {name}: Hostler does not run its members")));
    };
    supervisor.rotate(worker, rotation).await.map_err(CommandError::Refused)?;
    let done = match rotation {
        Rotation::Out { length: Some(length), .. } => {
            let length = humantime::format_duration(length);
            format!("{name}/{worker} gets no more requests for {length}, and finishes those that it has")
        }
        Rotation::Out { length: None, .. } => format!(
            "{name}/{worker} gets no more requests until `hostler undrain {name}/{worker}`, and finishes those that it has"
        ),
        Rotation::In => format!("{name}/{worker} gets requests again"),
    };
    Ok(vec![done])
}

fn name(command: &AdminCommand) -> &'static str {
    match command {
        AdminCommand::Restart(_) => "restart",
        AdminCommand::Pause(..) => "pause",
        AdminCommand::Resume(_) => "resume",
        AdminCommand::Rotate(_, _, Rotation::Out { .. }) => "drain",
        AdminCommand::Rotate(_, _, Rotation::In) => "undrain",
        AdminCommand::Purge(_) => "purge",
        AdminCommand::Reload => "reload",
        AdminCommand::Upgrade => "upgrade",
    }
}

fn find(running: &RunningServer, name: &str) -> Result<RunningPool, CommandError> {
    let pools = running.pools.load();
    pools.iter().find(|pool| *pool.name == *name).cloned().ok_or_else(|| CommandError::UnknownPool {
        name: name.to_owned(),
        meant: nearest(name, pools.iter().map(|pool| &*pool.name)).map(Into::into),
    })
}
