//! Two tries of one request at two members: which answer counts, and how long each may take.

use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{Claim, Lease, Membership, Pool, PoolSettings};
use tokio::time::{Instant, sleep_until};

use super::kept::{exchange, request, settings};
use super::{Dialled, SimulatedMember, WireSettings, listen, simulated_address, wire};
use crate::exchange::{Exchange, LateCheck, NoClient};
use crate::proxy::{Endpoint, Failure, FirstHead, Meter, SecondTry, forward};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What a member does with its request after a time.
#[derive(Clone, Copy)]
enum Act {
    Answers,
    /// Sends the head, and none of the body. Hangs up three seconds later.
    Begins,
    HangsUp,
}
use Act::{Answers, Begins, HangsUp};

struct Timed(Duration, Act);

impl SimulatedMember for Timed {
    fn dial(self: Arc<Self>) -> Dialled {
        let (stream, member) = wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
        tokio::spawn(async move {
            request(&member).await;
            sleep_until(Instant::now() + self.0).await;
            let length = match self.1 {
                Answers => 0,
                Begins => 10,
                HangsUp => return,
            };
            member.write_at_once(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes());
            match self.1 {
                Begins => sleep_until(Instant::now() + seconds(3)).await,
                _ => std::future::pending().await,
            }
        });
        Dialled::Accepted(stream, Duration::ZERO)
    }
}

/// A pool whose first member is the simulated one with this number, and the slot of that one. The other member would do as well.
async fn pool(number: usize) -> (Membership<Endpoint>, Membership<Endpoint>, Lease<Endpoint>) {
    let pool = Pool::new("app", PoolSettings::default());
    let first = join(&pool, number);
    let lease = pool.acquire(Claim::default()).await.unwrap();
    (first, join(&pool, number + 2), lease)
}

fn join(pool: &Pool<Endpoint>, number: usize) -> Membership<Endpoint> {
    let address = simulated_address(number).into();
    pool.join(Endpoint::new(address, "a".into(), Arc::new(Meter::new(1)), 1, None), 1)
}

/// Both are asked. From two seconds on the answer is late, and after 30 it is over. `meanwhile` gets the first member.
async fn race(
    [first, second]: [(Duration, Act); 2],
    moves: bool,
    meanwhile: impl AsyncFnOnce(Membership<Endpoint>),
) -> Result<&'static str, Failure> {
    listen(
        [first, second].map(|(after, act)| Arc::new(Timed(after, act)) as Arc<dyn SimulatedMember>).into(),
    );
    let mut exchange: Exchange = exchange();
    let ((membership, _other, first), (_second, _fourth, second)) = (pool(0).await, pool(1).await);
    let (at, until) = (Instant::now() + seconds(2), Instant::now() + seconds(30));
    exchange.late_check = Some(LateCheck { at, until });
    exchange.deadline.set_at(at);
    exchange.patience = Some(Box::pin(sleep_until(Instant::now() + Duration::from_millis(10))));
    let settings = settings();
    let Ok(call) = forward(&mut exchange, &mut NoClient, first, &settings, 0).await else {
        panic!("the first member has the request");
    };
    assert!(call.is_late());
    let second = SecondTry::begin(&exchange, second, &settings, 0);
    let mut client = NoClient;
    let (head, ()) =
        tokio::join!(call.race(second, moves, &mut exchange, &mut client), meanwhile(membership));
    head.map(|head| match head {
        FirstHead::First(call) => (call, "first"),
        FirstHead::Second(call) => (call, "second"),
    })
    .map(|(call, which)| {
        call.finish(&mut exchange);
        which
    })
}

#[tokio::test(start_paused = true)]
async fn after_the_first_try_has_failed_the_second_has_all_of_the_time() {
    let times = [(seconds(1), HangsUp), (seconds(5), Answers)];
    assert_eq!(
        race(times, true, async |_member| sleep_until(Instant::now() + seconds(9)).await).await.unwrap(),
        "second"
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_try_of_a_request_waits_for_a_member_that_was_given_up() {
    let times = [(seconds(10), Answers), (seconds(1), HangsUp)];
    for (moves, expected) in [(false, Some("first")), (true, None)] {
        let outcome = race(times, moves, async |member| {
            sleep_until(Instant::now() + seconds(3)).await;
            member.set_health(false);
            sleep_until(Instant::now() + seconds(9)).await;
        });
        assert_eq!(outcome.await.ok(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_try_that_has_answered_holds_its_slot_until_its_member_has_finished() {
    listen(vec![Arc::new(Timed(seconds(1), Begins)) as Arc<dyn SimulatedMember>]);
    let exchange: Exchange = exchange();
    let pool = Pool::new("app", PoolSettings::default());
    let _member = join(&pool, 0);
    let lease = pool.acquire(Claim::default()).await.unwrap();
    let second = SecondTry::begin(&exchange, lease, &settings(), 0);
    sleep_until(Instant::now() + seconds(2)).await;
    drop(second);
    tokio::task::yield_now().await;
    assert!(pool.snapshot().is_busy());
    sleep_until(Instant::now() + seconds(3)).await;
    assert!(!pool.snapshot().is_busy());
}
