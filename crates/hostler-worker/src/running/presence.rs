//! Looks whether the socket of a worker is still at its path. Without it, no new connection reaches the worker.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::RunningProcess;
use crate::news::{Absence, NewsSender, WorkerNews};
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
        let folder = Arc::downgrade(&self.folder);
        let look = move || {
            let is_ours = folder.upgrade()?.is_there();
            let found = path.symlink_metadata();
            Some((is_ours, found.is_err_and(|error| error.kind() == ErrorKind::NotFound)))
        };
        self.presence = Some(self.tasks.spawn(watch(look, self.news_sender.clone())));
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

/// Runs until `look` returns None. It returns whether the folder is ours, and whether the socket is missing. Another thread looks: this one watches
/// all workers, and a file system that does not answer would stop it.
async fn watch(look: impl Fn() -> Option<(bool, bool)> + Clone + Send + 'static, news_sender: NewsSender) {
    let mut missing_since = None;
    loop {
        sleep(LOOK).await;
        let Ok(Some((is_ours, is_missing))) = spawn_blocking(look.clone()).await else { return };
        if !is_ours {
            news_sender.send(WorkerNews::NoSocket(Absence::Folder)).await;
        } else if is_missing {
            let since = *missing_since.get_or_insert_with(Instant::now);
            news_sender.send(WorkerNews::NoSocket(Absence::Socket(since.elapsed()))).await;
        } else {
            missing_since = None;
        }
    }
}

/// A socket that is missing for this long counts as gone: in two looks in a row. A cluster whose last process has died has no socket until its
/// next process has booted.
fn patience(has_cluster: bool, start_timeout: Duration) -> Duration {
    if has_cluster { start_timeout.max(LOOK) } else { LOOK }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_folder_that_does_not_answer_stops_no_other_task() {
        let (answer, answers) = mpsc::channel::<()>();
        let (answers, asked) = (Arc::new(Mutex::new(answers)), Arc::new(Notify::new()));
        let asks = Arc::clone(&asked);
        let look = move || {
            asks.notify_one();
            // It ends when the sender is gone.
            let _ = answers.lock().unwrap().recv();
            Some((false, false))
        };
        let (news_sender, mut news_receiver) = NewsSender::pair(1);
        let watching = tokio::spawn(watch(look, news_sender));
        asked.notified().await;
        drop(answer);
        let news = news_receiver.recv().await;
        assert!(matches!(news, Some((1, WorkerNews::NoSocket(Absence::Folder)))), "{news:?}");
        watching.abort();
    }
}
