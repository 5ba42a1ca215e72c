//! When a request is sent again, and to which members: the retry policy of a kind of route. Knows no queue.

use hostler_dispatch::{Lease, MemberId, MemberPreference};
use hostler_wire::ResponseHead;
use tokio::time::Instant;

use super::late;
use super::refusal::Refusal;
use super::target::PoolTarget;
use crate::exchange::Exchange;
use crate::proxy::{self, Endpoint, Failure};

/// How often a request may be sent if workers only close the connection. If they die over it, `poison` stops it earlier.
const MAX_SENDS: u32 = 3;

/// The retry policy of a kind of route. Configured routes have one policy, registered routes have another.
pub trait RetryPolicy {
    /// Which members the request is for, before its first attempt.
    fn preference(&self, exchange: &mut Exchange, target: &PoolTarget) -> Result<MemberPreference, Refusal>;

    /// Whether the client is told why the last attempt failed, instead of why there is no slot for another attempt.
    fn hides(&self, no_slot: &Refusal) -> bool;

    /// Whether every member has had an attempt, so that this member need not have another one.
    fn has_tried_all(&self, attempt: &Attempt<'_>, exchange: &Exchange) -> bool;

    /// Runs before anything is sent. Sets the deadline of the answer.
    fn begin(&self, attempt: &Attempt<'_>, exchange: &mut Exchange);

    /// Runs when a member has answered.
    fn answered(&self, exchange: &mut Exchange, answer: &ResponseHead);

    /// Runs after a failed attempt. An error ends the call; `Ok` leads to another attempt.
    fn judge(&self, failed: FailedAttempt, exchange: &mut Exchange) -> Result<NextAttempt, Refusal>;
}

/// One attempt: a member has a slot for the request.
pub struct Attempt<'a> {
    pub target: &'a PoolTarget,
    pub lease: &'a Lease<Endpoint>,
    /// Which members it is for.
    pub preference: MemberPreference,
    /// The deadline of the answer.
    pub until: Instant,
}

impl Attempt<'_> {
    /// Sets the deadline of the answer, and the moment from which the answer is late: from then on another member may be asked.
    pub fn set_deadline(&self, exchange: &mut Exchange) {
        late::set_deadline(exchange, self.lease, self.target, self.until);
    }
}

/// An attempt without an answer.
pub struct FailedAttempt {
    pub failure: Failure,
    pub member: MemberId,
    /// In how many attempts the request may have been worked on, this one included.
    pub sends: u32,
    /// Which members the attempt was for.
    pub preference: MemberPreference,
}

/// How a request goes on after an attempt that failed.
pub struct NextAttempt {
    /// Which members the next attempt is for.
    pub preference: MemberPreference,
    /// The request loses its place in the queue.
    pub gives_up_place: bool,
    /// The refusal if there is no slot for the next attempt. None: the refusal of that wait.
    pub why: Option<Refusal>,
}

/// The policy of a configured route. A request that was never sent goes to other members at its old place in the queue, until its time is
/// over. A request that may have been worked on is sent again if it is idempotent, three times at most.
pub(super) struct ConfiguredRetry;

impl RetryPolicy for ConfiguredRetry {
    fn preference(&self, exchange: &mut Exchange, _: &PoolTarget) -> Result<MemberPreference, Refusal> {
        let cautious = !proxy::is_repeatable(exchange);
        Ok(MemberPreference { cautious, ..MemberPreference::default() })
    }

    /// The failure of a member says more than that the wait was too long.
    fn hides(&self, no_slot: &Refusal) -> bool {
        matches!(no_slot, Refusal::QueueTimeout)
    }

    fn has_tried_all(&self, _: &Attempt<'_>, _: &Exchange) -> bool {
        false
    }

    fn begin(&self, attempt: &Attempt<'_>, exchange: &mut Exchange) {
        attempt.set_deadline(exchange);
    }

    fn answered(&self, _: &mut Exchange, _: &ResponseHead) {}

    fn judge(&self, failed: FailedAttempt, exchange: &mut Exchange) -> Result<NextAttempt, Refusal> {
        let FailedAttempt { failure, sends, preference, .. } = failed;
        let again = |why| Ok(NextAttempt { preference, gives_up_place: false, why });
        if failure.was_never_sent() {
            return again(Some(failure.into()));
        }
        if sends == MAX_SENDS || !proxy::may_repeat(&failure, exchange) {
            return Err(failure.into());
        }
        // The reason why it got no answer says more than that it waited for another member.
        again(failure.was_forsaken().then(|| failure.into()))
    }
}
