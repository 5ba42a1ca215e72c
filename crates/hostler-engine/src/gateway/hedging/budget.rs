//! How many second tries there may be: a share of all requests. Knows no requests.

use std::sync::atomic::{AtomicU64, Ordering};

/// What one second try costs. A request earns the configured share in thousandths: 50 for 5 %, so that 20 requests pay
/// for one second try.
const PRICE: u64 = 1000;
/// At most this many second tries can be saved, for a moment in which many responses are slow.
const MOST_SAVED: u64 = 10;

/// Earned by requests, spent on second tries. It begins empty, so there are never more than the share.
pub(super) struct HedgeBudget {
    share: u64,
    saved: AtomicU64,
}

impl HedgeBudget {
    /// `share` in thousandths of all requests.
    pub fn new(share: u32) -> Self {
        Self { share: share.into(), saved: AtomicU64::new(0) }
    }

    /// There is one more request.
    pub fn earn(&self) {
        // Nothing is written while it is full, so that threads do not contend for it.
        let _ = self.saved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |saved| {
            (saved < MOST_SAVED * PRICE).then(|| (saved + self.share).min(MOST_SAVED * PRICE))
        });
    }

    /// Whether there may be one more second try.
    pub fn spend(&self) -> bool {
        let spent =
            self.saved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |saved| saved.checked_sub(PRICE));
        spent.is_ok()
    }

    /// The second try was not made.
    pub fn give_back(&self) {
        self.saved.fetch_add(PRICE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_tries_never_exceed_their_share_of_the_requests() {
        for share in [1, 20, 500] {
            let budget = HedgeBudget::new(share);
            let mut spent = 0;
            for requests in 1..=10_000 {
                budget.earn();
                spent += u64::from(budget.spend());
                assert!(spent * 1000 <= requests * u64::from(share), "{spent} of {requests}");
            }
            assert_eq!(spent, 10 * u64::from(share));
        }
    }

    #[test]
    fn only_a_few_second_tries_are_saved_up() {
        let budget = HedgeBudget::new(20);
        (0..1_000_000).for_each(|_| budget.earn());
        assert_eq!((0..100).filter(|_| budget.spend()).count() as u64, MOST_SAVED);
        budget.give_back();
        assert!(budget.spend() && !budget.spend());
    }
}
