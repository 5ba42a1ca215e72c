//! What is taken of a worker: a CPU profile or a heap snapshot. Does not know how.

use std::time::Duration;

/// What is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectionKind {
    /// A CPU profile, in the format of `.cpuprofile`.
    Profile {
        /// How long.
        length: Duration,
        /// The time between two samples.
        interval: Duration,
    },
    /// A heap snapshot, in the format of `.heapsnapshot`. The worker is out of its pool meanwhile.
    Heap {
        /// How long its running requests may take.
        wait: Duration,
        /// Even if no other worker of the pool is ready.
        force: bool,
    },
}

impl InspectionKind {
    /// The name in the status.
    pub fn name(self) -> &'static str {
        match self {
            Self::Profile { .. } => "profile",
            Self::Heap { .. } => "heap snapshot",
        }
    }
}
