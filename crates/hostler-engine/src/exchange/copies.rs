//! Copies of a request: for a second try, and for a fetch that no client waits for. Does not know why the request is sent once more.

use super::{Exchange, RequestId};

impl Exchange {
    /// The same request for a second try: with the same id and trace, and without a deadline.
    pub fn copy_for_second_try(&self) -> Self {
        let mut copy = self.copy_for_refresh();
        copy.id = self.id.clone();
        copy.trace.clone_from(&self.trace);
        copy
    }

    /// The same request without a client that waits for it, with a new request id. The member sees the same client and route. The client's
    /// certificate and the route's changes are copied, too: they decide whether others may get the response.
    pub fn copy_for_refresh(&self) -> Self {
        let mut copy = Self::new(self.peer, self.local, self.deadline.sweep().deadline());
        copy.head = self.head.clone();
        copy.rewritten.clone_from(&self.rewritten);
        copy.peer_ip = self.peer_ip.clone();
        copy.scheme = self.scheme;
        copy.protocol = self.protocol;
        copy.to_member = self.to_member.clone();
        copy.to_client = self.to_client.clone();
        copy.certificate.clone_from(&self.certificate);
        copy.forwarded_proto = self.forwarded_proto;
        copy.client = self.client;
        copy.id = RequestId::made();
        copy.log_facts.route.clone_from(&self.log_facts.route);
        copy
    }
}
