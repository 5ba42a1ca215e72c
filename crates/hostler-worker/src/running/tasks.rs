//! The tasks around one process, which stop with it. Does not know what they do.

use tokio::task::{AbortHandle, JoinSet};

/// Tasks that stop when this is dropped.
#[derive(Default)]
pub struct ProcessTasks(JoinSet<()>);

impl ProcessTasks {
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        // The set keeps a task that has ended until it is asked. A spare joins its pool at each death of a worker, perhaps thousands of times,
        // and some tasks begin each time.
        while self.0.try_join_next().is_some() {}
        self.0.spawn(task)
    }

    pub fn abort_all(&mut self) {
        self.0.abort_all();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn tasks_that_have_ended_are_not_kept() {
        let mut tasks = ProcessTasks::default();
        let runs_on = tasks.spawn(pending());
        for _ in 0..1000 {
            tasks.spawn(ready(()));
            tasks.spawn(pending()).abort();
            yield_now().await;
        }
        assert!(tasks.0.len() < 10, "{} tasks", tasks.0.len());
        assert!(!runs_on.is_finished());
        drop(tasks);
        yield_now().await;
        assert!(runs_on.is_finished());
    }
}
