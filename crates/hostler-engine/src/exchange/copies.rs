//! A copy of a request for a fetch that no client waits for. Does not know why it is fetched.

use super::{Exchange, RequestId};

impl Exchange {
    /// The same request for a second try: with the same id, trace and certificate, and without a deadline.
    pub fn twin(&self) -> Self {
        let mut twin = self.again();
        twin.id = self.id.clone();
        twin.trace.clone_from(&self.trace);
        twin.certificate.clone_from(&self.certificate);
        twin
    }

    /// The same request without a client that waits. The member sees the same client and route, and a new request id.
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
