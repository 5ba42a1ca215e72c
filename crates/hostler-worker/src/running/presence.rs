//! Looks whether the socket of a worker is still at its path. Without it, no new connection reaches the worker. Decides nothing.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::time::sleep;

use super::RunningProcess;
use crate::news::WorkerNews;
use crate::settings::WorkerAddress;

const LOOK: Duration = Duration::from_secs(1);

impl RunningProcess {
    /// Begins to look, since the address is new. Reports a socket that is gone again and again.
    pub fn watch_socket(&mut self) {
        if let Some(before) = self.presence.take() {
            before.abort();
        }
        let Some(WorkerAddress::Unix(path)) = self.address.clone() else { return };
        let wire = self.wire.clone();
        self.presence = Some(self.tasks.spawn(async move {
            loop {
                sleep(LOOK).await;
                if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                    wire.send(WorkerNews::NoSocket).await;
                }
            }
        }));
    }

    /// An app that closes its server removes the socket, too, and may listen again.
    pub fn is_closing(&self) -> bool {
        self.deaf.is_some()
    }
}
