//! The purges that another process of an upgrade has not been told yet. Bounded in bytes. Knows no processes.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hostler_cache::Purge;
use tokio::sync::Notify;

/// The most bytes of purges that wait to be told. If there are more, they are replaced by one purge of everything: the
/// other process has not read for long.
pub(super) const MOST_BYTES: usize = 32 * 1024;
/// How many bytes a purge takes in a message besides its text, about.
const AROUND: usize = 16;

/// What another process has not been told yet.
#[derive(Default)]
pub(super) struct Untold {
    waiting: Mutex<WaitingPurges>,
    news: Notify,
}

#[derive(Default)]
struct WaitingPurges {
    purges: BTreeSet<Purge>,
    bytes: usize,
}

impl Untold {
    /// Adds purges that this process knows already.
    pub fn add(&self, purges: impl IntoIterator<Item = Purge>) {
        let mut waiting = self.waiting();
        purges.into_iter().for_each(|purge| waiting.add(purge));
        drop(waiting);
        self.news.notify_one();
    }

    /// Waits until there is something to tell, and takes all of it.
    pub async fn next(&self) -> Vec<Purge> {
        loop {
            let taken = std::mem::take(&mut *self.waiting());
            if !taken.purges.is_empty() {
                return taken.purges.into_iter().collect();
            }
            self.news.notified().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingPurges> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingPurges {
    fn add(&mut self, purge: Purge) {
        if self.purges.contains(&Purge::All) {
            return;
        }
        let bytes = purge.bytes() + AROUND;
        if self.purges.insert(purge) {
            self.bytes += bytes;
        }
        if self.bytes > MOST_BYTES {
            self.purges = BTreeSet::from([Purge::All]);
        }
    }
}
