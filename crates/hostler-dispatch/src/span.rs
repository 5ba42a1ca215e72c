//! Since when and until when a request waits, for which members, and what it costs. Knows no queue.

use std::time::Duration;

use tokio::time::Instant;

use super::claim::{Claim, LongLived, MemberPreference};
use super::fair_key::FairKey;
use super::kinds::WorkKind;
use super::short_first::Label;

/// Since when and until when a request waits, and for which members. The times are those of the pool's clock, which stops
/// while the pool is paused.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueSpan {
    pub since: Instant,
    pub until: Option<Instant>,
    pub long_lived: Option<LongLived>,
    pub preference: MemberPreference,
    /// It is bound to its member only because no other had room for its tunnel or stream.
    pub for_room: bool,
    /// What it costs.
    pub work: Work,
}

impl QueueSpan {
    /// What tells its turn in a pool that serves short requests first.
    pub fn label(self) -> Label {
        let Work { time, expected, .. } = self.work;
        Label { cost: expected.unwrap_or(time), work: time }
    }

    /// How long the request can wait in all. `None`: no limit.
    pub fn time_limit(self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(self.since))
    }
}

/// What a request costs: its kind, for how long it is expected to hold its slot, and who is charged for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    pub kind: Option<WorkKind>,
    pub time: Duration,
    pub fair: Option<FairKey>,
    /// What the claim expects it to cost.
    pub expected: Option<Duration>,
}

impl Work {
    /// The work of a claim that is expected to take this long.
    pub fn of(claim: &Claim, time: Duration) -> Self {
        Self { kind: claim.kind, time, fair: claim.fair, expected: claim.expected }
    }

    /// Requests without a key share one.
    pub fn key(self) -> FairKey {
        self.fair.unwrap_or(FairKey::of(0))
    }
}
