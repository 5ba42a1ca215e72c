//! What the cache did for a request, in the terms of `Cache-Status` (RFC 9211). Knows no requests.

use std::fmt;

/// What the cache did. Displays as the parameters of our member of `Cache-Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// It served a stored response.
    Hit {
        /// Seconds until it is stale. Negative: the seconds since it became stale.
        ttl: i64,
    },
    /// The request was forwarded.
    Forwarded {
        /// The reason.
        why: Forward,
        /// The status of the response. 304: validation confirmed the stored response. `None`: no response came.
        status: Option<u16>,
        /// The response is stored now.
        stored: bool,
        /// Several requests shared one fetch, and this request waited for it.
        collapsed: bool,
    },
    /// It has no response that fits, and the request forbids to forward it (`only-if-cached`).
    OnlyIfCached,
}

impl CacheStatus {
    /// Whether the body is one of the cache: stored, or shared with other requests.
    pub fn is_from_cache(self) -> bool {
        match self {
            Self::Hit { .. } => true,
            Self::Forwarded { stored, collapsed, .. } => stored || collapsed,
            Self::OnlyIfCached => false,
        }
    }
}

/// Why a request was not served from the store (RFC 9211 section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// The cache does not handle requests like this one.
    Bypass,
    /// The cache does not handle its method.
    Method,
    /// Nothing is stored under its URL.
    UriMiss,
    /// The stored responses under its URL do not match (`Vary`).
    VaryMiss,
    /// The directives of the request exclude the stored response.
    Request,
    /// The stored response is stale.
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
            Self::OnlyIfCached => f.write_str("detail=only-if-cached"),
        }
    }
}
