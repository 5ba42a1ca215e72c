//! The waiting requests of one key of a fair queue. Knows no other keys and no slots.

use std::collections::VecDeque;
use std::time::Duration;

use super::place::QueuePosition;

/// What a request costs at least. While nothing is known of costs, the key with the fewest requests is next.
pub(super) const LEAST_COST: Duration = Duration::from_micros(1);

/// A line that has room for more requests than this is not kept for another key.
const FEW: usize = 8;

/// The requests of one key that wait in one class, in order of arrival. Of most keys one request waits at most, so the first one is kept here.
#[derive(Default)]
pub(super) struct KeyLine {
    pub first: Option<QueuePosition>,
    pub others: VecDeque<QueuePosition>,
    /// What they cost in all.
    pub work: Duration,
}

impl KeyLine {
    pub fn insert(&mut self, place: QueuePosition, work: Duration) {
        self.work += work.max(LEAST_COST);
        // A request whose slot was taken back before it began returns to its place.
        match self.first {
            None => self.first = Some(place),
            Some(first) if place < first => {
                self.first = Some(place);
                self.others.push_front(first);
            }
            Some(_) => {
                let at = self.others.partition_point(|other| *other < place);
                self.others.insert(at, place);
            }
        }
    }

    pub fn remove(&mut self, place: QueuePosition, work: Duration) {
        if self.first == Some(place) {
            self.first = self.others.pop_front();
        } else {
            let Ok(at) = self.others.binary_search(&place) else { return };
            self.others.remove(at);
        }
        let rest = self.work.saturating_sub(work.max(LEAST_COST));
        self.work = if self.is_empty() { Duration::ZERO } else { rest };
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Whether it has room for few requests.
    pub fn is_small(&self) -> bool {
        self.others.capacity() <= FEW
    }

    pub fn last(&self) -> Option<QueuePosition> {
        self.others.back().copied().or(self.first)
    }
}
