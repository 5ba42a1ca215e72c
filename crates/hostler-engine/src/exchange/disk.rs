//! Work on a file system that may have to wait: how much of it goes on at once, and for how long it is waited for. Knows no files.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The time limit of one call, with the wait for a thread. A file system that hangs (a server that is away) must not keep clients.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Threads of the process that may wait for a file system at once. A thread of the data plane has 512 for all its blocking work, such as
/// lookups of names. A file system that hangs must not take all of them.
#[derive(Debug, Clone)]
pub struct DiskThreads(Arc<Semaphore>);

impl DiskThreads {
    /// At most this many threads at a time.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// Runs `act` on one of the threads. After the time limit it returns an error of the kind `TimedOut`. Then `act` goes on, and its
    /// result is dropped.
    pub async fn run<T: Send + 'static>(
        self,
        act: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let acting = async {
            let place = self.0.acquire_owned().await.map_err(io::Error::other)?;
            let acting = spawn_blocking(move || {
                let done = act();
                drop(place);
                done
            });
            acting.await.map_err(io::Error::other)?
        };
        let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "the file system does not answer"));
        timeout(TIME_LIMIT, acting).await.unwrap_or_else(late)
    }

    /// Drops `held` on one of the threads, because that may block (closing a file). Outside of a runtime it is dropped here.
    pub fn release<T: Send + 'static>(&self, held: T) {
        let Ok(runtime) = Handle::try_current() else { return };
        let room = self.0.clone();
        runtime.spawn(async move {
            // No time limit: a thread of the data plane must not drop `held`. The semaphore is never closed.
            let place = room.acquire_owned().await;
            drop(spawn_blocking(move || drop((held, place))));
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use hostler_testkit::eventually;
    use tokio::task::{JoinHandle, spawn, yield_now};
    use tokio::time::advance;

    use super::*;

    /// As many acts as there are channels, each of which ends with its channel.
    fn hanging(
        threads: &DiskThreads,
        ends: usize,
    ) -> (Vec<mpsc::Sender<()>>, Vec<JoinHandle<io::Result<()>>>) {
        let hang = |ended: mpsc::Receiver<()>| {
            spawn(threads.clone().run(move || {
                let _ = ended.recv();
                Ok(())
            }))
        };
        (0..ends).map(|_| mpsc::channel()).map(|(end, ended)| (end, hang(ended))).unzip()
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_system_that_hangs_keeps_no_client_and_only_the_threads_that_it_may() {
        let threads = DiskThreads::new(2);
        let (ends, waiting) = hanging(&threads, 3);
        while threads.0.available_permits() > 0 {
            yield_now().await;
        }
        advance(TIME_LIMIT + Duration::from_secs(1)).await;
        for late in waiting {
            assert_eq!(late.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        assert_eq!(
            threads.0.available_permits(),
            0,
            "two threads still wait, and the third act was given up"
        );
        drop(ends);
        eventually("their places", async || (threads.0.available_permits() == 2).then_some(())).await;
        threads.run(|| Ok(())).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_released_waits_for_a_thread_however_long_that_takes() {
        let threads = DiskThreads::new(1);
        let (ends, _waiting) = hanging(&threads, 1);
        while threads.0.available_permits() > 0 {
            yield_now().await;
        }
        let held = Arc::new(());
        threads.release(held.clone());
        advance(TIME_LIMIT * 2).await;
        yield_now().await;
        assert_eq!(Arc::strong_count(&held), 2, "no other thread drops it");
        drop(ends);
        eventually("its drop", async || (Arc::strong_count(&held) == 1).then_some(())).await;
    }
}
