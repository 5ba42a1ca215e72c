//! What a kind of route decides about a call: which members the request is for, and whether it is sent again. Knows no queue.

use hostler_dispatch::{Lease, MemberId, MemberPreference, Pool};
use hostler_wire::ResponseHead;
use tokio::time::Instant;

use super::refusal::Refusal;
use super::target::PoolTarget;
use super::wait;
use crate::exchange::Exchange;
use crate::proxy::{Endpoint, Failure};

/// The retry policy of a kind of route. Configured routes have one policy, registered routes have another.
pub trait RetryPolicy {
    /// Which members the request is for, before its first attempt.
    fn preference(&self, exchange: &mut Exchange, target: &PoolTarget) -> Result<MemberPreference, Refusal>;

    /// Whether the client is told why the last attempt failed, instead of why there is no slot for another attempt.
    fn prefers_last_failure(&self, no_slot: &Refusal) -> bool;

    /// Whether every member has had an attempt, so that an attempt at this member would be a repetition.
    fn has_tried_all(&self, attempt: &Attempt<'_>, exchange: &Exchange) -> bool;

    /// Runs before anything is sent. Sets the deadline of the answer.
    fn begin(&self, attempt: &Attempt<'_>, exchange: &mut Exchange);

    /// Whether a request that was sent `_sends` times may be sent once more. If not, a late response is waited for until the deadline.
    fn may_send_more(&self, _sends: u32) -> bool {
        true
    }

    /// Runs when a member has answered.
    fn answered(&self, exchange: &mut Exchange, answer: &ResponseHead);

    /// Runs after a failed attempt. An error ends the call; `Ok` leads to another attempt.
    fn judge(&self, failed: FailedAttempt<'_>, exchange: &mut Exchange) -> Result<NextAttempt, Refusal>;
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
        wait::set_deadline(exchange, self.lease, self.target, self.until);
    }
}

/// An attempt without an answer.
pub struct FailedAttempt<'a> {
    pub failure: Failure,
    pub member: MemberId,
    /// In how many attempts the request may have been worked on, this one included.
    pub sends: u32,
    /// Which members the attempt was for.
    pub preference: MemberPreference,
    pub pool: &'a Pool<Endpoint>,
}

/// How a request goes on after an attempt that failed.
pub struct NextAttempt {
    /// Which members the next attempt is for.
    pub preference: MemberPreference,
    /// The request loses its place in the queue.
    pub gives_up_place: bool,
    /// The refusal that the client gets if there is no slot for the next attempt. None: the one that this wait for a slot gives.
    pub why: Option<Refusal>,
}
