//! Clients that leave while a member that can be told so works on their requests.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{Claim, Pool, PoolSettings};
use tokio::time::Instant;

use super::kept::{exchange, request, settings};
use super::{Dialled, SimulatedMember, TestClient, WireSettings, listen, simulated_address, wire};
use crate::exchange::BodyError;
use crate::proxy::{CallSettings, Endpoint, Failure, LEAVING_TIME, Meter, forward};

/// Answers nothing.
struct Silent;

impl SimulatedMember for Silent {
    fn dial(self: Arc<Self>) -> Dialled {
        let (stream, member) = wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
        tokio::spawn(async move {
            request(&member).await;
            pending::<()>().await;
        });
        Dialled::Accepted(stream, Duration::ZERO)
    }
}

/// How long the call of a client that has left goes on.
async fn time_of<const SHOWS: bool>() -> Duration {
    listen(vec![Arc::new(Silent) as Arc<dyn SimulatedMember>]);
    let pool = Pool::new("app", PoolSettings::default());
    let meter = Arc::new(Meter::new(1));
    let endpoint = Endpoint::new(simulated_address(0).into(), "a".into(), meter, 1, None);
    let _membership = pool.join(endpoint, 1);
    let lease = pool.acquire(Claim::default()).await.unwrap();
    let settings = CallSettings { hangs_up_at_once: true, ..settings() };
    let (mut exchange, began) = (exchange(), Instant::now());
    let mut client = TestClient::<SHOWS> { has_left: true, ..TestClient::default() };
    let answered = forward(&mut exchange, &mut client, lease, &settings, 0).await;
    assert!(matches!(answered, Err(Failure::Body(BodyError::Left))));
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_member_is_told_at_once_of_a_client_that_has_left_for_certain() {
    assert!(time_of::<true>().await < LEAVING_TIME);
    assert!(time_of::<false>().await >= LEAVING_TIME);
}
