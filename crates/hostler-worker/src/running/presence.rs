//! Looks whether the socket of a worker is still at its path. Without it, no new connection reaches the worker.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::RunningProcess;
use crate::news::{Absence, WorkerNews};
use crate::settings::WorkerAddress;

const LOOK: Duration = Duration::from_secs(1);

impl RunningProcess {
    /// Begins to check the socket at the new address. Reports a missing socket at each check.
    pub fn watch_socket(&mut self) {
        if let Some(before) = self.presence.take() {
            before.abort();
        }
        let Some(WorkerAddress::Unix(path)) = self.address.clone() else { return };
        // A weak reference: the folder is removed with its last owner, and this task must not delay that.
        let (folder, news_sender) = (Arc::downgrade(&self.folder), self.news_sender.clone());
        self.presence = Some(self.tasks.spawn(async move {
            let mut missing_since = None;
            loop {
                sleep(LOOK).await;
                let Some(is_ours) = folder.upgrade().map(|folder| folder.is_there()) else { return };
                if !is_ours {
                    news_sender.send(WorkerNews::NoSocket(Absence::Folder)).await;
                } else if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                    let since = *missing_since.get_or_insert_with(Instant::now);
                    news_sender.send(WorkerNews::NoSocket(Absence::Socket(since.elapsed()))).await;
                } else {
                    missing_since = None;
                }
            }
        }));
    }

    /// Whether no request will reach the worker any more. An app that closes its server removes the socket, too, and may listen again.
    pub fn is_unreachable(&self, absence: Absence, start_timeout: Duration) -> bool {
        match absence {
            Absence::Folder => true,
            Absence::Socket(_) if self.listen_check.is_some() => false,
            Absence::Socket(missing) => missing >= patience(self.has_cluster, start_timeout),
        }
    }
}

/// A socket that is missing for this long counts as gone: in two looks in a row. A cluster whose last process has died has no socket until its
/// next process has booted.
fn patience(has_cluster: bool, start_timeout: Duration) -> Duration {
    if has_cluster { start_timeout.max(LOOK) } else { LOOK }
}
