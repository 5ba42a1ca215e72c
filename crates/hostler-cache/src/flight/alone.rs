//! Keys whose responses could not be shared, and for how long each of their requests fetches for itself. Knows no flights.

use std::collections::HashMap;

use crate::Tick;

/// How many keys are remembered. A key that is forgotten costs one more flight.
pub(super) const MOST_ALONE: usize = 4096;

/// For how long a key is remembered after its time is over. Until then one request at a time finds out whether its response can be
/// shared now, and no other request waits for it. Varnish remembers such an object (hit-for-miss) for 120 s as well.
pub(super) const RECALL_MS: u64 = 120_000;

/// Only the hashes of the keys: a key may have as many bytes as a request's head. If two keys have the same hash, at worst a request
/// fetches for itself.
#[derive(Default)]
pub(super) struct AloneKeys(HashMap<u64, AloneTime>);

struct AloneTime {
    /// Until then no request looks whether the response can be shared now.
    until: Tick,
    forgotten: Tick,
}

impl AloneKeys {
    /// Whether a request for this key fetches for itself. Once per `alone_ms` one request does not: it leads a flight, unless one
    /// `is_under_way`. The others go on to fetch for themselves, however long that flight takes.
    pub(super) fn takes(&mut self, hash: u64, now: Tick, alone_ms: u64, is_under_way: bool) -> bool {
        let Some(time) = self.0.get(&hash) else { return false };
        if now >= time.forgotten {
            self.0.remove(&hash);
            return false;
        }
        let is_due = now >= time.until;
        if is_due {
            self.remember(hash, now, alone_ms, RECALL_MS);
        }
        is_under_way || !is_due
    }

    /// Whether the time of this key is not over.
    pub(super) fn has(&self, hash: u64, now: Tick) -> bool {
        self.0.get(&hash).is_some_and(|time| now < time.until)
    }

    pub(super) fn remember(&mut self, hash: u64, now: Tick, alone_ms: u64, recall_ms: u64) {
        if self.0.len() >= MOST_ALONE && !self.0.contains_key(&hash) {
            self.0.retain(|_, time| now < time.until);
            if self.0.len() >= MOST_ALONE {
                self.0.clear();
            }
        }
        let until = Tick(now.0.saturating_add(alone_ms));
        let forgotten = Tick(until.0.saturating_add(recall_ms));
        self.0.insert(hash, AloneTime { until, forgotten });
    }

    /// A response under this key can be shared.
    pub(super) fn forget(&mut self, hash: u64) {
        self.0.remove(&hash);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
