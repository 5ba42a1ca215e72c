//! What a route has answered, by status class and by refusal. Knows no requests beyond their trail.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::LogFacts;

/// Counters of one route; they only grow.
#[derive(Debug, Default)]
pub struct Counters {
    /// 1xx .. 5xx; the first for what was never answered.
    classes: [AtomicU64; 6],
    retries: AtomicU64,
    aborted: AtomicU64,
    /// Refusals are rare enough for a lock.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    fallbacks: Mutex<BTreeMap<&'static str, u64>>,
    cache: [AtomicU64; CACHED.len()],
}

/// What a cache can have done, as in the access log.
const CACHED: [&str; 7] = ["hit", "stale", "collapsed", "validated", "miss", "bypass", "pass"];

/// Counters of one moment.
#[derive(Debug, Clone, Serialize)]
pub struct CountersView {
    /// Answers by status class.
    pub answers: BTreeMap<&'static str, u64>,
    /// Answers of our own by reason.
    pub refusals: BTreeMap<&'static str, u64>,
    /// Fallbacks instead of a refusal, by its reason.
    pub fallbacks: BTreeMap<&'static str, u64>,
    /// What the route's cache did; empty without one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cache: BTreeMap<&'static str, u64>,
    /// Requests that were sent to more than one member, counted once for each further one.
    pub retries: u64,
    /// Transfers that did not complete.
    pub aborted: u64,
}

impl Counters {
    /// Counts an exchange that has ended.
    pub fn count(&self, log_facts: &LogFacts) {
        let class = usize::from(log_facts.status / 100).min(5);
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        if log_facts.attempts > 1 {
            self.retries.fetch_add(u64::from(log_facts.attempts - 1), Ordering::Relaxed);
        }
        if let Some(cached) = log_facts.cached()
            && let Some(at) = CACHED.iter().position(|word| *word == cached)
        {
            self.cache[at].fetch_add(1, Ordering::Relaxed);
        }
        if log_facts.aborted.is_some() {
            self.aborted.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(reason) = log_facts.refusal {
            let reasons = if log_facts.fallback { &self.fallbacks } else { &self.refusals };
            *reasons.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
        }
    }

    /// The figures of this moment.
    pub fn view(&self) -> CountersView {
        let names = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];
        let counts = self.classes.iter().map(|count| count.load(Ordering::Relaxed));
        CountersView {
            answers: names
                .into_iter()
                .zip(counts)
                .filter(|(name, n)| *n > 0 || !matches!(*name, "none" | "1xx"))
                .collect(),
            refusals: self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            fallbacks: self.fallbacks.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            cache: CACHED
                .into_iter()
                .zip(self.cache.iter().map(|count| count.load(Ordering::Relaxed)))
                .filter(|(_, n)| *n > 0)
                .collect(),
            retries: self.retries.load(Ordering::Relaxed),
            aborted: self.aborted.load(Ordering::Relaxed),
        }
    }
}
