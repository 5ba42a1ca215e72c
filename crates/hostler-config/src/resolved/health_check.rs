//! The meaning of `health_check` and `ejection`. Knows no members.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The health checks of members. [`super::super::file::HealthCheck`] describes each key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// Begins with a slash.
    pub path: String,
    /// The time between two checks of a member.
    pub interval: Duration,
    /// The time limit of one check.
    pub timeout: Duration,
    /// Failures in a row, at least 1.
    pub unhealthy: u32,
    /// Successes in a row, at least 1.
    pub healthy: u32,
    /// The statuses of a successful check.
    pub status: RangeInclusive<u16>,
    /// `None`: the member's own name.
    pub host: Option<String>,
}

/// When a member is ejected. [`super::super::file::Ejection`] describes each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// Requests in a row without a response. 0: never.
    pub timeouts: u32,
    /// The time of the first ejection.
    pub time: Duration,
    /// The longest time. Never below `time`.
    pub max_time: Duration,
    /// Percent, from 0 to 100.
    pub max_percent: u32,
}
