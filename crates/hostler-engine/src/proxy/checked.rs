//! What health checks have found of a member, and what the status shows of it. Knows no connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// What the checks of a member have found so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The member.
    pub member: Arc<str>,
    /// It gets no requests.
    pub unhealthy: bool,
    /// Checks that it has passed.
    pub passed: u64,
    /// Checks that it has failed.
    pub failed: u64,
    /// Why it has failed the last one; none if it has passed it.
    pub last_failure: Option<String>,
    /// Outcomes in a row that speak against what it counts as.
    #[serde(skip)]
    pub(super) streak: u32,
}

/// Also after a panic: what it holds is right at any moment.
pub(super) fn lock(checked: &Mutex<Checked>) -> MutexGuard<'_, Checked> {
    checked.lock().unwrap_or_else(PoisonError::into_inner)
}
