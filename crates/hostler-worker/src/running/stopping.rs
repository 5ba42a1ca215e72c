//! Tells the processes of a worker to stop. Decides not when.

use super::RunningProcess;

impl RunningProcess {
    /// npm and the like pass a signal on to the app, and many apps end at once at a second one. So an app that another process has started gets
    /// it alone, and the others when the app has ended. The processes of a cluster may rely on getting it all at once, and one that may be a helper
    /// has perhaps been started by the app.
    pub fn terminate(&mut self) {
        let is_behind_another = |pid: &u32| *pid != self.process.pid() && self.process.includes(*pid);
        let is_alone = !self.has_cluster && !self.is_helper();
        match self.listener.filter(|_| is_alone).filter(is_behind_another) {
            Some(app) => _ = self.tasks.spawn(self.process.terminate_first(app)),
            None => self.process.terminate(),
        }
    }
}
