//! Requests over kept connections that their members close.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hostler_dispatch::{Claim, Lease, Membership, Pool, PoolSettings};
use hostler_wire::Limits;
use tokio::time::{Instant, sleep_until};

use super::{Dialled, MemberSide, SimulatedMember, WireSettings, listen, simulated_address, wire};
use crate::exchange::{Exchange, NoClient, Sweep};
use crate::proxy::{CallBox, CallSettings, Endpoint, Failure, Meter, SecondTry, forward};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Answers the first request, closes the connection over the second one, and then refuses all connections.
#[derive(Default)]
struct ClosingMember(AtomicUsize);

impl SimulatedMember for ClosingMember {
    fn dial(self: Arc<Self>) -> Dialled {
        if self.0.fetch_add(1, Ordering::Relaxed) > 0 {
            return Dialled::Refused;
        }
        let (stream, member) = wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
        tokio::spawn(async move {
            request(&member).await;
            member.write_at_once(ANSWER);
            request(&member).await;
        });
        Dialled::Accepted(stream, Duration::ZERO)
    }
}

pub(super) async fn request(member: &MemberSide) {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        if poll_fn(|cx| member.poll_read(cx, &mut head)).await == 0 {
            return std::future::pending().await;
        }
    }
}

pub(super) fn exchange() -> Exchange {
    let sweep = Sweep::new();
    tokio::spawn(sweep.clone().run());
    let address = ([127, 0, 0, 1], 1).into();
    let mut exchange = Exchange::new(address, address, sweep.deadline());
    exchange.head.parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Limits::default()).unwrap();
    exchange
}

pub(super) fn settings() -> CallSettings {
    let minute = Duration::from_secs(60);
    CallSettings {
        connect_timeout: minute,
        hangs_up_at_once: false,
        hang_timeout: minute,
        tunnel_idle_timeout: minute,
        stream_idle_timeout: minute,
        limits: Limits::default(),
        max_interim_answers: 1,
    }
}

async fn call(exchange: &mut Exchange, lease: Lease<Endpoint>) -> Result<CallBox, Failure> {
    forward(exchange, &mut NoClient, lease, &settings(), 0).await
}

/// A pool with this member.
pub(super) fn pool_of(member: Arc<dyn SimulatedMember>) -> (Pool<Endpoint>, Membership<Endpoint>) {
    listen(vec![member]);
    let pool = Pool::new("app", PoolSettings::default());
    let meter = Arc::new(Meter::new(1));
    let endpoint = Endpoint::new(simulated_address(0).into(), "a".into(), meter, 1, None);
    let membership = pool.join(endpoint, 1);
    (pool, membership)
}

/// A pool with this member, which has answered one request.
async fn pool_with(
    member: Arc<dyn SimulatedMember>,
    exchange: &mut Exchange,
) -> (Pool<Endpoint>, Membership<Endpoint>) {
    let (pool, membership) = pool_of(member);
    let lease = pool.acquire(Claim::default()).await.unwrap();
    let Ok(first) = call(exchange, lease).await else { panic!("the first request is answered") };
    first.finish(exchange);
    (pool, membership)
}

#[tokio::test(start_paused = true)]
async fn a_request_counts_as_sent_if_its_kept_connection_ends_and_no_other_can_be_made() {
    let mut exchange = exchange();
    let (pool, _membership) = pool_with(Arc::new(ClosingMember::default()), &mut exchange).await;
    let lease = pool.acquire(Claim::default()).await.unwrap();
    let Err(failure) = call(&mut exchange, lease).await else { panic!("the second request is not answered") };
    assert!(matches!(failure, Failure::Unreachable(_)) && exchange.was_swallowed, "{failure:?}");
    assert_eq!(pool.snapshot().in_use, 0);
}

/// Answers all requests, and counts them.
#[derive(Default)]
struct Counting(Arc<AtomicUsize>);

impl SimulatedMember for Counting {
    fn dial(self: Arc<Self>) -> Dialled {
        let (stream, member) = wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
        tokio::spawn(async move {
            loop {
                request(&member).await;
                self.0.fetch_add(1, Ordering::Relaxed);
                member.write_at_once(ANSWER);
            }
        });
        Dialled::Accepted(stream, Duration::ZERO)
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_try_that_is_not_wanted_any_more_is_not_sent() {
    let (member, mut exchange) = (Counting::default(), exchange());
    let count = member.0.clone();
    let (pool, _membership) = pool_with(Arc::new(member), &mut exchange).await;
    for _ in 0..40 {
        let lease = pool.acquire(Claim::default()).await.unwrap();
        drop(SecondTry::begin(&exchange, lease, &settings(), 0));
        sleep_until(Instant::now() + Duration::from_millis(10)).await;
        assert_eq!((count.load(Ordering::Relaxed), pool.snapshot().in_use), (1, 0));
    }
}
