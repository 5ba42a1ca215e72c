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

/// Whose doing the end of a process was, as far as can be seen from how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its own: an exit code, an abort (V8 without memory), a crash; or it hung.
    Own,
    /// A signal from somebody else (the kernel without memory, an operator), or nothing is known.
    Outside,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Course {
    dismissed: bool,
    hung: bool,
    ended: Option<Cause>,
}

impl Fate {
    /// The process that listens.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the end, but no longer than this. Returns the cause if the end comes and nobody had told the process to stop: it
    /// crashed, hung, exited, or was killed from outside.
    pub async fn death_within(&self, patience: Duration) -> Option<Cause> {
        let mut course = self.course.clone();
        let news = async { course.wait_for(|course| course.ended.is_some()).await.is_ok() };
        let ended = match timeout(patience, news).await {
            Ok(ended) => ended,
            // Whoever watches it may be slow; the kernel knows.
            Err(_) => has_exited(self.pid).await,
        };
        let course = *self.course.borrow();
        let cause = if course.hung { Cause::Own } else { course.ended.unwrap_or(Cause::Outside) };
        (ended && !course.dismissed).then_some(cause)
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

    /// It is killed because it hangs: its end is its own doing, whatever the signal.
    pub fn hangs(&self) {
        self.0.send_modify(|course| course.hung = true);
    }

    pub fn end(&self, cause: Cause) {
        self.0.send_modify(|course| course.ended = Some(cause));
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.0.send_modify(|course| course.ended = course.ended.or(Some(Cause::Outside)));
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
        let death = async |fate: &Fate| fate.death_within(Duration::MAX).await;
        assert_eq!((death(&fates[0]).await, death(&fates[1]).await), (None, Some(Cause::Outside)));
    }

    #[tokio::test]
    async fn whoever_had_a_request_with_it_hears_whose_doing_the_end_was() {
        let tellers = [Teller::new(), Teller::new(), Teller::new()];
        let fates = [1, 2, 3].map(|pid| tellers[pid as usize - 1].fate(pid));
        let [exits, is_killed, hangs] = tellers;
        exits.end(Cause::Own);
        is_killed.end(Cause::Outside);
        hangs.hangs();
        // How it is killed then is not what counts.
        hangs.end(Cause::Outside);
        drop((exits, is_killed, hangs));
        for (fate, cause) in fates.iter().zip([Cause::Own, Cause::Outside, Cause::Own]) {
            assert_eq!(fate.death_within(Duration::MAX).await, Some(cause), "{fate:?}");
        }
    }

    #[tokio::test]
    async fn when_news_is_slow_the_kernel_is_asked() {
        let teller = Teller::new();
        let mut process = std::process::Command::new("true").spawn().unwrap();
        process.wait().unwrap();
        assert!(teller.fate(process.id()).death_within(Duration::ZERO).await.is_some());
        assert!(teller.fate(std::process::id()).death_within(Duration::ZERO).await.is_none());
    }
}
