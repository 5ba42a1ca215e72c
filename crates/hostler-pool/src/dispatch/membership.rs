//! The stay of one member in a pool; knows nothing of the leases.

use std::sync::Arc;

use super::gauge::Gauge;
use super::pool::Shared;
use super::roster::{Member, MemberId};

/// Kept for as long as the member may get requests. Dropped, it gets no new ones; running ones end by themselves.
#[must_use = "dropping a membership takes the member out of the pool"]
pub struct Membership<E> {
    shared: Arc<Shared<E>>,
    member: Arc<Member<E>>,
}

impl<E> Membership<E> {
    pub(super) fn new(shared: Arc<Shared<E>>, member: Arc<Member<E>>) -> Self {
        Self { shared, member }
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
}

impl<E> Drop for Membership<E> {
    fn drop(&mut self) {
        self.shared.leave(self.member.id);
    }
}
