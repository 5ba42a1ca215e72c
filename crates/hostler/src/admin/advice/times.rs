//! The times of many requests, counted in buckets: their mean and their quantiles. Knows no pool.

use std::time::Duration;

use hostler_engine::proxy::Spread;

/// One of the three times of a pool, counted since the start.
#[derive(Debug, Clone, Default)]
pub struct TimeFigures {
    pub count: u64,
    /// Of all times, in seconds.
    pub sum: f64,
    /// Upper bounds in seconds, and how many times are in each bucket.
    pub buckets: Vec<(f64, u64)>,
}

impl TimeFigures {
    pub fn of(spread: &Spread) -> Self {
        Self { count: spread.count, sum: spread.sum, buckets: spread.buckets.clone() }
    }

    /// Only the times since `before`.
    pub fn since(&self, before: &Self) -> Self {
        let earlier = |at: usize| before.buckets.get(at).map_or(0, |(_, count)| *count);
        let buckets = self.buckets.iter().enumerate();
        Self {
            count: self.count.saturating_sub(before.count),
            sum: (self.sum - before.sum).max(0.0),
            buckets: buckets
                .map(|(at, (bound, count))| (*bound, count.saturating_sub(earlier(at))))
                .collect(),
        }
    }

    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(if self.count == 0 { 0.0 } else { self.sum / self.count as f64 })
    }

    /// The time that so large a share of all times do not exceed. Within a bucket the times count as evenly spread.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = share * self.buckets.iter().map(|(_, count)| count).sum::<u64>() as f64;
        let (mut seen, mut lower) = (0.0, 0.0);
        for (bound, count) in &self.buckets {
            let count = *count as f64;
            if count > 0.0 && seen + count >= wanted {
                let upper = if bound.is_finite() { *bound } else { lower };
                return Duration::from_secs_f64(lower + (upper - lower) * (wanted - seen).max(0.0) / count);
            }
            seen += count;
            lower = if bound.is_finite() { *bound } else { lower };
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_in_its_bucket() {
        let buckets = vec![(0.1, 50), (0.2, 40), (1.0, 10), (f64::INFINITY, 0)];
        let times = TimeFigures { count: 100, sum: 20.0, buckets };
        let millis = |share| times.quantile(share).as_millis();
        assert_eq!((millis(0.5), millis(0.7), millis(0.95)), (100, 150, 600));
        assert_eq!(times.mean(), Duration::from_millis(200));
        assert_eq!(TimeFigures::default().quantile(0.99), Duration::ZERO);
    }

    #[test]
    fn only_the_times_since_then_count() {
        let before = TimeFigures { count: 10, sum: 1.0, buckets: vec![(0.1, 10), (1.0, 0)] };
        let now = TimeFigures { count: 14, sum: 4.0, buckets: vec![(0.1, 10), (1.0, 4)] };
        let since = now.since(&before);
        assert_eq!((since.count, since.mean()), (4, Duration::from_millis(750)));
        assert!(since.quantile(0.5) > Duration::from_millis(100));
    }
}
