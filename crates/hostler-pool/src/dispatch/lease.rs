//! The holding of one slot; knows how it ends, not what is done with it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::time::Instant;

use super::pool::{Shared, redispatch_at};
use super::queue::Ticket;
use super::roster::{Grant, MemberId};
use super::tether::Tether;

/// One slot at one member, returned when dropped. Derefs to the member's endpoint.
#[must_use = "dropping a lease returns the slot"]
pub struct Lease<E> {
    shared: Arc<Shared<E>>,
    ticket: Ticket,
    grant: Grant<E>,
    /// Whether the slot has gone back already, together with bad news.
    returned: bool,
}

impl<E> Lease<E> {
    pub(super) fn new(shared: Arc<Shared<E>>, ticket: Ticket, grant: Grant<E>) -> Self {
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

    /// The arrival it was granted for; to be shown when the request has to try again.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Returns the slot, for those who have looked at the clock already.
    pub fn end(mut self, now: Instant) {
        self.returned = true;
        self.shared.release(&self.grant, now);
    }

    /// Returns the slot. The tether is for what goes on at the member without one: counted apart, and the member has not finished
    /// before it is dropped.
    pub fn tether(mut self) -> Tether<E> {
        self.returned = true;
        self.shared.tether(&self.grant);
        Tether::new(Arc::clone(&self.shared), Arc::clone(&self.grant.member))
    }

    /// The member answered: whatever failed before is forgotten. Costs no lock while nothing had failed.
    pub fn reached(&self) {
        if self.grant.member.is_under_watch() {
            self.shared.reached(self.grant.member.id);
        }
    }
}

impl<E: Send + Sync + 'static> Lease<E> {
    /// The member could not be reached: returns the slot, and the member gets nothing until its back-off ends.
    pub fn fail(mut self) {
        self.returned = true;
        if let Some(until) = self.shared.fail(&self.grant) {
            redispatch_at(&self.shared, until);
        }
    }

    /// The member ended the request without an answer, and may be about to die: returns the slot, and the member gets nothing
    /// for a moment. The same request would otherwise come straight back to it.
    pub fn suspect(mut self) {
        self.returned = true;
        let until = self.shared.suspect(&self.grant);
        redispatch_at(&self.shared, until);
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
