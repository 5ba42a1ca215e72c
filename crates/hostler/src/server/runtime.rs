//! The runtime of a thread. It keeps one thread for blocking work, because the system may refuse a new one later, and lets the files of reloads
//! take only some. Knows no work.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

/// How long a thread for blocking work stays without work.
const STAYS: Duration = Duration::from_secs(60);
/// How often one of them gets an empty task, so that one stays.
const KEPT: Duration = Duration::from_secs(20);
/// How many threads may read files for reloads. One whose disk hangs stays when its reload is given up, and a runtime has 512 for all its blocking
/// work, such as looks at the files of workers that start.
const MOST_READERS: usize = 32;
static READERS: Semaphore = Semaphore::const_new(MOST_READERS);

/// A runtime for the thread that calls this. At the limit of threads (`pids.max`, `ulimit -u`) blocking work waits for the thread that is kept.
/// If there was none, tokio would panic in the task that has the work.
pub(super) fn new() -> io::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().thread_keep_alive(STAYS).build()?;
    runtime.spawn(keep_one_thread());
    Ok(runtime)
}

async fn keep_one_thread() {
    let mut ticks = interval(KEPT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // In a task of its own: if the system refuses even the first thread, only that task panics, and the next one tries again.
        let _ = tokio::spawn(async { spawn_blocking(|| ()).await }).await;
    }
}

/// Reads files for a reload on a thread for blocking work. While all of these threads wait for disks, it waits for one of them. The error is a
/// sentence.
pub(super) async fn read<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let place = READERS.acquire().await.map_err(|error| error.to_string())?;
    let reading = spawn_blocking(move || {
        let done = read();
        drop(place);
        done
    });
    reading.await.map_err(|error| error.to_string())
}
