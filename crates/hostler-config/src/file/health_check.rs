//! The keys about members that fail: health checks and ejection. Knows no members.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Count, Period, RequestPath, StatusRange};

/// A `[pools.NAME.health_check]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct HealthCheck {
    /// The path that Hostler requests from each member with GET. Without it, there are no checks. Example:
    /// `"/healthz"`.
    ///
    /// Each check opens a new connection and takes no slot.
    #[schemars(with = "RequestPath", extend("x-default" = "none"))]
    pub path: Option<RequestPath>,
    /// The time between two checks of a member, plus or minus a tenth, so that checks do not run at the same
    /// moment.
    ///
    /// The first check comes within a second.
    pub interval: Period,
    /// The time to connect and to get the head of the response. Over it, the check has failed.
    pub timeout: Period,
    /// The number of failed checks in a row after which a member gets no requests.
    ///
    /// Requests that wait for a response of this member go to other members, if they may be repeated.
    pub unhealthy: Count<1, 1000>,
    /// The number of successful checks in a row after which an unhealthy member gets requests again.
    pub healthy: Count<1, 1000>,
    /// The statuses of a successful check, such as `"200"` or `"200-399"`.
    pub status: StatusRange,
    /// The `Host` field of the checks.
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
    /// The number of requests in a row without a response in time after which a member is ejected. `0`: never.
    ///
    /// The times are `request_timeout` for a response and `connect_timeout` for a connection. If the member has
    /// fewer slots than this number, the number of its slots counts.
    ///
    /// An ejected member gets no requests for `time`. Requests that wait for its response go to other members, if
    /// they may be repeated.
    pub timeouts: Count<0, 1000>,
    /// The time of the first ejection.
    ///
    /// After it, the member gets one request at a time until it has answered one. If it does not answer, Hostler
    /// ejects it again, for twice as long.
    pub time: Period,
    /// The longest time of one ejection.
    pub max_time: Period,
    /// The share of a pool's members, in percent, that may be ejected at the same time. Hostler never ejects the
    /// last one.
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
