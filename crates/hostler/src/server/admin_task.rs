//! The task that serves the admin listener, and its end. Knows no requests.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// For clients that do not read their answers.
const LIMIT: Duration = Duration::from_secs(2);

/// Without an admin listener there is no task.
#[derive(Default)]
pub struct AdminTask {
    end: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

impl AdminTask {
    /// `serve` gets what becomes true at the end.
    pub fn begin<T: Future<Output = ()> + Send + 'static>(
        &mut self,
        serve: impl FnOnce(watch::Receiver<bool>) -> T,
    ) {
        self.task = Some(tokio::spawn(serve(self.end.subscribe())));
    }

    /// The listener accepts no further connections. Each accepted one still gets an answer.
    pub fn end(&self) {
        self.end.send_replace(true);
    }

    /// Ends it, and waits until the last answers are sent.
    pub async fn ended(self) {
        self.end();
        if let Some(task) = self.task {
            // After the limit, the runtime drops the task.
            let _ = tokio::time::timeout(LIMIT, task).await;
        }
    }
}
