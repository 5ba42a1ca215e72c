//! Watches the files of certificates, and replaces the certificates when the files change. Knows no handshakes.

use std::sync::Arc;
use std::time::Duration;

use hostler_engine::journal::Level;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::running::RunningServer;
use super::tls::{self, TlsFiles};

/// How often files are checked. A changed file is read after it was found unchanged once.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// When files that could not be used are read again although they have not changed. The reason may have been another one: the disk, or the limit
/// on open files.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The last read, if some certificates could not be used.
struct FailedRead {
    at: Instant,
    errors: Vec<String>,
}

/// Watches the files for the life of the program.
pub(super) async fn watch(running: Arc<RunningServer>) {
    let Some(shown) = running.tls.clone() else { return };
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut failure) = (Vec::new(), None::<FailedRead>);
    loop {
        ticks.tick().await;
        let Some(files) = running.config.load().tls.as_ref().map(|tls| tls.certificates.clone()) else {
            return;
        };
        let Ok(now) = spawn_blocking(move || tls::stamps(&files)).await else { return };
        // A certificate and its key are written one after the other: wait until both are unchanged.
        let is_settled = now == seen;
        seen = now;
        let is_new = !shown.read.knows(&seen);
        let is_due = failure.as_ref().is_some_and(|failure| failure.at.elapsed() >= RETRY_INTERVAL);
        if is_settled && (is_new || is_due) {
            let before = failure.take().filter(|_| !is_new);
            failure = follow(&running, &shown, before).await;
        }
    }
}

/// Reads them. `before`: the failure of the same files. Returns that of this read.
async fn follow(running: &RunningServer, shown: &TlsFiles, before: Option<FailedRead>) -> Option<FailedRead> {
    let _turn = running.renewals.acquire().await;
    let config = running.config.load_full();
    // An error means that the runtime ends.
    let fresh = tls::read_again(config.tls.as_ref()?).await.ok()?;
    let errors = fresh.errors();
    // One bad file does not keep the others from being renewed.
    shown.show(fresh);
    // Logged once.
    if before.is_none_or(|before| before.errors != errors) {
        shown.describe().iter().for_each(|line| running.journal.event(Level::Info, line));
        shown.doubts().iter().for_each(|line| running.journal.event(Level::Warn, line));
        for why in &errors {
            let text = format!("tls: {why}; in its place the certificates that were read before stay in use");
            running.journal.event(Level::Error, &text);
        }
    }
    (!errors.is_empty()).then(|| FailedRead { at: Instant::now(), errors })
}
