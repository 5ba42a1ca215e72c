//! The membership of one endpoint in a pool. Knows nothing of the leases.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::claim::MemberId;
use super::gauge::Gauge;
use super::roster::Member;
use super::shared::PoolInner;

/// Keeps the member in the pool. When it is dropped, the member gets no new leases, running leases end normally, and
/// tunnels are told to end.
#[must_use = "dropping a membership takes the member out of the pool"]
pub struct Membership<E> {
    shared: Arc<PoolInner<E>>,
    member: Arc<Member<E>>,
    /// Closes when the last lease and the last tunnel of the member have ended.
    gone: Option<oneshot::Receiver<()>>,
    /// The tunnels are not told to end when the member leaves.
    keeps_tunnels: bool,
}

impl<E> Membership<E> {
    pub(super) fn new(
        shared: Arc<PoolInner<E>>,
        member: Arc<Member<E>>,
        gone: oneshot::Receiver<()>,
    ) -> Self {
        Self { shared, member, gone: Some(gone), keeps_tunnels: false }
    }

    /// The member's number.
    pub fn id(&self) -> MemberId {
        self.member.id
    }

    /// The endpoint that a lease of this member gives access to.
    pub fn endpoint(&self) -> &E {
        &self.member.endpoint
    }

    /// A handle that reads the load of the member.
    pub fn gauge(&self) -> Gauge<E> {
        Gauge::new(Arc::clone(&self.shared), self.member.id)
    }

    /// Sets the number of slots from now on. Leases above the new number end normally.
    pub fn set_slots(&self, slots: usize) {
        self.shared.set_slots(self.member.id, slots);
    }

    /// Removes the member from the pool: it gets no new leases, and its tunnels are told to end. The returned future
    /// resolves when the last lease and the last tunnel have ended. Dropping that future changes nothing.
    pub fn leave(mut self) -> impl Future<Output = ()> + Send + use<E> {
        let gone = self.gone.take();
        drop(self);
        async move {
            if let Some(gone) = gone {
                // Nothing is ever sent. The sender is dropped with the member, and leases and tunnels keep the member
                // alive.
                let _ = gone.await;
            }
        }
    }
}

impl<E> Membership<E> {
    /// Sets the health of the member, as its health check reports it. An unhealthy member gets no requests, and requests
    /// that wait for its answer are told. Returns true if the health changed.
    pub fn set_health(&self, healthy: bool) -> bool {
        self.shared.set_health(self.member.id, healthy)
    }

    /// Removes a member that seems lost: it gets no new leases, and requests that wait for its answer are told. Its
    /// tunnels are not told to end, because the endpoint may still serve them.
    pub fn give_up(mut self) {
        self.keeps_tunnels = true;
        let member = Arc::clone(&self.member);
        drop(self);
        member.forsake(true);
    }

    /// Removes the member from the pool: it gets no new leases. Its leases and tunnels end normally.
    pub fn leave_tunnels(mut self) {
        self.keeps_tunnels = true;
    }
}

impl<E> Drop for Membership<E> {
    fn drop(&mut self) {
        self.shared.leave(self.member.id);
        if !self.keeps_tunnels {
            self.member.dismiss_tunnels();
        }
    }
}
