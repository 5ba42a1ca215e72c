//! What is known beforehand of members that fail. Knows no members.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How members are checked. Each field is described at its key: [`super::super::file::HealthCheck`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// Begins with a slash.
    pub path: String,
    /// Between two checks of a member.
    pub interval: Duration,
    /// For one check.
    pub timeout: Duration,
    /// Failures in a row, at least 1.
    pub unhealthy: u32,
    /// Successes in a row, at least 1.
    pub healthy: u32,
    /// What a healthy member answers.
    pub status: RangeInclusive<u16>,
    /// None: the member's own name.
    pub host: Option<String>,
}

/// When a member is ejected. Each field is described at its key: [`super::super::file::Ejection`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// In a row; 0: never.
    pub timeouts: u32,
    /// The first time.
    pub time: Duration,
    /// Never below `time`.
    pub max_time: Duration,
    /// 0 to 100.
    pub max_percent: u32,
}
