//! Work on a file system that may have to wait: how much of it goes on at once, and for how long it is waited for. Knows no files.

use std::io;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How many threads of the process may wait for a file system at once. A thread of the data plane has 512 for all its blocking work, such as
/// request bodies in files and lookups of names. A file system that hangs must not take all of them.
const MOST: usize = 256;
static ROOM: Semaphore = Semaphore::const_new(MOST);
/// How long one step may take, with the wait for room. A file system that hangs, such as one whose server is away, must not keep clients.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Acts on a blocking thread. An act that is late goes on there, and its result is dropped.
pub(super) async fn on_blocking_thread<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    within(&ROOM, act).await
}

async fn within<T: Send + 'static>(
    room: &'static Semaphore,
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let acting = async {
        let place = room.acquire().await.map_err(io::Error::other)?;
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use hostler_testkit::eventually;
    use tokio::task::{spawn, yield_now};
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_system_that_hangs_keeps_no_client_and_only_the_threads_that_it_may() {
        static TWO: Semaphore = Semaphore::const_new(2);
        let mut ends = Vec::new();
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            waiting.push(spawn(within(&TWO, move || {
                let _ = ended.recv();
                Ok(())
            })));
        }
        while TWO.available_permits() > 0 {
            yield_now().await;
        }
        advance(TIME_LIMIT + Duration::from_secs(1)).await;
        for late in waiting {
            assert_eq!(late.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        assert_eq!(TWO.available_permits(), 0, "two threads still wait, and the third act was given up");
        drop(ends);
        eventually("their places", async || (TWO.available_permits() == 2).then_some(())).await;
        within(&TWO, || Ok(())).await.unwrap();
    }
}
