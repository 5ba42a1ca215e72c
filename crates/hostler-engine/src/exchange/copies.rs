//! Copies of a request: for a second try, and for a fetch that no client waits for. Does not know why the request is sent once more.

use super::trace::{TRACEPARENT, TRACESTATE};
use super::{Exchange, RequestId};

impl Exchange {
    /// The same request for a second try: with the same id and trace, and without a deadline.
    pub fn copy_for_second_try(&self) -> Self {
        let mut copy = self.copy();
        copy.id = self.id.clone();
        copy.trace.clone_from(&self.trace);
        copy
    }

    /// The same request without a client that waits for it, with a new request id. The member sees the same client and route. The client's
    /// certificate and the route's changes are copied, too: they decide whether others may get the response.
    pub fn copy_for_refresh(&self) -> Self {
        let mut copy = self.copy();
        copy.id = RequestId::made();
        // It has no trace. With the fields of the client, the spans of the member would be in the client's trace, without those of Hostler.
        if self.trace.is_some() {
            let is_of_trace = |name: &[u8], field: &str| name.eq_ignore_ascii_case(field.as_bytes());
            let fields = &mut copy.head.fields;
            fields.remove(|name| is_of_trace(name, TRACEPARENT) || is_of_trace(name, TRACESTATE));
        }
        copy
    }

    fn copy(&self) -> Self {
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
        copy.log_facts.route.clone_from(&self.log_facts.route);
        copy
    }
}

#[cfg(test)]
mod tests {
    use hostler_wire::Limits;

    use super::super::TraceContext;
    use super::super::deadline::Sweep;
    use super::*;

    #[test]
    fn a_refresh_is_in_no_trace_and_a_second_try_in_that_of_its_request() {
        let address = ([127, 0, 0, 1], 80).into();
        let mut exchange = Exchange::new(address, address, Sweep::new().deadline());
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let text = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nTraceparent: {parent}\r\nTracestate: a=1\r\nDnt: 1\r\n\r\n"
        );
        exchange.head.parse(text.as_bytes(), &Limits::default()).unwrap();
        let lines = |copy: &Exchange| {
            [TRACEPARENT, TRACESTATE, "dnt"].map(|name| copy.head.fields.values(name).count())
        };
        assert_eq!(lines(&exchange.copy_for_refresh()), [1, 1, 1], "traces are off");
        exchange.trace = Some(Box::new(TraceContext::of(&exchange.head.fields, 1, true)));
        assert_eq!(lines(&exchange.copy_for_refresh()), [0, 0, 1]);
        assert_eq!(lines(&exchange.copy_for_second_try()), [1, 1, 1]);
    }
}
