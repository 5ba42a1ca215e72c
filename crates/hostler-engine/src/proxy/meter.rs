//! Histograms of the times of a pool's requests, one set per data-plane thread. Knows no requests.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::exchange::{CostLedger, clock};

/// One hour in microseconds. Longer times count as one hour.
const MAX_TIME: u64 = 3_600_000_000;
/// The largest `Retry-After` in seconds, before the random part.
const MAX_RETRY_AFTER: u32 = 20;

/// The upper bounds of the buckets of metrics, in microseconds.
const BOUNDS: [u64; 16] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// The recorded times of one pool.
#[derive(Debug)]
pub struct Meter {
    threads: Box<[Mutex<Recorded>]>,
    /// What the requests have cost.
    pub ledger: Arc<CostLedger>,
    /// How long the last request waited, in whole seconds. Written only when it changes: without load it never does.
    last_wait: AtomicU32,
}

#[derive(Debug)]
struct Recorded {
    queue_wait: Histogram<u32>,
    slot_hold: Histogram<u32>,
    worker_time: Histogram<u32>,
}

/// The times of all threads, in microseconds with two significant digits.
#[derive(Debug, Clone, Serialize)]
pub struct Times {
    /// From the request's arrival (body included) to its slot.
    pub queue_wait: Spread,
    /// From the slot's grant to its return.
    pub slot_hold: Spread,
    /// From the first byte to the worker to the head of its answer.
    pub worker_time: Spread,
}

/// Percentiles of one time.
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "percentiles are named by themselves")]
pub struct Spread {
    pub count: u64,
    pub mean_us: f64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
    /// Each upper bound in seconds, and how many times are above the bound before and not above this one. The last bound is infinite.
    #[serde(skip)]
    pub buckets: Vec<(f64, u64)>,
    /// The sum of all times in seconds.
    #[serde(skip)]
    pub sum: f64,
}

impl Meter {
    /// A meter for this many threads.
    pub fn new(threads: usize) -> Self {
        let threads = (0..threads).map(|_| Mutex::new(Recorded::new())).collect();
        Self { threads, ledger: Arc::new(CostLedger::new(clock::now())), last_wait: AtomicU32::new(0) }
    }

    /// A request got its slot after this long.
    pub fn record_queue_wait(&self, thread: usize, time: Duration) {
        self.note_wait(time);
        self.with(thread, |times| record(&mut times.queue_wait, time));
    }

    /// A request has waited this long, for a slot or in vain.
    pub fn note_wait(&self, time: Duration) {
        let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        if self.last_wait.load(Ordering::Relaxed) != seconds {
            self.last_wait.store(seconds, Ordering::Relaxed);
        }
    }

    /// Seconds for `Retry-After`: what the last request waited, and up to half as much again at random, so that refused clients do not all
    /// come back at the same time.
    pub fn retry_after(&self) -> u32 {
        let least = self.last_wait.load(Ordering::Relaxed).clamp(1, MAX_RETRY_AFTER);
        least + fastrand::u32(0..=least / 2)
    }

    /// A slot was returned after this long.
    pub fn record_slot_hold(&self, thread: usize, time: Duration) {
        self.with(thread, |times| record(&mut times.slot_hold, time));
    }

    /// A worker's answer began after this long.
    pub fn record_worker_time(&self, thread: usize, time: Duration) {
        self.with(thread, |times| record(&mut times.worker_time, time));
    }

    pub fn times(&self) -> Times {
        let mut sum = Recorded::new();
        for thread in 0..self.threads.len() {
            self.with(thread, |times| sum.add(times));
        }
        Times {
            queue_wait: Spread::of(&sum.queue_wait),
            slot_hold: Spread::of(&sum.slot_hold),
            worker_time: Spread::of(&sum.worker_time),
        }
    }

    fn with<T>(&self, thread: usize, act: impl FnOnce(&mut Recorded) -> T) -> T {
        act(&mut self.threads[thread].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Recorded {
    fn new() -> Self {
        let empty = Histogram::new_with_bounds(1, MAX_TIME, 2).expect("invariant: constant bounds are valid");
        Self { queue_wait: empty.clone(), slot_hold: empty.clone(), worker_time: empty }
    }

    fn add(&mut self, other: &Self) {
        self.queue_wait += &other.queue_wait;
        self.slot_hold += &other.slot_hold;
        self.worker_time += &other.worker_time;
    }
}

impl Spread {
    fn of(times: &Histogram<u32>) -> Self {
        Self {
            count: times.len(),
            mean_us: (times.mean() * 10.0).round() / 10.0,
            p50_us: times.value_at_quantile(0.5),
            p90_us: times.value_at_quantile(0.9),
            p99_us: times.value_at_quantile(0.99),
            p999_us: times.value_at_quantile(0.999),
            max_us: times.max(),
            buckets: buckets(times),
            sum: times.mean() * times.len() as f64 / 1e6,
        }
    }
}

fn buckets(times: &Histogram<u32>) -> Vec<(f64, u64)> {
    let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
    let mut buckets: Vec<(f64, u64)> = bounds.map(|bound| (bound, 0)).collect();
    for step in times.iter_recorded() {
        // The histogram holds a range of times as one. A bound belongs to the range that begins with it.
        let time = times.lowest_equivalent(step.value_iterated_to());
        buckets[BOUNDS.partition_point(|bound| times.lowest_equivalent(*bound) < time)].1 +=
            u64::from(step.count_at_value());
    }
    buckets
}

fn record(histogram: &mut Histogram<u32>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(MAX_TIME));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_one_bucket() {
        let meter = Meter::new(2);
        let times = [100, 500, 900, 60_000_000, 70_000_000];
        for (at, micros) in times.into_iter().enumerate() {
            meter.record_slot_hold(at % 2, Duration::from_micros(micros));
        }
        let spread = meter.times().slot_hold;
        let filled: Vec<_> = spread.buckets.iter().copied().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.0005, 2), (0.001, 1), (60.0, 1), (f64::INFINITY, 1)]);
        let sum = times.iter().sum::<u64>() as f64 / 1e6;
        assert!((spread.sum / sum - 1.0).abs() < 0.01, "two significant digits: {}", spread.sum);
    }

    #[test]
    fn retry_after_is_about_as_long_as_the_last_request_waited() {
        let meter = Meter::new(1);
        assert_eq!(meter.retry_after(), 1);
        for (waited, least, most) in [(900, 1, 1), (4_500, 4, 6), (3_600_000, 20, 30)] {
            meter.note_wait(Duration::from_millis(waited));
            let asked: Vec<u32> = (0..200).map(|_| meter.retry_after()).collect();
            assert!(asked.iter().all(|seconds| (least..=most).contains(seconds)), "{waited} ms: {asked:?}");
        }
        meter.record_queue_wait(0, Duration::ZERO);
        assert_eq!(meter.retry_after(), 1);
    }
}
