//! What the keys of a fair pool have cost. Knows no requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::costs::{BySpan, Cost, KeyCost, KeyCostTable, LedgerRow, millis, percent};

/// What the requests of one key have cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FairKeyView {
    /// The key in words. Of a header field or a cookie it shows a short hash in place of the value.
    pub key: String,
    /// Its part of the worker time of all keys in the last minute, in percent.
    pub share_percent: f64,
    /// The worker time of its requests, in milliseconds.
    pub worker_ms: BySpan,
    /// How many of its requests have ended since it came into the list.
    pub requests: u64,
    /// How many of them Hostler has refused.
    pub refused: u64,
}

/// The key of one request, which is charged when its slot comes back and when it ends.
#[derive(Debug)]
pub struct FairCharge {
    /// Where it is charged.
    pub costs: Arc<KeyCosts>,
    /// The hash of the key.
    pub key: u64,
    /// The key in words.
    pub words: Arc<str>,
    /// `costs` does not know the key, and the request brings it in.
    pub is_new: bool,
}

/// What the keys of a pool have cost.
#[derive(Debug)]
pub struct KeyCosts(Mutex<KeyCostTable>);

impl FairCharge {
    /// A slot of the request has cost this much.
    pub(super) fn pay(&self, cost: Cost, now: Instant) {
        self.add(cost, false, now);
    }

    /// The request has ended, after this time in the queue.
    pub(super) fn end(&self, queue: Duration, is_refused: bool, now: Instant) {
        self.add(Cost { requests: 1, queue, ..Cost::default() }, is_refused, now);
    }

    fn add(&self, cost: Cost, is_refused: bool, now: Instant) {
        self.costs.with(|costs| {
            costs.add(self.key, cost, is_refused, now, || self.is_new.then(|| self.words.clone()))
        });
    }
}

impl KeyCosts {
    /// Nothing has cost anything yet.
    pub fn new(now: Instant) -> Self {
        Self(Mutex::new(KeyCostTable::new(now)))
    }

    /// The key in words, if it is known here. Otherwise, whether a request of it shall bring it in.
    pub fn words(&self, key: u64, now: Instant) -> Result<Arc<str>, bool> {
        self.with(|costs| costs.words(key).ok_or_else(|| costs.wants(now)))
    }

    /// The keys that have cost the most in the last minute, the dearest first.
    pub fn view(&self, now: Instant) -> Vec<FairKeyView> {
        self.with(|costs| {
            let (keys, all) = costs.dearest(|cost| cost.hold, now);
            let view = |known: &KeyCost| FairKeyView {
                key: known.words.to_string(),
                share_percent: percent(known.spans.minute(now).hold, all),
                worker_ms: known.spans.by_span(now, |cost| millis(cost.hold)),
                requests: known.requests,
                refused: known.refused,
            };
            keys.into_iter().map(view).collect()
        })
    }

    /// The same as rows of a ledger. `is_measured`: the CPU time is known.
    pub fn rows(&self, is_measured: bool, now: Instant) -> Vec<LedgerRow> {
        self.with(|costs| costs.rows(is_measured, now))
    }

    fn with<T>(&self, act: impl FnOnce(&mut KeyCostTable) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_dearest_keys_come_first_with_their_share() {
        let (costs, now) = (Arc::new(KeyCosts::new(Instant::now())), Instant::now());
        let charge =
            |key, words: &str| FairCharge { costs: costs.clone(), key, words: words.into(), is_new: true };
        let (crawler, person) = (charge(1, "crawler"), charge(2, "person"));
        let held = |millis| Cost { hold: Duration::from_millis(millis), ..Cost::default() };
        for _ in 0..30 {
            crawler.pay(held(100), now);
            crawler.end(Duration::ZERO, false, now);
            person.pay(held(25), now);
            person.end(Duration::ZERO, false, now);
        }
        person.end(Duration::ZERO, true, now);
        let seen = costs.view(now);
        assert_eq!(
            seen.iter().map(|key| (&*key.key, key.share_percent)).collect::<Vec<_>>(),
            [("crawler", 80.0), ("person", 20.0)]
        );
        assert_eq!(seen[0].worker_ms, BySpan { minute: 3000, quarter: 3000, day: 3000 });
        assert_eq!((seen[1].requests, seen[1].refused), (31, 1));
    }
}
