//! The meaning of `health_check` and `ejection`. Knows no members.

use super::Resolver;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::{Ejection, HealthCheck};
use crate::value::{Count, is_host};

impl Resolver<'_> {
    /// The meaning of `health_check`. `None` without a path.
    pub(super) fn health_check(
        &mut self,
        path: &KeyPath,
        written: &file::HealthCheck,
    ) -> Option<HealthCheck> {
        let Some(asked) = &written.path else {
            if self.document.is_written(path) {
                self.refuse(path, "path is missing; write for example path = \"/healthz\"");
            }
            return None;
        };
        if let Some(host) = written.host.as_ref().filter(|host| !is_host(host)) {
            self.refuse(&path.key("host"), format!("{host:?} is not a valid Host"));
        }
        Some(HealthCheck {
            path: asked.0.clone(),
            interval: written.interval.0,
            timeout: written.timeout.0,
            unhealthy: number(written.unhealthy),
            healthy: number(written.healthy),
            status: written.status.0.clone(),
            host: written.host.clone(),
        })
    }

    /// The meaning of `ejection`.
    pub(super) fn ejection(&mut self, path: &KeyPath, written: &file::Ejection) -> Ejection {
        if written.max_time.0 < written.time.0 {
            self.refuse(&path.key("max_time"), format!("is shorter than time ({})", written.time));
        }
        Ejection {
            timeouts: number(written.timeouts),
            time: written.time.0,
            max_time: written.max_time.0,
            max_percent: number(written.max_percent),
        }
    }
}

/// The ranges of the keys are far below the maximum of the type.
fn number<const LEAST: u64, const MOST: u64>(count: Count<LEAST, MOST>) -> u32 {
    u32::try_from(count.0).unwrap_or(u32::MAX)
}
