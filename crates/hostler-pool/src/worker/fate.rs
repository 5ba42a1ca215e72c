//! What becomes of a worker's process, for those who had a request with it. Knows neither process nor requests.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// What has become of one process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Fate {
    pid: u32,
    course: watch::Receiver<Course>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Course {
    dismissed: bool,
    ended: bool,
}

impl Fate {
    /// The process that listens.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the end, but no longer than this; true if it comes and nobody had told the process to stop: it crashed, hung,
    /// exited, or was killed from outside.
    pub async fn died_within(&self, patience: Duration) -> bool {
        let mut course = self.course.clone();
        let news = async { course.wait_for(|course| course.ended).await.is_ok() };
        let ended = match timeout(patience, news).await {
            Ok(ended) => ended,
            // Whoever watches it may be slow; the kernel knows.
            Err(_) => has_exited(self.pid).await,
        };
        ended && !self.course.borrow().dismissed
    }
}

/// Gone, or a zombie that nobody has buried yet.
async fn has_exited(pid: u32) -> bool {
    let look = spawn_blocking(move || std::fs::read_to_string(format!("/proc/{pid}/stat")));
    match look.await {
        Ok(Ok(stat)) => stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Ok(Err(_)) => true,
        Err(_) => false,
    }
}

/// The other end of all fates of one process; dropped, the process has ended.
#[derive(Debug)]
pub(super) struct Teller(watch::Sender<Course>);

impl Teller {
    pub fn new() -> Self {
        Self(watch::Sender::default())
    }

    pub fn fate(&self, pid: u32) -> Fate {
        Fate { pid, course: self.0.subscribe() }
    }

    /// It is told to stop: whatever ends with it is not its requests' doing.
    pub fn dismiss(&self) {
        self.0.send_modify(|course| course.dismissed = true);
    }

    pub fn end(&self) {
        self.0.send_modify(|course| course.ended = true);
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_that_was_told_to_stop_has_not_died() {
        let (stopped, crashed) = (Teller::new(), Teller::new());
        let fates = [stopped.fate(1), crashed.fate(2)];
        stopped.dismiss();
        drop((stopped, crashed));
        let died = async |fate: &Fate| fate.died_within(Duration::MAX).await;
        assert_eq!((died(&fates[0]).await, died(&fates[1]).await), (false, true));
    }

    #[tokio::test]
    async fn when_news_is_slow_the_kernel_is_asked() {
        let teller = Teller::new();
        let mut process = std::process::Command::new("true").spawn().unwrap();
        process.wait().unwrap();
        assert!(teller.fate(process.id()).died_within(Duration::ZERO).await);
        assert!(!teller.fate(std::process::id()).died_within(Duration::ZERO).await);
    }
}
