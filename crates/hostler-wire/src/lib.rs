//! HTTP/1.1 on the wire: strict heads, body framing, one kept-alive connection to a member. Knows no pools, routes or queues.
