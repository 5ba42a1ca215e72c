//! Orders carried out, each in a task of its own, so that whoever gave one may leave. Knows not how they came.

use std::sync::Arc;
use std::time::Duration;

use super::pools::RunningPool;
use super::running::Running;
use super::signals::Wish;
use super::{reload, upgrade};
use crate::admin::{Command, Done, Order, Undone};
use crate::config::nearest;
use crate::journal::Level;

/// Begins to carry out an order.
pub(super) fn carry_out(running: &Arc<Running>, order: Order) {
    let running = running.clone();
    tokio::spawn(async move {
        let outcome = obey(&running, order.command).await;
        // Whoever asked may have left.
        let _ = order.answer.send(outcome);
    });
}

/// An order by signal: what comes of it is for the log.
pub(super) fn by_signal(running: &Arc<Running>, wish: Wish, command: Command) {
    let running = running.clone();
    running.journal.event(Level::Info, &format!("{}: {}", wish.signal(), name(&command)));
    tokio::spawn(async move { obey(&running, command).await });
}

async fn obey(running: &Arc<Running>, command: Command) -> Result<Done, Undone> {
    let name = name(&command);
    let outcome = match command {
        Command::Reload => reload::reload(running).await,
        Command::Upgrade => upgrade::upgrade(running).await,
        Command::Restart(_) | Command::Pause(..) | Command::Resume(_) => {
            Err(Undone::Refused("pools cannot do that yet".into()))
        }
    };
    match &outcome {
        Ok(done) => {
            done.iter().for_each(|text| running.journal.event(Level::Info, &format!("{name}: {text}")))
        }
        Err(undone) => running.journal.event(Level::Error, &format!("{name}: {undone}")),
    }
    outcome
}

fn name(command: &Command) -> &'static str {
    match command {
        Command::Restart(_) => "restart",
        Command::Pause(..) => "pause",
        Command::Resume(_) => "resume",
        Command::Reload => "reload",
        Command::Upgrade => "upgrade",
    }
}

fn find(running: &Running, name: &str) -> Result<RunningPool, Undone> {
    let pools = running.pools.load();
    pools.iter().find(|pool| *pool.name == *name).cloned().ok_or_else(|| Undone::UnknownPool {
        name: name.to_owned(),
        meant: nearest(name, pools.iter().map(|pool| &*pool.name)).map(Into::into),
    })
}
