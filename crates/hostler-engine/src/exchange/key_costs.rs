//! What the keys of a fair pool have cost. Knows no requests.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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
    /// The worker time of its requests, in milliseconds, as the pool charges it: with one second for each of `unanswered`.
    pub worker_ms: BySpan,
    /// How many of its requests have ended since it came into the list.
    pub requests: u64,
    /// How many of them Hostler has refused.
    pub refused: u64,
    /// How many times a worker ended one of them without an answer: it died, or closed the connection.
    pub unanswered: u64,
}

/// The key of one request, which is charged when its slot comes back and when it ends.
#[derive(Debug)]
pub struct FairCharge {
    /// Where it is charged.
    pub costs: Arc<KeyCosts>,
    /// The hash of the key.
    pub key: u64,
    /// What the key is. It is put into words when they are wanted: among thousands of keys few are ever seen.
    pub name: KeyName,
    /// Whether the request brings the key in, if it is not among those that are kept. Decided once.
    brings_in: OnceLock<bool>,
}

/// What a key is, without the value of a header field or a cookie, which may be a secret. [`KeyWords`] puts it into words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyName {
    /// All addresses of a network. `prefix`: the length of what they have in common, in bits, if they are several.
    Client {
        /// The first address.
        network: IpAddr,
        /// `None`: it is one address.
        prefix: Option<u8>,
    },
    /// A crawler, by its name.
    Crawler(Box<str>),
    /// Crawlers whose networks have come under other names before.
    OtherCrawlers,
    /// One value of this header field.
    Header(Arc<str>),
    /// One value of this cookie.
    Cookie(Arc<str>),
    /// All requests that have none of these.
    None,
}

/// A key in words. Values of header fields and cookies are told apart by a short hash.
#[derive(Debug, Clone, Copy)]
pub struct KeyWords<'a> {
    /// What the key is.
    pub name: &'a KeyName,
    /// The hash of the key.
    pub key: u64,
}

/// What the keys of a pool have cost.
#[derive(Debug)]
pub struct KeyCosts(Mutex<KeyCostTable>);

impl fmt::Display for KeyWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = self.key & 0xFF_FFFF;
        match self.name {
            KeyName::Client { network, prefix: None } => write!(f, "client {network}"),
            KeyName::Client { network, prefix: Some(prefix) } => write!(f, "client {network}/{prefix}"),
            KeyName::Crawler(name) => write!(f, "crawler {name}"),
            KeyName::OtherCrawlers => f.write_str("other crawlers"),
            KeyName::Header(name) => write!(f, "header {name} #{hash:06x}"),
            KeyName::Cookie(name) => write!(f, "cookie {name} #{hash:06x}"),
            KeyName::None => f.write_str("no key"),
        }
    }
}

impl FairCharge {
    /// Nothing is charged yet.
    pub fn new(costs: Arc<KeyCosts>, key: u64, name: KeyName) -> Self {
        Self { costs, key, name, brings_in: OnceLock::new() }
    }

    /// The key in words.
    pub fn words(&self) -> KeyWords<'_> {
        KeyWords { name: &self.name, key: self.key }
    }

    /// A slot of the request has cost this much.
    pub(super) fn pay(&self, cost: Cost, now: Instant) {
        self.add(cost, false, now);
    }

    /// A worker ended the request without an answer, and its key is charged this much besides.
    pub(super) fn pay_besides(&self, besides: Duration, now: Instant) {
        self.add(Cost { besides, ..Cost::default() }, false, now);
    }

    /// The request has ended, after this time in the queue.
    pub(super) fn end(&self, queue: Duration, is_refused: bool, now: Instant) {
        self.add(Cost { requests: 1, queue, ..Cost::default() }, is_refused, now);
    }

    fn add(&self, cost: Cost, is_refused: bool, now: Instant) {
        self.costs.with(|costs| {
            if !costs.add(self.key, cost, is_refused, now) && *self.brings_in.get_or_init(|| costs.wants(now))
            {
                costs.bring_in(self.key, self.words().to_string().into(), cost, is_refused, now);
            }
        });
    }
}

impl KeyCosts {
    /// Nothing has cost anything yet.
    pub fn new(now: Instant) -> Self {
        Self(Mutex::new(KeyCostTable::new(now)))
    }

    /// The keys that have cost the most in the last minute, the dearest first.
    pub fn view(&self, now: Instant) -> Vec<FairKeyView> {
        self.with(|costs| {
            let (keys, all) = costs.dearest(Cost::charged, now);
            let view = |known: &KeyCost| FairKeyView {
                key: known.words.to_string(),
                share_percent: percent(known.spans.minute(now).charged(), all),
                worker_ms: known.spans.by_span(now, |cost| millis(cost.charged())),
                requests: known.requests,
                refused: known.refused,
                unanswered: known.unanswered,
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
        let charge = |key, name: &str| FairCharge::new(costs.clone(), key, KeyName::Crawler(name.into()));
        let (robot, other) = (charge(1, "Robot"), charge(2, "Other"));
        let held = |millis| Cost { hold: Duration::from_millis(millis), ..Cost::default() };
        for _ in 0..30 {
            robot.pay(held(100), now);
            robot.end(Duration::ZERO, false, now);
            other.pay(held(25), now);
            other.end(Duration::ZERO, false, now);
        }
        other.end(Duration::ZERO, true, now);
        let deadly = charge(3, "Deadly");
        deadly.pay_besides(Duration::from_secs(1), now);
        let seen = costs.view(now);
        assert_eq!(
            seen.iter().map(|key| (&*key.key, key.share_percent)).collect::<Vec<_>>(),
            [("crawler Robot", 63.2), ("crawler Deadly", 21.1), ("crawler Other", 15.8)]
        );
        assert_eq!(seen[0].worker_ms, BySpan { minute: 3000, quarter: 3000, day: 3000 });
        assert_eq!((seen[2].requests, seen[2].refused, seen[2].unanswered), (31, 1, 0));
        assert_eq!((seen[1].worker_ms.minute, seen[1].unanswered), (1000, 1));
    }
}
