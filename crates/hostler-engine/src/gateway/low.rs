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
    if target.low.is_empty() || route.priority == Priority::Low {
        return route.priority;
    }
    let Some(reason) = target.low.iter().find(|reason| applies(reason, exchange)) else {
        return route.priority;
    };
    exchange.log_facts.low = Some(match reason {
        LowIf::Prefetch => "prefetch",
        LowIf::Crawler => "crawler",
        LowIf::Header(..) => "header",
    });
    Priority::Low
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
