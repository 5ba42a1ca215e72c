//! The requests of a pool that get low priority because of what they say about themselves. Knows no queue.

use hostler_config::LowIf;
use hostler_dispatch::Priority;
use hostler_wire::Name;

use super::crawler;
use super::target::{PoolTarget, Route};
use crate::exchange::Exchange;

/// Fields whose value says that a browser or a framework fetches in advance: the Fetch standard and browsers before it, and Turbo.
const PURPOSES: [&str; 5] = ["sec-purpose", "purpose", "x-purpose", "x-moz", "x-sec-purpose"];
/// What they say.
const IN_ADVANCE: [&[u8]; 3] = [b"prefetch", b"prerender", b"preview"];
/// Fields that Next.js sends with a prefetch of a link. Any value counts.
const NEXT: [&str; 2] = ["next-router-prefetch", "x-middleware-prefetch"];

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
        LowIf::Prefetch => fields.iter().any(|(_, name, value)| is_prefetch(name, value)),
        LowIf::Crawler => {
            let user_agent = fields.first(Name::UserAgent).and_then(|value| std::str::from_utf8(value).ok());
            user_agent.is_some_and(|user_agent| crawler::name(user_agent).is_some())
        }
        LowIf::Header(wanted, expected) => fields.iter().any(|(_, name, value)| {
            name.eq_ignore_ascii_case(wanted.as_bytes())
                && expected.as_ref().is_none_or(|expected| value == expected.as_bytes())
        }),
    }
}

fn is_prefetch(name: &[u8], value: &[u8]) -> bool {
    let is_one_of = |names: &[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()));
    let says = || {
        // `prefetch;prerender;anonymous-client-ip`
        let mut words = value.split(|byte| b";, ".contains(byte));
        words.any(|word| IN_ADVANCE.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    is_one_of(&NEXT) || (is_one_of(&PURPOSES) && says())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_browsers_and_frameworks_send_with_a_prefetch_is_known() {
        for (name, value, expected) in [
            ("Sec-Purpose", "prefetch", true),
            ("Sec-Purpose", "prefetch;prerender", true),
            ("Sec-Purpose", "prefetch;anonymous-client-ip", true),
            ("Purpose", "Prefetch", true),
            ("X-Moz", "prefetch", true),
            ("X-Purpose", "preview", true),
            ("X-Sec-Purpose", "prefetch", true),
            ("Next-Router-Prefetch", "1", true),
            ("x-middleware-prefetch", "1", true),
            ("Sec-Purpose", "", false),
            ("Purpose", "prefetching", false),
            ("Sec-Fetch-Mode", "prefetch", false),
            ("Next-Router-State-Tree", "prefetch", false),
        ] {
            assert_eq!(is_prefetch(name.as_bytes(), value.as_bytes()), expected, "{name}: {value}");
        }
    }
}
