//! The clients, the leases and the event loops of a history.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::bill::Bill;
use crate::place::QueuePosition;
use crate::{Acquire, AcquireError, Claim, EventLoop, Lease, PoolCounters};

const BUSY: u64 = u64::MAX;

/// An event loop that the steps set: the CPU time that it has used, or [`BUSY`].
#[derive(Default)]
pub struct TestLoop(AtomicU64);

impl EventLoop for TestLoop {
    fn cpu_if_waiting(&self) -> Option<Duration> {
        let cpu = self.0.load(Ordering::Relaxed);
        (cpu != BUSY).then(|| Duration::from_micros(cpu))
    }
}

impl TestLoop {
    /// It computes from now on, or has used this much CPU time more and waits.
    pub fn set(&self, more: Option<u64>) {
        let used = Some(self.0.load(Ordering::Relaxed)).filter(|used| *used != BUSY).unwrap_or(0);
        self.0.store(more.map_or(BUSY, |more| used + more), Ordering::Relaxed);
    }
}

#[derive(Default)]
pub struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request that waits, or has been handed a slot and does not know it yet.
pub struct Waiting {
    pub place: QueuePosition,
    pub claim: Claim,
    pub until: Option<Instant>,
    pub acquire: Acquire<u8>,
    pub wakes: Arc<Wakes>,
    /// How often it had been woken when it was last polled.
    pub seen: usize,
}

impl Waiting {
    /// It is about to be polled.
    pub fn waker(&mut self) -> Waker {
        self.seen = self.wakes.0.load(Ordering::Relaxed);
        Waker::from(self.wakes.clone())
    }

    pub fn is_woken(&self) -> bool {
        self.wakes.0.load(Ordering::Relaxed) > self.seen
    }
}

pub struct Running {
    pub place: QueuePosition,
    pub claim: Claim,
    pub lease: Lease<u8>,
    /// What its payer is told.
    pub bill: Arc<Bill>,
    /// What its key was charged when it got its slot. `None`: no key was charged.
    pub charged: Option<Duration>,
}

/// Where a request counts that leaves at `now`, a time of the pool's clock.
pub fn leavers(counted: &mut PoolCounters, until: Option<Instant>, now: Instant) -> &mut u64 {
    if until.is_some_and(|until| until <= now) { &mut counted.expired } else { &mut counted.left_queue }
}

/// Counts what became of a request that got no lease, as the pool must count it.
pub fn count(counted: &mut PoolCounters, error: AcquireError) {
    match error {
        AcquireError::QueueFull { .. } => counted.refused_full += 1,
        AcquireError::Overloaded => counted.refused_overload += 1,
        AcquireError::TooManyTunnels => counted.refused_tunnels += 1,
        AcquireError::TooManyStreams => counted.refused_streams += 1,
        AcquireError::NoMember | AcquireError::MemberBusy => counted.refused_aim += 1,
        AcquireError::Expired => counted.expired += 1,
        AcquireError::Closed => {}
    }
}
