//! Watches data files while they are in use, and replaces the data when they change. Does not know what the data means.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_engine::journal::Level;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::file_stamp::{FileStamp, file_stamp};
use super::lookups::LookupServices;
use super::running::RunningServer;

/// How often files are checked. A changed file is read after it was found unchanged once.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The files at the time when they were last read, also if that failed.
#[derive(Clone, Default)]
pub(super) struct Read(Arc<Mutex<Vec<FileStamp>>>);

impl Read {
    /// Must be called before the read, so that a later change of a file is noticed.
    pub fn begin(files: &[PathBuf]) -> Self {
        Self(Arc::new(Mutex::new(stamps(files))))
    }

    fn knows(&self, stamps: &[FileStamp]) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) == stamps
    }

    fn note(&self, stamps: &[FileStamp]) {
        stamps.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A service whose data can be replaced.
pub(super) trait Renewable: Send + Sync + Sized + 'static {
    /// The name of its section, for the log.
    const NAME: &'static str;
    /// What it goes on with if the new data is invalid, for the log.
    const ON_FAILURE: &'static str;

    /// The running service and the state of its files.
    fn of(lookups: &LookupServices) -> Option<(Arc<Self>, Read)>;

    fn files(&self) -> &[PathBuf];

    /// Reads the files and uses them if they are valid. Returns warnings. Takes seconds.
    fn renew(&self) -> Result<Vec<String>, String>;

    /// A description of the current data.
    fn describe(&self) -> String;
}

/// Watches the files of a service for the life of the program.
pub(super) async fn watch<T: Renewable>(running: Arc<RunningServer>) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = Vec::new();
    loop {
        ticks.tick().await;
        let Some((service, read)) = T::of(&running.lookups.load()) else { continue };
        let Ok(now) = spawn_blocking(move || stamps(service.files())).await else { return };
        // Files that belong together, such as one for IPv4 and one for IPv6, are written one after the other.
        let is_settled = now == seen;
        seen = now;
        if is_settled && !read.knows(&seen) {
            follow::<T>(&running, &seen).await;
        }
    }
}

async fn follow<T: Renewable>(running: &RunningServer, seen: &[FileStamp]) {
    let _turn = running.changes.acquire().await;
    // A reload may have replaced the service.
    let Some((service, read)) = T::of(&running.lookups.load()) else { return };
    // Also if this fails: the files are read again only after another change.
    read.note(seen);
    let renewing = service.clone();
    let say = |level, text: &str| running.journal.event(level, &format!("{}: {text}", T::NAME));
    match spawn_blocking(move || renewing.renew()).await {
        Ok(Ok(warnings)) => {
            warnings.iter().for_each(|warning| say(Level::Info, warning));
            say(Level::Info, &format!("now uses {}", service.describe()));
        }
        Ok(Err(why)) => say(Level::Error, &format!("{why}; {}", T::ON_FAILURE)),
        // The runtime is ending.
        Err(_) => {}
    }
}

fn stamps(files: &[PathBuf]) -> Vec<FileStamp> {
    files.iter().map(|file| file_stamp(file)).collect()
}
