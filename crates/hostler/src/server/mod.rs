//! Builds everything below, owns every task, and ends it in reverse order. The table of contents of a running Hostler.

mod build;
mod environment;
mod probe;
mod threads;

use std::sync::Arc;

use hostler_pool::worker::{Supervisor, YardError};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout};

use crate::admin::{self, Sources};
use crate::config::{AccessLog, Config};
use crate::exchange::Connections;
use crate::journal::{Form, Journal, Level, Writer};

pub use environment::Environment;
use threads::DataPlane;

/// Why Hostler does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is taken, or not ours.
    #[error("cannot listen on {address} ({key}): {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The key that says so.
        key: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// No place or no guard for the workers.
    #[error(transparent)]
    Yard(#[from] YardError),
    /// The system refuses threads, signals or the like.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// Runs until it is told to stop, and has.
pub fn run(config: &Config, environment: &Environment) -> Result<(), StartError> {
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let journal = journal(config);
    let outcome = runtime.block_on(serve(config, environment, &journal));
    journal.flush();
    outcome
}

async fn serve(config: &Config, environment: &Environment, journal: &Journal) -> Result<(), StartError> {
    let mut stop = Stop::new()?;
    let listeners = build::bind_all(&config.server)?;
    let addresses = listeners.addresses();
    let admin_listener = build::bind_admin(&config.server)?;

    let pools = build::pools(config, environment, journal)?;
    let (gateway, routes) = build::gateway(config, &pools);
    let connections = Arc::new(Connections::default());
    let data_plane = DataPlane::start(config, listeners, &pools, gateway.clone(), journal, &connections)?;
    let sources = Arc::new(Sources {
        started: Instant::now(),
        connections: connections.clone(),
        pools: pools.iter().map(build::BuiltPool::source).collect(),
        routes,
        unrouted: gateway.unrouted.clone(),
    });
    let admin_address = admin_listener.as_ref().and_then(|listener| listener.local_addr().ok());
    if let Some(listener) = admin_listener {
        tokio::spawn(admin::serve(TcpListener::from_std(listener)?, sources));
    }
    announce(journal, &addresses, admin_address);

    stop.asked().await;
    journal.event(Level::Info, "stopping: no new connections; finishing what was accepted");
    connections.drain();
    data_plane.wake_all();
    let patience = config.server.drain_timeout;
    tokio::select! {
        drained = timeout(patience, connections.all_ended()) => if drained.is_err() {
            let text = format!("{} connections did not end in server.drain_timeout; closing them", connections.open());
            journal.event(Level::Warn, &text);
        },
        () = stop.asked() => journal.event(Level::Warn, "a second signal: stopping at once"),
    }
    data_plane.end();
    let supervisors: Vec<_> = pools.iter().filter_map(|pool| pool.supervisor.clone()).collect();
    stop_workers(&supervisors, &mut stop).await;
    journal.event(Level::Info, "stopped");
    Ok(())
}

async fn stop_workers(supervisors: &[Arc<Supervisor>], stop: &mut Stop) {
    if stop.count > 1 {
        supervisors.iter().for_each(|supervisor| supervisor.kill_now());
    }
    let all_stopped = async {
        // Told all at once, awaited one by one.
        let stops: Vec<_> = supervisors.iter().map(|s| tokio::spawn(wait_stopped(s.clone()))).collect();
        for stop in stops {
            let _ = stop.await;
        }
    };
    tokio::select! {
        () = all_stopped => return,
        () = stop.asked() => {}
    }
    supervisors.iter().for_each(|supervisor| supervisor.kill_now());
    for supervisor in supervisors {
        supervisor.stopped().await;
    }
}

async fn wait_stopped(supervisor: Arc<Supervisor>) {
    supervisor.stop().await;
}

/// SIGTERM and SIGINT, counted.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
    count: u32,
}

impl Stop {
    fn new() -> std::io::Result<Self> {
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt, count: 0 })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        self.count += 1;
    }
}

fn journal(config: &Config) -> Journal {
    let (form, access) = match config.server.access_log {
        AccessLog::Json => (Form::Json, true),
        AccessLog::Pretty => (Form::Pretty, true),
        AccessLog::Off => (Form::Pretty, false),
    };
    Journal::new(form, access, Writer::new(std::io::stdout()))
}

fn announce(journal: &Journal, addresses: &[std::net::SocketAddr], admin: Option<std::net::SocketAddr>) {
    for address in addresses {
        journal.event(Level::Info, &format!("listening on http://{address}"));
    }
    if let Some(admin) = admin {
        journal.event(Level::Info, &format!("status on http://{admin}/status"));
    }
}

/// A client and a worker are two descriptors; the usual soft limit of 1024 would be the first thing to run out.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // A refusal leaves things as they are.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
