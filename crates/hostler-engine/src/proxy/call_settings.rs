//! The settings of the calls to a pool. Does nothing.

use std::time::Duration;

use hostler_wire::Limits;

/// The settings of a call.
#[derive(Debug, Clone)]
pub struct CallSettings {
    /// The time limit for connecting.
    pub connect_timeout: Duration,
    /// How long a call may go on after its client has left, before its worker counts as hung.
    pub hang_timeout: Duration,
    /// Workers get as many requests as their event loops can begin, so no slot must stay taken until a request has finished. Then a worker
    /// is told at once that no client waits for its answer.
    pub hangs_up_at_once: bool,
    /// How long a tunnel may be without a byte in either direction.
    pub tunnel_idle_timeout: Duration,
    /// How long a stream may be without a byte from its member.
    pub stream_idle_timeout: Duration,
    /// Limits of an answer's head. All interim heads of an answer together have the same limit.
    pub limits: Limits,
    /// How many interim heads an answer may have.
    pub max_interim_answers: usize,
}
