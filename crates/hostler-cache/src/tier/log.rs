//! What the Hostlers of a site have told each other to forget, as one of them knows it: a set of purges that each adds to and all
//! come to agree on, and a page of it for each server. Knows no servers.
//!
//! What makes it safe is that nothing of it asks a clock. On a server's page each record has a number, given in the order in which
//! they came there (the page is changed by compare-and-swap only). Whoever asks a member for an answer notes how far he has read
//! ([`Under`]), and that lies in memcached with the answer. A record voids whatever it matches and was made under a lower number:
//! its author may have asked before. What was made under that number or a higher one was asked for after its author knew of it, so
//! after it was told: that is never void, whatever the clocks say. A page that was lost begins anew under another `epoch`, and
//! whatever was made under the old one is void.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

use tokio::time::Instant;

use super::coarse;
use super::page::{Page, PageDraft, PageVersion, STALE, Written};
use crate::{Purge, Under};

/// How many purges are told apart. More are remembered as one that voids everything: what never happens to a site that purges the
/// same few things all day, since of equal ones the latest is enough.
const MOST_PURGES: usize = 1024;

/// What is to be forgotten, and where it was said already.
pub(super) struct PurgeLog {
    /// By a number drawn at random, since two may purge the same at the same time.
    purges: Purges,
    /// Those that were in it, the oldest first: whoever still has one on some page must not bring it back.
    gone: VecDeque<u64>,
    pages: Box<[Page]>,
}

/// What each server is to be told.
pub(super) type Purges = BTreeMap<u64, PurgeTold>;

/// A purge, and the servers that need not know of it any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PurgeTold {
    pub purge: Purge,
    over: BTreeSet<usize>,
    /// It was on its way to some server: who reads it there cannot know of what comes now.
    is_offered: bool,
}

impl PurgeTold {
    fn new(purge: Purge) -> Self {
        Self { purge, over: BTreeSet::new(), is_offered: false }
    }

    pub fn is_for(&self, index: usize) -> bool {
        !self.over.contains(&index)
    }
}

impl PurgeLog {
    pub fn new(servers: usize) -> Self {
        let pages = (0..servers).map(Page::new).collect();
        Self { purges: Purges::new(), gone: VecDeque::new(), pages }
    }

    /// One more, for every server.
    pub fn add(&mut self, purge: Purge) {
        let equal = |(_, told): &(&u64, &PurgeTold)| told.purge == purge;
        if self.purges.iter().filter(equal).any(|(_, told)| !told.is_offered) {
            return;
        }
        // The new one takes the place of those on a page in one step: at no moment there is neither.
        let on_all = |id: &u64| self.pages.iter().all(|page| page.number(*id).is_some());
        let replaced: Vec<u64> = self.purges.iter().filter(equal).map(|(id, _)| *id).filter(on_all).collect();
        replaced.into_iter().for_each(|id| self.remove(id));
        self.purges.insert(random(), PurgeTold::new(purge));
        self.trim();
    }

    /// An unsafe method has changed what is under this key, which this server has.
    pub fn change(&mut self, index: usize, key: &[u8]) {
        match std::str::from_utf8(key) {
            Ok(key) => self.pages[index].change(key),
            // As much of it as can be written down.
            Err(error) => {
                let valid = String::from_utf8_lossy(&key[..error.valid_up_to()]).into_owned();
                return self.add(Purge::Prefix(valid));
            }
        }
        if let Some(keys) = self.pages[index].too_many_pending() {
            // The server may be away for hours.
            self.pages[index].drop_pending(&keys);
            coarse::fold(&keys, 0).into_iter().for_each(|purge| self.add(purge));
        }
    }

    fn trim(&mut self) {
        if self.purges.len() > MOST_PURGES {
            let all: Vec<u64> = self.purges.keys().copied().collect();
            all.into_iter().for_each(|id| self.remove(id));
            self.purges.insert(random(), PurgeTold::new(Purge::All));
        }
    }

    fn remove(&mut self, id: u64) {
        self.purges.remove(&id);
        self.gone.push_back(id);
        if self.gone.len() > 2 * MOST_PURGES {
            self.gone.pop_front();
        }
    }

    pub fn version(&self, index: usize) -> Option<PageVersion> {
        self.pages[index].version()
    }

    /// Takes in what lies on the server; gives what memory is to forget.
    pub fn read(&mut self, index: usize, lies: Option<(Written, PageVersion)>, now: Instant) -> Vec<Purge> {
        let fresh = self.pages[index].read(lies, now);
        self.leave_out(index, &fresh.dropped);
        let mut forget = fresh.changes;
        for (id, purge) in fresh.purges {
            let told = || PurgeTold { is_offered: true, ..PurgeTold::new(purge.clone()) };
            if self.gone.contains(&id) {
                continue;
            }
            if let Entry::Vacant(place) = self.purges.entry(id) {
                place.insert(told());
                forget.push(purge);
            }
        }
        self.trim();
        if fresh.missed { vec![Purge::All] } else { forget }
    }

    /// What was on a page and is not any more has had its time there, or something newer has taken its place.
    fn leave_out(&mut self, index: usize, ids: &[u64]) {
        for id in ids {
            if let Some(told) = self.purges.get_mut(id) {
                told.over.insert(index);
                if told.over.len() == self.pages.len() {
                    self.remove(*id);
                }
            }
        }
    }

    /// Changes on the server's page that everybody has read by now: once nothing from before them lies there, they may go.
    pub fn ripe(&self, index: usize, now: Instant) -> Vec<(u64, Box<str>)> {
        self.pages[index].ripe(now)
    }

    /// The page as it is to lie on the server; none if it does so already.
    pub fn draft(&mut self, index: usize, swept: &[(u64, Box<str>)], now: Instant) -> Option<PageDraft> {
        if let Some((keys, room)) = self.pages[index].crowd(&self.purges, swept) {
            coarse::fold(&keys, room).into_iter().for_each(|purge| self.add(purge));
        }
        let draft = self.pages[index].draft(&self.purges, swept, now)?;
        self.purges.values_mut().for_each(|told| told.is_offered = true);
        Some(draft)
    }

    /// It lies there now.
    pub fn wrote(&mut self, index: usize, draft: PageDraft, now: Instant) {
        let gone = self.pages[index].wrote(draft, now);
        self.leave_out(index, &gone);
    }

    /// When the server's page was looked at last.
    pub fn looked(&mut self, index: usize, when: Instant) {
        self.pages[index].looked = Some(when);
    }

    /// Whether what is not on the page, as it is known here, cannot be on it for long.
    pub fn is_current(&self, index: usize, now: Instant) -> bool {
        self.pages[index].looked.is_some_and(|looked| now - looked < STALE)
    }

    /// How far the server's page is known here; none before it was read.
    pub fn under(&self, index: usize) -> Option<Under> {
        self.pages[index].under()
    }

    /// Whether something was said of this entry that its author did not know when he asked for it.
    pub fn voids<H>(&self, index: usize, key: &[u8], entry: &crate::Entry<H>, under: Under) -> bool {
        let page = &self.pages[index];
        let is_later = |id: &u64, told: &PurgeTold| match page.number(*id) {
            Some(number) => number > under.number,
            None => told.is_for(index),
        };
        page.voids(key, under)
            || self.purges.iter().any(|(id, told)| is_later(id, told) && told.purge.matches(key, entry))
    }
}

/// Seeded anew by the system for each process, and another for each call.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(())
}

#[cfg(test)]
mod tests;
