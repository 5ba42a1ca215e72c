//! The requests of a pool that get low priority because of what they say about themselves. Knows no queue.

use std::sync::Arc;

use hostler_config::LowIf;
use hostler_dispatch::Priority;

use super::target::{PoolTarget, Route};
use super::{crawler, prefetch};
use crate::exchange::Exchange;

/// The list of a pool, with what it needs made ready.
pub fn low_requests(low: &[LowIf]) -> Arc<[LowIf]> {
    crawler::prepare(low.contains(&LowIf::Crawler));
    low.into()
}

/// The priority of a request in its pool. The log gets the reason if it is low because of `queue.low`.
pub(super) fn priority(route: &Route, target: &PoolTarget, exchange: &mut Exchange) -> Priority {
    let Some(reason) = reason(route, target, exchange) else { return route.priority };
    exchange.log_facts.low = Some(match reason {
        LowIf::Prefetch => "prefetch",
        LowIf::Crawler => "crawler",
        LowIf::Header(..) => "header",
    });
    Priority::Low
}

/// Whether the request has a lower priority than other requests of its route.
pub(super) fn is_low(route: &Route, target: &PoolTarget, exchange: &Exchange) -> bool {
    reason(route, target, exchange).is_some()
}

fn reason<'t>(route: &Route, target: &'t PoolTarget, exchange: &Exchange) -> Option<&'t LowIf> {
    if route.priority == Priority::Low {
        return None;
    }
    target.low.iter().find(|reason| applies(reason, exchange))
}

fn applies(reason: &LowIf, exchange: &Exchange) -> bool {
    let fields = &exchange.head.fields;
    match reason {
        LowIf::Prefetch => prefetch::is_in_advance(fields),
        LowIf::Crawler => crawler::of(fields).is_some(),
        LowIf::Header(name, expected) => fields
            .values(name)
            .any(|value| expected.as_ref().is_none_or(|expected| value == expected.as_bytes())),
    }
}
