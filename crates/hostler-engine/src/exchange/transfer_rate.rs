//! Measures whether a transfer is fast enough: bytes against the time that was spent waiting. Knows no connection and no clock.

/// How far a client may fall behind or get ahead, in seconds of the required rate.
const GRACE: u64 = 10;
/// The most milliseconds that count of one pause. Longer pauses are limited elsewhere, by a timeout.
const MAX_COUNTED_PAUSE: u64 = 5000;

/// By how much a client is ahead of the required rate. Only the time in which Hostler waits for the client counts, so a slow member or disk
/// is not held against the client.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransferRate {
    /// Thousandths of bytes above what was required. None before the first wait.
    ahead: Option<i64>,
    /// The start of the current wait.
    waits_since: Option<u64>,
}

impl TransferRate {
    /// The transfer waits from now on. `now` is in milliseconds of any clock.
    pub fn wait(&mut self, now: u64) {
        self.waits_since.get_or_insert(now);
    }

    /// Counts bytes that have moved. False if the client is slower than `rate` bytes a second.
    pub fn has_moved(&mut self, bytes: u64, now: u64, rate: u64) -> bool {
        let due = match self.waits_since.take() {
            Some(since) => now.saturating_sub(since).min(MAX_COUNTED_PAUSE).saturating_mul(rate),
            // Most bodies have arrived before the first wait.
            None if self.ahead.is_none() => return true,
            None => 0,
        };
        let full = signed(GRACE * 1000 * rate);
        let ahead = self.ahead.unwrap_or(full) - signed(due);
        let ahead = ahead.saturating_add(signed(bytes.saturating_mul(1000))).min(full);
        self.ahead = Some(ahead);
        ahead >= 0
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 240;

    /// After how many seconds a client that sends `bytes` after each `pause` is too slow. None if it is not within an hour.
    fn lasts(mut pace: TransferRate, bytes: u64, pause: u64) -> Option<u64> {
        let mut now = 0;
        while now < 3_600_000 {
            pace.wait(now);
            now += pause;
            if !pace.has_moved(bytes, now, RATE) {
                return Some(now / 1000);
            }
        }
        None
    }

    #[test]
    fn a_byte_at_long_intervals_is_too_slow_and_a_steady_slow_rate_is_not() {
        assert_eq!(lasts(TransferRate::default(), 1, 2000), Some(12));
        assert_eq!(lasts(TransferRate::default(), 1, 500), Some(10));
        assert_eq!(lasts(TransferRate::default(), 1, 29_000), Some(87), "a pause is within body_timeout");
        assert_eq!(lasts(TransferRate::default(), 240, 1000), None);
        assert_eq!(lasts(TransferRate::default(), 24, 100), None);
        assert_eq!(lasts(TransferRate::default(), 1200, 20_000), None, "a pause counts for five seconds");
        assert_eq!(lasts(TransferRate::default(), 230, 1000), Some(241));
    }

    #[test]
    fn a_fast_start_gives_no_credit_for_a_slow_rest() {
        let mut pace = TransferRate::default();
        pace.wait(0);
        assert!(pace.has_moved(1 << 20, 1, RATE));
        assert_eq!(lasts(pace, 1, 2000), Some(12));
    }

    #[test]
    fn pieces_that_arrive_together_after_a_pause_count_together() {
        let mut pace = TransferRate::default();
        for second in 0..100 {
            pace.wait(second * 1000);
            let pieces = [(second + 1) * 1000; 3];
            assert!(pieces.iter().all(|&now| pace.has_moved(RATE / 3, now, RATE)), "{second}");
        }
    }

    #[test]
    fn a_body_that_arrives_at_once_is_never_too_slow_nor_is_any_at_rate_zero() {
        let mut pace = TransferRate::default();
        for now in 0..1000 {
            assert!(pace.has_moved(1, now * 60_000, RATE), "we have not looked for longer");
        }
        for now in 0..1000 {
            pace.wait(now * 60_000);
            assert!(pace.has_moved(1, now * 60_000 + 59_000, 0));
        }
    }
}
