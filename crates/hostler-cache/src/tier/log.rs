//! The purges that the Hostlers of a site tell each other, as one Hostler knows them: a set to which each adds and on
//! which all converge, and a page of it for each server. Knows no servers.
//!
//! Safety does not depend on clocks. On a server's page each record has a number, in the order in which the records came
//! there. (The page is changed by compare-and-swap only.) A Hostler that requests a response notes the last number it has
//! read ([`LogPosition`]), and stores that number with the response in memcached.
//!
//! A record voids every matching response with a lower number: its Hostler may have sent the request before it knew of
//! the purge. A response with that number or a higher one was requested afterwards, so it is never void, whatever the
//! clocks say. A page that was lost starts again with another `epoch`, and all responses of the old epoch are void.

use std::collections::VecDeque;
use std::collections::btree_map::Entry;

use tokio::time::Instant;

use super::coarse;
use super::page::{Page, PageDraft, PageVersion, STALE, Written};
use super::purges::{PurgeTold, Purges, random};
use crate::{LogPosition, Purge};

/// How many purges are kept one by one. More become one purge of everything. A site that purges the same few things all
/// day never gets there, because only the latest of equal purges is kept.
const MOST_PURGES: usize = 1024;
/// The same in bytes of their texts: the page is one item of memcached, which takes 1 MiB by default.
const MOST_PURGE_BYTES: usize = 256 << 10;

/// The purges, and which server has which of them.
pub(super) struct PurgeLog {
    /// By a random number, because two Hostlers may purge the same at the same time.
    purges: Purges,
    /// The numbers of removed purges, the oldest first. A page that still has one must not bring it back.
    gone: VecDeque<u64>,
    pages: Box<[Page]>,
}

impl PurgeLog {
    pub fn new(servers: usize) -> Self {
        let pages = (0..servers).map(Page::new).collect();
        Self { purges: Purges::new(), gone: VecDeque::new(), pages }
    }

    /// Adds a purge for every server.
    pub fn add(&mut self, purge: Purge) {
        let equal = |(_, told): &(&u64, &PurgeTold)| told.purge == purge;
        if self.purges.iter().filter(equal).any(|(_, told)| !told.is_offered) {
            return;
        }
        // The new purge replaces the equal one on a page in one step, so that one of them is always there.
        let on_all = |id: &u64| self.pages.iter().all(|page| page.number(*id).is_some());
        let replaced: Vec<u64> = self.purges.iter().filter(equal).map(|(id, _)| *id).filter(on_all).collect();
        replaced.into_iter().for_each(|id| self.remove(id));
        self.purges.insert(random(), PurgeTold::new(purge));
        self.trim();
    }

    /// Notes that an unsafe method has changed what is under this key. `index`: the server that has the key.
    pub fn change(&mut self, index: usize, key: &[u8]) {
        match std::str::from_utf8(key) {
            Ok(key) => self.pages[index].change(key),
            Err(_) => return self.add(Purge::of_key(key)),
        }
        if let Some(keys) = self.pages[index].too_many_pending() {
            // The server may be away for hours, so a few wider purges replace the many keys.
            self.pages[index].drop_pending(&keys);
            coarse::fold(&keys, 0).into_iter().for_each(|purge| self.add(purge));
        }
    }

    /// The purges that are not on all pages. A changed key is one of them until it is on its page.
    pub fn undelivered(&self) -> Vec<Purge> {
        let is_missing = |id, told| (0..self.pages.len()).any(|index| self.is_missing(index, id, told));
        let purges = self.purges.iter().filter(|(id, told)| is_missing(**id, *told));
        let changes = self.pages.iter().flat_map(Page::pending).map(|key| Purge::Url(key.to_owned()));
        purges.map(|(_, told)| told.purge.clone()).chain(changes).collect()
    }

    /// Whether this server does not have all purges and changes that are for it.
    pub fn lacks(&self, index: usize) -> bool {
        let mut purges = self.purges.iter();
        purges.any(|(id, told)| self.is_missing(index, *id, told))
            || self.pages[index].pending().next().is_some()
    }

    /// Whether a purge is for this server and not on its page.
    fn is_missing(&self, index: usize, id: u64, told: &PurgeTold) -> bool {
        told.is_for(index) && self.pages[index].number(id).is_none()
    }

    fn trim(&mut self) {
        let bytes: usize = self.purges.values().map(|told| told.purge.bytes()).sum();
        if self.purges.len() > MOST_PURGES || bytes > MOST_PURGE_BYTES {
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

    /// Takes in the page of a server. Returns the purges to apply to memory.
    pub fn read(
        &mut self,
        index: usize,
        page_read: Option<(Written, PageVersion)>,
        now: Instant,
    ) -> Vec<Purge> {
        let fresh = self.pages[index].read(page_read, now);
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

    /// Notes that a server no longer needs these purges. They have left its page: they have expired, or a newer purge has replaced them.
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

    /// The changes on the server's page that all Hostlers have read by now. They may go once no item from before them is
    /// on the server.
    pub fn read_by_all(&self, index: usize, now: Instant) -> Vec<(u64, Box<str>)> {
        self.pages[index].read_by_all(now)
    }

    /// The new page for the server. `None` if it is already there.
    pub fn draft(&mut self, index: usize, swept: &[(u64, Box<str>)], now: Instant) -> Option<PageDraft> {
        if let Some((keys, room)) = self.pages[index].overflow(&self.purges, swept) {
            coarse::fold(&keys, room).into_iter().for_each(|purge| self.add(purge));
        }
        let draft = self.pages[index].draft(&self.purges, swept, now)?;
        self.purges.values_mut().for_each(|told| told.is_offered = true);
        Some(draft)
    }

    /// The draft is on the server now.
    pub fn wrote(&mut self, index: usize, draft: PageDraft, now: Instant) {
        let gone = self.pages[index].wrote(draft, now);
        self.leave_out(index, &gone);
    }

    /// The server's page was last read at this time.
    pub fn looked(&mut self, index: usize, when: Instant) {
        self.pages[index].looked = Some(when);
    }

    /// Whether the page was read recently enough to rely on it.
    pub fn is_current(&self, index: usize, now: Instant) -> bool {
        self.pages[index].looked.is_some_and(|looked| now - looked < STALE)
    }

    /// The last number known of the server's page. `None` before it was read.
    pub fn under(&self, index: usize) -> Option<LogPosition> {
        self.pages[index].under()
    }

    /// Whether a record voids this entry: one with a number after `under`, which the Hostler that requested the response had not read.
    pub fn voids<H>(&self, index: usize, key: &[u8], entry: &crate::Entry<H>, under: LogPosition) -> bool {
        let page = &self.pages[index];
        let is_later = |id: &u64, told: &PurgeTold| match page.number(*id) {
            Some(number) => number > under.number,
            None => told.is_for(index),
        };
        page.voids(key, under)
            || self.purges.iter().any(|(id, told)| is_later(id, told) && told.purge.matches(key, entry))
    }
}

#[cfg(test)]
mod tests;
