//! What the keys of a fair pool have cost. Knows no requests.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The worker time of its requests, in milliseconds, as the pool charges it: with one second for each of `unanswered`, and at least
    /// the average for a request whose client has left before its response.
    pub worker_ms: BySpan,
    /// How many of its requests have ended since it came into the list.
    pub requests: u64,
    /// How many of them Hostler has refused.
    pub refused: u64,
    /// How many times a worker ended one of them without an answer: it died, or closed the connection.
    pub unanswered: u64,
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

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut KeyCostTable) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
