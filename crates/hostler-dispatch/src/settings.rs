//! The settings of a pool. Knows no requests.

use std::time::Duration;

use super::choice::MemberChoice;
use super::claim::Policy;
use super::eject::{BackoffSettings, EjectSettings};
use super::order::Order;

/// The settings of a pool. [`Pool::update`](super::Pool::update) changes them later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// How the pool chooses among members with a free slot.
    pub choice: MemberChoice,
    /// How many requests may wait. A request with a ticket does not count.
    pub queue_limit: usize,
    /// More may wait: as many as the pool serves in this time, as measured, and ten times the limit at most.
    pub burst: Duration,
    /// When waiting requests are refused.
    pub policy: Policy,
    /// In which order the waiting requests of one class get slots, if the slots are not shared fairly.
    pub order: Order,
    /// Share the slots fairly among the keys of the claims, by what their requests cost.
    pub fair: bool,
    /// How long a member that could not be reached gets no requests.
    pub backoff: BackoffSettings,
    /// When and for how long a member is ejected because requests time out on it.
    pub eject: EjectSettings,
    /// How many tunnels a member may have.
    pub max_tunnels: usize,
    /// How many streams a member may have.
    pub max_streams: usize,
    /// How long a member that leaves still gets the requests that are bound to it, while it has others.
    pub bound_drain: Duration,
}

impl PoolSettings {
    /// Whether requests are served in the same order, and refused by the same rules.
    pub(super) fn serves_like(&self, other: &Self) -> bool {
        (self.policy, self.order, self.fair) == (other.policy, other.order, other.fair)
    }
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            choice: MemberChoice::default(),
            queue_limit: 100,
            burst: Duration::ZERO,
            policy: Policy::default(),
            order: Order::default(),
            fair: false,
            backoff: BackoffSettings::default(),
            eject: EjectSettings::default(),
            max_tunnels: usize::MAX,
            max_streams: usize::MAX,
            bound_drain: Duration::ZERO,
        }
    }
}
