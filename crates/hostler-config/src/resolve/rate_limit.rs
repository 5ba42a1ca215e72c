//! The meaning of a rate limit: it limits something, and fits its target. Knows no requests.

use super::Resolver;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::{RateLimit, RequestRate};

impl Resolver<'_> {
    /// The meaning of `rate_limit` at this path. `None`: it is not written. `has_pool`: it is that of a pool, or of a route to one.
    pub(super) fn rate_limit(
        &mut self,
        path: &KeyPath,
        written: &file::RateLimit,
        has_pool: bool,
    ) -> Option<RateLimit> {
        if !self.document.is_written(path) {
            return None;
        }
        let is_written = |key: &str| self.document.is_written(&path.key(key));
        let (has_requests, has_time) = (is_written("requests"), is_written("worker_time"));
        // A key that cannot be read has an error already.
        if !has_requests && !has_time && !self.report.has_errors() {
            self.refuse(path, "limits nothing; add requests or worker_time");
        }
        if has_time && !has_pool {
            self.refuse(&path.key("worker_time"), "is for routes to a pool only");
        }
        for key in ["burst", "fields"] {
            if self.document.is_written(&path.key(key)) && !has_requests {
                self.refuse(
                    &path.key(key),
                    "has no effect without requests; add requests, or remove this key",
                );
            }
        }
        let requests = written.requests.map(|requests| RequestRate {
            requests: requests.get() as u64,
            burst: written.burst.unwrap_or(requests).get() as u64,
        });
        Some(RateLimit {
            requests,
            worker_time: written.worker_time.map(|time| time.0),
            per: written.per.0,
            key: self.request_keys(&path.key("key"), &written.key.0),
            fields: written.fields,
            dry_run: written.dry_run,
        })
    }
}
