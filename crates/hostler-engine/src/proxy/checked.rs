//! What health checks have found of a member, and what the status shows of it. Knows no connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// What the checks of a member have found so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The name of the member.
    pub member: Arc<str>,
    /// The member is unhealthy and gets no requests.
    pub unhealthy: bool,
    /// Checks that it has passed.
    pub passed: u64,
    /// Checks that it has failed.
    pub failed: u64,
    /// Why the last check failed. None if it passed.
    pub last_failure: Option<String>,
    /// Results in a row that contradict the current state.
    #[serde(skip)]
    pub(super) streak: u32,
}

/// Also after a panic: what it holds is right at any moment.
pub(super) fn lock(checked: &Mutex<Checked>) -> MutexGuard<'_, Checked> {
    checked.lock().unwrap_or_else(PoisonError::into_inner)
}
