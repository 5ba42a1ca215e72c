//! What a request is expected to cost in a pool that serves short requests first, and who learns what it has cost. Knows no routes.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::CostLabel;

use super::Exchange;

/// What a request is expected to cost.
#[derive(Debug, Clone)]
pub struct ExpectedCost {
    /// Which requests cost about as much.
    pub label: CostLabel,
    /// For how long it is expected to hold its slot. None: nothing is known yet.
    pub cost: Option<Duration>,
    /// For how long it has held its slot when its time was over without a response. It may hold the slot for longer.
    pub held_in_vain: Option<Duration>,
    /// Learns what it has cost. Held here and not by the route, which an exchange lets go before its client has read everything.
    pub learner: Arc<dyn CostLearner>,
}

/// Learns what requests cost.
pub trait CostLearner: Debug + Send + Sync {
    /// The request has ended.
    fn learn(&self, exchange: &Exchange);

    /// For a request whose slot is held longer than its exchange lasts: takes the time for which it was held.
    fn later(&self, exchange: &Exchange) -> Option<LateLesson>;
}

/// Learns what one request has cost.
pub type LateLesson = Box<dyn FnOnce(Duration) + Send>;
