//! What becomes of a worker's process, for those who had a request with it. Knows neither process nor requests.

use tokio::sync::watch;

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

    /// Waits for the end; true if nobody had told it to stop: it crashed, hung, exited, or was killed from outside.
    pub async fn died(&self) -> bool {
        let mut course = self.course.clone();
        match course.wait_for(|course| course.ended).await {
            Ok(course) => !course.dismissed,
            // Whoever watched the process is gone, and so is the program.
            Err(_) => false,
        }
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
        assert_eq!((fates[0].died().await, fates[1].died().await), (false, true));
    }
}
