//! Rate limits of routes and pools: who may send how many requests, or take how much worker time, in a time. Knows no queue.
//!
//! A request is refused before its body is taken. What it costs a worker is known when its slot comes back, and charged then (`exchange/request_account.rs`).

mod show;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hostler_config::RateLimit;
use serde::Serialize;

use super::refusal::Refusal;
use super::request_key::{ClientNetwork, KeyPart, RequestKeys};
use crate::exchange::{BucketCharge, Empty, Exchange, Left, Refill, TokenBuckets, clock};

/// The reason in the log, for a dry run as well.
const REASON: &str = "rate_limited";
/// Which addresses are one client.
const CLIENT: ClientNetwork = ClientNetwork::HOST;

/// What a limit belongs to. Its text is the name of its policy in `RateLimit-Policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitScope {
    Route,
    /// All configured routes to a pool together.
    Pool,
}

impl LimitScope {
    fn as_str(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Pool => "pool",
        }
    }
}

/// A rate limit with the buckets of its keys.
#[derive(Debug)]
pub struct RateLimiter {
    scope: LimitScope,
    /// The name of the route or the pool.
    name: Arc<str>,
    rule: RateLimit,
    from: RequestKeys,
    /// A random one, so that clients cannot choose keys that collide.
    hasher: RandomState,
    requests: Option<TokenBuckets>,
    /// In microseconds.
    worker_time: Option<Arc<TokenBuckets>>,
    counts: Arc<LimitCounts>,
}

/// What a limit has refused. A reload that changes the rule goes on with the counts: metrics only grow.
#[derive(Debug, Default)]
struct LimitCounts {
    refused: AtomicU64,
    would_refuse: AtomicU64,
}

/// A rate limit in the status.
#[derive(Debug, Clone, Serialize)]
pub struct RateLimitView {
    /// The limit in words.
    pub limit: String,
    /// How many keys have a bucket that is not full, or was not when it was last looked at.
    pub keys: usize,
    /// How many requests were refused.
    pub refused: u64,
    /// How many requests would have been refused, if it were not a dry run.
    pub would_refuse: u64,
}

/// What a limit says about a request that passes.
struct Passed {
    key: u64,
    left: Option<Left>,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitUnit {
    Requests,
    WorkerTime,
}

/// A bucket has nothing left.
struct EmptyBucket {
    of: LimitUnit,
    /// When it has something again.
    wait: Duration,
}

impl RateLimiter {
    /// The rate limit of the route or pool with this name. `before`: its limit before a reload. The counts of that limit go on, and its
    /// buckets too if the rule is the same.
    pub fn new(
        scope: LimitScope,
        name: &Arc<str>,
        rule: Option<&RateLimit>,
        before: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let rule = rule?;
        if let Some(same) = before.filter(|before| before.rule == *rule) {
            return Some(same.clone());
        }
        let now = clock::now();
        let requests = rule
            .requests
            .map(|rate| TokenBuckets::new(Refill::new(rate.requests, rule.per, rate.burst), now));
        let worker_time = rule.worker_time.map(|time| {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            Arc::new(TokenBuckets::new(Refill::of_charges(micros, rule.per), now))
        });
        Some(Arc::new(Self {
            scope,
            name: name.clone(),
            rule: rule.clone(),
            from: RequestKeys::new(&rule.key, CLIENT),
            hasher: RandomState::new(),
            requests,
            worker_time,
            counts: before.map(|before| before.counts.clone()).unwrap_or_default(),
        }))
    }

    /// For the status.
    pub fn view(&self) -> RateLimitView {
        let of_time = self.worker_time.as_ref().map_or(0, |buckets| buckets.len());
        RateLimitView {
            limit: self.rule.to_string(),
            keys: self.requests.as_ref().map_or(of_time, |buckets| buckets.len().max(of_time)),
            refused: self.counts.refused.load(Ordering::Relaxed),
            would_refuse: self.counts.would_refuse.load(Ordering::Relaxed),
        }
    }

    /// The key of the request. `None`: it has none, and is not limited.
    fn key<'a>(&'a self, exchange: &'a Exchange) -> Option<(u64, KeyPart<'a>)> {
        let part = self.from.of(exchange);
        let is_limited = self.rule.key.is_empty() || !matches!(part, KeyPart::None);
        is_limited.then(|| (self.hasher.hash_one(&part), part))
    }

    /// Takes a token for the request, if it has a key.
    fn take(&self, key: u64) -> Result<Option<Left>, EmptyBucket> {
        let now = clock::now();
        if let Some(buckets) = &self.worker_time {
            buckets.look(key, now).map_err(|Empty(wait)| EmptyBucket { wait, of: LimitUnit::WorkerTime })?;
        }
        let taken = self.requests.as_ref().map(|buckets| buckets.take(key, now)).transpose();
        taken.map_err(|Empty(wait)| EmptyBucket { wait, of: LimitUnit::Requests })
    }

    /// How long from now on this limit refuses requests like this one. Zero: it lets one pass now.
    fn wait(&self, exchange: &Exchange) -> Duration {
        let Some((key, _)) = self.key(exchange).filter(|_| !self.rule.dry_run) else { return Duration::ZERO };
        let now = clock::now();
        let of_time = self.worker_time.as_ref().and_then(|buckets| buckets.look(key, now).err());
        let of_requests = self.requests.as_ref().map(|buckets| buckets.wait(key, now));
        of_time.map(|Empty(wait)| wait).max(of_requests).unwrap_or_default()
    }

    fn give_back(&self, key: u64) {
        if let Some(buckets) = &self.requests {
            buckets.give_back(key);
        }
    }
}

/// Refuses the request if one of the limits does. Then no limit loses a token, so that refused requests use up nothing. Without limits this
/// is one look at an empty slice.
pub(super) fn admit(limits: &[Arc<RateLimiter>], exchange: &mut Exchange) -> Result<(), Refusal> {
    if limits.is_empty() {
        return Ok(());
    }
    // There are two at most: of the route and of its pool.
    let mut passed: [Option<Passed>; 2] = [None, None];
    for (at, limit) in limits.iter().enumerate().take(passed.len()) {
        let Some((key, part)) = limit.key(exchange) else { continue };
        match limit.take(key) {
            Ok(left) => passed[at] = Some(Passed { key, left }),
            Err(_) if limit.rule.dry_run => {
                limit.counts.would_refuse.fetch_add(1, Ordering::Relaxed);
                let detail = limit.detail(&limit.from.words(&part, key));
                exchange.log_facts.would_refuse = Some(REASON);
                exchange.log_facts.detail = Some(detail);
                // The request runs only because this is a dry run. It takes nothing from the buckets: otherwise the key would get a debt
                // that it would not have if the limit were in force.
            }
            Err(spent) => {
                limit.counts.refused.fetch_add(1, Ordering::Relaxed);
                let detail = limit.detail(&limit.from.words(&part, key));
                for (limit, passed) in limits.iter().zip(&passed) {
                    if let Some(Passed { key, left: Some(_) }) = passed {
                        limit.give_back(*key);
                    }
                }
                // The other bucket of the limit, or that of the other limit, may be empty for longer.
                let wait = limits.iter().map(|limit| limit.wait(exchange)).fold(spent.wait, Duration::max);
                return Err(limit.refuse(exchange, &spent, wait, detail));
            }
        }
    }
    for (limit, passed) in limits.iter().zip(passed) {
        let Some(Passed { key, left }) = passed else { continue };
        if let Some(buckets) = &limit.worker_time {
            exchange.log_facts.charges.push(BucketCharge { buckets: buckets.clone(), key });
        }
        if let Some(left) = left.filter(|_| limit.rule.fields) {
            limit.show(exchange, left);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
