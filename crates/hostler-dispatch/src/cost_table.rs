//! What requests are expected to cost, learnt from what others like them have cost. Knows no queue, and not what a kind or a shape is.
//!
//! Requests of one *kind* (those of one route) are split by their *shape* (such as the part of the path that says which page it is), but
//! only if the costs of a shape differ clearly from those of its kind. The expected cost is the geometric mean. What matters is how many
//! times longer one request takes than another, and a few very long requests must not raise the expected cost much.
//!
//! The memory is bounded: a new kind or shape takes a place in its set only if the place is free or its entry is hardly used any more
//! ([`MOST_KEPT`]).

use std::time::Duration;

/// The sets of the table, and the entries of each.
const SETS: usize = 64;
const WAYS: usize = 4;
/// After this many newer requests the mean has forgotten an old one.
const MEMORY: u16 = 64;
/// With fewer requests than this, nothing is known.
const ENOUGH: u16 = 16;
/// A shape gets an expected cost of its own if its mean and that of its kind differ by more than `CLEARLY`, and loses it again if they
/// differ by less than `HARDLY`. Both are natural logarithms of a factor.
const CLEARLY: f32 = 0.47; // ln 1.6
const HARDLY: f32 = 0.22; // ln 1.25
/// For a split, the difference must also be more than this many standard errors of the mean, so that it is not due to chance.
const SURE: f32 = 4.0;
/// A known expected cost changes only when the mean differs from it by more than this (the natural logarithm of a factor). Otherwise
/// requests of one kind would overtake each other whenever the mean changes a little.
const DRIFT: f32 = 0.15;
/// The highest value of `CostEntry::keep`. Each request of an entry adds one. A label that finds no place in its set takes one from each
/// entry there. An entry with 0 loses its place to the next new label.
const MOST_KEPT: u8 = 32;

/// Requests of one shape may cost about as much. The caller decides what a shape is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CostLabel {
    /// The requests of one route, as a hash.
    pub kind: u64,
    /// The requests of one shape within the kind, as a hash. 0: the kind as a whole.
    pub shape: u64,
}

/// Costs by kind and shape. `N`: the name of a shape.
#[derive(Debug)]
pub struct CostTable<N> {
    all: CostMean,
    sets: Box<[[Option<CostEntry<N>>; WAYS]]>,
}

#[derive(Debug)]
struct CostEntry<N> {
    label: CostLabel,
    mean: CostMean,
    /// The requests of this shape have an expected cost of their own.
    is_split: bool,
    keep: u8,
    requests: u64,
    name: N,
}

/// A kind or a shape with an expected cost of its own.
#[derive(Debug)]
pub struct LearntCost<'a, N> {
    /// As given to [`CostTable::observe`].
    pub label: CostLabel,
    /// As given to [`CostTable::observe`].
    pub name: &'a N,
    /// What its requests are expected to cost.
    pub expected: Duration,
    /// How many have been measured since it is in the table.
    pub requests: u64,
}

/// The running mean of the logarithm of costs in microseconds, and of its square.
#[derive(Clone, Copy, Debug, Default)]
struct CostMean {
    ln: f32,
    square: f32,
    /// The expected cost, which follows the mean in steps.
    told: f32,
    samples: u16,
}

impl<N> Default for CostTable<N> {
    fn default() -> Self {
        let sets = (0..SETS).map(|_| [const { None }; WAYS]).collect();
        Self { all: CostMean::default(), sets }
    }
}

impl<N> CostTable<N> {
    /// The expected cost of a request with this label: that of its shape if it is split, else that of its kind, else that of all requests.
    /// `None`: too few requests are known.
    pub fn expected(&self, label: CostLabel) -> Option<Duration> {
        let kind = CostLabel { shape: 0, ..label };
        let own = self.entry(label).filter(|entry| entry.is_split).map(|entry| entry.mean);
        own.or_else(|| self.entry(kind).map(|entry| entry.mean).filter(CostMean::is_known))
            .or_else(|| Some(self.all).filter(CostMean::is_known))
            .map(CostMean::expected)
    }

    /// A request with this label has cost this much. `name` is called if the table does not know the kind or the shape.
    pub fn observe(&mut self, label: CostLabel, cost: Duration, name: impl Fn(CostLabel) -> N) {
        let ln = (cost.as_secs_f32() * 1e6).max(1.0).ln();
        self.all.observe(ln);
        let kind = self.entry_or_new(CostLabel { shape: 0, ..label }, &name).map(|entry| {
            entry.observe(ln);
            entry.mean
        });
        if let (true, Some(kind)) = (label.shape != 0, kind)
            && let Some(entry) = self.entry_or_new(label, &name)
        {
            entry.observe(ln);
            entry.is_split = entry.mean.differs(kind, entry.is_split);
        }
    }

    /// The kinds and the split shapes, the most frequent first.
    pub fn learnt(&self) -> Vec<LearntCost<'_, N>> {
        let entries = self.sets.iter().flatten().flatten();
        let known =
            entries.filter(|entry| entry.is_split || (entry.label.shape == 0 && entry.mean.is_known()));
        let mut learnt: Vec<_> = known
            .map(|entry| LearntCost {
                label: entry.label,
                name: &entry.name,
                expected: entry.mean.expected(),
                requests: entry.requests,
            })
            .collect();
        learnt.sort_by_key(|learnt| std::cmp::Reverse(learnt.requests));
        learnt
    }

    fn set_of(label: CostLabel) -> usize {
        let mixed = (label.kind ^ label.shape.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - SETS.ilog2())) as usize
    }

    fn entry(&self, label: CostLabel) -> Option<&CostEntry<N>> {
        self.sets[Self::set_of(label)].iter().flatten().find(|entry| entry.label == label)
    }

    /// `None`: all places of the set are in use. Then each entry of the set has lost one of its `keep`.
    fn entry_or_new(&mut self, label: CostLabel, name: impl Fn(CostLabel) -> N) -> Option<&mut CostEntry<N>> {
        let set = &mut self.sets[Self::set_of(label)];
        let mut found = set.iter().position(|entry| entry.as_ref().is_some_and(|entry| entry.label == label));
        if found.is_none() {
            let free = set.iter().position(|entry| entry.as_ref().is_none_or(|entry| entry.keep == 0));
            let Some(free) = free else {
                set.iter_mut().flatten().for_each(|entry| entry.keep -= 1);
                return None;
            };
            let (mean, name) = (CostMean::default(), name(label));
            set[free] = Some(CostEntry { label, mean, is_split: false, keep: 0, requests: 0, name });
            found = Some(free);
        }
        set[found?].as_mut()
    }
}

impl<N> CostEntry<N> {
    fn observe(&mut self, ln: f32) {
        self.mean.observe(ln);
        self.requests += 1;
        self.keep = (self.keep + 1).min(MOST_KEPT);
    }
}

impl CostMean {
    fn observe(&mut self, ln: f32) {
        self.samples = (self.samples + 1).min(MEMORY);
        let weight = 1.0 / f32::from(self.samples);
        self.ln += weight * (ln - self.ln);
        self.square += weight * (ln * ln - self.square);
        if self.samples < ENOUGH || (self.ln - self.told).abs() > DRIFT {
            self.told = self.ln;
        }
    }

    fn is_known(&self) -> bool {
        self.samples >= ENOUGH
    }

    fn expected(self) -> Duration {
        Duration::from_secs_f32(self.told.exp() / 1e6)
    }

    fn variance(self) -> f32 {
        (self.square - self.ln * self.ln).max(0.0)
    }

    /// Whether the costs differ clearly from those of the kind. `did`: the shape is split already, so a smaller difference is enough.
    fn differs(self, kind: Self, did: bool) -> bool {
        let error = (self.variance() / f32::from(self.samples)).sqrt();
        let least = if did { HARDLY } else { CLEARLY.max(SURE * error) };
        self.is_known() && kind.is_known() && (self.ln - kind.ln).abs() > least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn label(kind: u64, shape: u64) -> CostLabel {
        CostLabel { kind, shape }
    }

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn millis(table: &CostTable<()>, label: CostLabel) -> Option<u128> {
        table.expected(label).map(|cost| cost.as_millis())
    }

    #[test]
    fn a_kind_is_known_after_some_requests_and_others_are_expected_to_cost_the_average() {
        let mut table = CostTable::default();
        for _ in 0..ENOUGH {
            assert_eq!(millis(&table, label(1, 0)), None);
            table.observe(label(1, 0), ms(101), |_| ());
        }
        assert_eq!((millis(&table, label(1, 0)), millis(&table, label(2, 5))), (Some(101), Some(101)));
    }

    #[test]
    fn a_shape_is_split_from_its_kind_only_if_its_costs_differ_clearly() {
        let mut table = CostTable::default();
        let mut dice = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            // Shapes 1 and 2 cost about the same; shape 3 costs ten times as much.
            for shape in [1, 2, 1, 2, 1, 3] {
                let cost = ms(if shape == 3 { 100 } else { 10 }).mul_f64(0.7 + 0.6 * dice.f64());
                table.observe(label(1, shape), cost, |_| ());
            }
        }
        let split: Vec<_> = table.learnt().iter().map(|learnt| learnt.label.shape).collect();
        assert_eq!(split, [0, 3]);
        assert!((90..110).contains(&millis(&table, label(1, 3)).unwrap()));
        let others = millis(&table, label(1, 1)).unwrap();
        assert_eq!(millis(&table, label(1, 2)).unwrap(), others);
        assert!((9..25).contains(&others), "{others}");
    }

    #[test]
    fn shapes_whose_costs_vary_alike_are_never_split() {
        let mut table = CostTable::default();
        let mut dice = fastrand::Rng::with_seed(2);
        for _ in 0..20_000 {
            let cost = ms(20).mul_f64(-(1.0 - dice.f64()).ln());
            table.observe(label(1, dice.u64(1..5)), cost, |_| ());
            let split = table.learnt().iter().filter(|learnt| learnt.label.shape != 0).count();
            assert_eq!(split, 0);
        }
    }

    #[test]
    fn a_crowd_of_shapes_takes_no_more_memory_and_drives_no_frequent_one_away() {
        let mut table = CostTable::default();
        for number in 0..50_000u64 {
            table.observe(label(1, 7), ms(90), |_| ());
            table.observe(label(1, 1000 + number), ms(3), |_| ());
        }
        assert!((80..100).contains(&millis(&table, label(1, 7)).unwrap()));
        assert!(table.learnt().len() <= SETS * WAYS);
    }

    #[test]
    fn the_expected_cost_stays_while_the_mean_changes_a_little() {
        let mut table = CostTable::default();
        let mut told = std::collections::BTreeSet::new();
        let mut dice = fastrand::Rng::with_seed(3);
        for round in 0..2000 {
            table.observe(label(1, 0), ms(20).mul_f64(0.8 + 0.4 * dice.f64()), |_| ());
            if round > 100 {
                told.insert(table.expected(label(1, 0)));
            }
        }
        assert!(told.len() <= 2, "{told:?}");
    }
}
