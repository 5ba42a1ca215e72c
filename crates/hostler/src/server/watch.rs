//! Data that is exchanged while it is in use: seen, read, gone over to. Knows not what it says.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_engine::journal::Level;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::lookups::LookupServices;
use super::running::RunningServer;
use super::trace::{Trace, trace};

/// How often files are looked at; one that has changed is gone over to when it is found the same twice.
const LOOKING: Duration = Duration::from_secs(2);

/// Files as they were when they were last read, whatever came of it.
#[derive(Clone, Default)]
pub(super) struct Read(Arc<Mutex<Vec<Trace>>>);

impl Read {
    /// Before they are read: what is written in between is then seen as a change.
    pub fn begin(files: &[PathBuf]) -> Self {
        Self(Arc::new(Mutex::new(traces(files))))
    }

    fn knows(&self, traces: &[Trace]) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) == traces
    }

    fn note(&self, traces: &[Trace]) {
        traces.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A service whose data may be exchanged.
pub(super) trait Renewable: Send + Sync + Sized + 'static {
    /// Its section, for the log.
    const NAME: &'static str;
    /// What it does with what it has while what is new is no good.
    const CARRIES_ON: &'static str;

    /// The one that runs, and what was read for it.
    fn of(lookups: &LookupServices) -> Option<(Arc<Self>, Read)>;

    /// Its files.
    fn files(&self) -> &[PathBuf];

    /// Reads them and goes over to them if they are good. What is odd about them. Takes seconds.
    fn renew(&self) -> Result<Vec<String>, String>;

    /// What it has now.
    fn describe(&self) -> String;
}

/// Looks after the files of a service for as long as this Hostler runs.
pub(super) async fn watch<T: Renewable>(running: Arc<RunningServer>) {
    let mut ticks = interval(LOOKING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = Vec::new();
    loop {
        ticks.tick().await;
        let Some((service, read)) = T::of(&running.lookups.load()) else { continue };
        let Ok(now) = spawn_blocking(move || traces(service.files())).await else { return };
        // Files that belong together, such as one for IPv4 and one for IPv6, come one after the other.
        let is_settled = now == seen;
        seen = now;
        if is_settled && !read.knows(&seen) {
            follow::<T>(&running, &seen).await;
        }
    }
}

async fn follow<T: Renewable>(running: &RunningServer, seen: &[Trace]) {
    let _turn = running.changes.acquire().await;
    // A reload may have had its turn before.
    let Some((service, read)) = T::of(&running.lookups.load()) else { return };
    // Whatever comes of it: it is looked at again when it changes again.
    read.note(seen);
    let renewing = service.clone();
    let say = |level, text: &str| running.journal.event(level, &format!("{}: {text}", T::NAME));
    match spawn_blocking(move || renewing.renew()).await {
        Ok(Ok(warnings)) => {
            warnings.iter().for_each(|warning| say(Level::Info, warning));
            say(Level::Info, &format!("now from {}", service.describe()));
        }
        Ok(Err(why)) => say(Level::Error, &format!("{why}; {}", T::CARRIES_ON)),
        // The runtime is ending.
        Err(_) => {}
    }
}

fn traces(files: &[PathBuf]) -> Vec<Trace> {
    files.iter().map(|file| trace(file)).collect()
}
