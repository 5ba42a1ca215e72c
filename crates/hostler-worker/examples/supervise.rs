//! Supervises one worker with the given command, and prints its log and its address: `cargo run -p hostler-worker
//! --example supervise -- node server.js`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{Claim, Pool, PoolSettings};
use hostler_worker::{
    GuardCommand, LogEntry, Probe, Probing, Slots, Spares, Supervisor, SupervisorContext,
    SupervisorContextSettings, WorkerAddress, WorkerRecord, WorkerSettings,
};

/// No health path and no warm-up are configured, so the probe is never called.
struct NoProbe;

impl Probe for NoProbe {
    fn get(&self, _: &WorkerAddress, _: &str, _: Duration) -> Probing {
        Box::pin(async { Err("this example speaks no HTTP".to_owned()) })
    }
}

fn print(record: WorkerRecord) {
    match record.entry {
        LogEntry::Output { stream, line, .. } => println!("{} {stream:?}: {line}", record.worker),
        LogEntry::Event(event) => println!("{} {event}", record.worker),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let context = SupervisorContext::new(SupervisorContextSettings {
        parents: vec![std::env::temp_dir()],
        preload: std::fs::read_to_string(repository.join("packages/worker/preload.cjs"))?.into(),
        guard: GuardCommand { program: std::env::current_exe()?.with_file_name("guard"), args: vec![] },
        log: Arc::new(print),
        cores: 2,
        open_files: None,
        worker_memory: None,
        workers_before: Default::default(),
    })?;
    println!("directory {}", context.directory().display());
    let settings = WorkerSettings {
        command: std::env::args().skip(1).collect(),
        cwd: PathBuf::from("."),
        env: std::env::vars().collect(),
        count: 1,
        spares: Spares::Fixed(0),
        boot_cpu: 1.0,
        slots: Slots::Fixed(1),
        start_timeout: Duration::from_secs(30),
        stop_timeout: Duration::from_secs(10),
        hang_timeout: Duration::from_secs(60),
        ..WorkerSettings::default()
    };
    let pool = Pool::new("example", PoolSettings::default());
    let workers = Supervisor::start(settings, pool.clone(), |address, _| address, Arc::new(NoProbe), context);
    if workers.ready().await {
        println!("address {}", *pool.acquire(Claim::default()).await?);
    }
    tokio::signal::ctrl_c().await?;
    workers.stop().await;
    Ok(())
}
