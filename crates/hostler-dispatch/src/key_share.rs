//! What one key of a fair queue has used, and its waiting requests. Knows no other keys and no slots.

use std::time::Duration;

use super::claim::Priority;
use super::key_line::KeyLine;
use super::place::QueuePosition;

/// Worker time in nanoseconds.
pub(super) type VirtualTime = u128;

/// Where a key stands in the line of one class: by its virtual time, then by the arrival of its first request.
pub(super) type KeyRank = (VirtualTime, u64);

/// The place of a key in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyPlace {
    pub rank: KeyRank,
    pub work: Duration,
}

#[derive(Default)]
pub(super) struct KeyShare {
    /// The virtual time of the key.
    pub time: VirtualTime,
    /// For a key without a request: the value of `served` at which its debt is gone.
    pub debt_ends: VirtualTime,
    /// The key is in the list of debtors. Then only `FairShares::forget` drops it.
    pub is_debtor: bool,
    pub running: u32,
    /// Its waiting requests, by class. Apart, because of most keys none waits, and thousands of keys are kept for their debts.
    waiting: Option<Box<KeyLines>>,
}

/// The waiting requests of one key, by class.
type KeyLines = [KeyLine; Priority::COUNT];

/// Empty lines, kept for the next keys that begin to wait. Most requests are the only one of their key that waits, and these allocate no
/// line.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "the next key takes the box as it is")]
pub(super) struct SpareLines(Vec<Box<KeyLines>>);

/// The most spare lines.
const MOST_SPARE: usize = 256;

impl SpareLines {
    fn take(&mut self) -> Box<KeyLines> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps the lines for another key. Drops them if they have room for many requests, or if enough are kept.
    fn keep(&mut self, lines: Box<KeyLines>) {
        if self.0.len() < MOST_SPARE && lines.iter().all(KeyLine::is_small) {
            self.0.push(lines);
        }
    }
}

impl KeyPlace {
    /// The virtual time after all waiting requests of the key.
    pub fn end(self) -> VirtualTime {
        self.rank.0 + self.work.as_nanos()
    }
}

impl KeyShare {
    /// Where the key stands in a class. `None` if none of its requests waits there.
    pub fn place(&self, priority: Priority) -> Option<KeyPlace> {
        let line = self.line(priority)?;
        let first = line.first?.ticket.number;
        Some(KeyPlace { rank: (self.time, first), work: line.work })
    }

    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub fn line(&self, priority: Priority) -> Option<&KeyLine> {
        self.waiting.as_ref().map(|lines| &lines[priority.index()])
    }

    /// What its waiting requests of a class cost.
    pub fn work_of(&self, priority: Priority) -> Duration {
        self.line(priority).map_or(Duration::ZERO, |line| line.work)
    }

    pub fn insert(&mut self, place: QueuePosition, work: Duration, spare: &mut SpareLines) {
        let lines = self.waiting.get_or_insert_with(|| spare.take());
        lines[place.priority.index()].insert(place, work);
    }

    pub fn remove(&mut self, place: QueuePosition, work: Duration, spare: &mut SpareLines) {
        let Some(lines) = &mut self.waiting else { return };
        lines[place.priority.index()].remove(place, work);
        if lines.iter().all(KeyLine::is_empty)
            && let Some(lines) = self.waiting.take()
        {
            spare.keep(lines);
        }
    }

    pub fn is_idle(&self) -> bool {
        self.running == 0 && !self.is_waiting()
    }

    /// The virtual time of the key now. The debt of a key without a request has shrunk since its last request (see `debt_ends`).
    pub fn time_at(&self, now: VirtualTime, served: VirtualTime) -> VirtualTime {
        if self.is_idle() { self.time.min(now + self.debt_ends.saturating_sub(served)) } else { self.time }
    }
}
