//! How long a member that could not be reached gets nothing; knows no members.

use std::time::Duration;

/// How long a member gets nothing that has ended a request without an answer. If it has died, whoever looks after it knows
/// by then, while its socket may still take connections; if it lives, this is no more than a slow answer, and it ends at once
/// if the member answers another request meanwhile. It does not grow:
/// requests that a member hangs up on must not be a way to bench it for long.
pub(super) const SUSPENSE: Duration = Duration::from_millis(50);

/// Back-off for members that could not be reached: doubles with each failure in a row, jittered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchSettings {
    /// The first back-off.
    pub min: Duration,
    /// The longest one.
    pub max: Duration,
}

impl Default for BenchSettings {
    fn default() -> Self {
        Self { min: Duration::from_millis(100), max: Duration::from_secs(5) }
    }
}

impl BenchSettings {
    /// The back-off after so many failures in a row (at least one).
    pub(super) fn after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = self.min.saturating_mul(1 << doublings).min(self.max);
        // Members that failed together must not all come back in the same instant.
        full.mul_f64(0.8 + 0.2 * fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bench_doubles_up_to_its_maximum() {
        let bench = BenchSettings::default();
        for (failures, full) in [(1, 100), (2, 200), (3, 400), (6, 3200), (7, 5000), (u32::MAX, 5000)] {
            let time = bench.after(failures).as_millis();
            assert!(
                (full * 8 / 10..=full).contains(&time),
                "{failures} failures: {time} ms, not about {full}"
            );
        }
    }
}
