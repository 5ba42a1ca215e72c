//! The holding of one slot, and how it ends; knows not what is done with it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::claim::{MemberId, Ticket};
use super::roster::Grant;
use super::shared::PoolInner;
use super::tunnel_guard::TunnelGuard;

/// How a lease ends. Each ending returns the slot at once; they differ in what the pool does about the member. There is one more: a lease
/// becomes a [`TunnelGuard`].
#[derive(Debug, Clone, Copy)]
pub enum LeaseEnding {
    /// The member has finished at this moment, or the slot was of no use. The member gets the next request. A lease that is dropped ends
    /// like this.
    Finished(Instant),
    /// The member could not be reached. It counts as a failure of the member, which gets nothing until its back-off ends.
    Unreachable,
    /// The member ended the request without an answer, and may be about to die. It gets nothing for a moment: the same request would
    /// otherwise come straight back to it.
    HungUp,
}

/// One slot at one member, returned when dropped. Derefs to the member's endpoint.
#[must_use = "dropping a lease returns the slot"]
pub struct Lease<E> {
    shared: Arc<PoolInner<E>>,
    ticket: Ticket,
    grant: Grant<E>,
    /// Whether the slot has gone back already, together with bad news.
    returned: bool,
}

impl<E> Lease<E> {
    pub(super) fn new(shared: Arc<PoolInner<E>>, ticket: Ticket, grant: Grant<E>) -> Self {
        Self { shared, ticket, grant, returned: false }
    }

    /// Which member it is.
    pub fn member(&self) -> MemberId {
        self.grant.member.id
    }

    /// When the slot was granted.
    pub fn since(&self) -> Instant {
        self.grant.since
    }

    /// How many other slots of the member were in use when this one was granted.
    pub fn beside(&self) -> usize {
        self.grant.beside
    }

    /// The arrival it was granted for; to be shown when the request has to try again.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Returns the slot. The tunnel guard is for what goes on at the member without one: counted apart, and the member has not finished
    /// before it is dropped.
    pub fn tunnel_guard(mut self) -> TunnelGuard<E> {
        self.returned = true;
        self.shared.tunnel_guard(&self.grant);
        TunnelGuard::new(Arc::clone(&self.shared), Arc::clone(&self.grant.member))
    }

    /// The member answered: whatever failed before is forgotten. Costs no lock while nothing had failed.
    /// True if that ends an ejection.
    pub fn reached(&self) -> bool {
        self.grant.member.is_under_watch() && self.shared.reached(&self.grant.member)
    }

    /// The member had been ejected when the slot was granted, and this is to show whether it answers again.
    pub fn is_wary(&self) -> bool {
        self.grant.wary
    }

    /// Whether this is the member's only lease, and has been for so long.
    pub fn is_alone(&self, long: Duration) -> bool {
        self.shared.is_alone(self.grant.member.id, long)
    }

    /// Resolves when whoever waits for the member's answer had better ask elsewhere: it is ejected, unhealthy, or was lost.
    pub fn forsaken(&self) -> impl Future<Output = ()> + Send + use<E> {
        let mut forsaken = self.grant.member.forsaken();
        async move {
            if forsaken.wait_for(|forsaken| *forsaken).await.is_err() {
                std::future::pending().await
            }
        }
    }
}

impl<E: Send + Sync + 'static> Lease<E> {
    /// Returns the slot.
    pub fn end(mut self, how: LeaseEnding) {
        self.returned = true;
        let until = match how {
            LeaseEnding::Finished(now) => {
                self.shared.release(&self.grant, now);
                None
            }
            LeaseEnding::Unreachable => self.shared.fail(&self.grant),
            LeaseEnding::HungUp => Some(self.shared.suspect(&self.grant)),
        };
        if let Some(until) = until {
            redispatch_at(&self.shared, until);
        }
    }

    /// The request has waited in vain. Says for how long the member is ejected, if that was one too many. The slot is not given back.
    pub fn strike(&self) -> Option<Duration> {
        let until = self.shared.strike(&self.grant)?;
        redispatch_at(&self.shared, until);
        Some(until.saturating_duration_since(Instant::now()))
    }
}

impl<E> Deref for Lease<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.grant.member.endpoint
    }
}

impl<E> Drop for Lease<E> {
    fn drop(&mut self) {
        if !self.returned {
            self.shared.release(&self.grant, Instant::now());
        }
    }
}

impl<E> fmt::Debug for Lease<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("member", &self.member()).finish_non_exhaustive()
    }
}

/// Dispatches when the ejection is over. Should this runtime end before, the next arrival or release does it.
fn redispatch_at<E: Send + Sync + 'static>(shared: &Arc<PoolInner<E>>, until: Instant) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let shared: Weak<PoolInner<E>> = Arc::downgrade(shared);
    runtime.spawn(async move {
        tokio::time::sleep_until(until).await;
        if let Some(shared) = shared.upgrade() {
            shared.redispatch();
        }
    });
}
