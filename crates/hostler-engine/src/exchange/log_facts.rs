//! The facts of an exchange for the log, and the counters of a route, which count them. Knows no requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_cache::{CacheStatus, Forward};
use serde::Serialize;

use super::buckets::BucketCharge;
use super::durations::{Durations, DurationsView, RequestKind};
use super::expected_cost::ExpectedCost;
use super::request_account::FairCharge;

/// Facts for the log: where an exchange went and how it ended.
#[derive(Debug, Clone, Default)]
pub struct LogFacts {
    /// The route's pattern as configured.
    pub route: Option<Arc<str>>,
    /// The pool's name.
    pub pool: Option<Arc<str>>,
    /// The member that answered, or the last one that was tried.
    pub member: Option<Arc<str>>,
    /// How many members were tried.
    pub attempts: u32,
    /// How many requests were in the pool's queue on arrival. None if the request has not asked for a slot.
    pub queue_length: Option<usize>,
    /// How many other requests the member had when it got this one. None if no member got it.
    pub in_use: Option<usize>,
    /// Why the request went to another member than those of the same client before.
    pub moved: Option<&'static str>,
    /// The status that was sent to the client. 0: none.
    pub status: u16,
    /// The status of the answer to the last attempt. None: there is none. The client may get another one, such as that of a stored answer.
    pub member_status: Option<u16>,
    /// The reason of a refusal.
    pub refusal: Option<&'static str>,
    /// The answer is the route's fallback.
    pub fallback: bool,
    /// Seconds after which a retry may succeed, as the pool estimates it.
    pub retry_after: u32,
    /// A further explanation for the operator.
    pub detail: Option<String>,
    /// Which side broke the answer off.
    pub aborted: Option<&'static str>,
    /// Which side ended the answer, if it was a stream.
    pub stream_end: Option<&'static str>,
    /// The result of the cache. None for a route without one.
    pub cache: Option<CacheStatus>,
    /// The age in seconds of an answer from the cache.
    pub age: Option<u64>,
    /// Why the request has low priority, if its route has a higher one.
    pub low: Option<&'static str>,
    /// How many links the client got in a 103 (Early Hints) while the request waited.
    pub early_hints: u32,
    /// What became of a second try at another member: `won` or `lost`. None: there was none.
    pub hedge: Option<&'static str>,
    /// What the request is expected to cost, in a pool that serves short ones first.
    pub expected: Option<Box<ExpectedCost>>,
    /// The key under which the request shares the slots of a fair pool.
    pub fair: Option<Arc<FairCharge>>,
    /// The buckets of worker time that are charged when the slot of the request comes back.
    pub charges: Vec<BucketCharge>,
    /// The reason for which Hostler would have refused the request, if the rule were not a dry run.
    pub would_refuse: Option<&'static str>,
    /// Body bytes sent to the client.
    pub bytes_out: u64,
    /// Body bytes received from the client.
    pub bytes_in: u64,
}

/// The counters of one route. They only grow.
#[derive(Debug, Default)]
pub struct Counters {
    durations: Durations,
    retries: AtomicU64,
    aborted: AtomicU64,
    early_hints: AtomicU64,
    /// A lock is cheap enough, because refusals are rare.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    fallbacks: Mutex<BTreeMap<&'static str, u64>>,
    cache: [AtomicU64; CACHED.len()],
    /// In nanoseconds. Counted when the ledger takes it into its sums.
    worker_cpu: AtomicU64,
}

/// The results of a cache, as in the access log.
const CACHED: [&str; 7] = ["hit", "stale", "collapsed", "validated", "miss", "bypass", "pass"];

/// The counters at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct CountersView {
    pub answers: BTreeMap<&'static str, u64>,
    /// How long the requests took, for the metrics.
    #[serde(skip)]
    pub durations: Vec<DurationsView>,
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
    /// The CPU time that workers used for its requests, for the metrics.
    #[serde(skip)]
    pub worker_cpu: Duration,
}

impl LogFacts {
    /// The result of the cache as one word.
    pub fn cached(&self) -> Option<&'static str> {
        Some(match self.cache? {
            CacheStatus::Hit { ttl: 0.. } => "hit",
            CacheStatus::Hit { .. } => "stale",
            CacheStatus::Forwarded { collapsed: true, .. } => "collapsed",
            CacheStatus::Forwarded { status: Some(304), stored: true, .. } => "validated",
            CacheStatus::Forwarded { stored: true, .. } => "miss",
            CacheStatus::Forwarded { .. } if self.age.is_some() => "stale",
            CacheStatus::Forwarded { why: Forward::Bypass | Forward::Method, .. } => "bypass",
            CacheStatus::Forwarded { .. } => "pass",
            CacheStatus::OnlyIfCached => return None,
        })
    }
}

impl Counters {
    /// Counts an exchange that has ended.
    pub fn count(&self, kind: RequestKind, time: Duration, log_facts: &LogFacts) {
        self.durations.record(kind, time);
        if log_facts.attempts > 1 {
            self.retries.fetch_add(u64::from(log_facts.attempts - 1), Ordering::Relaxed);
        }
        if let Some(cached) = log_facts.cached()
            && let Some(at) = CACHED.iter().position(|word| *word == cached)
        {
            self.cache[at].fetch_add(1, Ordering::Relaxed);
        }
        if log_facts.early_hints > 0 {
            self.early_hints.fetch_add(1, Ordering::Relaxed);
        }
        if log_facts.aborted.is_some() {
            self.aborted.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(reason) = log_facts.refusal {
            let reasons = if log_facts.fallback { &self.fallbacks } else { &self.refusals };
            *reasons.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
        }
    }

    /// Workers have used this much CPU time for a request.
    pub fn add_cpu(&self, cpu: Duration) {
        self.worker_cpu.fetch_add(u64::try_from(cpu.as_nanos()).unwrap_or(0), Ordering::Relaxed);
    }

    /// How many requests got a 103 from Hostler.
    pub fn early_hints(&self) -> u64 {
        self.early_hints.load(Ordering::Relaxed)
    }

    pub fn view(&self) -> CountersView {
        let names = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];
        CountersView {
            answers: names
                .into_iter()
                .zip(self.durations.classes())
                .filter(|(name, n)| *n > 0 || !matches!(*name, "none" | "1xx"))
                .collect(),
            durations: self.durations.view(),
            refusals: self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            fallbacks: self.fallbacks.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            cache: CACHED
                .into_iter()
                .zip(self.cache.iter().map(|count| count.load(Ordering::Relaxed)))
                .filter(|(_, n)| *n > 0)
                .collect(),
            retries: self.retries.load(Ordering::Relaxed),
            aborted: self.aborted.load(Ordering::Relaxed),
            worker_cpu: Duration::from_nanos(self.worker_cpu.load(Ordering::Relaxed)),
        }
    }
}
