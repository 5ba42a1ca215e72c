//! The stop: connections first, then threads, then workers, each with a time limit. Does not know what caused it.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use hostler_engine::journal::Level;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep_until, timeout};

use super::cache;
use super::pools::RunningPool;
use super::predecessor::Handover;
use super::running::{RunningServer, Takeover, reopen_log};
use super::signals::{SignalAction, Signals};
use super::threads::DataPlane;

/// Makes health checks fail while requests are still served. Returns the time at which the stop begins.
pub(super) fn announce(running: &RunningServer) -> Instant {
    let wait = running.config.load().server.drain_wait;
    running.connections().announce_end();
    let text =
        format!("SIGUSR1: health checks fail from now on; serving for another {wait:?} (server.drain_wait)");
    running.journal.event(Level::Info, &text);
    Instant::now() + wait
}

/// Passes an order on to a successor that was allowed to begin. Otherwise the successor would go on serving although the operator has ended this
/// process, or with a configuration from before the operator's change. False: there is no such successor.
pub(super) fn pass_on(running: &RunningServer, action: SignalAction) -> bool {
    let (Takeover::Begins(pid) | Takeover::Done(pid)) = *running.takeover.borrow() else { return false };
    let signal = match action {
        SignalAction::Stop => Signal::TERM,
        SignalAction::Reload => Signal::HUP,
        SignalAction::Drain => Signal::USR1,
        SignalAction::Upgrade => Signal::USR2,
    };
    let text = format!("{}: passed on to pid {pid}, which is taking over", action.signal());
    running.journal.event(Level::Info, &text);
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // An error means that it has ended.
        let _ = kill_process(pid, signal);
    }
    true
}

/// Waits until this time. Without one it waits for ever.
pub(super) async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

/// After a takeover: each connection closes after its next answer, or after it was idle for long.
pub(super) async fn leave(running: &RunningServer, signals: &mut Signals) {
    end_holds(running);
    running.connections().leave();
    dismiss_tunnels(running);
    tokio::select! {
        _ = running.drained(running.connections().all_ended()) => return,
        () = stop_asked(running, signals) => {}
        () = running.successor_stops.notified() => {}
    }
    // The process before this one may wait for silent clients, too, and this one waits for its end.
    Handover::stopping(running.predecessor.as_deref()).await;
}

/// Ends all connections: idle ones at once, others after their request. True if a second signal demands an immediate stop.
pub(super) async fn drain(running: &RunningServer, data_plane: DataPlane, signals: &mut Signals) -> bool {
    let connections = running.connections();
    let mut is_urgent = false;
    end_holds(running);
    connections.announce_end();
    connections.drain();
    dismiss_tunnels(running);
    data_plane.wake_all();
    tokio::select! {
        drained = running.drained(connections.all_ended()) => if drained.is_none() {
            let text = format!("{} connections did not end in server.drain_timeout; closing them", connections.open());
            running.journal.event(Level::Warn, &text);
        },
        () = stop_asked(running, signals) => {
            is_urgent = true;
            running.journal.event(Level::Warn, "a second signal: stopping at once");
        }
    }
    data_plane.end();
    is_urgent
}

/// Stops all workers, and gives memcached the purges that it has not got. No request is left that could purge anything. True if a second signal
/// has demanded an immediate stop by now.
pub(super) async fn end_pools(running: &RunningServer, signals: &mut Signals, at_once: bool) -> bool {
    let purges = cache::deliver(&running.shared_cache, at_once, &running.journal);
    let (is_urgent, ()) = tokio::join!(stop_workers(running, signals, at_once), purges);
    is_urgent
}

/// Stops all workers; gracefully, unless a second signal has demanded an immediate stop. True if one has by now.
pub(super) async fn stop_workers(running: &RunningServer, signals: &mut Signals, at_once: bool) -> bool {
    let supervisors = running.supervisors();
    if at_once {
        supervisors.iter().for_each(|supervisor| supervisor.kill_now());
    }
    let all_stopped = async {
        // All stop at the same time.
        let stops = supervisors.iter().cloned().map(|supervisor| async move { supervisor.stop().await });
        let stops: Vec<_> = stops.map(tokio::spawn).collect();
        for stop in stops {
            let _ = stop.await;
        }
    };
    tokio::select! {
        () = all_stopped => return at_once,
        () = stop_asked(running, signals) => {
            running.journal.event(Level::Warn, "a second signal: Hostler kills the workers that have not ended yet");
        }
    }
    supervisors.iter().for_each(|supervisor| supervisor.kill_now());
    for supervisor in supervisors {
        supervisor.stopped().await;
    }
    true
}

/// Waits for the end of a predecessor that still finishes requests. systemd kills what is left of a service when its main process ends, which is
/// this one, and a container ends with it.
pub(super) async fn wait_for(
    predecessor: Option<Arc<Handover>>,
    running: &RunningServer,
    signals: &mut Signals,
) {
    let Some(predecessor) = predecessor else { return };
    if timeout(Duration::ZERO, predecessor.ended()).await.is_ok() {
        return;
    }
    let text = "the old process still finishes requests; this process waits until it has ended";
    running.journal.event(Level::Info, text);
    let passes_on = async {
        running.successor_stops.notified().await;
        Handover::stopping(running.predecessor.as_deref()).await;
        pending::<()>().await
    };
    tokio::select! {
        _ = running.drained(predecessor.ended()) => {}
        () = passes_on => {}
        () = stop_asked(running, signals) => {}
    }
}

/// Ends all pauses, and the drains of workers without which a pool serves nothing.
fn end_holds(running: &RunningServer) {
    running.pools.load().iter().for_each(RunningPool::let_go);
}

/// Ends the tunnels: they have no next response after which they could close. A tunnel that begins later finds that Hostler is stopping.
fn dismiss_tunnels(running: &RunningServer) {
    running.pools.load().iter().for_each(|pool| pool.pool.dismiss_tunnels());
    if let Some(registering) = &running.registering {
        registering.dismiss_tunnels();
    }
}

/// The next stop signal. Other signals are ignored and logged, but the log file may have been renamed.
async fn stop_asked(running: &RunningServer, signals: &mut Signals) {
    loop {
        match (signals.next().await, running.config.load().log.file.clone()) {
            (SignalAction::Stop, _) => return,
            (SignalAction::Reload, Some(file)) => {
                let journal = running.journal.clone();
                // In a task of its own, because the next signal may be a stop.
                tokio::spawn(async move {
                    if reopen_log(journal.clone(), file).await.is_none() {
                        let text = "SIGHUP: only the log file is opened again, this Hostler is stopping";
                        journal.event(Level::Info, text);
                    }
                });
            }
            (other, _) => {
                let text = format!("{}: ignored, this Hostler is stopping", other.signal());
                running.journal.event(Level::Warn, &text);
            }
        }
    }
}
