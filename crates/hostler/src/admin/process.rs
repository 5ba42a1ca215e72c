//! What the kernel says about this process. Knows no requests.

use std::fs;
use std::time::Duration;

use hostler_dispatch::json::milliseconds;
use jiff::Timestamp;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Hostler's own process, without its workers.
#[derive(Debug, Serialize)]
pub struct ProcessStatus {
    /// When Hostler began to serve.
    pub started: Timestamp,
    /// The CPU time of all its threads.
    #[serde(rename = "cpu_ms", serialize_with = "milliseconds")]
    pub cpu: Duration,
    /// Open file descriptors: connections, files, pipes. None if the system does not tell.
    pub open_files: Option<usize>,
    /// How many there may be. None: no limit.
    pub max_files: Option<u64>,
}

impl ProcessStatus {
    /// The figures of this moment. `started` is the same at each look: a monitoring system takes another one for a restart.
    pub fn now(started: Timestamp) -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::try_from(cpu).unwrap_or_default();
        Self {
            started,
            cpu,
            open_files: fs::read_dir("/proc/self/fd").ok().map(Iterator::count),
            max_files: getrlimit(Resource::Nofile).current,
        }
    }
}
