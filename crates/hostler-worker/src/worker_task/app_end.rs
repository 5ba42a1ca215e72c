//! What follows when an app that another program of the worker has started ends: that program knows how. Decides nothing.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::state::WorkerTask;
use crate::lifecycle::{LifecycleEvent, LifecycleState};
use crate::rollout::WorkerReport;

/// How long such a program may take to end after the app. npm takes about 40 ms, and several times as long on a busy machine.
const STARTER_ENDS: Duration = Duration::from_millis(400);

impl<E: Send + Sync + 'static> WorkerTask<E> {
    /// Process `pid` has ended, and Hostler has not started it itself. If it was the app, the worker leaves the pool, and the end of the program
    /// that has started the app shows how the app has ended. If that program goes on, nothing shows it.
    pub(super) async fn app_ends(&mut self, pid: u32) -> Option<LifecycleEvent> {
        if !self.running.as_mut()?.is_gone(pid) || !self.life.is_alive() {
            return None;
        }
        self.leave();
        if matches!(self.life.state(), LifecycleState::Ready | LifecycleState::Standby) {
            // So that a spare can join the pool at once.
            self.report(WorkerReport::Left);
        }
        let gone = Instant::now();
        let end = timeout(STARTER_ENDS, self.running.as_mut()?.ended(false)).await;
        // Without its app the worker did not serve, so this time does not show that the app works.
        let waited = gone.elapsed();
        self.life.has_served_less(waited);
        self.status.ready_at = self.status.ready_at.map(|at| at + waited);
        match end {
            Ok(exit) => Some(self.handle_exit(exit).await),
            Err(_) => Some(LifecycleEvent::Orphaned),
        }
    }
}
