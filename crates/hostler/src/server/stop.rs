//! The end: connections first, then threads, then workers, each with its patience. Knows not who asked for it.

use std::future::pending;
use std::sync::Arc;

use hostler_engine::journal::Level;
use hostler_worker::Supervisor;
use tokio::time::{Instant, sleep_until, timeout};

use super::pools::RunningPool;
use super::running::RunningServer;
use super::signals::{Signals, Wish};
use super::threads::DataPlane;

/// All goes on, but whoever asks about our health is told to go elsewhere; says until when.
pub(super) fn announce(running: &RunningServer) -> Instant {
    let wait = running.config.load().server.drain_wait;
    running.connections().announce_end();
    let text =
        format!("SIGUSR1: health checks fail from now on; serving for another {wait:?} (server.drain_wait)");
    running.journal.event(Level::Info, &text);
    Instant::now() + wait
}

/// Waits for a moment, if there is one to wait for.
pub(super) async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

/// Lets clients go after a successor has taken over: each with its next answer, or when it has long been silent.
pub(super) async fn leave(running: &RunningServer, signals: &mut Signals) {
    end_pauses(running);
    running.connections().leave();
    dismiss_tunnels(running);
    tokio::select! {
        _ = timeout(running.drain_timeout(), running.connections().all_ended()) => {}
        () = stop_asked(running, signals) => {}
    }
}

/// Ends all connections: those without a request at once, the others with it. True if somebody has lost patience.
pub(super) async fn drain(running: &RunningServer, data_plane: DataPlane, signals: &mut Signals) -> bool {
    let connections = running.connections();
    let mut is_urgent = false;
    end_pauses(running);
    connections.announce_end();
    connections.drain();
    dismiss_tunnels(running);
    data_plane.wake_all();
    tokio::select! {
        drained = timeout(running.drain_timeout(), connections.all_ended()) => if drained.is_err() {
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

/// Stops all workers, gracefully unless somebody has lost patience.
pub(super) async fn stop_workers(running: &RunningServer, signals: &mut Signals, at_once: bool) {
    let supervisors = running.supervisors();
    if at_once {
        supervisors.iter().for_each(|supervisor| supervisor.kill_now());
    }
    let all_stopped = async {
        // Told all at once, awaited one by one.
        let stops: Vec<_> = supervisors.iter().map(|s| tokio::spawn(stopped(s.clone()))).collect();
        for stop in stops {
            let _ = stop.await;
        }
    };
    tokio::select! {
        () = all_stopped => return,
        () = stop_asked(running, signals) => {}
    }
    supervisors.iter().for_each(|supervisor| supervisor.kill_now());
    for supervisor in supervisors {
        supervisor.stopped().await;
    }
}

/// What a pause holds would wait in vain from here on.
fn end_pauses(running: &RunningServer) {
    running.pools.load().iter().for_each(RunningPool::resume);
}

/// Tunnels have no next answer with which to leave. One that begins later finds that all is ending.
fn dismiss_tunnels(running: &RunningServer) {
    running.pools.load().iter().for_each(|pool| pool.pool.dismiss_tunnels());
    if let Some(registering) = &running.registering {
        registering.dismiss_tunnels();
    }
}

/// The next signal that says so; there is no time for the others any more.
async fn stop_asked(running: &RunningServer, signals: &mut Signals) {
    loop {
        match signals.next().await {
            Wish::Stop => return,
            other => {
                let text = format!("{}: ignored, this Hostler is stopping", other.signal());
                running.journal.event(Level::Warn, &text);
            }
        }
    }
}

async fn stopped(supervisor: Arc<Supervisor>) {
    supervisor.stop().await;
}
