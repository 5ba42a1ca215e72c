//! Asks a worker to write its compile cache while the worker has no requests. Does not know what is in the cache.
//!
//! Node writes the cache when the process ends by itself. A worker may run for weeks and then end by a signal, so Hostler
//! asks for it: soon after the worker is ready, and twice later for modules that requests have loaded meanwhile. Modules
//! that are written already are not written again. The workers of a pool load the same modules, so one of them is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hostler_dispatch::Gauge;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::message::ToWorker;
use crate::message_sender::MessageSender;

/// When a worker is asked, counted from the moment when it is ready.
const MOMENTS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(30), Duration::from_secs(600)];
/// How often an idle moment is looked for ...
const LOOK: Duration = Duration::from_millis(50);
/// ... and for how long. An app with a request or a tunnel at all times has no idle moment.
const LOOKING: Duration = Duration::from_secs(20);
/// A worker that has not answered within this time gets requests again.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// What was done for all workers of one pool about their compile cache.
#[derive(Debug, Default)]
pub(crate) struct CacheFlushes {
    /// For each of [`MOMENTS`]: the number of generations of which a worker has written the cache.
    done: [AtomicU64; MOMENTS.len()],
    /// It was logged that the folder cannot be used.
    pub complained: AtomicBool,
    /// The number of generations at whose beginning old caches were removed.
    pruned: AtomicU64,
}

impl CacheFlushes {
    fn is_done(&self, moment: usize, release: u64) -> bool {
        self.done[moment].load(Ordering::Relaxed) > release
    }

    /// Returns true for one worker of each generation: new code brings new files, perhaps in a folder of its own.
    pub fn begins_to_prune(&self, release: u64) -> bool {
        self.pruned.fetch_max(release + 1, Ordering::Relaxed) <= release
    }

    /// Returns true for one worker of each generation.
    fn claim(&self, moment: usize, release: u64) -> bool {
        self.done[moment].fetch_max(release + 1, Ordering::Relaxed) <= release
    }
}

/// Decides when one worker writes its compile cache.
pub(crate) struct Flushing<E> {
    pub gauge: Gauge<E>,
    pub flushes: Arc<CacheFlushes>,
    /// How many restarts had been ordered when the worker was started.
    pub release: u64,
}

impl<E: Send + Sync + 'static> Flushing<E> {
    /// Runs until the last of [`MOMENTS`], or until the member is gone or its process can no longer be asked.
    pub async fn attend(self, preload: MessageSender, mut flushed: mpsc::Receiver<()>) {
        let ready = Instant::now();
        for (moment, after) in MOMENTS.into_iter().enumerate() {
            sleep_until(ready + after).await;
            while ready.elapsed() < after + LOOKING && !self.flushes.is_done(moment, self.release) {
                if self.gauge.load().is_none() || !preload.is_open() {
                    return;
                }
                // The worker writes for some 0.1 s. It is held, so that this delays no request that another worker can take.
                if let Some(_hold) = self.gauge.hold()
                    && self.flushes.claim(moment, self.release)
                    && preload.tell(ToWorker::Flush)
                {
                    let _ = timeout(TIME_LIMIT, flushed.recv()).await;
                }
                sleep(LOOK).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_of_each_generation_writes_the_cache_at_each_moment() {
        let flushes = CacheFlushes::default();
        assert!(!flushes.is_done(0, 0) && flushes.claim(0, 0) && flushes.is_done(0, 0));
        assert!(!flushes.claim(0, 0), "another worker of the generation");
        assert!(!flushes.is_done(1, 0) && flushes.claim(1, 0), "the next moment");
        assert!(!flushes.is_done(0, 1) && flushes.claim(0, 1), "the next generation");
        assert!(!flushes.claim(0, 0), "a worker of the old one");
    }

    #[test]
    fn one_worker_of_each_generation_removes_old_caches() {
        let flushes = CacheFlushes::default();
        assert!(flushes.begins_to_prune(0) && !flushes.begins_to_prune(0));
        assert!(flushes.begins_to_prune(1), "the next generation");
        assert!(!flushes.begins_to_prune(1) && !flushes.begins_to_prune(0));
    }
}
