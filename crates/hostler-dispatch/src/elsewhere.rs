//! A slot for the second try of a request, at another member than the first one. Never waits, and makes no other request wait.

use std::sync::Arc;

use tokio::time::Instant;

use super::claim::{Claim, MemberId};
use super::lease::Lease;
use super::member::Grant;
use super::pool::Pool;
use super::state::PoolState;

impl<E: Send + Sync + 'static> Pool<E> {
    /// A slot for a second try of a request that the member `except` has. `None` if no other member has a free slot, or if
    /// requests wait.
    pub fn acquire_elsewhere(&self, claim: &Claim, except: MemberId) -> Option<Lease<E>> {
        let now = Instant::now();
        let grant = self.shared.lock().grant_elsewhere(claim, except, now)?;
        Some(Lease::new(Arc::clone(&self.shared), grant))
    }
}

impl<E> PoolState<E> {
    fn grant_elsewhere(&mut self, claim: &Claim, except: MemberId, now: Instant) -> Option<Grant<E>> {
        if self.closed || !self.queue.is_empty() {
            return None;
        }
        self.rest(now);
        let (now, mut preference) = (self.at(now), claim.preference);
        preference.tried.add(except);
        // Members that were tried are only avoided: without another one, they would be chosen.
        let index = self.choose(now, claim.long_lived, &preference)?;
        if self.roster.states()[index].member.id == except {
            return None;
        }
        let grant = self.grant_at_once(index, claim, &preference, now);
        Some(self.taken(grant))
    }
}
