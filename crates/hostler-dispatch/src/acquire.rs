//! The wait for a slot, as a future that knows no deadline: whoever gives up drops it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::claim::Claim;
use super::lease::Lease;
use super::queue::{QueuePosition, Ticket};
use super::shared::PoolInner;

/// Why there is no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// As many wait already as may.
    #[error("the queue is full: {limit} wait already")]
    QueueFull {
        /// The pool's queue limit.
        limit: usize,
    },
    /// The pool gets more than it can do, and this one would not have been served in time: refused on arrival, or after a
    /// short wait.
    #[error("the pool is overloaded")]
    Overloaded,
    /// It is for a tunnel, and every member that could have it has as many as it may.
    #[error("no member takes another tunnel")]
    TooManyTunnels,
    /// There is no member, or not the one that it is for.
    #[error("the pool has no such member")]
    NoMember,
    /// It is for one member only, which has no free slot.
    #[error("the member has no free slot")]
    MemberBusy,
    /// The claim's deadline has passed.
    #[error("no slot became free before the deadline")]
    Expired,
    /// The pool was closed.
    #[error("the pool is closed")]
    Closed,
}

/// Resolves to a [`Lease`]. It enters the queue when first polled, at the place its ticket gives it, and leaves
/// the queue when dropped; a lease that was already on its way then goes to the next.
#[must_use = "a future does nothing unless polled"]
pub struct Acquire<E> {
    /// None once it has resolved.
    shared: Option<Arc<PoolInner<E>>>,
    place: QueuePosition,
    claim: Claim,
    /// For the first poll, which comes at once.
    asked: Option<Instant>,
    queued: bool,
    ahead: Option<usize>,
}

impl<E> Acquire<E> {
    pub(super) fn new(shared: Arc<PoolInner<E>>, place: QueuePosition, claim: Claim, asked: Instant) -> Self {
        Self { shared: Some(shared), place, claim, asked: Some(asked), queued: false, ahead: None }
    }

    /// The arrival number: to be shown by the same request when it has to try again.
    pub fn ticket(&self) -> Ticket {
        self.place.ticket
    }

    /// How many waited when it came, once it was polled.
    pub fn ahead(&self) -> Option<usize> {
        self.ahead
    }
}

impl<E: Send + Sync + 'static> Future for Acquire<E> {
    type Output = Result<Lease<E>, AcquireError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let shared = this.shared.take().expect("invariant: a future is not polled after it has resolved");
        let now = this.asked.take().unwrap_or_else(Instant::now);
        let place = (this.place, &mut this.ahead);
        match shared.poll_grant(place, &this.claim, &mut this.queued, context.waker(), now) {
            Poll::Ready(Ok(grant)) => Poll::Ready(Ok(Lease::new(shared, this.place.ticket, grant))),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                this.shared = Some(shared);
                Poll::Pending
            }
        }
    }
}

impl<E> Drop for Acquire<E> {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared
            && self.queued
        {
            shared.give_up(self.place);
        }
    }
}
