//! Watches data files while they are in use, and replaces the data when they change. Does not know what the data means.

use std::sync::Arc;
use std::time::Duration;

use hostler_engine::journal::Level;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::file_stamp::{FileStamp, stamps};
use super::lookups::{NotRenewed, Renewable, warn};
use super::running::RunningServer;

/// How often files are checked. A changed file is read after it was found unchanged once.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// When files that could not be read are read again although they have not changed. Then after twice this time, and so on: one of two files
/// may be missing for long, and the other one is checked each time.
const FIRST_RETRY: Duration = Duration::from_secs(10);
const LONGEST_RETRY: Duration = Duration::from_secs(600);

/// The last read, if it failed for a reason that may pass.
struct PassingFailure {
    why: String,
    /// How long the next read waits.
    wait: Duration,
    again: Instant,
}

/// Watches the files of a service for the life of the program.
pub(super) async fn watch<T: Renewable>(running: Arc<RunningServer>) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut failure) = (Vec::new(), None::<PassingFailure>);
    loop {
        ticks.tick().await;
        let Some((service, read)) = T::of(&running.lookups.load()) else { continue };
        let Ok(now) = spawn_blocking(move || stamps(service.files())).await else { return };
        // Files that belong together, such as one for IPv4 and one for IPv6, are written one after the other.
        let is_settled = now == seen;
        seen = now;
        let is_new = !read.knows(&seen);
        let is_due = failure.as_ref().is_some_and(|failure| failure.again <= Instant::now());
        if is_settled && (is_new || is_due) {
            let before = failure.take().filter(|_| !is_new);
            failure = follow::<T>(&running, &seen, before).await;
        }
    }
}

/// Reads them. `before`: the failure of the same files. Returns that of this read, if it may pass.
async fn follow<T: Renewable>(
    running: &RunningServer,
    seen: &[FileStamp],
    before: Option<PassingFailure>,
) -> Option<PassingFailure> {
    let _turn = running.renewals.acquire().await;
    // A reload may have replaced the service.
    let (service, read) = T::of(&running.lookups.load())?;
    // Also if this fails: damaged files are read again only after another change.
    read.note(seen);
    let renewing = service.clone();
    let say = |level, text: &str| running.journal.event(level, &format!("{}: {text}", T::NAME));
    match spawn_blocking(move || renewing.renew()).await {
        Ok(Ok(warnings)) => {
            warnings.iter().for_each(|warning| say(Level::Info, warning));
            warn(&running.journal, &*service);
            say(Level::Info, &format!("now uses {}", service.describe()));
            None
        }
        Ok(Err(NotRenewed { why, may_pass })) => {
            // Logged once.
            if before.as_ref().is_none_or(|before| before.why != why) {
                say(Level::Error, &format!("{why}; the data that was read before stays in use"));
            }
            let wait = before.map_or(FIRST_RETRY, |before| LONGEST_RETRY.min(before.wait * 2));
            may_pass.then(|| PassingFailure { why, wait, again: Instant::now() + wait })
        }
        // The runtime is ending.
        Err(_) => None,
    }
}
