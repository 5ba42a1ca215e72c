//! What the kernel says about this process. Knows no requests.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use hostler_dispatch::json::milliseconds;
use jiff::Timestamp;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

const OPEN_FILES: &str = "/proc/self/fd";

/// The last count of a kernel that only lists them. 0: none yet.
static LISTED: AtomicUsize = AtomicUsize::new(0);

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
        Self { started, cpu, open_files: open_files(), max_files: getrlimit(Resource::Nofile).current }
    }
}

/// Since Linux 6.2, the size of the folder is the number of its entries.
fn open_files() -> Option<usize> {
    match fs::metadata(OPEN_FILES).ok()?.len() {
        0 => listed(),
        count => usize::try_from(count).ok(),
    }
}

/// To list 100,000 of them takes the kernel a tenth of a second, so another thread does it. The figure is that of the last look.
fn listed() -> Option<usize> {
    match (LISTED.load(Relaxed), Handle::try_current()) {
        (count @ 1.., Ok(runtime)) => {
            runtime.spawn(async { spawn_blocking(list).await });
            Some(count)
        }
        _ => list(),
    }
}

fn list() -> Option<usize> {
    let count = fs::read_dir(OPEN_FILES).ok()?.count();
    LISTED.store(count, Relaxed);
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_open_files_are_counted_with_and_without_help_of_the_kernel() {
        // This process has at least the files of its runtime. Other tests open and close files meanwhile.
        for count in [open_files(), listed(), listed()] {
            assert!(count.is_none_or(|count| count > 2), "{count:?}");
            assert_eq!(count.is_some(), cfg!(target_os = "linux"));
        }
    }
}
