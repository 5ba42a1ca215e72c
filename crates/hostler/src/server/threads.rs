//! The data-plane threads: each has its own runtime and shard. Knows no configuration beyond its settings.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use hostler_coding::Allowance;
use hostler_engine::exchange::Sweep;
use hostler_engine::gateway::Gateway;
use hostler_engine::journal::Journal;
use hostler_engine::proxy::{ROOM_PAUSE, descriptor_wanted};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::listeners::ListenerShare;
use super::runtime;
use crate::admin::Sources;
use crate::listen::{self, Shard};

pub(super) struct DataPlane {
    sweeps: Vec<Sweep>,
    threads: Vec<JoinHandle<()>>,
    end: watch::Sender<bool>,
}

impl DataPlane {
    pub fn start(
        shares: Vec<ListenerShare>,
        settings: &Arc<ArcSwap<listen::Settings>>,
        gateway: Arc<Gateway>,
        journal: &Journal,
        sources: &Arc<Sources>,
    ) -> std::io::Result<Self> {
        let (end, ending) = watch::channel(false);
        let mut plane = Self { sweeps: Vec::new(), threads: Vec::new(), end };
        for (index, sockets) in shares.into_iter().enumerate() {
            let sweep = Sweep::new();
            let shard = Shard {
                index,
                sweep: sweep.clone(),
                settings: settings.clone(),
                gateway: gateway.clone(),
                journal: journal.clone(),
                tracer: sources.tracer.clone(),
                connections: sources.connections.clone(),
                recent: sources.recent.clone(),
                encoding: Allowance::new(sources.encoding.clone()),
                stream_tasks: Arc::default(),
                flood_line: Mutex::default(),
            };
            let ending = ending.clone();
            let sources = sources.clone();
            let runtime = runtime::new()?;
            let run = move || {
                runtime.block_on(run(Arc::new(shard), sockets, sources, ending));
                runtime.shutdown_timeout(Duration::from_millis(100));
            };
            plane.threads.push(std::thread::Builder::new().name(format!("data-{index}")).spawn(run)?);
            plane.sweeps.push(sweep);
        }
        Ok(plane)
    }

    /// Those of all threads.
    pub fn sweeps(&self) -> Vec<Sweep> {
        self.sweeps.clone()
    }

    /// Makes every connection check its state.
    pub fn wake_all(&self) {
        self.sweeps.iter().for_each(Sweep::wake_all);
    }

    /// Ends the threads. Tasks that still run there are dropped.
    pub fn end(self) {
        self.end.send_replace(true);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// How often idle connections to members are checked.
const PRUNE_INTERVAL: Duration = Duration::from_secs(5);
/// This many pools are checked before the requests of the thread go on.
const POOLS_AT_ONCE: usize = 16;

async fn run(
    shard: Arc<Shard>,
    sockets: ListenerShare,
    sources: Arc<Sources>,
    mut ending: watch::Receiver<bool>,
) {
    tokio::spawn(shard.sweep.clone().run());
    tokio::spawn(prune(sources, shard.index));
    for (listener_kind, socket) in sockets {
        match TcpListener::from_std(socket) {
            Ok(listener) => drop(tokio::spawn(shard.clone().accept(listener, listener_kind))),
            Err(error) => {
                shard.journal.event(hostler_engine::journal::Level::Error, &format!("cannot accept: {error}"))
            }
        }
    }
    // An error means that the sender was dropped: the program ends.
    let _ = ending.wait_for(|ending| *ending).await;
}

async fn prune(sources: Arc<Sources>, thread: usize) {
    let mut ticks = tokio::time::interval(PRUNE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let makes_room = tokio::select! {
            _ = ticks.tick() => false,
            () = descriptor_wanted() => true,
        };
        let pools = sources.pools.load_full();
        for (index, source) in pools.iter().enumerate() {
            source.pool.each_endpoint(|endpoint| match makes_room {
                true => endpoint.make_room(thread),
                false => endpoint.prune(thread),
            });
            if index % POOLS_AT_ONCE == POOLS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
        }
        if makes_room {
            tokio::time::sleep(ROOM_PAUSE).await;
        }
    }
}
