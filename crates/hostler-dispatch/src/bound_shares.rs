//! The cost of the waiting requests that are bound to a member, summed by key, in one class of a fair pool. Knows neither members nor
//! slots, nor the requests that any member may serve.

use std::collections::BTreeSet;
use std::time::Duration;

use foldhash::HashMap;

use super::fair_key::FairKey;
use super::key_line::KeyLine;
use super::place::QueuePosition;
use super::span::Work;

/// Holds only requests that have a key and count against the queue limit. A bound request takes no turn among the keys, but it takes room
/// in the queue.
#[derive(Default)]
pub(super) struct BoundShares {
    keys: HashMap<FairKey, KeyLine>,
    /// The keys by the work that waits.
    by_work: BTreeSet<(Duration, FairKey)>,
}

/// The key with the most work that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MostWork {
    pub key: FairKey,
    pub work: Duration,
    /// The last request of the key.
    pub last: QueuePosition,
}

impl BoundShares {
    pub fn insert(&mut self, place: QueuePosition, work: Work) {
        self.edit(place, work, |line| line.insert(place, work.time));
    }

    pub fn remove(&mut self, place: QueuePosition, work: Work) {
        self.edit(place, work, |line| line.remove(place, work.time));
    }

    pub fn work_of(&self, key: FairKey) -> Duration {
        self.keys.get(&key).map_or(Duration::ZERO, |line| line.work)
    }

    pub fn most(&self) -> Option<MostWork> {
        let (work, key) = *self.by_work.last()?;
        Some(MostWork { key, work, last: self.keys.get(&key)?.last()? })
    }

    fn edit(&mut self, place: QueuePosition, work: Work, change: impl FnOnce(&mut KeyLine)) {
        let Some(key) = work.fair.filter(|_| !place.returns()) else { return };
        let line = self.keys.entry(key).or_default();
        self.by_work.remove(&(line.work, key));
        change(line);
        if line.is_empty() {
            self.keys.remove(&key);
        } else {
            self.by_work.insert((line.work, key));
        }
    }
}
