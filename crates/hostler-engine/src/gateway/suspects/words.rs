//! What is known of a suspect, and what the log and the status say about it: plain data.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::gateway::identity::IdentityKind;

/// After how many deaths a request is convicted, and for how long.
#[derive(Debug, Clone, Copy)]
pub(in crate::gateway) struct Rule {
    pub kills: usize,
    pub keep_off: Duration,
}

pub(in crate::gateway) enum SuspectStanding {
    Unknown,
    Suspect,
    Convicted(Convicted),
}

/// Whether a suspect may go to a worker.
pub(in crate::gateway) enum Admission {
    /// Nothing is against it.
    Free,
    /// It may go, while similar requests wait. The number of its turn is for `Suspects::leave`.
    Alone(u64),
    /// Not now. `risky`: similar requests have killed or held workers, so it must wait for its turn, however long that takes.
    Closed { risky: bool },
}

/// A request over which too many workers have died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convicted {
    /// The processes that died.
    pub killed: Vec<u32>,
    /// The name of all that is refused, and for how much longer. None: only this request is refused.
    pub kept_off: Option<(Arc<str>, Duration)>,
}

/// A conviction in the status.
#[derive(Debug, Clone, Serialize)]
pub struct KeptOff {
    /// Method and URL, or what else the requests have in common.
    pub request: Arc<str>,
    /// Which of these it is.
    pub kind: IdentityKind,
    /// The processes that died over it.
    pub killed: Vec<u32>,
    /// How much longer it is kept off.
    pub for_ms: u64,
}

/// The figures of suspects, for the status.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SuspectsView {
    /// URLs, paths, routes and clients whose requests are let in one at a time.
    pub one_at_a_time: usize,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// Requests that were refused because their turn did not come, since the start.
    pub refused: u64,
    /// URLs, paths and clients that were convicted, since the start.
    pub convicted: u64,
}

impl fmt::Display for Convicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pids: Vec<String> = self.killed.iter().map(u32::to_string).collect();
        write!(f, "it made workers die (pid {})", pids.join(", pid "))?;
        match &self.kept_off {
            Some((what, left)) => write!(f, "; Hostler refuses {what} for {} s", left.as_secs_f64().ceil()),
            None => Ok(()),
        }
    }
}
