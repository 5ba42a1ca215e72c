//! Routes without members that a predecessor still had. Knows no exports.

use std::time::Duration;

use tokio::time::Instant;

use super::super::key::RouteKey;
use super::{Registry, RouteChange, RouteOptions};

impl Registry {
    /// A predecessor had this route, without members for so long. A route that is known stays as it is.
    pub fn inherit_empty(
        &mut self,
        key: RouteKey,
        options: RouteOptions,
        empty_for: Duration,
        now: Instant,
    ) -> Vec<RouteChange> {
        let bytes = self.bytes + key.bytes();
        let is_full = self.routes >= self.rules.max_routes || bytes > self.rules.max_memory;
        if self.entry(&key).is_some() || is_full || empty_for >= self.rules.keep_empty {
            return Vec::new();
        }
        let since = now.checked_sub(empty_for).unwrap_or(now);
        self.hosts.entry(key.host.clone()).or_default().entry(&key.path, since).options = options.clone();
        (self.routes, self.bytes) = (self.routes + 1, bytes);
        vec![RouteChange::Opened(key.clone()), RouteChange::Ruled(key, options)]
    }
}
