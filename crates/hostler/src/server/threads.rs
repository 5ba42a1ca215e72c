//! The data plane: one thread and one runtime a shard. Knows no configuration beyond its settings.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hostler_pool::dispatch::Pool;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::build::{self, BuiltPool, Listeners};
use crate::config::Config;
use crate::exchange::{Connections, Sweep};
use crate::gateway::Gateway;
use crate::journal::Journal;
use crate::listen::Shard;
use crate::proxy::Endpoint;

/// All data-plane threads.
pub(super) struct DataPlane {
    sweeps: Vec<Sweep>,
    threads: Vec<JoinHandle<()>>,
    end: watch::Sender<bool>,
}

impl DataPlane {
    pub fn start(
        config: &Config,
        listeners: Listeners,
        pools: &[BuiltPool],
        gateway: Arc<Gateway>,
        journal: &Journal,
        connections: &Arc<Connections>,
    ) -> std::io::Result<Self> {
        let settings = Arc::new(build::listen_settings(config));
        let (end, ending) = watch::channel(false);
        let mut plane = Self { sweeps: Vec::new(), threads: Vec::new(), end };
        for (index, sockets) in listeners.by_thread().into_iter().enumerate() {
            let sweep = Sweep::new();
            let shard = Shard {
                index,
                sweep: sweep.clone(),
                settings: settings.clone(),
                gateway: gateway.clone(),
                journal: journal.clone(),
                connections: connections.clone(),
            };
            let ending = ending.clone();
            let pools = pools.iter().map(BuiltPool::pool).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let run = move || {
                runtime.block_on(run(Arc::new(shard), sockets, pools, ending));
                runtime.shutdown_timeout(Duration::from_millis(100));
            };
            plane.threads.push(std::thread::Builder::new().name(format!("data-{index}")).spawn(run)?);
            plane.sweeps.push(sweep);
        }
        Ok(plane)
    }

    /// Makes every connection look around.
    pub fn wake_all(&self) {
        self.sweeps.iter().for_each(Sweep::wake_all);
    }

    /// Ends the threads; what still runs on them is dropped.
    pub fn end(self) {
        self.end.send_replace(true);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// How often idle connections to members are looked at.
const PRUNING: Duration = Duration::from_secs(5);

async fn run(
    shard: Arc<Shard>,
    sockets: Vec<std::net::TcpListener>,
    pools: Vec<Pool<Endpoint>>,
    mut ending: watch::Receiver<bool>,
) {
    tokio::spawn(shard.sweep.clone().run());
    tokio::spawn(prune(pools, shard.index));
    for socket in sockets {
        match TcpListener::from_std(socket) {
            Ok(listener) => drop(tokio::spawn(shard.clone().accept(listener))),
            Err(error) => {
                shard.journal.event(crate::journal::Level::Error, &format!("cannot accept: {error}"))
            }
        }
    }
    // An error means that whoever could end us is gone.
    let _ = ending.wait_for(|ending| *ending).await;
}

async fn prune(pools: Vec<Pool<Endpoint>>, thread: usize) {
    let mut ticks = tokio::time::interval(PRUNING);
    loop {
        ticks.tick().await;
        for pool in &pools {
            pool.snapshot_with(|endpoint| endpoint.prune(thread));
        }
    }
}
