//! The route of an exchange, kept until the exchange ends: a reload may change the table in between. Knows no routes.

use std::sync::Arc;

use super::{Counters, Exchange};

impl Exchange {
    /// It has a route.
    pub fn enter(&mut self, pattern: &Arc<str>, counters: &Arc<Counters>) {
        self.log_facts.route = Some(pattern.clone());
        self.counters = Some(counters.clone());
    }

    /// The answer has come whole. Lets the route go, unless the end of the exchange will say something about the route's pool: a pool
    /// that a reload has removed ends when no request holds its routes, and a client may take long to read its answer.
    pub fn let_route_go(&mut self) {
        if !self.is_suspect && self.pending_end.is_none() {
            self.route = None;
        }
    }
}
