//! A lease: one slot in use, and how its use ends. Does not know what the slot is used for.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::claim::{MemberId, Ticket};
use super::roster::Grant;
use super::shared::PoolInner;
use super::tunnel_guard::TunnelGuard;

/// How a lease ends. Each ending returns the slot at once. They differ in what the pool then does with the member. A lease can also
/// become a [`TunnelGuard`].
#[derive(Debug, Clone, Copy)]
pub enum LeaseEnding {
    /// The member has finished, or the slot was not used. The member gets the next request. A dropped lease ends in this way.
    Finished(Instant),
    /// The member could not be reached. This is a failure of the member: it gets no request until its back-off ends.
    Unreachable,
    /// The member ended the request without an answer, and may be about to die. It gets no request for a moment. Otherwise the same request
    /// would go to it again at once.
    HungUp,
}

/// One slot at one member, returned when dropped. Derefs to the member's endpoint.
#[must_use = "dropping a lease returns the slot"]
pub struct Lease<E> {
    shared: Arc<PoolInner<E>>,
    ticket: Ticket,
    grant: Grant<E>,
    /// Whether the slot was already returned, with a failure of the member.
    returned: bool,
}

impl<E> Lease<E> {
    pub(super) fn new(shared: Arc<PoolInner<E>>, ticket: Ticket, grant: Grant<E>) -> Self {
        Self { shared, ticket, grant, returned: false }
    }

    /// The member.
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

    /// The arrival number of the request. The request shows it when it tries again.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Returns the slot and keeps the member: the returned guard stands for a tunnel. Tunnels have their own count. A member that leaves waits
    /// until the guard is dropped.
    pub fn tunnel_guard(mut self) -> TunnelGuard<E> {
        self.returned = true;
        self.shared.tunnel_guard(&self.grant);
        TunnelGuard::new(Arc::clone(&self.shared), Arc::clone(&self.grant.member))
    }

    /// The member answered: its earlier failures no longer count. Takes no lock if there were none. Returns true if this ends an ejection.
    pub fn reached(&self) -> bool {
        self.grant.member.is_under_watch() && self.shared.reached(&self.grant.member)
    }

    /// Whether this is a trial: the member was ejected before, and this request shows whether it answers again.
    pub fn is_wary(&self) -> bool {
        self.grant.wary
    }

    /// Whether this is the member's only lease, and has been so for this long.
    pub fn is_alone(&self, long: Duration) -> bool {
        self.shared.is_alone(self.grant.member.id, long)
    }

    /// Resolves when the member is ejected, unhealthy or lost. A request that waits for its answer should then try another member.
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

    /// The request timed out on the member. Returns how long the member is ejected, if this timeout ejects it. The slot is not returned.
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

/// Dispatches when the ejection has ended. If this runtime ends before, the next arrival or release does it.
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
