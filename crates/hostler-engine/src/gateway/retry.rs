//! When a request is sent again, and to which members: what a call asks the kind of route for that it is made by. Knows no queue.

use hostler_dispatch::{Lease, MemberId, MemberPreference};
use hostler_wire::ResponseHead;
use tokio::time::Instant;

use super::late;
use super::refusal::Refusal;
use super::target::PoolTarget;
use crate::exchange::Exchange;
use crate::proxy::{self, Endpoint, Failure};

/// How often a request may be sent that workers do not answer. One that they die over is stopped earlier, by its `poison`;
/// this is for those that break connections off and live.
const MOST_SENDS: u32 = 3;

/// What the kind of a route decides about a call. Configured routes have one policy, registered routes have another.
pub(super) trait RetryPolicy {
    /// Which members the request is for, before its first attempt.
    fn preference(&self, exchange: &mut Exchange, target: &PoolTarget) -> Result<MemberPreference, Refusal>;

    /// Whether the client hears why the last attempt failed, instead of why there is no slot for another attempt.
    fn hides(&self, no_slot: &Refusal) -> bool;

    /// Whether every member has had an attempt, so that this member need not have another one.
    fn has_tried_all(&self, attempt: &Attempt<'_>, exchange: &Exchange) -> bool;

    /// An attempt begins, and nothing has been sent yet. Sets the deadline of the answer.
    fn begin(&self, attempt: &Attempt<'_>, exchange: &mut Exchange);

    /// A member has answered.
    fn answered(&self, exchange: &mut Exchange, answer: &ResponseHead);

    /// An attempt has failed. An error ends the call; anything else is another attempt.
    fn judge(&self, failed: FailedAttempt, exchange: &mut Exchange) -> Result<NextAttempt, Refusal>;
}

/// One attempt: a member has a slot for the request.
pub(super) struct Attempt<'a> {
    pub target: &'a PoolTarget,
    pub lease: &'a Lease<Endpoint>,
    /// Which members it is for.
    pub preference: MemberPreference,
    /// When the client waits for an answer no longer.
    pub until: Instant,
}

/// An attempt without an answer.
pub(super) struct FailedAttempt {
    pub failure: Failure,
    pub member: MemberId,
    /// How often the request may have been worked on, with this attempt.
    pub sends: u32,
    /// Which members the attempt was for.
    pub preference: MemberPreference,
}

/// How a request goes on after an attempt that failed.
pub(super) struct NextAttempt {
    /// Which members the next attempt is for.
    pub preference: MemberPreference,
    /// It loses its place in the queue.
    pub gives_up_place: bool,
    /// What the client hears if there is no slot for it; none: what it would have heard before.
    pub why: Option<Refusal>,
}

/// The policy of a configured route: what was never sent is sent to other members as long as there is time, at its old place in the queue.
/// What may have been worked on is sent again if that does no harm, three times at most.
pub(super) struct ConfiguredRetry;

impl RetryPolicy for ConfiguredRetry {
    fn preference(&self, exchange: &mut Exchange, _: &PoolTarget) -> Result<MemberPreference, Refusal> {
        let cautious = !proxy::is_repeatable(exchange);
        Ok(MemberPreference { cautious, ..MemberPreference::default() })
    }

    /// What kept it from a member says more than that it has waited.
    fn hides(&self, no_slot: &Refusal) -> bool {
        matches!(no_slot, Refusal::QueueTimeout)
    }

    fn has_tried_all(&self, _: &Attempt<'_>, _: &Exchange) -> bool {
        false
    }

    fn begin(&self, attempt: &Attempt<'_>, exchange: &mut Exchange) {
        late::arrange(exchange, attempt.lease, attempt.target, attempt.until);
    }

    fn answered(&self, _: &mut Exchange, _: &ResponseHead) {}

    fn judge(&self, failed: FailedAttempt, exchange: &mut Exchange) -> Result<NextAttempt, Refusal> {
        let FailedAttempt { failure, sends, preference, .. } = failed;
        let again = |why| Ok(NextAttempt { preference, gives_up_place: false, why });
        if failure.was_never_sent() {
            return again(Some(failure.into()));
        }
        if sends == MOST_SENDS || !proxy::may_repeat(&failure, exchange) {
            return Err(failure.into());
        }
        // What kept it from an answer says more than that it has waited for another.
        again(failure.was_forsaken().then(|| failure.into()))
    }
}
