//! A look for silent members that comes when it is due, or later.

use std::time::Duration;

use tokio::time::Instant;

use super::{Registry, RouteChange};

/// A look that comes so much too late: Hostler was held up, for example by SIGSTOP, or its machine was.
const HELD_UP: Duration = Duration::from_secs(1);

impl Registry {
    /// As [`Self::prune`], for a look that was due at `due`. While Hostler was held up, it has read nothing: what members have sent
    /// meanwhile still waits in its socket, and only the next look knows who was silent.
    pub fn prune_due(&mut self, connection: Option<u64>, due: Instant, now: Instant) -> Vec<RouteChange> {
        if now.saturating_duration_since(due) >= HELD_UP {
            return Vec::new();
        }
        self.prune(connection, now)
    }
}
