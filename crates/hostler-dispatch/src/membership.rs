//! The stay of one member in a pool; knows nothing of the leases.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::gauge::Gauge;
use super::roster::{Member, MemberId};
use super::shared::PoolInner;

/// Kept for as long as the member may get requests. Dropped, it gets no new ones; running ones end by themselves, tunnels
/// are told to.
#[must_use = "dropping a membership takes the member out of the pool"]
pub struct Membership<E> {
    shared: Arc<PoolInner<E>>,
    member: Arc<Member<E>>,
    /// Closes when nobody holds the member any more.
    gone: Option<oneshot::Receiver<()>>,
    /// Its tunnels are not told to end when it leaves.
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

    /// What the pool hands out with a lease.
    pub fn endpoint(&self) -> &E {
        &self.member.endpoint
    }

    /// A look at the member from aside, which lasts for as long as the member does.
    pub fn gauge(&self) -> Gauge<E> {
        Gauge::new(Arc::clone(&self.shared), self.member.id)
    }

    /// Another number of slots, from now on; leases beyond it end by themselves.
    pub fn set_slots(&self, slots: usize) {
        self.shared.set_slots(self.member.id, slots);
    }

    /// No new leases from this moment on, and its tunnels are told to end; the returned future resolves when the last lease and
    /// the last tunnel have ended. Dropping it changes nothing.
    pub fn leave(mut self) -> impl Future<Output = ()> + Send + use<E> {
        let gone = self.gone.take();
        drop(self);
        async move {
            if let Some(gone) = gone {
                // Never sent: the sender goes with the member, and the last lease or tunnel is what holds the member longest.
                let _ = gone.await;
            }
        }
    }
}

impl<E> Membership<E> {
    /// Says how the member is, for whoever checks it: one that is not fit gets nothing, and those who wait for its answers are told.
    /// True if that is news.
    pub fn set_health(&self, healthy: bool) -> bool {
        self.shared.set_health(self.member.id, healthy)
    }

    /// The member is lost, though it may only have lost its voice: no new leases, its tunnels end by themselves, and those who wait
    /// for its answers are told.
    pub fn give_up(mut self) {
        self.keeps_tunnels = true;
        let member = Arc::clone(&self.member);
        drop(self);
        member.forsake(true);
    }

    /// No new leases from this moment on; its tunnels, as its leases, end by themselves.
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
