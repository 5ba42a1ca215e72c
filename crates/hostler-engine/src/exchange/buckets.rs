//! Token buckets by key, in bounded memory: the generic cell rate algorithm (GCRA, ITU-T I.371). Does not know what the keys stand for.
//!
//! A bucket is one number: the time at which it is full again. Tokens are counted as the time in which they come back, so a bucket refills
//! by itself, and a bucket that is full is forgotten. At most [`MOST_KEYS`] buckets are kept. If there are more keys, those go first that are
//! full or nearly full: forgetting them gives away the least.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::{HashMap, HashMapExt};
use tokio::time::Instant;

/// With this many tables, threads that look up different keys rarely wait for the same lock.
const TABLES: usize = 64;
/// The most buckets in one table.
const MOST_OF_TABLE: usize = 1024;
/// The most buckets: 2 MB.
pub const MOST_KEYS: usize = TABLES * MOST_OF_TABLE;

/// How fast a bucket refills, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refill {
    /// How many tokens come back ...
    tokens: u64,
    /// ... in how many nanoseconds.
    per: u64,
    /// In how many nanoseconds one token comes back.
    interval: u64,
    /// In how many nanoseconds an empty bucket is full.
    depth: u64,
}

impl Refill {
    /// A bucket of `burst` tokens, of which `tokens` come back in the time `per`. The interval is rounded up, so that never more come back.
    pub fn new(tokens: u64, per: Duration, burst: u64) -> Self {
        let (tokens, per) = (tokens.max(1), nanos(per));
        let interval = per.div_ceil(tokens).max(1);
        Self { tokens, per, interval, depth: interval.saturating_mul(burst) }
    }

    /// A bucket for [`TokenBuckets::charge`] that holds as many tokens as come back in the time `per`. Its depth is not a multiple of the
    /// rounded interval: with many tokens, one comes back in less than a nanosecond.
    pub fn of_charges(tokens: u64, per: Duration) -> Self {
        Self { depth: nanos(per), ..Self::new(tokens, per, 1) }
    }

    /// In how many nanoseconds so many tokens come back.
    fn time_of(self, tokens: u64) -> u64 {
        let nanos = (u128::from(self.per) * u128::from(tokens)).div_ceil(u128::from(self.tokens));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// The state of a bucket after a request has taken a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// How many whole tokens are left.
    pub tokens: u64,
    /// When one more comes.
    pub next: Duration,
}

/// The bucket has no token. One comes after this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Empty(pub Duration);

/// The buckets of one limit.
#[derive(Debug)]
pub struct TokenBuckets {
    refill: Refill,
    /// Times are counted from here.
    zero: Instant,
    /// By key: when the bucket is full, in nanoseconds. No entry: it is full.
    tables: [Mutex<HashMap<u64, u64>>; TABLES],
}

impl TokenBuckets {
    /// All buckets are full.
    pub fn new(refill: Refill, now: Instant) -> Self {
        Self { refill, zero: now, tables: std::array::from_fn(|_| Mutex::new(HashMap::new())) }
    }

    /// Takes one token.
    pub fn take(&self, key: u64, now: Instant) -> Result<Left, Empty> {
        let Refill { interval, depth, .. } = self.refill;
        let now = self.at(now);
        let mut table = self.table(key);
        let full_at = table.get(&key).copied().unwrap_or_default().max(now).saturating_add(interval);
        let missing = full_at - now;
        if missing > depth {
            return Err(Empty(Duration::from_nanos(missing - depth)));
        }
        put(&mut table, key, full_at, now);
        let left = depth - missing;
        Ok(Left { tokens: left / interval, next: Duration::from_nanos(interval - left % interval) })
    }

    /// Gives back a token that was taken.
    pub fn give_back(&self, key: u64) {
        if let Some(full_at) = self.table(key).get_mut(&key) {
            *full_at = full_at.saturating_sub(self.refill.interval);
        }
    }

    /// Whether the bucket has anything left, without taking it.
    pub fn look(&self, key: u64, now: Instant) -> Result<(), Empty> {
        let missing = self.missing(key, now);
        // The wait until there is more than nothing: one nanosecond's worth.
        let wait = (missing + 1).checked_sub(self.refill.depth).filter(|wait| *wait > 0);
        wait.map_or(Ok(()), |wait| Err(Empty(Duration::from_nanos(wait))))
    }

    /// How long it takes until the bucket has a whole token. Zero: it has one now. Takes no token.
    pub fn wait(&self, key: u64, now: Instant) -> Duration {
        let Refill { interval, depth, .. } = self.refill;
        Duration::from_nanos(self.missing(key, now).saturating_add(interval).saturating_sub(depth))
    }

    /// Takes these tokens, whether they are there or not. A bucket in debt is empty until the debt is paid.
    pub fn charge(&self, key: u64, tokens: u64, now: Instant) {
        let now = self.at(now);
        let mut table = self.table(key);
        let full_at = table.get(&key).copied().unwrap_or_default().max(now);
        let full_at = full_at.saturating_add(self.refill.time_of(tokens));
        put(&mut table, key, full_at, now);
    }

    /// How many buckets are kept. Some of them may be full meanwhile.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| lock(table).len()).sum()
    }

    /// Whether no bucket is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In how many nanoseconds the bucket is full.
    fn missing(&self, key: u64, now: Instant) -> u64 {
        let full_at = self.table(key).get(&key).copied().unwrap_or_default();
        full_at.saturating_sub(self.at(now))
    }

    fn at(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.zero))
    }

    fn table(&self, key: u64) -> MutexGuard<'_, HashMap<u64, u64>> {
        lock(&self.tables[(key >> 32) as usize % TABLES])
    }
}

fn put(table: &mut HashMap<u64, u64>, key: u64, full_at: u64, now: u64) {
    if table.len() >= MOST_OF_TABLE && !table.contains_key(&key) {
        make_room(table, now);
    }
    table.insert(key, full_at);
}

/// Forgets the buckets that are full, and the fullest of the others until half of the room is free: then it happens once for many new keys.
fn make_room(table: &mut HashMap<u64, u64>, now: u64) {
    table.retain(|_, full_at| *full_at > now);
    let Some(excess) = table.len().checked_sub(MOST_OF_TABLE / 2).filter(|excess| *excess > 0) else {
        return;
    };
    let mut by_age: Vec<_> = table.iter().map(|(key, full_at)| (*full_at, *key)).collect();
    by_age.sort_unstable();
    for (_, key) in &by_age[..excess] {
        table.remove(key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A bucket of worker time that a request is charged to when its slot comes back. Its tokens are microseconds.
#[derive(Debug, Clone)]
pub struct BucketCharge {
    /// Where it is charged.
    pub buckets: Arc<TokenBuckets>,
    /// The hash of the key.
    pub key: u64,
}

impl BucketCharge {
    /// A slot was held for this long.
    pub fn settle(&self, worker: Duration, now: Instant) {
        let micros = u64::try_from(worker.as_micros()).unwrap_or(u64::MAX);
        if micros > 0 {
            self.buckets.charge(self.key, micros, now);
        }
    }
}

#[cfg(test)]
mod tests;
