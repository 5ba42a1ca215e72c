//! How long requests of one kind hold a slot, as measured. Knows no queue, and not what a kind is.

use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::time::Duration;

use foldhash::fast::FixedState;

/// Different kinds may share an entry. Then they share an average.
const ENTRIES: usize = 64;
/// After this many newer requests the average has forgotten an old one.
const MEMORY: u16 = 64;
/// With fewer requests than this, nothing is known of a kind.
const ENOUGH: u16 = 8;

/// Requests of one kind cost about as much. The caller decides what a kind is: the pool only compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkKind(NonZeroU64);

impl WorkKind {
    /// The kind with this key. Kinds that share an entry have one average.
    pub fn of(key: u64) -> Self {
        Self(NonZeroU64::new(key).unwrap_or(NonZeroU64::MAX))
    }

    /// The kind with this name. Equal names are one kind, wherever they are in memory.
    pub fn named(name: &str) -> Self {
        Self::of(FixedState::default().hash_one(name))
    }

    fn entry(self) -> usize {
        // Multiplied by the golden ratio, because keys may be addresses, whose low bits are equal.
        (self.0.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - ENTRIES.ilog2())) as usize
    }
}

/// The average of each kind.
#[derive(Debug)]
pub(super) struct KindTimes(Box<[KindTime; ENTRIES]>);

#[derive(Clone, Copy, Debug, Default)]
struct KindTime {
    mean: f32,
    samples: u16,
}

impl Default for KindTimes {
    fn default() -> Self {
        Self(Box::new([KindTime::default(); ENTRIES]))
    }
}

impl KindTimes {
    /// A request of this kind held its slot for this time.
    pub fn observe(&mut self, kind: WorkKind, hold: Duration) {
        let time = &mut self.0[kind.entry()];
        time.samples = (time.samples + 1).min(MEMORY);
        time.mean += (hold.as_secs_f32() - time.mean) / f32::from(time.samples);
    }

    /// The mean time of this kind. `None` until enough requests were measured.
    pub fn mean(&self, kind: WorkKind) -> Option<Duration> {
        let time = self.0[kind.entry()];
        (time.samples >= ENOUGH).then(|| Duration::from_secs_f32(time.mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_mean() {
        let (mut times, fast, slow) = (KindTimes::default(), WorkKind::of(1), WorkKind::of(2));
        for _ in 0..ENOUGH {
            assert_eq!(times.mean(slow), None);
            times.observe(fast, Duration::from_millis(1));
            times.observe(slow, Duration::from_millis(500));
        }
        assert_eq!(times.mean(fast).unwrap().as_micros(), 1000);
        assert_eq!(times.mean(slow).unwrap().as_millis(), 500);
    }

    #[test]
    fn addresses_of_neighbours_are_different_kinds() {
        let entries: std::collections::BTreeSet<_> =
            (0..16).map(|index| WorkKind::of(0x7f00_0000 + 64 * index).entry()).collect();
        assert!(entries.len() >= 10, "{entries:?}");
    }
}
