//! What a key of a fair pool pays when its member ends a request without a response.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hostler_dispatch::{Claim, Lease, Membership, Payer, Pool, PoolSettings, SlotCost};
use hostler_wire::CallError;

use super::simulated_address;
use crate::proxy::ending::end_lease;
use crate::proxy::{Endpoint, Failure, Meter};

/// Counts how often it pays for a death.
#[derive(Default)]
struct Deaths(AtomicUsize);

impl Payer for Deaths {
    fn pay(&self, _: u64, _: SlotCost) {}

    fn pay_besides(&self, _: Duration) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Deaths {
    fn paid(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A pool of one simulated member, and its slot, for which `deaths` pays.
async fn slot(deaths: &Arc<Deaths>) -> (Pool<Endpoint>, Membership<Endpoint>, Lease<Endpoint>) {
    let pool = Pool::new("app", PoolSettings::default());
    let meter = Arc::new(Meter::new(1));
    let membership = pool.join(Endpoint::new(simulated_address(0).into(), "a".into(), meter, 1, None), 1);
    let mut lease = pool.acquire(Claim::default()).await.unwrap();
    lease.charge_to(deaths.clone(), 0);
    (pool, membership, lease)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_its_member_has_not_processed_pays_for_no_death() {
    let failures = [
        (Failure::Unprocessed("GOAWAY".into()), 0),
        (Failure::Unanswered(CallError::Closed), 1),
        (Failure::Broken(CallError::Cut), 1),
    ];
    for (failure, expected) in failures {
        let deaths = Arc::<Deaths>::default();
        let (_pool, _membership, lease) = slot(&deaths).await;
        let failure = end_lease((failure, Some(lease)));
        assert_eq!(deaths.paid(), expected, "{failure}");
    }
}
