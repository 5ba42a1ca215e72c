//! What the requests of each key have cost in the last minute, 15 minutes and day, in bounded memory. Knows no requests, and not what
//! a key is.
//!
//! At most [`MOST_KEYS`] keys are kept. New keys take the places of those that have cost the least in the last 15 minutes, so the keys
//! that cost much stay. While there are more keys than places, one of [`SAMPLE`] requests brings a new key in (sample and hold; Estan
//! and Varghese, 2002): a key with many requests comes in soon, and thousands of keys do not push each other out with each request.

use std::sync::Arc;
use std::time::Duration;

use foldhash::{HashMap, HashMapExt};
use serde::Serialize;
use tokio::time::Instant;

/// The most keys that are kept.
const MOST_KEYS: usize = 256;
/// While there are more keys than places, about one of this many requests brings its key into the table. A power of two.
const SAMPLE: u64 = 16;
/// Costs are gathered for this long before they are added to the three sums.
const GATHERED: Duration = Duration::from_millis(100);
/// The most keys in the status.
const MOST_SHOWN: usize = 10;

const MINUTE: Duration = Duration::from_secs(60);
const QUARTER: Duration = Duration::from_secs(15 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What requests have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// How many have ended.
    pub requests: u64,
    /// The CPU time of their workers.
    pub cpu: Duration,
    /// How long they held slots.
    pub hold: Duration,
    /// The additional time that a fair pool has charged, because workers ended requests without a response.
    pub besides: Duration,
    /// The additional time that a fair pool has charged, because clients left before the responses.
    pub given_up: Duration,
    /// How long they waited for slots.
    pub queue: Duration,
}

/// A number by the span over which it was summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BySpan {
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

/// What one route, key or release has cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerRow {
    pub name: String,
    /// Its part of the CPU time of all in the last minute, in percent. Of the time in slots, if the CPU time is not known.
    pub share_percent: f64,
    pub requests: BySpan,
    /// None if the CPU time is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<BySpan>,
    pub slot_hold_ms: BySpan,
    pub queue_wait_ms: BySpan,
}

/// Sums over the three spans.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spans {
    sums: [SlidingSum; 3],
    /// Costs that are not in the sums yet, and (`since`) when the first of them came.
    gathered: Cost,
    since: Instant,
}

/// The sum over the last `span`, in two pieces of that length: the current one, and the one before, of which the part counts that the span
/// still covers.
#[derive(Debug, Clone, Copy)]
struct SlidingSum {
    span: Duration,
    began: Instant,
    before: Cost,
    current: Cost,
}

/// What each key has cost.
#[derive(Debug)]
pub(super) struct KeyCostTable {
    keys: HashMap<u64, KeyCost>,
    all: Spans,
    /// Until when there may be more keys than places: a minute after keys were last dropped.
    crowded_until: Option<Instant>,
    /// How many requests of unknown keys have come while there were more keys than places.
    unknown: u64,
}

/// What one key has cost.
#[derive(Debug)]
pub(super) struct KeyCost {
    pub words: Arc<str>,
    pub spans: Spans,
    /// How many requests have ended since the key came into the table.
    pub requests: u64,
    /// How many of them Hostler has refused.
    pub refused: u64,
    /// How many times a worker ended one of them without an answer.
    pub unanswered: u64,
}

impl KeyCostTable {
    /// Nothing has cost anything yet.
    pub fn new(now: Instant) -> Self {
        Self { keys: HashMap::new(), all: Spans::new(now), crowded_until: None, unknown: 0 }
    }

    /// Whether a request whose key has no place in the table brings the key in. To be asked once for each request.
    pub fn wants(&mut self, now: Instant) -> bool {
        if self.crowded_until.is_none_or(|until| now >= until) {
            return true;
        }
        // Multiplied by the golden ratio: requests that come in a fixed pattern must not miss it each time.
        self.unknown = self.unknown.wrapping_add(1);
        self.unknown.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SAMPLE.ilog2()) == 0
    }

    /// A request of this key has cost this much. Returns false if the key is not known here: then only the sum of all has it.
    pub fn add(&mut self, key: u64, cost: Cost, is_refused: bool, now: Instant) -> bool {
        self.all.add(cost, now);
        self.keys.get_mut(&key).map(|known| known.add(cost, is_refused, now)).is_some()
    }

    /// Brings a key into the table. To be called after [`add`](Self::add) has returned false.
    pub fn bring_in(&mut self, key: u64, words: Arc<str>, cost: Cost, is_refused: bool, now: Instant) {
        if self.keys.len() == MOST_KEYS {
            self.drop_cheapest(now);
        }
        let mut known = KeyCost { words, spans: self.all.anew(now), requests: 0, refused: 0, unanswered: 0 };
        known.add(cost, is_refused, now);
        self.keys.insert(key, known);
    }

    /// Drops the cheaper half: then it happens once for many new keys.
    fn drop_cheapest(&mut self, now: Instant) {
        let mut costs: Vec<_> =
            self.keys.iter().map(|(key, known)| (known.spans.quarter(now).charged(), *key)).collect();
        costs.sort_unstable();
        for (_, key) in &costs[..MOST_KEYS / 2] {
            self.keys.remove(key);
        }
        self.crowded_until = Some(now + MINUTE);
    }

    /// The keys with the most of this in the last minute, most first, and what all keys have of it.
    pub fn dearest(&self, by: impl Fn(&Cost) -> Duration, now: Instant) -> (Vec<&KeyCost>, Duration) {
        let mut keys: Vec<_> = self.keys.values().collect();
        // Cached, because a sum of this moment is not for free.
        keys.sort_by_cached_key(|known| std::cmp::Reverse((by(&known.spans.minute(now)), known.refused)));
        keys.truncate(MOST_SHOWN);
        (keys, by(&self.all.minute(now)))
    }

    /// The dearest keys of the last minute as rows of a ledger, the dearest first. `is_measured`: the CPU time is known.
    pub fn rows(&self, is_measured: bool, now: Instant) -> Vec<LedgerRow> {
        let by = |cost: &Cost| if is_measured { cost.cpu } else { cost.hold };
        let (keys, all) = self.dearest(by, now);
        let share = |known: &KeyCost| percent(by(&known.spans.minute(now)), all);
        let row = |known: &KeyCost| known.spans.row(&known.words, share(known), is_measured, now);
        keys.into_iter().map(row).collect()
    }

    /// The sum of all keys as a row of a ledger, also of those that have no row.
    pub fn all(&self, is_measured: bool, now: Instant) -> LedgerRow {
        self.all.row("all", 100.0, is_measured, now)
    }
}

impl KeyCost {
    fn add(&mut self, cost: Cost, is_refused: bool, now: Instant) {
        self.spans.add(cost, now);
        self.requests += cost.requests;
        self.refused += u64::from(is_refused);
        self.unanswered += u64::from(!cost.besides.is_zero());
    }
}

impl Spans {
    pub fn new(now: Instant) -> Self {
        let sums = [MINUTE, QUARTER, DAY].map(|span| SlidingSum {
            span,
            began: now,
            before: Cost::default(),
            current: Cost::default(),
        });
        Self { sums, gathered: Cost::default(), since: now }
    }

    /// Empty sums whose pieces begin at the same times as those of `self`. With other times, the sum of a key could be more than that of
    /// all keys.
    fn anew(&self, now: Instant) -> Self {
        let empty = |sum: SlidingSum| SlidingSum { before: Cost::default(), current: Cost::default(), ..sum };
        Self { sums: self.sums.map(|sum| empty(sum.moved(now))), ..Self::new(now) }
    }

    pub fn add(&mut self, cost: Cost, now: Instant) {
        if now >= self.since + GATHERED {
            self.sums = [0, 1, 2].map(|span| self.whole(span));
            (self.gathered, self.since) = (Cost::default(), now);
        }
        self.gathered = self.gathered.with(cost);
    }

    /// A sum with what was gathered.
    fn whole(&self, span: usize) -> SlidingSum {
        let sum = self.sums[span].moved(self.since);
        SlidingSum { current: sum.current.with(self.gathered), ..sum }
    }

    /// The sum over the last minute.
    pub fn minute(&self, now: Instant) -> Cost {
        self.whole(0).at(now)
    }

    /// The sum over the last 15 minutes.
    fn quarter(&self, now: Instant) -> Cost {
        self.whole(1).at(now)
    }

    /// The sums as a row of a ledger.
    fn row(&self, name: &str, share_percent: f64, is_measured: bool, now: Instant) -> LedgerRow {
        LedgerRow {
            name: name.into(),
            share_percent,
            requests: self.by_span(now, |cost| cost.requests),
            cpu_ms: is_measured.then(|| self.by_span(now, |cost| millis(cost.cpu))),
            slot_hold_ms: self.by_span(now, |cost| millis(cost.hold)),
            queue_wait_ms: self.by_span(now, |cost| millis(cost.queue)),
        }
    }

    /// One figure of the sums of this moment.
    pub fn by_span(&self, now: Instant, pick: impl Fn(&Cost) -> u64) -> BySpan {
        let [minute, quarter, day] = [0, 1, 2].map(|span| pick(&self.whole(span).at(now)));
        BySpan { minute, quarter, day }
    }
}

impl SlidingSum {
    /// The same sum with pieces for `now`: they move on when the current piece is over.
    fn moved(self, now: Instant) -> Self {
        let elapsed = now.saturating_duration_since(self.began);
        if elapsed < self.span {
            return self;
        }
        let is_next = elapsed < 2 * self.span;
        let into_piece = elapsed.as_nanos() % self.span.as_nanos();
        Self {
            began: now - Duration::from_nanos(u64::try_from(into_piece).unwrap_or_default()),
            before: if is_next { self.current } else { Cost::default() },
            current: Cost::default(),
            ..self
        }
    }

    fn at(self, now: Instant) -> Cost {
        let moved = self.moved(now);
        let elapsed = now.saturating_duration_since(moved.began).as_secs_f64() / moved.span.as_secs_f64();
        moved.current.with(moved.before.part((1.0 - elapsed).clamp(0.0, 1.0)))
    }
}

impl Cost {
    /// What a fair pool charges for it.
    pub fn charged(&self) -> Duration {
        self.hold + self.besides + self.given_up
    }

    fn with(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            cpu: self.cpu + other.cpu,
            hold: self.hold + other.hold,
            besides: self.besides + other.besides,
            given_up: self.given_up + other.given_up,
            queue: self.queue + other.queue,
        }
    }

    fn part(self, part: f64) -> Self {
        Self {
            requests: (self.requests as f64 * part).round() as u64,
            cpu: self.cpu.mul_f64(part),
            hold: self.hold.mul_f64(part),
            besides: self.besides.mul_f64(part),
            given_up: self.given_up.mul_f64(part),
            queue: self.queue.mul_f64(part),
        }
    }
}

/// A time in milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A part of the whole in percent, with one decimal.
pub(super) fn percent(part: Duration, whole: Duration) -> f64 {
    let share = if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() };
    // The figures are gathered for moments of their own, so a part can seem to be a little more than the whole.
    let share = share.min(1.0);
    (share * 1000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn add(table: &mut KeyCostTable, key: u64, held: u64, words: &str) {
        let cost = Cost { requests: 1, hold: Duration::from_millis(held), ..Cost::default() };
        if !table.add(key, cost, false, Instant::now()) {
            table.bring_in(key, words.into(), cost, false, Instant::now());
        }
    }

    fn dearest(table: &KeyCostTable) -> Vec<&KeyCost> {
        table.dearest(|cost| cost.hold, Instant::now()).0
    }

    #[tokio::test(start_paused = true)]
    async fn each_span_forgets_what_is_older() {
        let mut table = KeyCostTable::new(Instant::now());
        add(&mut table, 1, 1000, "one");
        let spans = |table: &KeyCostTable| {
            let spans = dearest(table)[0].spans.by_span(Instant::now(), |cost| millis(cost.hold));
            [spans.minute, spans.quarter, spans.day]
        };
        advance(Duration::from_secs(90)).await;
        assert_eq!(spans(&table), [500, 1000, 1000]);
        advance(Duration::from_secs(31)).await;
        assert_eq!(spans(&table), [0, 1000, 1000]);
        advance(2 * QUARTER).await;
        assert_eq!(spans(&table), [0, 0, 1000]);
        add(&mut table, 1, 8, "one");
        assert_eq!(spans(&table), [8, 8, 1008]);
        advance(2 * DAY).await;
        assert_eq!(spans(&table), [0, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_comes_late_has_the_same_sums_as_all() {
        let mut table = KeyCostTable::new(Instant::now());
        let seen = |table: &KeyCostTable| {
            let one = &table.rows(false, Instant::now())[0];
            (one.slot_hold_ms.minute, table.all(false, Instant::now()).slot_hold_ms.minute)
        };
        advance(Duration::from_secs(57)).await;
        add(&mut table, 1, 6000, "late");
        advance(Duration::from_secs(33)).await;
        assert_eq!(seen(&table), (3000, 3000));
        // Also after a pause.
        advance(Duration::from_secs(1000)).await;
        add(&mut table, 2, 600, "other");
        add(&mut table, 1, 6000, "late");
        advance(Duration::from_secs(60)).await;
        let (late, all) = seen(&table);
        assert_eq!((late * 11).div_ceil(10), all);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_of_cheap_keys_drives_away_no_dear_one() {
        let mut table = KeyCostTable::new(Instant::now());
        add(&mut table, 0, 500, "crawler");
        for key in 1..100_000 {
            add(&mut table, key, 5, "person");
        }
        assert!(table.keys.len() <= MOST_KEYS);
        assert_eq!(&*dearest(&table)[0].words, "crawler");
    }

    #[tokio::test(start_paused = true)]
    async fn among_thousands_of_keys_few_requests_bring_one_in_and_a_busy_key_is_among_them() {
        let mut table = KeyCostTable::new(Instant::now());
        let (mut named, mut crawler_at) = (0, None);
        for request in 0..80_000_u64 {
            let is_crawler = request >= 40_000 && request % 8 == 0;
            let key = if is_crawler { 0 } else { 1 + request % 10_000 };
            let cost = Cost { requests: 1, hold: Duration::from_millis(5), ..Cost::default() };
            if !table.add(key, cost, false, Instant::now()) && table.wants(Instant::now()) {
                named += 1;
                table.bring_in(key, "key".into(), cost, false, Instant::now());
            }
            if key == 0 && crawler_at.is_none() && table.keys.contains_key(&0) {
                crawler_at = Some(request);
            }
        }
        assert!(named < 80_000 / SAMPLE + 2 * MOST_KEYS as u64, "{named}");
        assert!(crawler_at.is_some_and(|at| at < 40_000 + 8 * 8 * SAMPLE), "{crawler_at:?}");
        let crawler = dearest(&table)[0];
        assert!(crawler.requests > 4_900, "{}", crawler.requests);
        // When the crowd has gone, each new key comes in at once again.
        advance(MINUTE).await;
        assert!(table.wants(Instant::now()));
    }
}
