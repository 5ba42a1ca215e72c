//! What the cache did for a request, in the words of `Cache-Status` (RFC 9211). Knows no requests.

use std::fmt;

/// What the cache did. Displays as the parameters of our member of `Cache-Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// Answered with what is stored.
    Hit {
        /// Seconds until it is stale; negative for what is stale already.
        ttl: i64,
    },
    /// Somebody was asked.
    Forwarded {
        /// Why.
        why: Forward,
        /// The status of what came; 304 for a validation that found the stored answer good. None: nothing came.
        status: Option<u16>,
        /// What came is stored now.
        stored: bool,
        /// One fetch for several requests, and this was not the one that fetched.
        collapsed: bool,
    },
}

/// Why a request was not answered from what is stored (RFC 9211 section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// It is not one that the cache answers.
    Bypass,
    /// Its method is not one that the cache answers.
    Method,
    /// Nothing is stored under its URL.
    UriMiss,
    /// What is stored under its URL is for others (`Vary`).
    VaryMiss,
    /// The request itself asks for more than what is stored.
    Request,
    /// What is stored is stale.
    Stale,
}

impl Forward {
    /// The token of RFC 9211.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Request => "request",
            Self::Stale => "stale",
        }
    }
}

impl fmt::Display for CacheStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hit { ttl } => write!(f, "hit; ttl={ttl}"),
            Self::Forwarded { why, status, stored, collapsed } => {
                write!(f, "fwd={}", why.as_str())?;
                if let Some(status) = status {
                    write!(f, "; fwd-status={status}")?;
                }
                if *stored {
                    f.write_str("; stored")?;
                }
                if *collapsed {
                    f.write_str("; collapsed")?;
                }
                Ok(())
            }
        }
    }
}
