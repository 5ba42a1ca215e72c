//! How much work is done before a request that comes now. Knows no order of the requests.

use std::time::Duration;

/// The requests of a class that wait for any member.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingWork {
    pub requests: usize,
    pub work: Duration,
}

/// The work that is done before a new request of this class.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkAhead {
    pub of_request: Duration,
    /// The same if no other request of its key waited. Without keys there is no difference.
    pub of_first: Duration,
}

impl WorkAhead {
    /// The pool knows no keys.
    pub fn without_keys(work: Duration) -> Self {
        Self { of_request: work, of_first: work }
    }
}
