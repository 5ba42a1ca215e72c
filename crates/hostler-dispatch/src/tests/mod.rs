//! Helpers for the tests of this crate: futures polled by hand, so that a test can write down every interleaving.

mod backoff;
mod bound;
mod choice;
mod deadlines;
mod eject;
mod elsewhere;
mod fair;
mod fair_bursts;
mod fair_deaths;
mod fairness;
mod free_index;
mod gauge;
mod history;
mod leaving;
mod loads;
mod locking;
mod observed;
mod occupancy;
mod overload;
mod pause;
mod preference;
mod priority;
mod short_first;
mod simulation;
mod sleeping;
mod streams;
mod stress;
mod tunnels;
mod workload;

pub use self::history::Bug;
pub use hostler_testkit::is_planted;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::time::advance;

use super::{
    Acquire, AcquireError, Claim, Lease, LeaseEnding, LongLived, MemberChoice, Pool, PoolSettings, Ticket,
};

pub(super) fn pool(queue_limit: usize) -> Pool<&'static str> {
    Pool::new("test", PoolSettings { queue_limit, ..PoolSettings::default() })
}

pub(super) fn pool_with(choice: MemberChoice) -> Pool<&'static str> {
    Pool::new("test", PoolSettings { choice, ..PoolSettings::default() })
}

/// A request: an `Acquire` that was polled once, and how often it was woken since.
pub(super) struct Request<E> {
    acquire: Option<Acquire<E>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<E: Send + Sync + 'static> Request<E> {
    pub fn poll(&mut self) -> Poll<Result<Lease<E>, AcquireError>> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        let acquire = self.acquire.as_mut().expect("not resolved yet");
        Pin::new(acquire).poll(&mut Context::from_waker(&waker))
    }

    /// The arrival number, also after the request has got its slot.
    pub fn ticket(&self) -> Ticket {
        self.acquire.as_ref().expect("not left").ticket()
    }

    pub fn woken(&self) -> bool {
        self.wakes.0.load(Ordering::SeqCst) > 0
    }

    #[track_caller]
    pub fn lease(&mut self) -> Lease<E> {
        match self.poll() {
            Poll::Ready(Ok(lease)) => lease,
            other => panic!("no lease: {other:?}"),
        }
    }

    #[track_caller]
    pub fn assert_served(&mut self) {
        drop(self.lease());
    }

    #[track_caller]
    pub fn assert_waits(&mut self) {
        assert!(self.poll().is_pending(), "should wait");
    }

    #[track_caller]
    pub fn assert_refused(&mut self, error: AcquireError) {
        match self.poll() {
            Poll::Ready(Err(refused)) => assert_eq!(refused, error),
            other => panic!("not refused: {other:?}"),
        }
    }
}

pub(super) fn request<E: Send + Sync + 'static>(pool: &Pool<E>) -> Request<E> {
    of(pool.acquire(Claim::default()))
}

pub(super) fn of<E>(acquire: Acquire<E>) -> Request<E> {
    Request { acquire: Some(acquire), wakes: Arc::default() }
}

#[track_caller]
pub(super) fn lease<E: Send + Sync + 'static>(pool: &Pool<E>) -> Lease<E> {
    request(pool).lease()
}

/// The pool serves so many requests one after the other. Each holds its slot for this long.
pub(super) async fn serve<E: Send + Sync + 'static>(pool: &Pool<E>, requests: usize, hold: Duration) {
    for _ in 0..requests {
        let lease = lease(pool);
        advance(hold).await;
        drop(lease);
    }
}

#[track_caller]
pub(super) fn waiting<E: Send + Sync + 'static>(pool: &Pool<E>) -> Request<E> {
    let mut request = request(pool);
    request.assert_waits();
    request
}
