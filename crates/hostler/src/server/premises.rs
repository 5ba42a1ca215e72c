//! Where pools of workers live: what they inherit and share. Knows no pool.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hostler_config::Surroundings;
use hostler_engine::journal::{Journal, Level};
use hostler_worker::{
    self, GuardCommand, LogEntry, SupervisorContext, SupervisorContextSettings, WorkerRecord,
};

use super::StartError;
use super::environment::Environment;

/// What goes into every worker: packages/worker/preload.cjs.
const PRELOAD: &str = include_str!("../../../../packages/worker/preload.cjs");
/// A third worker that boots at the same time makes all three slower on most machines.
const BOOTS_AT_ONCE: usize = 2;

/// What a pool of workers is started with, besides its settings.
pub(super) struct Premises {
    /// Hostler's own environment, which workers inherit.
    pub environment: Environment,
    /// Data-plane threads, each of which keeps connections of its own.
    pub threads: usize,
    pub journal: Journal,
    /// The soft limit on file descriptors that we were started with.
    open_files: Option<u64>,
    /// Our own program, as it was called at the start: once its file has been replaced, the system calls it "(deleted)".
    guard: PathBuf,
    /// Made for the first pool of workers.
    context: OnceLock<SupervisorContext>,
}

impl Premises {
    pub fn new(around: &Surroundings, threads: usize, journal: Journal) -> std::io::Result<Self> {
        let guard = std::env::current_exe()?;
        let (environment, open_files) = (around.environment.clone(), around.soft_open_files);
        Ok(Self { environment, threads, journal, open_files, guard, context: OnceLock::new() })
    }

    /// The context; `temp_dir` is where its folder goes if there is no better place.
    pub fn context(&self, temp_dir: &Path) -> Result<SupervisorContext, StartError> {
        if let Some(context) = self.context.get() {
            return Ok(context.clone());
        }
        let runtime_dir = self.environment.get("XDG_RUNTIME_DIR").map(|path| Path::new(path).to_owned());
        let journal = self.journal.clone();
        let made = SupervisorContext::new(SupervisorContextSettings {
            parents: runtime_dir.into_iter().chain([temp_dir.to_owned()]).collect(),
            preload: PRELOAD.into(),
            guard: GuardCommand { program: self.guard.clone(), args: vec!["__guard".into()] },
            log: Arc::new(move |record| write_down(&journal, &record)),
            boots_at_once: BOOTS_AT_ONCE,
            open_files: self.open_files,
        })?;
        Ok(self.context.get_or_init(|| made).clone())
    }
}

fn write_down(journal: &Journal, record: &WorkerRecord) {
    match &record.entry {
        LogEntry::Output { stream, line } => {
            let stream = match stream {
                hostler_worker::OutputStream::Stdout => "stdout",
                hostler_worker::OutputStream::Stderr => "stderr",
            };
            journal.worker_line(&record.pool, record.worker, stream, line);
        }
        LogEntry::Event(event) => {
            let level = match event.level() {
                hostler_worker::WorkerLogLevel::Info => Level::Info,
                hostler_worker::WorkerLogLevel::Warn => Level::Warn,
                hostler_worker::WorkerLogLevel::Error => Level::Error,
            };
            journal.event(level, &format!("{}: {event}", record.subject()));
        }
    }
}
