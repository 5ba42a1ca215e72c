//! Who pays for one request: its route, its key in a fair pool, and its buckets of worker time. Knows no queue and no workers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use hostler_dispatch::{Payer, SlotCost};
use tokio::time::Instant;

use super::buckets::BucketCharge;
use super::clock;
use super::costs::Cost;
use super::key_costs::{KeyCosts, KeyName, KeyWords};
use super::ledger::RouteAccount;

/// The key of one request, which is charged when its slot comes back and when it ends.
#[derive(Debug)]
pub struct FairCharge {
    /// Where it is charged.
    pub costs: Arc<KeyCosts>,
    /// The hash of the key.
    pub key: u64,
    /// What the key is. It is put into words when they are wanted: among thousands of keys few are ever seen.
    pub name: KeyName,
    /// The route, which pays as well. If it is set, this value is the whole payer of the request: no [`RequestAccount`] is made.
    route: Option<Arc<RouteAccount>>,
    /// Whether the request brings its key into the table of costs, if the key has no place there. Decided once: one of the three below.
    brings_in: AtomicU8,
}

const UNDECIDED: u8 = 0;
const BRINGS_IN: u8 = 1;
const STAYS_OUT: u8 = 2;

/// All that pay for one request.
struct RequestAccount {
    route: Arc<RouteAccount>,
    charge: Option<Arc<FairCharge>>,
    buckets: Box<[BucketCharge]>,
}

impl RouteAccount {
    /// Who pays for a request of this route, under this key of a fair pool, and from these buckets of rate limits.
    pub fn payer(
        self: &Arc<Self>,
        charge: Option<&Arc<FairCharge>>,
        buckets: &[BucketCharge],
    ) -> Arc<dyn Payer> {
        match charge {
            None if buckets.is_empty() => self.clone(),
            Some(charge) if buckets.is_empty() && charge.is_of(self) => charge.clone(),
            _ => Arc::new(RequestAccount {
                route: self.clone(),
                charge: charge.cloned(),
                buckets: buckets.into(),
            }),
        }
    }

    /// A request of this route has ended, after this time in the queue.
    pub fn end(&self, charge: Option<&FairCharge>, queue: Duration, is_refused: bool) {
        let now = clock::now();
        self.count(queue, is_refused, now);
        if let Some(charge) = charge {
            charge.add(Cost { requests: 1, queue, ..Cost::default() }, is_refused, now);
        }
    }
}

impl FairCharge {
    /// Nothing is charged yet. `route`: where the request counts besides.
    pub fn new(costs: Arc<KeyCosts>, key: u64, name: KeyName, route: Option<Arc<RouteAccount>>) -> Self {
        Self { costs, key, name, route, brings_in: AtomicU8::new(UNDECIDED) }
    }

    /// The key in words.
    pub fn words(&self) -> KeyWords<'_> {
        KeyWords { name: &self.name, key: self.key }
    }

    fn is_of(&self, route: &Arc<RouteAccount>) -> bool {
        self.route.as_ref().is_some_and(|own| Arc::ptr_eq(own, route))
    }

    fn add(&self, cost: Cost, is_refused: bool, now: Instant) {
        self.costs.with(|costs| {
            if costs.add(self.key, cost, is_refused, now) {
                return;
            }
            // Read and written under the lock of the costs.
            if self.brings_in.load(Ordering::Relaxed) == UNDECIDED {
                let decision = if costs.wants(now) { BRINGS_IN } else { STAYS_OUT };
                self.brings_in.store(decision, Ordering::Relaxed);
            }
            if self.brings_in.load(Ordering::Relaxed) == BRINGS_IN {
                costs.bring_in(self.key, self.words().to_string().into(), cost, is_refused, now);
            }
        });
    }
}

/// For a request that only its route and its key pay for, and no bucket.
impl Payer for FairCharge {
    fn pay(&self, release: u64, cost: SlotCost) {
        let now = clock::now();
        if let Some(route) = &self.route {
            self.add(route.pay_at(release, cost, now), false, now);
        }
    }

    fn pay_besides(&self, besides: Duration) {
        self.add(Cost { besides, ..Cost::default() }, false, clock::now());
    }

    fn pay_early(&self, _: Duration, given_up: Duration) {
        self.add(Cost { given_up, ..Cost::default() }, false, clock::now());
    }
}

impl Payer for RequestAccount {
    fn pay(&self, release: u64, cost: SlotCost) {
        let now = clock::now();
        let of_key = self.route.pay_at(release, cost, now);
        if let Some(charge) = &self.charge {
            charge.add(of_key, false, now);
        }
        self.buckets.iter().for_each(|bucket| bucket.settle(cost.hold, now));
    }

    fn pay_besides(&self, charged: Duration) {
        if let Some(charge) = &self.charge {
            charge.pay_besides(charged);
        }
    }

    fn pay_early(&self, held: Duration, besides: Duration) {
        if let Some(charge) = &self.charge {
            charge.pay_early(held, besides);
        }
        let (rest, now) = (self.route.usual_hold().saturating_sub(held), clock::now());
        self.buckets.iter().for_each(|bucket| bucket.settle(rest, now));
    }
}

impl fmt::Debug for RequestAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestAccount").field("route", &self.route).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::buckets::{Refill, TokenBuckets};
    use super::super::costs::BySpan;
    use super::super::ledger::Ledger;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_dearest_keys_come_first_with_their_share() {
        let (costs, now) = (Arc::new(KeyCosts::new(Instant::now())), Instant::now());
        let charge =
            |key, name: &str| FairCharge::new(costs.clone(), key, KeyName::Crawler(name.into()), None);
        let (robot, other) = (charge(1, "Robot"), charge(2, "Other"));
        let held = |millis| Cost { hold: Duration::from_millis(millis), ..Cost::default() };
        let ended = || Cost { requests: 1, ..Cost::default() };
        for _ in 0..30 {
            robot.add(held(100), false, now);
            robot.add(ended(), false, now);
            other.add(held(25), false, now);
            other.add(ended(), false, now);
        }
        other.add(ended(), true, now);
        let deadly = charge(3, "Deadly");
        deadly.pay_besides(Duration::from_secs(1));
        let seen = costs.view(now);
        assert_eq!(
            seen.iter().map(|key| (&*key.key, key.share_percent)).collect::<Vec<_>>(),
            [("crawler Robot", 63.2), ("crawler Deadly", 21.1), ("crawler Other", 15.8)]
        );
        assert_eq!(seen[0].worker_ms, BySpan { minute: 3000, quarter: 3000, day: 3000 });
        assert_eq!((seen[2].requests, seen[2].refused, seen[2].unanswered), (31, 1, 0));
        assert_eq!((seen[1].worker_ms.minute, seen[1].unanswered), (1000, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_has_what_its_pool_charges_for_requests_that_clients_give_up() {
        let (costs, now) = (Arc::new(KeyCosts::new(Instant::now())), Instant::now());
        let route = RouteAccount::new(&Arc::new(Ledger::new(now)), &"/x".into(), &Arc::default());
        let name = KeyName::Crawler("Robot".into());
        let charge = Arc::new(FairCharge::new(costs.clone(), 1, name, Some(route.clone())));
        let buckets = Arc::new(TokenBuckets::new(Refill::new(1, Duration::from_secs(1), 1), now));
        let (held, besides) = (Duration::from_millis(10), Duration::from_millis(90));
        for charges in [vec![], vec![BucketCharge { buckets, key: 1 }]] {
            let payer = route.payer(Some(&charge), &charges);
            payer.pay(0, SlotCost { hold: held, cpu: None });
            payer.pay_early(held, besides);
        }
        let seen = costs.view(now);
        assert_eq!((seen[0].worker_ms.minute, seen[0].unanswered), (200, 0));
    }
}
