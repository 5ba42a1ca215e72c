//! References that a connection keeps from its last request for its next one. Knows no requests.

use std::sync::Arc;

use super::ledger::RouteAccount;
use super::log_facts::{Counters, LogFacts};

/// The shared references of the last request of a connection. Requests on all threads count references to the same values, so the threads
/// contend for these counters. The next request of a connection mostly needs the same values. It takes the references from here, and no
/// counter changes.
#[derive(Default)]
pub struct HeldBefore {
    pub route: Option<Arc<str>>,
    pub pool: Option<Arc<str>>,
    pub member: Option<Arc<str>>,
    pub counters: Option<Arc<Counters>>,
    pub account: Option<Arc<RouteAccount>>,
}

impl HeldBefore {
    /// Takes the references from a request that is over, and clears its facts.
    pub fn take(
        facts: &mut LogFacts,
        counters: &mut Option<Arc<Counters>>,
        account: &mut Option<Arc<RouteAccount>>,
    ) -> Self {
        let (route, pool, member) = (facts.route.take(), facts.pool.take(), facts.member.take());
        *facts = LogFacts::default();
        Self { route, pool, member, counters: counters.take(), account: account.take() }
    }
}

/// A reference to `wanted`: the one in `before` if it refers to the same value, else a new one.
pub fn held_again<T: ?Sized>(before: &mut Option<Arc<T>>, wanted: &Arc<T>) -> Arc<T> {
    before.take().filter(|before| Arc::ptr_eq(before, wanted)).unwrap_or_else(|| wanted.clone())
}

#[cfg(test)]
mod tests {
    use hostler_address::Trust;
    use hostler_wire::ResponseHead;

    use super::super::{Exchange, Sweep};
    use super::*;

    #[test]
    fn the_next_request_of_a_connection_holds_its_own_route_or_none() {
        let [one, other]: [Arc<str>; 2] = ["a", "a"].map(Arc::from);
        let counters = Arc::new(Counters::default());
        let anywhere = "127.0.0.1:80".parse().unwrap();
        let mut exchange = Exchange::new(anywhere, anywhere, Sweep::new().deadline());
        for route in [&one, &one, &other] {
            exchange.enter(route, &counters);
            assert!(exchange.log_facts.route.as_ref().is_some_and(|held| Arc::ptr_eq(held, route)));
            assert_eq!((Arc::strong_count(route), Arc::strong_count(&counters)), (2, 2));
            exchange.begin(&Trust::default());
            assert!(exchange.log_facts.route.is_none() && exchange.counters.is_none());
        }
        assert_eq!(Arc::strong_count(&one), 1, "a route that has no more requests is let go");
        exchange.let_go();
        assert_eq!((Arc::strong_count(&other), Arc::strong_count(&counters)), (1, 1));
    }

    #[test]
    fn an_exchange_between_two_requests_has_no_copy_of_the_last_target() {
        let anywhere = "127.0.0.1:80".parse().unwrap();
        let mut exchange = Exchange::new(anywhere, anywhere, Sweep::new().deadline());
        let target: Arc<str> = "/target".into();
        let copy = target.clone();
        exchange.late_answer = Some(Arc::new(move |_: &ResponseHead| assert!(!copy.is_empty())));
        exchange.rewritten = Some(target.as_bytes().into());
        exchange.let_go();
        assert_eq!(Arc::strong_count(&target), 1);
        assert!(exchange.rewritten.is_none());
    }
}
