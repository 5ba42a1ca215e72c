//! The threads that wait for files which are not in the page cache. Knows no files.

use std::io;
use std::sync::LazyLock;

use crate::exchange::DiskThreads;

/// Those of this process: half of what a thread of the data plane has.
static THREADS: LazyLock<DiskThreads> = LazyLock::new(|| DiskThreads::new(256));

/// These threads, for what waits without a time limit.
pub(super) fn threads() -> DiskThreads {
    THREADS.clone()
}

/// Acts on a blocking thread, and gives up after a minute.
pub(super) async fn on_blocking_thread<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    THREADS.clone().run(act).await
}
