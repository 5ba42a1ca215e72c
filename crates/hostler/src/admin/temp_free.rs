//! The free bytes of the disk of `server.temp_dir`. A blocking thread looks, because the disk may hang. Knows no pools.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hostler_engine::exchange::{DiskThreads, Spool};
use tokio::time::{MissedTickBehavior, interval};

/// The time between two looks.
const INTERVAL: Duration = Duration::from_secs(5);
/// No figure.
const UNKNOWN: u64 = u64::MAX;

/// The free bytes at the last look.
pub struct TempFree(AtomicU64);

impl TempFree {
    /// Nothing is known yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(UNKNOWN)))
    }

    /// None: no look has succeeded yet, or the disk does not answer.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|bytes| *bytes != UNKNOWN)
    }

    /// Looks every five seconds, for as long as Hostler runs.
    pub async fn watch(self: Arc<Self>, spool: Arc<Spool>) {
        // A disk that hangs takes one thread.
        let threads = DiskThreads::new(1);
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look(&threads, spool.folder()).await;
        }
    }

    async fn look(&self, threads: &DiskThreads, folder: Arc<PathBuf>) {
        let looked = threads.clone().run(move || free(&folder)).await;
        self.0.store(looked.unwrap_or(UNKNOWN), Relaxed);
    }
}

fn free(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_does_not_answer_has_no_figure() {
        let (temp_free, threads) = (TempFree::new(), DiskThreads::new(1));
        let folder = Arc::new(std::env::temp_dir());
        assert_eq!(temp_free.bytes(), None);
        temp_free.look(&threads, folder.clone()).await;
        assert!(temp_free.bytes().is_some());
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let hanging = tokio::spawn(threads.clone().run(move || {
            let _ = ended.recv();
            Ok(())
        }));
        yield_now().await;
        let looking = temp_free.clone();
        tokio::spawn(async move { looking.look(&threads, folder).await });
        for _ in 0..100 {
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(temp_free.bytes(), None);
        drop(end);
        let _ = hanging.await;
    }
}
