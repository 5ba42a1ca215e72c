//! What the operator writes about members that fail: checks, and ejection by the requests themselves. Knows no members.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Count, Period, RequestPath, StatusRange};

/// A `[pools.NAME.health_check]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct HealthCheck {
    /// The path that each member is asked for with GET, on a connection of its own, which takes no slot. Without it no member is
    /// checked.
    #[schemars(with = "RequestPath", extend("x-default" = "none"))]
    pub path: Option<RequestPath>,
    /// The time between two checks of a member, give or take a tenth, so that checks do not come in step. The first one comes
    /// within a second.
    pub interval: Period,
    /// The time that connecting and the head of the answer may take. Over it: the check has failed.
    pub timeout: Period,
    /// Checks that fail in a row until the member counts as unhealthy: it gets no requests, and those that wait for its answers go
    /// to others if they may.
    pub unhealthy: Count<1, 1000>,
    /// Checks in a row that an unhealthy member has to pass until it gets requests again.
    pub healthy: Count<1, 1000>,
    /// The statuses of a healthy member's answer, such as `"200"` or `"200-399"`.
    pub status: StatusRange,
    /// The `Host` of the checks.
    #[schemars(with = "String", extend("x-default" = "the member, as it is written in `members`"))]
    pub host: Option<String>,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            path: None,
            interval: Period::seconds(5),
            timeout: Period::seconds(2),
            unhealthy: Count(3),
            healthy: Count(2),
            status: StatusRange(200..=299),
            host: None,
        }
    }
}

/// A `[pools.NAME.ejection]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Ejection {
    /// Requests in a row that wait in vain for a member's answer (`request_timeout`) or for a connection to it
    /// (`connect_timeout`). At so many, or as many as it has slots if those are fewer: it is ejected, which means that it gets no
    /// requests for a while, and those that wait for its answers go to others if they may. 0: no member is ever ejected.
    pub timeouts: Count<0, 1000>,
    /// How long a member is ejected for the first time. After it, it gets one request at a time until it has answered one; one that
    /// it does not answer ejects it again, for twice as long.
    pub time: Period,
    /// The longest time that a member is ejected for.
    pub max_time: Period,
    /// Of a hundred members of a pool, so many may be ejected at a time, and never the last one.
    pub max_percent: Count<0, 100>,
}

impl Default for Ejection {
    fn default() -> Self {
        Self {
            timeouts: Count(5),
            time: Period::seconds(10),
            max_time: Period::seconds(300),
            max_percent: Count(50),
        }
    }
}
