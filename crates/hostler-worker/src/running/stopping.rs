//! Tells the processes of a worker to stop, and waits for their end. Does not decide when.

use super::RunningProcess;
use crate::process::Exit;
use crate::spawn::AppBinding;

impl RunningProcess {
    /// Sends SIGTERM. Many apps end at once at a second one, and npm passes on the one that it gets. So an app that another process has started
    /// gets it first, and the rest of the group when the app has ended. In a cluster all processes get it together, as they may rely on that; so do
    /// all if the server's process may be a helper, because the app may be its parent.
    pub fn terminate(&mut self) {
        let is_behind_another = |pid: &u32| *pid != self.process.pid() && self.process.includes(*pid);
        let is_alone = !self.has_cluster && !self.is_helper();
        // Without the preload, the app is the process that listens on the port.
        match self.listener.or(self.port_owner).filter(|_| is_alone).filter(is_behind_another) {
            Some(app) => _ = self.tasks.spawn(self.process.terminate_first(app)),
            None => self.process.terminate(),
        }
    }

    /// Waits for the end. The future can be dropped and made again.
    pub async fn ended(&mut self, graceful: bool) -> Exit {
        let app_may_live = graceful && self.is_behind_another();
        let exit = self.process.ended(app_may_live).await;
        if let Some(group) = &mut self.other_group {
            group.ended(graceful).await;
        }
        exit
    }

    /// Whether the app may outlive the process that Hostler started, as it does when npm handles a signal itself.
    fn is_behind_another(&self) -> bool {
        match self.binding {
            AppBinding::Socket { .. } if self.address.is_none() || self.listener.is_some() => {
                !self.claim_lost && self.listener.is_some_and(|pid| pid != self.process.pid())
            }
            // Without the preload it is not known which processes belong to the app.
            AppBinding::Socket { .. } | AppBinding::Port(_) => true,
        }
    }
}
