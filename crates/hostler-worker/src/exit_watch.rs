//! Tells the end of a worker's process to the requests that it had. Knows neither the process nor the requests.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Watches for the end of one process. A clone is cheap.
#[derive(Clone, Debug)]
pub struct ExitWatch {
    pid: u32,
    course: watch::Receiver<WatchState>,
}

/// What caused the end of a process, as far as its exit shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// The process itself: an exit code, an abort (V8 out of memory), a crash, or a hang.
    Own,
    /// A signal from outside (the kernel's out-of-memory killer, an operator), or the cause is unknown.
    Outside,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WatchState {
    dismissed: bool,
    hung: bool,
    ended: Option<ExitCause>,
}

impl ExitWatch {
    /// The process that listens.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits at most `time_limit` for the end of the process. Returns the cause if the process ended and Hostler had not
    /// told it to stop: it crashed, hung, exited, or was killed from outside.
    pub async fn death_within(&self, time_limit: Duration) -> Option<ExitCause> {
        let mut course = self.course.clone();
        let news = async { course.wait_for(|course| course.ended.is_some()).await.is_ok() };
        let ended = match timeout(time_limit, news).await {
            Ok(ended) => ended,
            // The task that watches the process may be slow, so ask the kernel.
            Err(_) => has_exited(self.pid).await,
        };
        let course = *self.course.borrow();
        let cause = if course.hung { ExitCause::Own } else { course.ended.unwrap_or(ExitCause::Outside) };
        (ended && !course.dismissed).then_some(cause)
    }
}

/// The process is gone, or is a zombie that its parent has not reaped yet.
async fn has_exited(pid: u32) -> bool {
    let look = spawn_blocking(move || std::fs::read_to_string(format!("/proc/{pid}/stat")));
    match look.await {
        Ok(Ok(stat)) => stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Ok(Err(_)) => true,
        Err(_) => false,
    }
}

/// Sends to all [`ExitWatch`]es of one process. Dropping it means that the process has ended.
#[derive(Debug)]
pub(super) struct ExitNotifier(watch::Sender<WatchState>);

impl ExitNotifier {
    pub fn new() -> Self {
        Self(watch::Sender::default())
    }

    pub fn exit_watch(&self, pid: u32) -> ExitWatch {
        ExitWatch { pid, course: self.0.subscribe() }
    }

    /// Hostler tells the process to stop, so its requests did not cause the end.
    pub fn dismiss(&self) {
        self.0.send_modify(|course| course.dismissed = true);
    }

    /// Hostler kills the process because it hangs. That counts as its own doing, with any signal.
    pub fn hangs(&self) {
        self.0.send_modify(|course| course.hung = true);
    }

    pub fn end(&self, cause: ExitCause) {
        self.0.send_modify(|course| course.ended = Some(cause));
    }
}

impl Drop for ExitNotifier {
    fn drop(&mut self) {
        self.0.send_modify(|course| course.ended = course.ended.or(Some(ExitCause::Outside)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_with_an_order_to_stop_has_not_died() {
        let (stopped, crashed) = (ExitNotifier::new(), ExitNotifier::new());
        let watches = [stopped.exit_watch(1), crashed.exit_watch(2)];
        stopped.dismiss();
        drop((stopped, crashed));
        let death = async |exit_watch: &ExitWatch| exit_watch.death_within(Duration::MAX).await;
        assert_eq!((death(&watches[0]).await, death(&watches[1]).await), (None, Some(ExitCause::Outside)));
    }

    #[tokio::test]
    async fn requests_of_a_process_learn_the_cause_of_its_end() {
        let notifiers = [ExitNotifier::new(), ExitNotifier::new(), ExitNotifier::new()];
        let watches = [1, 2, 3].map(|pid| notifiers[pid as usize - 1].exit_watch(pid));
        let [exits, is_killed, hangs] = notifiers;
        exits.end(ExitCause::Own);
        is_killed.end(ExitCause::Outside);
        hangs.hangs();
        // The signal that then kills it does not count.
        hangs.end(ExitCause::Outside);
        drop((exits, is_killed, hangs));
        for (exit_watch, cause) in watches.iter().zip([ExitCause::Own, ExitCause::Outside, ExitCause::Own]) {
            assert_eq!(exit_watch.death_within(Duration::MAX).await, Some(cause), "{exit_watch:?}");
        }
    }

    #[tokio::test]
    async fn without_an_exit_report_the_kernel_is_asked() {
        let exit_notifier = ExitNotifier::new();
        let mut process = std::process::Command::new("true").spawn().unwrap();
        process.wait().unwrap();
        assert!(exit_notifier.exit_watch(process.id()).death_within(Duration::ZERO).await.is_some());
        assert!(exit_notifier.exit_watch(std::process::id()).death_within(Duration::ZERO).await.is_none());
    }
}
