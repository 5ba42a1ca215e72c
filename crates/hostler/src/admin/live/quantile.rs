//! Percentiles from counts in buckets. Knows no requests.

/// The value below which this share of the times lies, in seconds. A bucket is an upper bound with its own count. Within a bucket the times
/// count as evenly spread, so the result is as exact as the buckets are narrow. None without times.
pub fn quantile(buckets: &[(f64, u64)], share: f64) -> Option<f64> {
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    if all == 0 {
        return None;
    }
    let (wanted, mut before, mut lower) = (all as f64 * share, 0.0, 0.0);
    for &(upper, count) in buckets {
        let count = count as f64;
        if count > 0.0 && before + count >= wanted {
            // Nothing is known above the last bound.
            return Some(if upper.is_finite() {
                lower + (upper - lower) * (wanted - before) / count
            } else {
                lower
            });
        }
        before += count;
        if upper.is_finite() {
            lower = upper;
        }
    }
    Some(lower)
}

/// What was counted since `before`. Counters that have become smaller began again.
pub fn since(now: &[(f64, u64)], before: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let began_again =
        now.len() != before.len() || now.iter().zip(before).any(|(now, before)| now.1 < before.1);
    if began_again {
        return now.to_vec();
    }
    now.iter().zip(before).map(|(now, before)| (now.0, now.1 - before.1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let buckets = [(1.0, 50), (2.0, 40), (4.0, 10), (f64::INFINITY, 0)];
        assert_eq!(quantile(&buckets, 0.5), Some(1.0));
        assert_eq!(quantile(&buckets, 0.7), Some(1.5));
        assert_eq!(quantile(&buckets, 0.99), Some(3.8));
        assert_eq!(quantile(&[(1.0, 0)], 0.5), None);
        assert_eq!(quantile(&[(1.0, 0), (f64::INFINITY, 3)], 0.5), Some(1.0));
    }

    #[test]
    fn counters_that_began_again_count_from_zero() {
        assert_eq!(since(&[(1.0, 5)], &[(1.0, 3)]), [(1.0, 2)]);
        assert_eq!(since(&[(1.0, 2)], &[(1.0, 3)]), [(1.0, 2)]);
    }
}
