//! The keys of a pool's queue, as written. Knows no pool.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FairBy, LowIf};
use crate::value::{Count, OneOrMany, Period};

/// A `[pools.NAME.queue]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Queue {
    /// The number of requests that may wait.
    ///
    /// Over it, Hostler answers 503 (`queue_full`) with `Retry-After` at once. `0`: no request waits; it gets a
    /// free slot or 503. Raise it if bursts of requests get 503 although the workers could serve them in time.
    ///
    /// If it is not written, more may wait for workers with `concurrency = "auto"`: as many as these serve in a fifth of
    /// `timeout`, and 10000 at most.
    #[schemars(with = "Count<0, 1_000_000>", extend("x-default" = "1000 or more for workers with `concurrency = \"auto\"`, otherwise 100"))]
    pub limit: Option<Count<0, 1_000_000>>,
    /// The time for which a request may wait for a slot. Over it, Hostler answers 503 (`queue_timeout`) with
    /// `Retry-After`.
    pub timeout: Period,
    /// Which requests Hostler refuses if there are too many.
    pub policy: Policy,
    /// In which order waiting requests of the same priority get slots.
    pub order: Order,
    /// How much later than in order of arrival a request may get its slot because shorter ones overtake it.
    ///
    /// For `order = "short_first"` only. It must be shorter than `timeout`.
    pub max_delay: Period,
    /// Under which keys requests share the slots fairly. Without it, requests get slots in order of arrival.
    ///
    /// While requests wait, the next slot goes to the key whose requests have cost the least worker time. If the queue is
    /// full, the last request of the key with the most work gives way. Write it if a few clients, such as crawlers, can
    /// ask for more than the workers can do. A list is an order: the first that a request has gives its key. Requests
    /// that have none of them share one key.
    ///
    /// - `"client"`: the network of the client's address (`/24` for IPv4, `/48` for IPv6)
    /// - `"crawler"`: the name of a crawler that says so in `User-Agent`, from any address; of each network the first name counts
    /// - `"header:NAME"`, `"cookie:NAME"`: the value of this header field or cookie
    ///
    /// Example: `fair = ["crawler", "client"]`. See [Fair queues](../concepts/fair.md).
    pub fair: OneOrMany<FairBy>,
    /// Which requests get a slot after the others, whatever the `priority` of their route is.
    ///
    /// They are served only when no other request waits. While they wait, they still get every tenth slot or more. If the
    /// queue is full, they give way to the others. Write it if browsers, frameworks or crawlers fetch pages for which no
    /// person waits.
    ///
    /// - `"prefetch"`: requests that a browser (`Sec-Purpose: prefetch`) or a framework (`Next-Router-Prefetch`) sends in
    ///   advance
    /// - `"crawler"`: requests of a crawler that says so in `User-Agent`
    /// - `"header:NAME"`, `"header:NAME=VALUE"`: requests with this header field, or with exactly this value of it
    ///
    /// Example: `low = ["prefetch", "crawler"]`. See [Priorities](../concepts/overload.md#priorities).
    pub low: OneOrMany<LowIf>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            limit: None,
            timeout: Period::seconds(5),
            policy: Policy::Adaptive,
            order: Order::Arrival,
            max_delay: Period(Duration::from_millis(500)),
            fair: OneOrMany::default(),
            low: OneOrMany::default(),
        }
    }
}

/// In which order waiting requests get slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// In order of arrival.
    Arrival,
    /// Short requests first, by what requests of the same route and path have cost before. No request gets its slot more
    /// than `max_delay` later than in order of arrival. Choose it if short and long pages share workers, and the short ones
    /// should not wait behind the long ones. Not together with `fair`. See [Short requests first](../concepts/order.md).
    ShortFirst,
}

/// Which requests are refused if there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Under overload Hostler refuses a request on arrival, with 503 (`overloaded`) and
    /// `Retry-After`, if it would wait long. Overload: more work comes than the workers can do in time.
    Adaptive,
    /// Hostler refuses a request only if the queue is full or the request has waited too long.
    /// Choose it if clients wait patiently and no request may be refused early.
    Fifo,
}
