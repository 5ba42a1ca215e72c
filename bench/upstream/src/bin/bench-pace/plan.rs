//! The start times of requests. Knows only numbers.

use std::time::Duration;

/// The times of a Poisson process from its beginning. The same seed gives the same times.
pub fn arrivals(rate: f64, length: Duration, seed: u64) -> Vec<Duration> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut at = 0.0;
    let mut plan = Vec::new();
    loop {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Between 0 and 1, both excluded.
        let random = ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        at -= random.ln() / rate;
        if at >= length.as_secs_f64() {
            return plan;
        }
        plan.push(Duration::from_secs_f64(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_at_the_rate_and_are_the_same_for_the_same_seed() {
        let plan = arrivals(1000.0, Duration::from_secs(10), 1);
        assert!((9_500..10_500).contains(&plan.len()), "{}", plan.len());
        assert!(plan.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(plan, arrivals(1000.0, Duration::from_secs(10), 1));
        assert_ne!(plan, arrivals(1000.0, Duration::from_secs(10), 2));
    }
}
