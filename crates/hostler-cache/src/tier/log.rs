//! Which purges the Hostlers of a site know of: a set that each adds to and that all come to agree on, whoever misses what. Knows
//! no servers.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::LONGEST_SECONDS;
use crate::{Entry, Moment, Purge};

/// How many purges are told apart. Older ones are remembered as one that voids everything before it.
const MOST_RECORDS: usize = 512;

/// How far the clocks of two machines may be apart: what one has asked for so soon after a purge by another's clock may have
/// been before it.
const SKEW_MS: u64 = 2000;

/// The purges of the last day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// What was asked for until then is void, whatever it is.
    horizon: Moment,
    records: BTreeSet<(Moment, Purge)>,
}

/// A log as it lies on a server.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Written {
    /// When the server's log was begun: what it has from before cannot be told from what was purged.
    pub since: Moment,
    horizon: Moment,
    records: Vec<(Moment, Purge)>,
}

impl Log {
    /// One more.
    pub fn add(&mut self, when: Moment, purge: Purge) {
        self.records.insert((when, purge));
        self.trim();
    }

    /// Takes in what others know; gives what was new.
    pub fn merge(&mut self, written: &Written, now: Moment) -> Vec<Purge> {
        // They are forgotten one after the other by every Hostler at its own time: what one has dropped must not come back.
        let oldest = Moment(now.0.saturating_sub(LONGEST_SECONDS * 1000 + SKEW_MS));
        self.records.retain(|(when, _)| *when >= oldest);
        let mut new = Vec::new();
        if written.horizon > self.horizon {
            self.horizon = written.horizon;
            new.push(Purge::All);
        }
        for record in written.records.iter().filter(|(when, _)| *when >= oldest) {
            if record.0 > self.horizon && self.records.insert(record.clone()) {
                new.push(record.1.clone());
            }
        }
        self.trim();
        new
    }

    fn trim(&mut self) {
        while self.records.len() > MOST_RECORDS {
            let Some((when, _)) = self.records.pop_first() else { return };
            self.horizon = self.horizon.max(when);
        }
        let horizon = self.horizon;
        self.records.retain(|(when, _)| *when > horizon);
    }

    /// Whether a purge was meant for this entry too.
    pub fn voids<H>(&self, key: &[u8], entry: &Entry<H>) -> bool {
        let is_before = |when: Moment| entry.asked.0 <= when.0.saturating_add(SKEW_MS);
        let has_horizon = self.horizon > Moment(0) && is_before(self.horizon);
        let mut since = self.records.iter().rev().take_while(|(when, _)| is_before(*when));
        has_horizon || since.any(|(_, purge)| purge.matches(key, entry))
    }

    /// As it is to lie on a server.
    pub fn written(&self, since: Moment) -> Vec<u8> {
        let records = self.records.iter().cloned().collect();
        // Maps with keys that are no strings, or a writer that fails: there are neither.
        serde_json::to_vec(&Written { since, horizon: self.horizon, records }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
