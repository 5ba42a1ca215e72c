//! Whose request is next when a pool serves short requests first: the order by arrival and expected cost, and how much of the
//! allowed delay is used up. Knows neither members nor time limits.
//!
//! Each waiting request has a *turn*: its arrival, plus [`PATIENCE`] times what it is expected to cost. The request with the
//! earliest turn is next. So a request is only overtaken by one that costs less, and the older it gets, the fewer do. Requests that
//! cost the same keep the order of arrival.
//!
//! That alone bounds no delay: a thousand short requests may come right behind a long one. So the time by which a request was
//! delayed is counted: what each request that overtook it costs, divided by the number of slots. When no more is left of the allowed
//! delay, the oldest request is next. The oldest one has always been delayed the most: a request that overtook a younger one has
//! overtaken it as well. So the count is kept for the oldest one only.
//!
//! What a request really costs is known at its end. Then the count is corrected.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use foldhash::{HashMap, HashMapExt};
use tokio::time::Instant;

use super::claim::{MemberId, Priority};
use super::place::QueuePosition;

/// A shorter request overtakes a longer one if it arrives at most this many times the difference of their costs later. Example: a request
/// of 20 ms overtakes one of 100 ms that came up to 960 ms before.
///
/// With less, short requests wait behind long ones that came just before. With more, a request whose cost is not what its label says is
/// delayed for longer. See the simulated figures in `tests/short_first.rs`.
const PATIENCE: u32 = 12;
/// Longer costs count as this.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// One level for each power of two of the cost in microseconds.
const LEVELS: usize = u32::BITS as usize + 1;

/// The order of the requests that wait for any member.
pub(super) struct ShortFirst {
    /// How long a request may be delayed because others overtake it.
    delay: Duration,
    /// The slots of the pool.
    slots: u32,
    lines: [ShortLine; Priority::COUNT],
    /// Requests that have overtaken others and still hold a slot: the member, and the number of the slot there.
    running: HashMap<(MemberId, u32), Overtaking>,
}

/// The requests of one class.
#[derive(Default)]
struct ShortLine {
    by_turn: BTreeSet<(Instant, QueuePosition)>,
    waiting: BTreeMap<QueuePosition, QueueTurn>,
    /// By how much the oldest one was delayed: the sum of `QueueTurn::behind`.
    delayed: Duration,
    levels: CostLevels,
}

/// Sums by the logarithm of the expected cost.
struct CostLevels(Box<[CostLevel; LEVELS]>);

impl Default for CostLevels {
    fn default() -> Self {
        Self(Box::new([CostLevel::default(); LEVELS]))
    }
}

/// A waiting request.
#[derive(Clone, Copy)]
struct QueueTurn {
    at: Instant,
    cost: Duration,
    work: Duration,
    /// The delay by requests that overtook this one and no younger one.
    behind: Duration,
}

/// The requests that cost about the same.
#[derive(Clone, Copy, Default)]
struct CostLevel {
    count: usize,
    work: Duration,
}

/// A request that has overtaken others.
#[derive(Clone, Copy)]
struct Overtaking {
    place: QueuePosition,
    expected: Duration,
    slots: u32,
}

/// What a request states for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    /// The expected cost of the request. Its turn is computed from it.
    pub cost: Duration,
    /// The average cost of such requests. Expected waits are computed from it.
    pub work: Duration,
}

impl ShortFirst {
    pub fn new(delay: Duration) -> Self {
        Self { delay, slots: 1, lines: Default::default(), running: HashMap::new() }
    }

    /// Sets the allowed delay. What was used up of the old one still counts.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// The number of slots of the pool from now on.
    pub fn set_slots(&mut self, slots: usize) {
        self.slots = u32::try_from(slots.max(1)).unwrap_or(u32::MAX);
    }

    /// A request waits from now on.
    pub fn insert(&mut self, place: QueuePosition, label: Label) {
        let at = Self::turn_of(place, label);
        let line = &mut self.lines[place.priority.index()];
        let turn = QueueTurn { at, cost: label.cost, work: label.work, behind: Duration::ZERO };
        if line.waiting.insert(place, turn).is_none() {
            line.by_turn.insert((at, place));
            line.level(label.cost).add(label.work);
        }
    }

    /// A request waits no more.
    pub fn remove(&mut self, place: QueuePosition) {
        let line = &mut self.lines[place.priority.index()];
        let Some(turn) = line.waiting.remove(&place) else { return };
        line.by_turn.remove(&(turn.at, place));
        line.level(turn.cost).remove(turn.work);
        // Requests that are older were overtaken as well.
        match line.older_than(place) {
            Some(older) => older.behind += turn.behind,
            None => line.delayed = line.delayed.saturating_sub(turn.behind),
        }
    }

    /// When it is the turn of a request.
    fn turn_of(place: QueuePosition, label: Label) -> Instant {
        place.ticket.arrived + label.cost.min(LONGEST) * PATIENCE
    }

    /// The request of a class that is next by its turn.
    pub fn first(&self, priority: Priority) -> Option<QueuePosition> {
        self.lines[priority.index()].by_turn.first().map(|(_, place)| *place)
    }

    /// Whether a request that costs this much may overtake the oldest one of its class.
    pub fn may_overtake(&self, priority: Priority, cost: Duration) -> bool {
        self.lines[priority.index()].delayed + cost / self.slots <= self.delay || planted!(EndlessDelay)
    }

    /// A request has got a slot: `slot` is its member and its number there. It does not wait any more.
    pub fn begin(&mut self, place: QueuePosition, cost: Duration, slot: (MemberId, u32)) {
        let line = &mut self.lines[place.priority.index()];
        if let Some(older) = line.older_than(place) {
            older.behind += cost / self.slots;
            line.delayed += cost / self.slots;
            self.running.insert(slot, Overtaking { place, expected: cost, slots: self.slots });
        }
    }

    /// A slot came back. It was held for this time.
    pub fn settle(&mut self, slot: (MemberId, u32), held: Duration) {
        let Some(Overtaking { place, expected, slots }) = self.running.remove(&slot) else { return };
        let line = &mut self.lines[place.priority.index()];
        let Some(older) = line.older_than(place) else { return };
        let before = older.behind;
        older.behind = (before + held / slots).saturating_sub(expected / slots);
        let after = older.behind;
        line.delayed = (line.delayed + after).saturating_sub(before);
    }

    /// How much of the work that waits in a class is done before a new request. `all`: the work that waits.
    pub fn work_ahead(&self, place: QueuePosition, label: Label, all: Duration) -> Duration {
        let line = &self.lines[place.priority.index()];
        let level = level_of(label.cost);
        let shorter: Duration = line.levels.0[..=level].iter().map(|level| level.work).sum();
        let turn = Self::turn_of(place, label);
        let longer: usize = line.levels.0[level + 1..].iter().map(|level| level.count).sum();
        let has_longer_before = longer > 0
            && line.by_turn.first().is_some_and(|(first, first_place)| {
                *first < turn
                    && line.waiting.get(first_place).is_some_and(|first| level_of(first.cost) > level)
            });
        // If the allowed delay is used up before its turn, or a longer one has its turn before, the order is about that of arrival.
        let is_late = line.delayed + (shorter + label.work) / self.slots > self.delay && longer > 0;
        if has_longer_before || is_late { all } else { shorter.min(all) }
    }

    /// Checks what is kept twice, and that the places of each class are these.
    #[cfg(test)]
    pub fn check(&self, newcomers: [BTreeSet<QueuePosition>; Priority::COUNT]) {
        for (line, newcomers) in self.lines.iter().zip(newcomers) {
            if line.waiting.is_empty() && newcomers.is_empty() {
                assert!(line.by_turn.is_empty() && line.delayed.is_zero());
                continue;
            }
            assert!(line.waiting.keys().copied().eq(newcomers), "the order has exactly the newcomers");
            let turns: BTreeSet<_> = line.waiting.iter().map(|(place, turn)| (turn.at, *place)).collect();
            assert_eq!(line.by_turn, turns);
            let delayed: Duration = line.waiting.values().map(|turn| turn.behind).sum();
            assert_eq!(line.delayed, delayed, "the delay of the oldest one is the sum");
            let count: usize = line.levels.0.iter().map(|level| level.count).sum();
            let work: Duration = line.levels.0.iter().map(|level| level.work).sum();
            let works: Duration = line.waiting.values().map(|turn| turn.work).sum();
            assert_eq!((count, work), (line.waiting.len(), works));
        }
    }
}

impl ShortLine {
    /// The youngest of the waiting requests that are older than this one.
    fn older_than(&mut self, place: QueuePosition) -> Option<&mut QueueTurn> {
        self.waiting.range_mut(..place).next_back().map(|(_, turn)| turn)
    }

    fn level(&mut self, cost: Duration) -> &mut CostLevel {
        &mut self.levels.0[level_of(cost)]
    }
}

impl CostLevel {
    fn add(&mut self, work: Duration) {
        self.count += 1;
        self.work += work;
    }

    fn remove(&mut self, work: Duration) {
        self.count -= 1;
        self.work -= work;
    }
}

fn level_of(cost: Duration) -> usize {
    let micros = u32::try_from(cost.as_micros()).unwrap_or(u32::MAX);
    (u32::BITS - micros.leading_zeros()) as usize
}
