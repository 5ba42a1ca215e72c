//! Watches the files of certificates, and replaces the certificates when the files change. Knows no handshakes.

use std::sync::Arc;
use std::time::Duration;

use hostler_engine::journal::Level;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::file_stamp::FileStamp;
use super::running::RunningServer;
use super::tls::{self, TlsFiles};

/// How often files are checked. A changed file is read after it was found unchanged once.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Watches the files for the life of the program.
pub(super) async fn watch(running: Arc<RunningServer>) {
    let Some(shown) = running.tls.clone() else { return };
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = Vec::new();
    loop {
        ticks.tick().await;
        let Some(files) = running.config.load().tls.as_ref().map(|tls| tls.certificates.clone()) else {
            return;
        };
        let Ok(now) = spawn_blocking(move || tls::stamps(&files)).await else { return };
        // A certificate and its key are written one after the other: wait until both are unchanged.
        let is_settled = now == seen;
        seen = now;
        if is_settled && !shown.knows(&seen) {
            follow(&running, &shown, &seen).await;
        }
    }
}

async fn follow(running: &RunningServer, shown: &TlsFiles, seen: &[FileStamp]) {
    let _turn = running.renewals.acquire().await;
    let config = running.config.load_full();
    let Some(written) = &config.tls else { return };
    match tls::read_again(written).await {
        Ok(fresh) => {
            shown.show(fresh);
            shown.describe().iter().for_each(|line| running.journal.event(Level::Info, line));
        }
        Err(why) => {
            // Logged once: the files are read again only after another change.
            shown.note(seen.to_vec());
            let text = format!("tls: {why}; the certificates that were read before stay in use");
            running.journal.event(Level::Error, &text);
        }
    }
}
