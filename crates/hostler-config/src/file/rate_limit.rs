//! A rate limit, as written. Knows no requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FairBy;
use crate::value::{Count, OneOrMany, Period};

/// How many requests, and how much worker time, each key may have in a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct RateLimit {
    /// The number of requests in the time `per`. Over it, Hostler answers 429 (`rate_limited`) with `Retry-After`.
    ///
    /// A key has a bucket of tokens. Each request takes one, and `per` fills them all again, one after the other: with
    /// `requests = 60` and `per = "1m"` one each second. Requests count that Hostler answers from its cache as well.
    #[schemars(with = "Count<1, 1_000_000>", extend("x-default" = "no limit"))]
    pub requests: Option<Count<1, 1_000_000>>,
    /// The number of requests that may come at once: the size of the bucket.
    #[schemars(with = "Count<1, 1_000_000>", extend("x-default" = "`requests`"))]
    pub burst: Option<Count<1, 1_000_000>>,
    /// The worker time in the time `per`: how long requests may hold slots of the pool, in all.
    ///
    /// What a request costs is known at its end. So a key may use more than it has, and then gets 429 (`rate_limited`)
    /// until its debt is paid. For pools and routes to pools only. Example: `"10s"`.
    #[schemars(with = "Period", extend("x-default" = "no limit"))]
    pub worker_time: Option<Period>,
    /// The time in which `requests` or `worker_time` may be used.
    pub per: Period,
    /// What gives a request its key. Each key has a bucket of its own.
    ///
    /// A list is an order: the first that a request has gives its key. A request that has none of them is not limited. With
    /// `[]` all requests share one bucket.
    ///
    /// - `"client"`: the client's address, for IPv6 its network of 64 bits
    /// - `"crawler"`: the name of a crawler that says so in `User-Agent`, from any address; of each client the first name counts
    /// - `"header:NAME"`, `"cookie:NAME"`: the value of this header field or cookie
    ///
    /// Example: `key = ["header:X-Api-Key", "client"]`. See [Rate limits](../guide/rate-limits.md).
    #[schemars(with = "OneOrMany<FairBy>", extend("x-default" = "`\"client\"`"))]
    pub key: OneOrMany<FairBy>,
    /// Whether responses to requests within the limit also have `RateLimit-Policy` and `RateLimit`, which say how many
    /// requests are left. Refusals because of `requests` always have them.
    pub fields: bool,
    /// Whether Hostler only counts and logs what it would refuse (`would_refuse`), and refuses nothing.
    pub dry_run: bool,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            requests: None,
            burst: None,
            worker_time: None,
            per: Period::seconds(60),
            key: OneOrMany(vec![FairBy::Client]),
            fields: false,
            dry_run: false,
        }
    }
}
