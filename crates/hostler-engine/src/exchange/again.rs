//! A request that is asked once more, on nobody's behalf. Knows not why.

use super::{Exchange, RequestId};

impl Exchange {
    /// The same request without its client's answer: to its member it comes from the same client, by the same route, under a
    /// name of its own.
    pub fn again(&self) -> Self {
        let mut again = Self::new(self.peer, self.local, self.deadline.sweep().deadline());
        again.head = self.head.clone();
        again.rewritten.clone_from(&self.rewritten);
        again.peer_ip = self.peer_ip.clone();
        again.scheme = self.scheme;
        again.protocol = self.protocol;
        again.to_member = self.to_member.clone();
        again.forwarded_proto = self.forwarded_proto;
        again.client = self.client;
        again.id = RequestId::made();
        again.log_facts.route.clone_from(&self.log_facts.route);
        again
    }
}
