//! The meaning of a rate limit: plain data that has been checked. Knows no requests.

use std::fmt;
use std::time::Duration;

use crate::file::FairBy;
use crate::value::Period;

/// How many requests, and how much worker time, each key may have in a time. It has one of the two at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The number of requests in the time.
    pub requests: Option<RequestRate>,
    /// The worker time in the time.
    pub worker_time: Option<Duration>,
    /// The time.
    pub per: Duration,
    /// What gives a request its key. Empty: all requests have the same.
    pub key: Vec<FairBy>,
    /// Responses that pass say how many requests are left.
    pub fields: bool,
    /// It refuses nothing.
    pub dry_run: bool,
}

/// A number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// In the time of the limit.
    pub requests: u64,
    /// At once.
    pub burst: u64,
}

/// As in a sentence: `100 requests (20 at once) and 10s of worker time in 1m for each client`.
impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(RequestRate { requests, burst }) = self.requests {
            write!(f, "{requests} request{}", if requests == 1 { "" } else { "s" })?;
            if burst != requests {
                write!(f, " ({burst} at once)")?;
            }
        }
        if let Some(time) = self.worker_time {
            let and = if self.requests.is_some() { " and " } else { "" };
            write!(f, "{and}{} of worker time", Period(time))?;
        }
        write!(f, " in {}", Period(self.per))?;
        let by: Vec<_> = self.key.iter().map(ToString::to_string).collect();
        match by.is_empty() {
            true => f.write_str(" for all together")?,
            false => write!(f, " for each {}", by.join(", else "))?,
        }
        if self.dry_run { f.write_str(", dry run") } else { Ok(()) }
    }
}
