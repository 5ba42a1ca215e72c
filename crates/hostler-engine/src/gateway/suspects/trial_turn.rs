//! The trial of a suspect, and how long similar requests wait for it: plain data that gets the time from its caller.

use std::time::Duration;

use tokio::time::Instant;

/// A trial keeps similar requests waiting no longer than this. If the request is still in progress then, its answer takes long or it counts
/// as held.
pub(super) const MAX_TURN: Duration = Duration::from_secs(60);
/// A request that blocks the event loop of its worker mostly does so within this time.
pub(super) const SHOWS_BLOCK: Duration = Duration::from_secs(2);
/// A trial lasts at least this long.
const MARGIN: Duration = Duration::from_secs(1);

/// The trial in progress, and when it began.
#[derive(Clone, Copy)]
pub(super) struct TrialTurn {
    pub number: u64,
    pub since: Instant,
}

pub(super) fn is_taken(turn: Option<TrialTurn>, now: Instant) -> bool {
    turn.is_some_and(|turn| now.saturating_duration_since(turn.since) < MAX_TURN)
}

/// How long a worker must live with a request, if others died up to `slowest` after they had got theirs: half as long again, and a second
/// more. Each trial before it that has shown nothing doubles the time, so that no bug that sometimes takes longer gets many workers at once.
pub(super) fn trial_time(slowest: Duration, trials: u32) -> Duration {
    let first = slowest * 3 / 2 + MARGIN;
    first.saturating_mul(1 << trials.min(6)).min(MAX_TURN)
}
