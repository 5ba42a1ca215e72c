//! What a key of a fair pool pays when its member ends a request without a response.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hostler_dispatch::{Claim, Lease, Membership, Payer, Pool, PoolSettings, SlotCost};
use hostler_wire::CallError;
use hostler_worker::ExitWatch;
use tokio::time::{Instant, sleep_until};

use super::kept::{exchange, request, settings};
use super::{Dialled, SimulatedMember, WireSettings, listen, simulated_address, wire};
use crate::exchange::NoClient;
use crate::proxy::ending::end_lease;
use crate::proxy::{Endpoint, Failure, Meter, OwnWorker, forward};

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

/// A pool of one simulated member, which may be a worker of ours, and its slot, for which `deaths` pays.
async fn slot(
    deaths: &Arc<Deaths>,
    is_ours: bool,
) -> (Pool<Endpoint>, Membership<Endpoint>, Lease<Endpoint>) {
    let pool = Pool::new("app", PoolSettings::default());
    let meter = Arc::new(Meter::new(1));
    let ours = is_ours.then(|| OwnWorker { on_hang: Arc::new(|_| {}), exit_watch: ExitWatch::ended(1) });
    let membership = pool.join(Endpoint::new(simulated_address(0).into(), "a".into(), meter, 1, ours), 1);
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
        let (_pool, _membership, lease) = slot(&deaths, true).await;
        let failure = end_lease((failure, Some(lease)));
        assert_eq!(deaths.paid(), expected, "{failure}");
    }
}

/// Hangs up on a request after a second: without a response, or in the middle of one.
struct Dying {
    begins: bool,
}

impl SimulatedMember for Dying {
    fn dial(self: Arc<Self>) -> Dialled {
        let (stream, member) = wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
        tokio::spawn(async move {
            request(&member).await;
            sleep_until(Instant::now() + Duration::from_secs(1)).await;
            if self.begins {
                member.write_at_once(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
                sleep_until(Instant::now() + Duration::from_millis(100)).await;
            }
        });
        Dialled::Accepted(stream, Duration::ZERO)
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_pays_for_a_death_also_if_its_client_has_got_a_504_before() {
    for (begins, is_ours) in [(false, true), (true, true), (false, false), (true, false)] {
        listen(vec![Arc::new(Dying { begins }) as Arc<dyn SimulatedMember>]);
        let (deaths, mut exchange) = (Arc::<Deaths>::default(), exchange());
        let (pool, _membership, lease) = slot(&deaths, is_ours).await;
        exchange.deadline.set_at(Instant::now() + Duration::from_millis(100));
        let Err(failure) = forward(&mut exchange, &mut NoClient, lease, &settings(), 0).await else {
            panic!("the member has not responded");
        };
        assert!(matches!(failure, Failure::TimedOut), "{failure:?}");
        assert_eq!((deaths.paid(), pool.snapshot().in_use), (0, 1), "the member still works");
        sleep_until(Instant::now() + Duration::from_secs(2)).await;
        let expected = (usize::from(is_ours), 0);
        assert_eq!((deaths.paid(), pool.snapshot().in_use), expected, "{begins}, {is_ours}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_of_another_system_that_breaks_a_request_off_gets_the_next_one_at_once_and_no_key_pays() {
    for (begins, is_ours) in [(false, false), (true, false), (true, true)] {
        listen(vec![Arc::new(Dying { begins }) as Arc<dyn SimulatedMember>]);
        let (deaths, mut exchange) = (Arc::<Deaths>::default(), exchange());
        let (pool, _membership, lease) = slot(&deaths, is_ours).await;
        match forward(&mut exchange, &mut NoClient, lease, &settings(), 0).await {
            Ok(call) => drop(call.give_up(&mut exchange, CallError::Cut)),
            Err(failure) => assert!(failure.was_cut_off(), "{failure}"),
        }
        let ended = Instant::now();
        drop(pool.acquire(Claim::default()).await.unwrap());
        assert_eq!(ended.elapsed().is_zero(), !is_ours, "{begins}, {is_ours}");
        assert_eq!(deaths.paid(), usize::from(is_ours), "{begins}, {is_ours}");
    }
}
