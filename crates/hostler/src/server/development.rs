//! `hostler run --watch`: restarts the workers when files change, and tells the developer how that went: in the log, and in the browser. Does
//! not know which files count, and nothing of requests.

mod file_filter;
mod file_watch;
mod page;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hostler_config::PoolMembers;
use hostler_engine::gateway::DevelopmentState;
use hostler_engine::journal::{Journal, Level};
use hostler_worker::{FailedBoot, NewRestart, RestartError, Supervisor, WorkerState};
use tokio::sync::mpsc;

use super::pools::RunningPool;
use super::run_options::WatchOptions;
use super::running::RunningServer;
use super::start_error::StartError;
use file_filter::FileFilter;
use file_watch::FileReport;
use page::BootFailure;

/// A change of many files names this many of them.
const NAMED_FILES: usize = 3;

/// Begins what the options ask for.
pub(super) fn begin(running: &Arc<RunningServer>) -> Result<(), StartError> {
    if let Some(address) = running.options.inspector {
        tell_about_inspector(&running.journal, address);
    }
    let Some(options) = &running.options.watch else { return Ok(()) };
    let pools = running.pools.load();
    let Some((supervisor, folder)) = pools.iter().find_map(watched) else { return Ok(()) };
    // Changes are told with the names that files have without links.
    let folder = folder.canonicalize().unwrap_or(folder);
    let filters = filters(running, options, &folder)?;
    let (reports, folders) = file_watch::begin(filters).map_err(StartError::Watch)?;
    let s = if folders == 1 { "" } else { "s" };
    let text = format!("watch: {folders} folder{s} of {}; a change restarts the workers", folder.display());
    running.journal.event(Level::Info, &text);
    let watch = Watch { running: running.clone(), supervisor, folder, failures: 0 };
    tokio::spawn(watch.run(reports));
    Ok(())
}

fn tell_about_inspector(journal: &Journal, address: SocketAddr) {
    let text = format!(
        "inspect: worker 1 opens the inspector on {address} when it is ready; no worker counts as hung"
    );
    journal.event(Level::Info, &text);
    if !address.ip().is_loopback() {
        let text = format!("inspect: every client that reaches {address} can run code in the worker");
        journal.event(Level::Warn, &text);
    }
}

/// The supervisor of a pool, and the folder of its app.
fn watched(pool: &RunningPool) -> Option<(Arc<Supervisor>, PathBuf)> {
    match (&pool.supervisor, &pool.settings.source) {
        (Some(supervisor), PoolMembers::Workers(workers)) => Some((supervisor.clone(), workers.cwd.clone())),
        _ => None,
    }
}

/// One for each path that is watched.
fn filters(
    running: &RunningServer,
    options: &WatchOptions,
    folder: &Path,
) -> Result<Vec<FileFilter>, StartError> {
    let config = running.config.load();
    let context = running.pool_context.context(&config.server)?;
    let own = [context.directory(), config.server.temp_dir.clone()];
    let roots = if options.paths.is_empty() { vec![folder.to_owned()] } else { options.paths.clone() };
    let here = &running.invocation.load_context.folder;
    let filters = roots.iter().map(|root| FileFilter::new(&here.join(root), options, &own));
    filters.collect::<Result<_, _>>().map_err(StartError::Watch)
}

struct Watch {
    running: Arc<RunningServer>,
    supervisor: Arc<Supervisor>,
    folder: PathBuf,
    failures: u64,
}

/// A step of the restart in progress.
enum RestartStep {
    /// Every worker has been replaced.
    Replaced,
    /// The result. Until then, old workers may finish their requests.
    Ended(Result<(), RestartError>),
}

impl Watch {
    /// Runs until Hostler ends. Each change begins a restart, and ends the one before.
    async fn run(mut self, mut reports: mpsc::UnboundedReceiver<FileReport>) {
        let mut failed = self.supervisor.failed_boot();
        let mut restart = None;
        loop {
            tokio::select! {
                biased;
                report = reports.recv() => match report {
                    Some(FileReport::Changed(changed)) => restart = Some(self.restart(&changed)),
                    Some(FileReport::Full(why)) => self.say(Level::Warn, &why),
                    None => return,
                },
                step = next_step(&mut restart) => match step {
                    RestartStep::Replaced => self.set(DevelopmentState::Serving),
                    RestartStep::Ended(result) => {
                        restart = None;
                        self.restarted(result, failed.borrow_and_update().clone());
                    }
                },
                Ok(()) = failed.changed(), if restart.is_none() => {
                    match failed.borrow_and_update().clone() {
                        Some(failed) => self.show(&failed),
                        None => self.set(DevelopmentState::Serving),
                    }
                }
            }
        }
    }

    fn restart(&self, changed: &[PathBuf]) -> NewRestart {
        // Before the line: who reads it and asks for a page gets the new code.
        self.set(DevelopmentState::Restarting);
        self.say(Level::Info, &format!("{}: workers restart", self.names(changed)));
        self.supervisor.restart_anew()
    }

    fn restarted(&mut self, result: Result<(), RestartError>, failed: Option<Arc<FailedBoot>>) {
        match (result, failed) {
            (Ok(()), None) | (Err(RestartError::Stopping), _) => self.set(DevelopmentState::Serving),
            (Ok(()) | Err(_), Some(failed)) => self.show(&failed),
            (Err(error), None) => {
                let (how, output) = (error.to_string(), Vec::new());
                self.show(&FailedBoot { worker: 1, obstacle: None, how, exit_code: 1, error: None, output });
            }
        }
    }

    /// In the log, and to browsers that ask for a page.
    fn show(&mut self, failed: &FailedBoot) {
        self.failures += 1;
        let serves = self.supervisor.snapshot().iter().any(|worker| worker.state == WorkerState::Ready);
        let who = if serves { "the old workers keep serving" } else { "no worker serves" };
        let page = page::page(&BootFailure { number: self.failures, failed, serves });
        self.set(DevelopmentState::Broken { number: self.failures, page });
        self.say(Level::Error, &format!("the app does not start: {failed}; {who} until a file changes"));
    }

    fn set(&self, state: DevelopmentState) {
        self.running.development.send_replace(state);
    }

    fn say(&self, level: Level, text: &str) {
        self.running.journal.event(level, &format!("watch: {text}"));
    }

    /// The files, relative to the folder of the app.
    fn names(&self, changed: &[PathBuf]) -> String {
        let name = |path: &PathBuf| path.strip_prefix(&self.folder).unwrap_or(path).display().to_string();
        let named = changed.iter().take(NAMED_FILES).map(name).collect::<Vec<_>>().join(", ");
        match changed.len() {
            0 | 1 => format!("{named} has changed"),
            few if few <= NAMED_FILES => format!("{named} have changed"),
            many => format!("{named} and {} more have changed", many - NAMED_FILES),
        }
    }
}

/// Waits for the next step of a restart. For ever if there is none.
async fn next_step(restart: &mut Option<NewRestart>) -> RestartStep {
    let Some(restart) = restart else { return std::future::pending().await };
    tokio::select! {
        biased;
        Ok(()) = &mut restart.replaced, if !restart.replaced.is_terminated() => RestartStep::Replaced,
        result = &mut restart.ended => {
            RestartStep::Ended(result.unwrap_or(Err(RestartError::Stopping)).map(|_| ()))
        }
    }
}
