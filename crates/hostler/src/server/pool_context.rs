//! What all pools of workers share: environment, threads, log and supervisor context. Knows no pool.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hostler_config::{Config, Invocation, Server};
use hostler_engine::gateway::StickyKey;
use hostler_engine::journal::{Journal, Level, WorkerLine};
use hostler_worker::{
    self, Development, FreeCpus, GuardCommand, LogEntry, SupervisorContext, SupervisorContextSettings,
    WorkerRecord,
};

use super::environment::{Environment, for_apps};
use super::start_error::StartError;
use crate::admin::note;

/// The script that every worker preloads: packages/worker/preload.cjs.
const PRELOAD: &str = include_str!("../../../../packages/worker/preload.cjs");

/// What a pool of workers needs besides its settings.
pub(super) struct PoolContext {
    /// Hostler's own environment, which workers inherit.
    pub environment: Environment,
    /// The number of data-plane threads. Each has its own connections to members.
    pub threads: usize,
    pub journal: Journal,
    /// How many cores Hostler may use.
    cores: usize,
    /// What differs for workers in development.
    pub development: Development,
    /// Signs the cookies of pools without a key of their own.
    pub sticky_key: StickyKey,
    /// Tells the workers of this process from those of any other Hostler.
    pub instance: Arc<str>,
    /// The soft limit on open files at the start of this process.
    open_files: Option<u64>,
    /// The path of this program at the start. Once the file is replaced, the system reports the path with "(deleted)".
    guard: PathBuf,
    /// How many workers each pool had in the process that this one replaces. Empty once the first pools have started.
    workers_before: Mutex<BTreeMap<String, usize>>,
    /// Made when the first pool of workers starts.
    context: OnceLock<SupervisorContext>,
}

impl PoolContext {
    /// `sticky_key`: that of the predecessor, if there is one.
    pub fn new(
        invocation: &Invocation,
        config: &Config,
        development: Development,
        journal: &Journal,
        sticky_key: Option<StickyKey>,
    ) -> std::io::Result<Self> {
        let around = &invocation.load_context;
        Ok(Self {
            environment: for_apps(&around.environment),
            threads: config.server.threads,
            journal: journal.clone(),
            cores: around.cores,
            development,
            sticky_key: sticky_key.unwrap_or_else(StickyKey::random),
            instance: String::from(StickyKey::random()).into(),
            open_files: around.soft_open_files,
            guard: std::env::current_exe()?,
            workers_before: Mutex::new(around.workers_before.clone()),
            context: OnceLock::new(),
        })
    }

    /// The first pools have started. A pool that a reload adds later begins anew, also if the process before had one of its name.
    pub fn started(&self) {
        self.workers_before().clear();
        if let Some(context) = self.context.get() {
            context.forget_workers_before();
        }
    }

    fn workers_before(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.workers_before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the settings that all workers share.
    pub fn settle(&self, server: &Server) {
        if let Some(context) = self.context.get() {
            context.set_worker_memory(server.worker_memory);
            context.set_parents(self.folders(server));
        }
    }

    /// Where the folder of the workers' sockets may be made: in XDG_RUNTIME_DIR, or else in `temp_dir`.
    fn folders(&self, server: &Server) -> Vec<PathBuf> {
        note::runtime_dir(&self.environment).into_iter().chain([server.temp_dir.clone()]).collect()
    }

    /// Frees the workers from their cores while a successor starts beside this process.
    pub fn free_cpus(&self) -> Option<FreeCpus> {
        self.context.get().map(SupervisorContext::free_cpus)
    }

    /// Makes the context if needed.
    pub fn context(&self, server: &Server) -> Result<SupervisorContext, StartError> {
        if let Some(context) = self.context.get() {
            return Ok(context.clone());
        }
        let journal = self.journal.clone();
        let made = SupervisorContext::new(SupervisorContextSettings {
            parents: self.folders(server),
            preload: PRELOAD.into(),
            guard: GuardCommand { program: self.guard.clone(), args: vec!["__guard".into()] },
            log: Arc::new(move |record| write_down(&journal, &record)),
            cores: self.cores,
            open_files: self.open_files,
            worker_memory: server.worker_memory,
            workers_before: self.workers_before().clone(),
        })?;
        Ok(self.context.get_or_init(|| made).clone())
    }

    /// Keeps a file in the private runtime directory. Only a Hostler with workers has one. A file that cannot be written is missing.
    pub fn keep_file(&self, name: &'static str, text: &str) {
        if let Some(context) = self.context.get() {
            let _ = context.keep_file(name, text);
        }
    }
}

fn write_down(journal: &Journal, record: &WorkerRecord) {
    match &record.entry {
        LogEntry::Output { stream, line, is_whole, pid } => {
            let stream = match stream {
                hostler_worker::OutputStream::Stdout => "stdout",
                hostler_worker::OutputStream::Stderr => "stderr",
            };
            journal.worker_line(WorkerLine {
                pool: &record.pool,
                worker: record.worker,
                pid: *pid,
                stream,
                text: line,
                is_whole: *is_whole,
            });
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
