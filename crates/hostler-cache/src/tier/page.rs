//! The page of the log on one server: the records in their order. Knows no servers, and compares only numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::item::LONGEST_SECONDS;
use super::purges::{Purges, random};
use crate::{LogPosition, Purge};

/// The most changes by unsafe methods on a page, and the most bytes of them: all Hostlers read the page again and again.
const MOST_CHANGES: usize = 512;
const MOST_BYTES: usize = 48 << 10;

/// How long a change stays on the page at least.
///
/// After this time every Hostler that writes to the server has read it. A Hostler writes nothing under a page that it has
/// not looked at for [`STALE`], and gives up a write after [`UNHURRIED`](super::keeper::UNHURRIED). So an item from
/// before the change can be deleted for good. A Hostler that was cut off for longer sees in the page's `pruned` that it
/// has missed changes, and forgets everything.
const READ_BY_ALL_AFTER: Duration = Duration::from_secs(15);
pub(super) const STALE: Duration = Duration::from_secs(5);

/// How many hours a purge stays on the page. No item stays in memcached for longer. Clocks may be wrong, so the page itself
/// counts hours: a Hostler adds one when it has seen the same count for an hour.
const HOURS: u64 = LONGEST_SECONDS / 3600 + 2;
const HOUR: Duration = Duration::from_secs(3600);

/// The version that memcached gives to a state of the page, and a part of the epoch, because the version starts again
/// with the server.
pub(super) type PageVersion = (u64, u32);

/// The part of a number that marks an item.
pub(super) fn mark(number: u64) -> u32 {
    number as u32
}

/// Whether an item with this mark is from before this number. Correct as long as the two are not billions apart.
pub(super) fn is_before(mark: u32, number: u64) -> bool {
    (number as u32).wrapping_sub(mark).cast_signed() > 0
}

/// The page as it is written.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Written {
    /// A random number from the start of the page. 0: there is no page.
    epoch: u64,
    /// The highest number so far.
    last: u64,
    /// Changes up to this number are gone from the page, and so are the items that they voided.
    pruned: u64,
    hours: u64,
    purges: BTreeMap<u64, PurgeRecord>,
    changes: Vec<(u64, Box<str>)>,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
struct PurgeRecord {
    number: u64,
    hour: u64,
    purge: Purge,
}

/// The page as one Hostler knows it.
#[derive(Default)]
pub(super) struct Page {
    index: usize,
    /// When the server was last asked for a newer page.
    pub looked: Option<Instant>,
    current: Written,
    version: Option<PageVersion>,
    /// Since when this Hostler knows each change.
    seen: HashMap<u64, Instant>,
    /// When this Hostler saw the current hour begin.
    hour: Option<Instant>,
    /// Changes that are not on the page yet. True: in a draft, which a Hostler may have read on the server already. So a later change of the
    /// same key needs a record of its own.
    pending: BTreeMap<Box<str>, bool>,
    pending_bytes: usize,
}

/// What is new on a page.
#[derive(Default)]
pub(super) struct PageNews {
    pub purges: Vec<(u64, Purge)>,
    pub changes: Vec<Purge>,
    /// Purges that were on it and are not any more.
    pub dropped: Vec<u64>,
    /// Unknown records were added and removed in between.
    pub missed: bool,
}

/// A page to write.
pub(super) struct PageDraft {
    written: Written,
    taken: Vec<Box<str>>,
}

impl PageDraft {
    pub fn bytes(&self) -> Vec<u8> {
        // Serialization fails only for maps whose keys are neither strings nor numbers, or if the writer fails. Neither
        // happens here.
        serde_json::to_vec(&self.written).unwrap_or_default()
    }

    /// The part of the version that separates this page from another one with the same number in memcached.
    pub fn mark(&self) -> u32 {
        mark(self.written.epoch)
    }
}

impl Page {
    pub fn new(index: usize) -> Self {
        Self { index, ..Self::default() }
    }

    pub fn version(&self) -> Option<PageVersion> {
        self.version
    }

    pub fn number(&self, purge: u64) -> Option<u64> {
        self.current.purges.get(&purge).map(|said| said.number)
    }

    pub fn under(&self) -> Option<LogPosition> {
        Some(LogPosition { epoch: NonZeroU64::new(self.current.epoch)?, number: self.current.last })
    }

    pub fn voids(&self, key: &[u8], under: LogPosition) -> bool {
        let is_it = |changed: &str| changed.as_bytes() == key;
        let mut later = self.current.changes.iter().rev().take_while(|(number, _)| *number > under.number);
        under.epoch.get() != self.current.epoch
            || later.any(|(_, changed)| is_it(changed))
            || std::str::from_utf8(key).is_ok_and(|key| self.pending.contains_key(key))
    }

    pub fn change(&mut self, key: &str) {
        if self.pending.insert(key.into(), false).is_none() {
            self.pending_bytes += key.len();
        }
    }

    pub fn too_many_pending(&self) -> Option<Vec<Box<str>>> {
        let is_too_much = self.pending.len() > 4 * MOST_CHANGES || self.pending_bytes > 4 * MOST_BYTES;
        is_too_much.then(|| self.pending.keys().cloned().collect())
    }

    /// The changed keys that are not on the page yet.
    pub fn pending(&self) -> impl Iterator<Item = &str> {
        self.pending.keys().map(|key| &**key)
    }

    pub fn drop_pending(&mut self, keys: &[Box<str>]) {
        for key in keys {
            if self.pending.remove(key).is_some() {
                self.pending_bytes -= key.len();
            }
        }
    }

    pub fn read(&mut self, page: Option<(Written, PageVersion)>, now: Instant) -> PageNews {
        let (written, version) = match page {
            Some((written, version)) => (written, Some(version)),
            None => (Written::default(), None),
        };
        let is_new = written.epoch != self.current.epoch;
        if is_new {
            // The old changes are lost with the old page, and perhaps not all Hostlers have read them. So they are made again.
            let lost = std::mem::take(&mut self.current.changes);
            lost.iter().for_each(|(_, key)| self.change(key));
        }
        let known = if is_new { 0 } else { self.current.last };
        let purges = written.purges.iter().filter(|(_, said)| said.number > known);
        let changes = written.changes.iter().filter(|(number, _)| *number > known);
        let mut fresh = PageNews {
            purges: purges.map(|(id, said)| (*id, said.purge.clone())).collect(),
            changes: changes.map(|(_, key)| Purge::Url(key.to_string())).collect(),
            dropped: Vec::new(),
            missed: known < written.pruned,
        };
        fresh.dropped = self.take(written, now);
        self.version = version;
        fresh
    }

    /// Takes in a page. Returns the purges that were on it and are not any more.
    fn take(&mut self, written: Written, now: Instant) -> Vec<u64> {
        let is_new = written.epoch != self.current.epoch;
        if is_new || written.hours != self.current.hours {
            self.hour = Some(now);
        }
        let seen = |number: &u64| self.seen.get(number).filter(|_| !is_new).copied().unwrap_or(now);
        self.seen = written.changes.iter().map(|(number, _)| (*number, seen(number))).collect();
        let gone = self.current.purges.keys().filter(|id| !is_new && !written.purges.contains_key(id));
        let gone = gone.copied().collect();
        self.current = written;
        gone
    }

    pub fn read_by_all(&self, now: Instant) -> Vec<(u64, Box<str>)> {
        let is_read = |number| self.seen.get(number).is_some_and(|since| now - *since >= READ_BY_ALL_AFTER);
        self.current.changes.iter().filter(|(number, _)| is_read(number)).cloned().collect()
    }

    /// If the page has no room for all changes: their keys, old and pending, and how many of them may stay on the page.
    pub fn overflow(&self, purges: &Purges, swept: &[(u64, Box<str>)]) -> Option<(Vec<Box<str>>, usize)> {
        let stays = |change: &&(u64, Box<str>)| !swept.contains(change);
        let old = self.current.changes.iter().filter(stays).map(|(_, key)| key);
        let keys = old.chain(self.pending.keys()).filter(|key| !self.is_covered(purges, key));
        let keys: BTreeSet<&Box<str>> = keys.collect();
        let bytes: usize = keys.iter().map(|key| key.len()).sum();
        let is_crowd = keys.len() > MOST_CHANGES || bytes > MOST_BYTES;
        // Leaves some room for later changes, so that this does not happen for each one.
        let room = if bytes > MOST_BYTES { 0 } else { MOST_CHANGES / 2 };
        is_crowd.then(|| (keys.into_iter().cloned().collect(), room))
    }

    /// Whether a purge that comes onto the page now includes this key.
    fn is_covered(&self, purges: &Purges, key: &str) -> bool {
        self.to_come(purges).any(|(_, purge)| purge.matches_key(key.as_bytes()))
    }

    fn to_come<'p>(&self, purges: &'p Purges) -> impl Iterator<Item = (u64, &'p Purge)> {
        let is_new = |(id, _): &(&u64, _)| !self.current.purges.contains_key(id);
        let wanted = purges.iter().filter(|(_, told)| told.is_for(self.index));
        wanted.filter(is_new).map(|(id, told)| (*id, &told.purge))
    }

    fn is_hour_over(&self, now: Instant) -> bool {
        self.hour.is_some_and(|since| now - since >= HOUR)
    }

    fn is_right(&self, purges: &Purges, now: Instant) -> bool {
        let is_settled = self.current.epoch != 0 && self.pending.is_empty() && !self.is_hour_over(now);
        is_settled
            && self.to_come(purges).next().is_none()
            && self.current.purges.keys().all(|id| purges.contains_key(id))
    }

    pub fn draft(&mut self, purges: &Purges, swept: &[(u64, Box<str>)], now: Instant) -> Option<PageDraft> {
        if swept.is_empty() && self.is_right(purges, now) {
            return None;
        }
        let mut next = self.current.clone();
        if next.epoch == 0 {
            next.epoch = random().max(1);
        }
        next.hours = next.hours.saturating_add(self.is_hour_over(now).into());
        let hour = next.hours;
        next.purges.retain(|id, said| purges.contains_key(id) && said.hour.saturating_add(HOURS) > hour);
        for (id, purge) in self.to_come(purges) {
            next.last = next.last.saturating_add(1);
            next.purges.insert(id, PurgeRecord { number: next.last, hour, purge: purge.clone() });
        }
        let is_over = |change: &(u64, Box<str>)| {
            swept.contains(change)
                || self.pending.contains_key(&change.1)
                || self.is_covered(purges, &change.1)
        };
        next.changes.retain(|change| !is_over(change));
        next.pruned = swept.iter().map(|(number, _)| *number).fold(next.pruned, u64::max);
        for key in self.pending.keys().filter(|key| !self.is_covered(purges, key)) {
            next.last = next.last.saturating_add(1);
            next.changes.push((next.last, key.clone()));
        }
        self.pending.values_mut().for_each(|is_offered| *is_offered = true);
        Some(PageDraft { written: next, taken: self.pending.keys().cloned().collect() })
    }

    /// The draft was written. Returns the purges that were on the page and are not any more.
    pub fn wrote(&mut self, mut draft: PageDraft, now: Instant) -> Vec<u64> {
        draft.taken.retain(|key| self.pending.get(key) == Some(&true));
        self.drop_pending(&draft.taken);
        // The next look finds out the version that memcached gave it.
        self.version = None;
        self.take(draft.written, now)
    }
}
