//! Counts the answers of a route by status class and refusal. Knows no requests, only their log facts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::LogFacts;

/// The counters of one route. They only grow.
#[derive(Debug, Default)]
pub struct Counters {
    /// 1xx .. 5xx; the first is for requests without an answer.
    classes: [AtomicU64; 6],
    retries: AtomicU64,
    aborted: AtomicU64,
    /// A lock is cheap enough, because refusals are rare.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    fallbacks: Mutex<BTreeMap<&'static str, u64>>,
    cache: [AtomicU64; CACHED.len()],
}

/// The results of a cache, as in the access log.
const CACHED: [&str; 7] = ["hit", "stale", "collapsed", "validated", "miss", "bypass", "pass"];

/// The counters at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct CountersView {
    pub answers: BTreeMap<&'static str, u64>,
    /// Refusals by reason.
    pub refusals: BTreeMap<&'static str, u64>,
    /// Fallbacks instead of a refusal, by the refusal's reason.
    pub fallbacks: BTreeMap<&'static str, u64>,
    /// Results of the route's cache. Empty without one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cache: BTreeMap<&'static str, u64>,
    /// Further members that requests were sent to after the first one.
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
