//! Histograms of the times of a pool's requests, one set per data-plane thread. Knows no requests.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::{Counter, Histogram};
use serde::Serialize;

use crate::exchange::{Ledger, clock};

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
    pub ledger: Arc<Ledger>,
    /// How long the last request waited, in whole seconds. Written only when it changes: without load it never does.
    last_wait: AtomicU32,
}

/// The times of one thread. Aligned, so that threads do not write to the same cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Recorded {
    queue_wait: TimeCounts,
    slot_hold: TimeCounts,
    worker_time: TimeCounts,
}

/// A histogram that never overflows. Its counts have 32 bits. Most requests do not wait, so the count of the shortest time is full after
/// days. Counts of 64 bits would take twice the memory, for each pool and each thread.
#[derive(Debug)]
struct TimeCounts {
    recent: Histogram<u32>,
    /// The most times in `recent`. So the sums over all threads fit into 32 bits, too.
    most: u64,
    /// The times that were moved here when `recent` was full. None: it never was.
    earlier: Option<Histogram<u64>>,
}

/// The times of all threads, in microseconds with two significant digits.
#[derive(Debug, Clone, Serialize)]
pub struct Times {
    /// From the request's arrival (body included) to its slot.
    pub queue_wait: Spread,
    /// From the slot's grant to its return. Not of tries whose connection failed before a response.
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
        let most = u64::from(u32::MAX) / threads.max(1) as u64;
        let threads = (0..threads).map(|_| Mutex::new(Recorded::new(most))).collect();
        Self { threads, ledger: Arc::new(Ledger::new(clock::now())), last_wait: AtomicU32::new(0) }
    }

    /// A request got its slot after this long.
    pub fn record_queue_wait(&self, thread: usize, time: Duration) {
        self.note_wait(time);
        self.with(thread, |times| times.queue_wait.record(time));
    }

    /// A request has waited this long for a slot, whether it got one or not.
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
        self.with(thread, |times| times.slot_hold.record(time));
    }

    /// A worker's answer began after this long.
    pub fn record_worker_time(&self, thread: usize, time: Duration) {
        self.with(thread, |times| times.worker_time.record(time));
    }

    pub fn times(&self) -> Times {
        let mut sum = Recorded::new(u64::from(u32::MAX));
        for thread in 0..self.threads.len() {
            self.with(thread, |times| sum.add(times));
        }
        Times {
            queue_wait: Spread::of(&sum.queue_wait.whole()),
            slot_hold: Spread::of(&sum.slot_hold.whole()),
            worker_time: Spread::of(&sum.worker_time.whole()),
        }
    }

    fn with<T>(&self, thread: usize, act: impl FnOnce(&mut Recorded) -> T) -> T {
        act(&mut self.threads[thread].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Recorded {
    fn new(most: u64) -> Self {
        let counts = || TimeCounts { recent: no_times(), most, earlier: None };
        Self { queue_wait: counts(), slot_hold: counts(), worker_time: counts() }
    }

    fn add(&mut self, other: &Self) {
        self.queue_wait.add(&other.queue_wait);
        self.slot_hold.add(&other.slot_hold);
        self.worker_time.add(&other.worker_time);
    }
}

impl TimeCounts {
    fn record(&mut self, time: Duration) {
        self.recent.saturating_record(u64::try_from(time.as_micros()).unwrap_or(MAX_TIME));
        if self.recent.len() >= self.most {
            self.earlier = Some(self.whole());
            self.recent.reset();
        }
    }

    fn add(&mut self, other: &Self) {
        self.recent += &other.recent;
        if let Some(earlier) = &other.earlier {
            *self.earlier.get_or_insert_with(no_times) += earlier;
        }
    }

    /// All times.
    fn whole(&self) -> Histogram<u64> {
        let mut whole = self.earlier.clone().unwrap_or_else(no_times);
        for step in self.recent.iter_recorded() {
            whole.saturating_record_n(step.value_iterated_to(), u64::from(step.count_at_value()));
        }
        whole
    }
}

fn no_times<C: Counter>() -> Histogram<C> {
    Histogram::new_with_bounds(1, MAX_TIME, 2).expect("invariant: constant bounds are valid")
}

impl Spread {
    fn of(times: &Histogram<u64>) -> Self {
        Self {
            count: times.len(),
            mean_us: (times.mean() * 10.0).round() / 10.0,
            p50_us: times.value_at_quantile(0.5),
            p90_us: times.value_at_quantile(0.9),
            p99_us: times.value_at_quantile(0.99),
            p999_us: times.value_at_quantile(0.999),
            max_us: times.max(),
            buckets: buckets(times),
            sum: sum(times),
        }
    }
}

/// The sum in seconds, added up from whole numbers. The mean multiplied by the count would be rounded differently each time and could
/// become smaller, which Prometheus takes for a restart.
fn sum(times: &Histogram<u64>) -> f64 {
    let micros = times.iter_recorded().map(|step| {
        u128::from(times.median_equivalent(step.value_iterated_to())) * u128::from(step.count_at_value())
    });
    micros.sum::<u128>() as f64 / 1e6
}

fn buckets(times: &Histogram<u64>) -> Vec<(f64, u64)> {
    let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
    let mut buckets: Vec<(f64, u64)> = bounds.map(|bound| (bound, 0)).collect();
    for step in times.iter_recorded() {
        // The histogram holds a range of times as one. A bound belongs to the range that begins with it.
        let time = times.lowest_equivalent(step.value_iterated_to());
        buckets[BOUNDS.partition_point(|bound| times.lowest_equivalent(*bound) < time)].1 +=
            step.count_at_value();
    }
    buckets
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
    fn a_request_that_has_not_waited_never_makes_the_sum_smaller() {
        let meter = Meter::new(1);
        for micros in [1, 700, 30_000] {
            meter.record_queue_wait(0, Duration::from_micros(micros));
        }
        let sum = meter.times().queue_wait.sum;
        for _ in 0..200 {
            meter.record_queue_wait(0, Duration::ZERO);
            assert_eq!(meter.times().queue_wait.sum.to_bits(), sum.to_bits());
        }
    }

    #[test]
    fn more_times_than_32_bits_can_count_are_all_counted() {
        let meter = Meter::new(2);
        for thread in [0, 1] {
            meter.with(thread, |times| times.queue_wait.recent.saturating_record_n(100, u32::MAX - 2));
            for micros in [100, 100, 100, 70_000_000, 100] {
                meter.record_queue_wait(thread, Duration::from_micros(micros));
            }
        }
        let all = 2 * (u64::from(u32::MAX) + 3);
        let spread = meter.times().queue_wait;
        let filled: Vec<_> = spread.buckets.iter().copied().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.0005, all - 2), (f64::INFINITY, 2)]);
        assert_eq!((spread.count, spread.p50_us), (all, 100));
        assert!(spread.max_us >= 70_000_000, "{}", spread.max_us);
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
