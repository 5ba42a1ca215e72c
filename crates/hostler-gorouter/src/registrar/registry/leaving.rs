//! Members that leave although they have sent no message. Knows no failures.

use tokio::time::Instant;

use super::super::key::RouteKey;
use super::{Departure, RegisteredMember, Registry, RouteChange};

impl Registry {
    /// A member leaves although it has sent no message. If it has failed, it leaves only with TLS, because then it never becomes stale. If it is
    /// unfound, it leaves only if its client is silent, too: clients that register it again and again know more than a name server that
    /// does not answer.
    pub fn leave(&mut self, key: RouteKey, address: &str, why: Departure, now: Instant) -> Vec<RouteChange> {
        let mut changes = Vec::new();
        let is_silent = |member: &RegisteredMember| !self.suspended && now > member.updated + member.ttl;
        let leaves = |member: &RegisteredMember| match why {
            Departure::Failed => member.facts.tls,
            Departure::Unfound => member.facts.tls && is_silent(member),
            Departure::Unregistered | Departure::Silent => true,
        };
        if self.entry(&key).and_then(|entry| entry.member(address)).is_some_and(leaves) {
            self.remove(key, address, why, now, &mut changes);
        }
        changes
    }
}
