//! The wait for a slot, as a future. It knows no deadline: to give up, the caller drops the future.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::claim::{Claim, Ticket};
use super::lease::Lease;
use super::queue::{AcquireError, QueuePosition};
use super::shared::PoolInner;

/// Resolves to a [`Lease`].
///
/// The first poll enters the queue, at the position that the ticket gives. Dropping the future leaves the queue. If a
/// slot was already handed to this request, it goes to the next waiter.
#[must_use = "a future does nothing unless polled"]
pub struct Acquire<E> {
    /// `None` after the future has resolved.
    shared: Option<Arc<PoolInner<E>>>,
    place: QueuePosition,
    claim: Claim,
    /// The time of the call to `acquire`. The first poll uses it, as that follows at once.
    asked: Option<Instant>,
    queued: bool,
    ahead: Option<usize>,
}

impl<E> Acquire<E> {
    pub(super) fn new(shared: Arc<PoolInner<E>>, place: QueuePosition, claim: Claim, asked: Instant) -> Self {
        Self { shared: Some(shared), place, claim, asked: Some(asked), queued: false, ahead: None }
    }

    /// The arrival number. The same request shows it when it tries again.
    pub fn ticket(&self) -> Ticket {
        self.place.ticket
    }

    /// How many requests waited when this one arrived. `None` before the first poll.
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
