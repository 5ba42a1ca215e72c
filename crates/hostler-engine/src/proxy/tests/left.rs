//! Clients that leave while a member that can be told so works on their requests.

use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hostler_dispatch::Claim;
use tokio::sync::oneshot;
use tokio::time::{Instant, interval};

use super::kept::{exchange, pool_of, request, settings};
use super::{Dialled, SimulatedMember, TestClient, WireSettings, wire};
use crate::exchange::BodyError;
use crate::proxy::{CallEnding, CallSettings, Failure, LEAVING_TIME, forward};

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
    let (pool, _membership) = pool_of(Arc::new(Silent));
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

/// Writes a line each tenth of a second, reads nothing meanwhile, and tells when a write has failed.
struct Unaware(&'static str, Mutex<Option<oneshot::Sender<()>>>);

impl SimulatedMember for Unaware {
    fn dial(self: Arc<Self>) -> Dialled {
        let (stream, member) = wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
        tokio::spawn(async move {
            request(&member).await;
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n", self.0);
            let (mut ticks, mut bytes) = (interval(Duration::from_millis(100)), head.into_bytes());
            while poll_fn(|cx| member.poll_write(cx, &mut bytes.as_slice())).await {
                ticks.tick().await;
                bytes = b"8\r\nanother\n\r\n".to_vec();
            }
            self.1.lock().unwrap().take().unwrap().send(()).unwrap();
        });
        Dialled::Accepted(stream, Duration::ZERO)
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_writes_on_after_our_fin_loses_its_connection_and_its_slot_is_free() {
    for kind in ["text/plain", "text/event-stream"] {
        let (failed, write_failed) = oneshot::channel();
        let (pool, _membership) = pool_of(Arc::new(Unaware(kind, Mutex::new(Some(failed)))));
        let lease = pool.acquire(Claim::default()).await.unwrap();
        let mut exchange = exchange();
        let mut client = TestClient::<true>::default();
        let call = forward(&mut exchange, &mut client, lease, &settings(), 0).await.unwrap();
        let left = Instant::now();
        call.end(CallEnding::Unwanted);
        write_failed.await.unwrap();
        assert!(left.elapsed() < Duration::from_secs(2), "{kind}: {:?}", left.elapsed());
        drop(pool.acquire(Claim::default()).await.unwrap());
        assert!(left.elapsed() < Duration::from_secs(2), "{kind}: {:?}", left.elapsed());
    }
}
