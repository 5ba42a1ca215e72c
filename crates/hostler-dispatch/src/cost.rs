//! What a request has cost its member, and who pays for it. Knows neither members nor queue, and not what a payer is.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What one slot has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCost {
    /// How long the slot was held.
    pub hold: Duration,
    /// The CPU time that the member used for the request. `None`: it is not known.
    pub cpu: Option<Duration>,
}

/// Pays for requests. Called without the pool's lock.
pub trait Payer: Send + Sync {
    /// A request has cost this much. CPU time that the member uses after the end of the request is paid later, in a
    /// cost whose `hold` is zero. `mark` is the value that was given to [`Lease::charge_to`](super::Lease::charge_to).
    fn pay(&self, mark: u64, cost: SlotCost);

    /// The member ended the request without a response. In a fair pool, the key of the request is charged this time in
    /// addition to its cost.
    fn pay_besides(&self, charged: Duration);

    /// The request has ended early, because its client has left. Its slot was held only for so long, and is paid for
    /// already, but the member may still work for it. In a fair pool, the key of the request is charged the time `besides` in
    /// addition to its cost.
    fn pay_early(&self, _held: Duration, _besides: Duration) {}
}

/// Receives the CPU time that the members of a pool use while they have no request. Called without the pool's lock.
pub trait IdlePayer: Send + Sync {
    /// A member has used this much CPU time while it had no request.
    fn pay_unowned(&self, cpu: Duration);
}

/// The payer of one request.
#[derive(Clone)]
pub(super) struct Payment {
    pub payer: Arc<dyn Payer>,
    pub mark: u64,
}

impl Payment {
    pub fn pay(&self, cost: SlotCost) {
        self.payer.pay(self.mark, cost);
    }

    /// Whether the same payer pays, with the same mark.
    pub fn is_same(&self, other: &Self) -> bool {
        self.mark == other.mark && Arc::ptr_eq(&self.payer, &other.payer)
    }
}

impl fmt::Debug for Payment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payment").field("mark", &self.mark).finish_non_exhaustive()
    }
}
