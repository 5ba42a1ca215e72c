//! What the keys of a fair pool have cost in the last minute, 15 minutes and day, in bounded memory. Knows no requests.
//!
//! At most [`MOST_KEYS`] keys are kept. A new key takes the place of the one that has cost the least in the last 15 minutes, so
//! the keys that cost much stay.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::{HashMap, HashMapExt};
use serde::Serialize;
use tokio::time::Instant;

/// The most keys that are kept.
const MOST_KEYS: usize = 256;
/// The most keys in the status.
const MOST_SHOWN: usize = 10;

const MINUTE: Duration = Duration::from_secs(60);
const QUARTER: Duration = Duration::from_secs(15 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the requests of one key have cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FairKeyView {
    /// The key in words. Of a header field or a cookie it shows a short hash in place of the value.
    pub key: String,
    /// Its part of the worker time of all keys in the last minute, in percent.
    pub share_percent: f64,
    /// The worker time of its requests, in milliseconds.
    pub worker_ms: WorkerMillis,
    /// How many of its requests have ended since it came into the list.
    pub requests: u64,
    /// How many of them Hostler has refused.
    pub refused: u64,
}

/// A time by the span over which it was summed up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WorkerMillis {
    /// The last minute.
    #[serde(rename = "1m")]
    pub minute: u64,
    /// The last 15 minutes.
    #[serde(rename = "15m")]
    pub quarter: u64,
    /// The last day.
    #[serde(rename = "1d")]
    pub day: u64,
}

/// What one request has cost.
#[derive(Debug, Clone, Copy)]
pub struct RequestCost {
    /// How long it held its slot.
    pub worker: Duration,
    /// Hostler has refused it.
    pub is_refused: bool,
}

/// The key of one request, which is charged at its end.
#[derive(Debug, Clone)]
pub struct FairCharge {
    /// Where it is charged.
    pub costs: Arc<KeyCosts>,
    /// The hash of the key.
    pub key: u64,
    /// The key in words. None: `costs` knows it.
    pub words: Option<Box<str>>,
}

/// What the keys of a pool have cost.
#[derive(Debug)]
pub struct KeyCosts(Mutex<Costs>);

#[derive(Debug)]
struct Costs {
    keys: HashMap<u64, KeyCost>,
    all: Spans,
}

#[derive(Debug)]
struct KeyCost {
    words: Box<str>,
    spans: Spans,
    requests: u64,
    refused: u64,
}

/// Sums over the three spans.
#[derive(Debug, Clone, Copy)]
struct Spans([SlidingSum; 3]);

/// A sum over a span that moves with time: the current piece, and the part of the one before that the span still covers.
#[derive(Debug, Clone, Copy)]
struct SlidingSum {
    span: Duration,
    began: Instant,
    before: Duration,
    current: Duration,
}

impl FairCharge {
    /// The request has ended.
    pub fn settle(&self, cost: RequestCost, now: Instant) {
        self.costs.with(|costs| costs.add(self.key, cost, now, self.words.as_deref()));
    }
}

impl KeyCosts {
    /// Nothing has cost anything yet.
    pub fn new(now: Instant) -> Self {
        Self(Mutex::new(Costs::new(now)))
    }

    /// Whether the key has a name here.
    pub fn knows(&self, key: u64) -> bool {
        self.with(|costs| costs.keys.contains_key(&key))
    }

    /// The keys that have cost the most in the last minute, the dearest first.
    pub fn view(&self, now: Instant) -> Vec<FairKeyView> {
        self.with(|costs| costs.view(now))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Costs) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Costs {
    fn new(now: Instant) -> Self {
        Self { keys: HashMap::new(), all: Spans::new(now) }
    }

    /// A request of this key has ended. Without words, a key that is not known any more was cheap, and stays away.
    fn add(&mut self, key: u64, cost: RequestCost, now: Instant, words: Option<&str>) {
        self.all.add(cost.worker, now);
        if let (Some(words), false) = (words, self.keys.contains_key(&key)) {
            if self.keys.len() == MOST_KEYS {
                self.drop_cheapest(now);
            }
            let new = KeyCost { words: words.into(), spans: Spans::new(now), requests: 0, refused: 0 };
            self.keys.insert(key, new);
        }
        let Some(known) = self.keys.get_mut(&key) else { return };
        known.spans.add(cost.worker, now);
        known.requests += 1;
        known.refused += u64::from(cost.is_refused);
    }

    /// Drops the cheaper half: then it happens once for many new keys.
    fn drop_cheapest(&mut self, now: Instant) {
        let mut costs: Vec<_> =
            self.keys.iter().map(|(key, known)| (known.spans.0[1].at(now), *key)).collect();
        costs.sort_unstable();
        for (_, key) in &costs[..MOST_KEYS / 2] {
            self.keys.remove(key);
        }
    }

    /// The keys that have cost the most in the last minute, the dearest first.
    fn view(&self, now: Instant) -> Vec<FairKeyView> {
        let all = self.all.0[0].at(now).as_secs_f64();
        let mut keys: Vec<_> = self.keys.values().collect();
        keys.sort_by_key(|known| std::cmp::Reverse((known.spans.0[0].at(now), known.refused)));
        keys.truncate(MOST_SHOWN);
        let view = |known: &KeyCost| {
            let [minute, quarter, day] = known.spans.0.map(|sum| sum.at(now));
            let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let share = if all > 0.0 { minute.as_secs_f64() / all } else { 0.0 };
            FairKeyView {
                key: known.words.to_string(),
                share_percent: (share * 1000.0).round() / 10.0,
                worker_ms: WorkerMillis {
                    minute: millis(minute),
                    quarter: millis(quarter),
                    day: millis(day),
                },
                requests: known.requests,
                refused: known.refused,
            }
        };
        keys.into_iter().map(view).collect()
    }
}

impl Spans {
    fn new(now: Instant) -> Self {
        Self([MINUTE, QUARTER, DAY].map(|span| SlidingSum {
            span,
            began: now,
            before: Duration::ZERO,
            current: Duration::ZERO,
        }))
    }

    fn add(&mut self, cost: Duration, now: Instant) {
        for sum in &mut self.0 {
            *sum = sum.moved(now);
            sum.current += cost;
        }
    }
}

impl SlidingSum {
    /// The same sum with the pieces of this moment.
    fn moved(self, now: Instant) -> Self {
        let elapsed = now.saturating_duration_since(self.began);
        if elapsed < self.span {
            return self;
        }
        let is_next = elapsed < 2 * self.span;
        Self {
            began: if is_next { self.began + self.span } else { now },
            before: if is_next { self.current } else { Duration::ZERO },
            current: Duration::ZERO,
            ..self
        }
    }

    fn at(self, now: Instant) -> Duration {
        let moved = self.moved(now);
        let elapsed = now.saturating_duration_since(moved.began).as_secs_f64() / moved.span.as_secs_f64();
        moved.current + moved.before.mul_f64((1.0 - elapsed).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const fn cost(millis: u64) -> RequestCost {
        RequestCost { worker: Duration::from_millis(millis), is_refused: false }
    }

    #[tokio::test(start_paused = true)]
    async fn the_dearest_keys_come_first_with_their_share() {
        let mut costs = Costs::new(Instant::now());
        for _ in 0..30 {
            costs.add(1, cost(100), Instant::now(), Some("crawler"));
            costs.add(2, cost(25), Instant::now(), Some("person"));
        }
        costs.add(2, RequestCost { is_refused: true, ..cost(0) }, Instant::now(), Some("person"));
        let seen = costs.view(Instant::now());
        assert_eq!(
            seen.iter().map(|key| (&*key.key, key.share_percent)).collect::<Vec<_>>(),
            [("crawler", 80.0), ("person", 20.0)]
        );
        assert_eq!(seen[0].worker_ms, WorkerMillis { minute: 3000, quarter: 3000, day: 3000 });
        assert_eq!((seen[1].requests, seen[1].refused), (31, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn each_span_forgets_what_is_older() {
        let mut costs = Costs::new(Instant::now());
        costs.add(1, cost(1000), Instant::now(), Some("one"));
        let minutes = |costs: &Costs| {
            let WorkerMillis { minute, quarter, day } = costs.view(Instant::now())[0].worker_ms;
            [minute, quarter, day]
        };
        advance(Duration::from_secs(90)).await;
        assert_eq!(minutes(&costs), [500, 1000, 1000]);
        advance(Duration::from_secs(31)).await;
        assert_eq!(minutes(&costs), [0, 1000, 1000]);
        advance(2 * QUARTER).await;
        assert_eq!(minutes(&costs), [0, 0, 1000]);
        costs.add(1, cost(8), Instant::now(), Some("one"));
        assert_eq!(minutes(&costs), [8, 8, 1008]);
        advance(2 * DAY).await;
        assert_eq!(minutes(&costs), [0, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_of_cheap_keys_drives_away_no_dear_one() {
        let mut costs = Costs::new(Instant::now());
        costs.add(0, cost(500), Instant::now(), Some("crawler"));
        for key in 1..100_000 {
            costs.add(key, cost(5), Instant::now(), Some("person"));
        }
        assert!(costs.keys.len() <= MOST_KEYS);
        assert_eq!(costs.view(Instant::now())[0].key, "crawler");
    }
}
