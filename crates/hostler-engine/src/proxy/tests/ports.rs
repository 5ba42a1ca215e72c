//! Requests for whose connection no local port is free.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hostler_dispatch::Claim;

use super::kept::{exchange, pool_of, request, settings};
use super::{Dialled, SimulatedMember, WireSettings, wire};
use crate::exchange::NoClient;
use crate::proxy::{Failure, forward};

/// So many attempts to connect find no local port. The others find a member that answers.
struct WithoutPorts(AtomicUsize);

impl SimulatedMember for WithoutPorts {
    fn dial(self: Arc<Self>) -> Dialled {
        let left = self.0.load(Ordering::Relaxed);
        if left > 0 {
            self.0.store(left - 1, Ordering::Relaxed);
            return Dialled::NoPort;
        }
        let (stream, member) = wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
        tokio::spawn(async move {
            request(&member).await;
            member.write_at_once(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            pending::<()>().await;
        });
        Dialled::Accepted(stream, Duration::ZERO)
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_local_port_and_the_member_is_not_to_blame() {
    for (attempts, is_served) in [(3, true), (usize::MAX, false)] {
        let (pool, _member) = pool_of(Arc::new(WithoutPorts(attempts.into())));
        let lease = pool.acquire(Claim::default()).await.unwrap();
        let mut exchange = exchange();
        match forward(&mut exchange, &mut NoClient, lease, &settings(), 0).await {
            Ok(call) => {
                assert!(is_served);
                call.finish(&mut exchange);
            }
            Err(failure) => {
                assert!(!is_served && matches!(failure, Failure::NoDescriptor(_)), "{failure}");
            }
        }
        let figures = pool.snapshot();
        assert_eq!((figures.in_use, figures.counters.member_failures), (0, 0));
        assert_eq!(pool.reachable_members(), 1);
    }
}
