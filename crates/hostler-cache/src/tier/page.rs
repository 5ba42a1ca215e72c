//! The log as it lies on one server: what was said in which order. Knows no servers, and judges nothing but numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::LONGEST_SECONDS;
use super::log::{Purges, random};
use crate::{Purge, Under};

/// How many changes by unsafe methods a page has at most, and their bytes: it is read by all, again and again.
const MOST_CHANGES: usize = 512;
const MOST_BYTES: usize = 48 << 10;

/// How long a change stays on the page at least. By then whoever writes to the server has read it: what he writes under a page that
/// he has not looked at for [`STALE`] he does not write, and what takes longer than [`UNHURRIED`](super::keeper::UNHURRIED) he
/// gives up. So what still lies there from before it can be swept away for good. Whoever was cut off for longer sees by the
/// page's `pruned` that he has missed something, and forgets everything.
const RIPE: Duration = Duration::from_secs(15);
pub(super) const STALE: Duration = Duration::from_secs(5);

/// Hours for which a purge stays: nothing lies in memcached for longer. They are counted by whoever has looked at the page for an
/// hour in which nobody else has, since clocks may be wrong.
const HOURS: u64 = LONGEST_SECONDS / 3600 + 2;
const HOUR: Duration = Duration::from_secs(3600);

/// What memcached calls one state of the page; with some of its epoch, since the one number begins anew with the server.
pub(super) type PageVersion = (u64, u32);

/// As much of a number as an item is marked with.
pub(super) fn mark(number: u64) -> u32 {
    number as u32
}

/// Whether something that is marked so is from before this number: right as long as they are not billions apart.
pub(super) fn is_before(mark: u32, number: u64) -> bool {
    (number as u32).wrapping_sub(mark).cast_signed() > 0
}

/// As it is written.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Written {
    /// Drawn when it was begun. 0: it was not.
    epoch: u64,
    /// The highest number given.
    last: u64,
    /// Changes up to this number are gone, and what was void by them.
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

/// As one Hostler knows it.
#[derive(Default)]
pub(super) struct Page {
    index: usize,
    /// When the server was last asked whether there is a newer one.
    pub looked: Option<Instant>,
    lies: Written,
    version: Option<PageVersion>,
    /// Since when its changes are known here.
    seen: HashMap<u64, Instant>,
    /// When the hour was seen to begin.
    hour: Option<Instant>,
    /// Changes that it does not have yet.
    pending: BTreeSet<Box<str>>,
    pending_bytes: usize,
}

/// What was new on a page.
#[derive(Default)]
pub(super) struct PageNews {
    pub purges: Vec<(u64, Purge)>,
    pub changes: Vec<Purge>,
    /// Purges that were there and are not any more.
    pub dropped: Vec<u64>,
    /// There was more in between, and nobody knows what.
    pub missed: bool,
}

/// A page to be written.
pub(super) struct PageDraft {
    written: Written,
    taken: Vec<Box<str>>,
}

impl PageDraft {
    pub fn bytes(&self) -> Vec<u8> {
        // Maps with keys that are neither strings nor numbers, or a writer that fails: there are neither.
        serde_json::to_vec(&self.written).unwrap_or_default()
    }

    /// What tells it from another's beginning that memcached calls by the same number.
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
        self.lies.purges.get(&purge).map(|said| said.number)
    }

    pub fn under(&self) -> Option<Under> {
        Some(Under { epoch: NonZeroU64::new(self.lies.epoch)?, number: self.lies.last })
    }

    pub fn voids(&self, key: &[u8], under: Under) -> bool {
        let is_it = |changed: &str| changed.as_bytes() == key;
        let mut later = self.lies.changes.iter().rev().take_while(|(number, _)| *number > under.number);
        under.epoch.get() != self.lies.epoch
            || later.any(|(_, changed)| is_it(changed))
            || std::str::from_utf8(key).is_ok_and(|key| self.pending.contains(key))
    }

    pub fn change(&mut self, key: &str) {
        if self.pending.insert(key.into()) {
            self.pending_bytes += key.len();
        }
    }

    pub fn too_many_pending(&self) -> Option<Vec<Box<str>>> {
        let is_too_much = self.pending.len() > 4 * MOST_CHANGES || self.pending_bytes > 4 * MOST_BYTES;
        is_too_much.then(|| self.pending.iter().cloned().collect())
    }

    pub fn drop_pending(&mut self, keys: &[Box<str>]) {
        for key in keys {
            if self.pending.remove(key) {
                self.pending_bytes -= key.len();
            }
        }
    }

    pub fn read(&mut self, lies: Option<(Written, PageVersion)>, now: Instant) -> PageNews {
        let (written, version) = match lies {
            Some((written, version)) => (written, Some(version)),
            None => (Written::default(), None),
        };
        let is_new = written.epoch != self.lies.epoch;
        if is_new {
            // Lost with the page, and perhaps not read by all.
            let lost = std::mem::take(&mut self.lies.changes);
            lost.iter().for_each(|(_, key)| self.change(key));
        }
        let known = if is_new { 0 } else { self.lies.last };
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

    /// Gives the purges that were on it and are not any more.
    fn take(&mut self, written: Written, now: Instant) -> Vec<u64> {
        let is_new = written.epoch != self.lies.epoch;
        if is_new || written.hours != self.lies.hours {
            self.hour = Some(now);
        }
        let seen = |number: &u64| self.seen.get(number).filter(|_| !is_new).copied().unwrap_or(now);
        self.seen = written.changes.iter().map(|(number, _)| (*number, seen(number))).collect();
        let gone = self.lies.purges.keys().filter(|id| !is_new && !written.purges.contains_key(id));
        let gone = gone.copied().collect();
        self.lies = written;
        gone
    }

    pub fn ripe(&self, now: Instant) -> Vec<(u64, Box<str>)> {
        let is_ripe = |number| self.seen.get(number).is_some_and(|since| now - *since >= RIPE);
        self.lies.changes.iter().filter(|(number, _)| is_ripe(number)).cloned().collect()
    }

    /// The keys of all changes, old ones and pending ones, if they are more than the page has room for; and for how many it has.
    pub fn crowd(&self, purges: &Purges, swept: &[(u64, Box<str>)]) -> Option<(Vec<Box<str>>, usize)> {
        let stays = |change: &&(u64, Box<str>)| !swept.contains(change);
        let old = self.lies.changes.iter().filter(stays).map(|(_, key)| key);
        let keys = old.chain(&self.pending).filter(|key| !self.is_covered(purges, key));
        let keys: BTreeSet<&Box<str>> = keys.collect();
        let bytes: usize = keys.iter().map(|key| key.len()).sum();
        let is_crowd = keys.len() > MOST_CHANGES || bytes > MOST_BYTES;
        // Some room for those to come, lest it be done for each.
        let room = if bytes > MOST_BYTES { 0 } else { MOST_CHANGES / 2 };
        is_crowd.then(|| (keys.into_iter().cloned().collect(), room))
    }

    /// Whether a purge that comes onto the page now says the same and more.
    fn is_covered(&self, purges: &Purges, key: &str) -> bool {
        self.to_come(purges).any(|(_, purge)| purge.matches_key(key.as_bytes()))
    }

    fn to_come<'p>(&self, purges: &'p Purges) -> impl Iterator<Item = (u64, &'p Purge)> {
        let is_new = |(id, _): &(&u64, _)| !self.lies.purges.contains_key(id);
        let wanted = purges.iter().filter(|(_, told)| told.is_for(self.index));
        wanted.filter(is_new).map(|(id, told)| (*id, &told.purge))
    }

    fn is_hour_over(&self, now: Instant) -> bool {
        self.hour.is_some_and(|since| now - since >= HOUR)
    }

    fn is_right(&self, purges: &Purges, now: Instant) -> bool {
        let is_settled = self.lies.epoch != 0 && self.pending.is_empty() && !self.is_hour_over(now);
        is_settled
            && self.to_come(purges).next().is_none()
            && self.lies.purges.keys().all(|id| purges.contains_key(id))
    }

    pub fn draft(&self, purges: &Purges, swept: &[(u64, Box<str>)], now: Instant) -> Option<PageDraft> {
        if swept.is_empty() && self.is_right(purges, now) {
            return None;
        }
        let mut next = self.lies.clone();
        if next.epoch == 0 {
            next.epoch = random().max(1);
        }
        next.hours += u64::from(self.is_hour_over(now));
        let hour = next.hours;
        next.purges.retain(|id, said| purges.contains_key(id) && said.hour + HOURS > hour);
        for (id, purge) in self.to_come(purges) {
            next.last += 1;
            next.purges.insert(id, PurgeRecord { number: next.last, hour, purge: purge.clone() });
        }
        let is_over = |change: &(u64, Box<str>)| {
            swept.contains(change) || self.pending.contains(&change.1) || self.is_covered(purges, &change.1)
        };
        next.changes.retain(|change| !is_over(change));
        next.pruned = swept.iter().map(|(number, _)| *number).fold(next.pruned, u64::max);
        for key in self.pending.iter().filter(|key| !self.is_covered(purges, key)) {
            next.last += 1;
            next.changes.push((next.last, key.clone()));
        }
        Some(PageDraft { written: next, taken: self.pending.iter().cloned().collect() })
    }

    /// Gives the purges that were on it and are not any more.
    pub fn wrote(&mut self, draft: PageDraft, now: Instant) -> Vec<u64> {
        self.drop_pending(&draft.taken);
        // Which number memcached has given it is seen at the next look.
        self.version = None;
        self.take(draft.written, now)
    }
}
