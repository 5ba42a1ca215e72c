//! A member that closes each connection after its response, and does not say so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hostler_dispatch::{Claim, Membership, Pool};
use hostler_wire::Limits;
use tokio::time::{Instant, sleep_until};

use super::kept::{exchange, pool_of, request, settings};
use super::{Dialled, SimulatedMember, WireSettings, wire};
use crate::exchange::NoClient;
use crate::proxy::{Endpoint, Failure, forward};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Closes each connection after its first response, of which the proxy learns a moment later, until it `keeps` them.
#[derive(Default)]
struct ClosingEach {
    connections: AtomicUsize,
    keeps: AtomicBool,
}

impl SimulatedMember for ClosingEach {
    fn dial(self: Arc<Self>) -> Dialled {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let (stream, member) = wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
        tokio::spawn(async move {
            loop {
                request(&member).await;
                member.write_at_once(ANSWER);
                if !self.keeps.load(Ordering::Relaxed) {
                    member.deafen();
                    return sleep_until(Instant::now() + Duration::from_millis(5)).await;
                }
            }
        });
        Dialled::Accepted(stream, Duration::ZERO)
    }
}

/// A pool with the member.
struct Setup {
    member: Arc<ClosingEach>,
    pool: Pool<Endpoint>,
    _membership: Membership<Endpoint>,
}

impl Setup {
    fn new() -> Self {
        let member = Arc::<ClosingEach>::default();
        let (pool, membership) = pool_of(member.clone());
        Self { member, pool, _membership: membership }
    }

    /// Sends a request as soon as the one before has its response. True: the member has answered.
    async fn ask(&self, method: &str) -> bool {
        let mut exchange = exchange();
        let head = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
        let lease = self.pool.acquire(Claim::default()).await.unwrap();
        match forward(&mut exchange, &mut NoClient, lease, &settings(), 0).await {
            Ok(call) => {
                call.finish(&mut exchange);
                true
            }
            Err(failure) => {
                assert!(matches!(failure, Failure::Unanswered(_)), "{failure:?}");
                false
            }
        }
    }

    /// Each of `count` requests, one after another, gets an answer.
    async fn answers(&self, count: usize, method: &str) {
        for _ in 0..count {
            assert!(self.ask(method).await, "{method}");
        }
    }

    fn connections(&self) -> usize {
        self.member.connections.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_closes_each_connection_loses_one_post_and_no_other() {
    let setup = Setup::new();
    assert!(setup.ask("POST").await);
    assert!(!setup.ask("POST").await, "nothing has shown yet that the connection closes");
    setup.answers(9, "POST").await;
    assert_eq!(setup.connections(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_get_shows_that_a_member_closes_each_connection_and_no_post_is_lost() {
    let setup = Setup::new();
    for method in ["GET", "GET", "POST", "GET", "POST", "POST"] {
        assert!(setup.ask(method).await, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn posts_use_kept_connections_again_when_the_member_has_answered_twice_over_one() {
    let setup = Setup::new();
    setup.answers(2, "GET").await;
    setup.member.keeps.store(true, Ordering::Relaxed);
    // The first one finds the last connection closed.
    setup.answers(3, "GET").await;
    let before = setup.connections();
    setup.answers(9, "POST").await;
    assert_eq!(setup.connections(), before);
}

#[tokio::test(start_paused = true)]
async fn posts_use_kept_connections_again_when_one_has_stayed_open() {
    let setup = Setup::new();
    setup.answers(2, "GET").await;
    setup.member.keeps.store(true, Ordering::Relaxed);
    let mut opened = Vec::new();
    for _ in 0..4 {
        sleep_until(Instant::now() + Duration::from_millis(600)).await;
        assert!(setup.ask("POST").await);
        opened.push(setup.connections());
    }
    setup.answers(9, "POST").await;
    // The first of these connections has shown it two pauses later.
    assert_eq!(setup.connections(), opened[3], "{opened:?}");
}
