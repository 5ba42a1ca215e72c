//! How long the last answers of a route took to begin, and a percentile of it. Knows no requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// So many answers count.
const KEPT: usize = 512;
/// With fewer, nothing is known.
const LEAST: usize = 64;
/// The percentile is found anew after so many answers.
const EVERY: usize = 32;

pub(super) struct AnswerTimes {
    /// Which percentile, in thousandths.
    percentile: u32,
    last: Mutex<LastTimes>,
    /// The percentile in microseconds. 0: not known.
    found: AtomicU64,
}

/// The times of the last answers in microseconds, as a ring.
#[derive(Default)]
struct LastTimes {
    times: Vec<u32>,
    next: usize,
}

impl AnswerTimes {
    pub fn new(percentile: u32) -> Self {
        Self { percentile, last: Mutex::default(), found: AtomicU64::new(0) }
    }

    /// None: too few answers are known.
    pub fn percentile(&self) -> Option<Duration> {
        let micros = self.found.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    /// An answer has begun after this long.
    pub fn record(&self, time: Duration) {
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX).max(1);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let at = last.next % KEPT;
        match last.times.get_mut(at) {
            Some(oldest) => *oldest = micros,
            None => last.times.push(micros),
        }
        last.next = last.next.wrapping_add(1);
        if last.times.len() >= LEAST && last.next.is_multiple_of(EVERY) {
            let mut sorted = last.times.clone();
            let at = (sorted.len() * self.percentile as usize / 1000).min(sorted.len() - 1);
            let (_, found, _) = sorted.select_nth_unstable(at);
            self.found.store(u64::from(*found), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_percentile_is_that_of_the_last_answers() {
        let times = AnswerTimes::new(950);
        (1..=63).for_each(|time| times.record(millis(time)));
        assert_eq!(times.percentile(), None, "too few");
        times.record(millis(64));
        assert_eq!(times.percentile(), Some(millis(61)));
        (0..KEPT).for_each(|number| times.record(millis(if number % 10 == 0 { 500 } else { 20 })));
        assert_eq!(times.percentile(), Some(millis(500)));
        (0..KEPT).for_each(|_| times.record(millis(7)));
        assert_eq!(times.percentile(), Some(millis(7)), "older ones are forgotten");
    }
}
