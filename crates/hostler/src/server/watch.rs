//! Watches data files while they are in use, and replaces the data when they change. Does not know what the data means.

use std::sync::Arc;
use std::time::Duration;

use hostler_engine::journal::Level;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::file_stamp::{FileStamp, stamps};
use super::lookups::{Renewable, warn};
use super::running::RunningServer;

/// How often files are checked. A changed file is read after it was found unchanged once.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

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
    let _turn = running.renewals.acquire().await;
    // A reload may have replaced the service.
    let Some((service, read)) = T::of(&running.lookups.load()) else { return };
    // Also if this fails: the files are read again only after another change.
    read.note(seen);
    let renewing = service.clone();
    let say = |level, text: &str| running.journal.event(level, &format!("{}: {text}", T::NAME));
    match spawn_blocking(move || renewing.renew()).await {
        Ok(Ok(warnings)) => {
            warnings.iter().for_each(|warning| say(Level::Info, warning));
            warn(&running.journal, &*service);
            say(Level::Info, &format!("now uses {}", service.describe()));
        }
        Ok(Err(why)) => say(Level::Error, &format!("{why}; {}", T::ON_FAILURE)),
        // The runtime is ending.
        Err(_) => {}
    }
}
