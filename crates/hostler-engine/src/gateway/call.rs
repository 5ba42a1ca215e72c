//! A call to a pool: gets a slot, asks the member, and starts again if the call failed and may be repeated. Also the retry policy of configured
//! routes. Knows no client protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hostler_dispatch::{Lease, MemberId, MemberPreference};
use hostler_wire::ResponseHead;

use super::account;
use super::answer::Answer;
use super::death_count::DeathCount;
use super::hedge::{self, HedgedCall};
use super::hedging::Hedge;
use super::low;
use super::refusal::Refusal;
use super::retry::{Attempt, FailedAttempt, NextAttempt, RetryPolicy};
use super::sticky::Stay;
use super::target::{PoolTarget, Route};
use super::wait::{self, QueueWait, WaitBudget};
use crate::exchange::{Downstream, Exchange, LoopWatch};
use crate::proxy::{self, CallBox, Endpoint, Failure};

/// How often a request may be sent if workers close the connection without a response. If workers die, `poison` ends it earlier. A second
/// try (`hedge`) does not count here, so only the first attempt may have one.
const MAX_SENDS: u32 = 3;

/// Asks a member of the pool. `policy` says which members the request is for, and whether a failed call is tried again.
pub(super) fn call<D: Downstream>(
    policy: &(impl RetryPolicy + ?Sized),
    at: (&Route, &PoolTarget),
    exchange: &mut Exchange,
    client: &mut D,
    thread: usize,
) -> impl Future<Output = Result<CallBox, Refusal>> {
    call_within(policy, WaitBudget::begin(), at, exchange, client, thread)
}

/// The same for a client that has already waited for a fetch of another request: only the rest of its time is left.
pub(super) async fn call_within<D: Downstream>(
    policy: &(impl RetryPolicy + ?Sized),
    wait_budget: WaitBudget,
    (route, target): (&Route, &PoolTarget),
    exchange: &mut Exchange,
    client: &mut D,
    thread: usize,
) -> Result<CallBox, Refusal> {
    account::open(target, exchange);
    exchange.is_batch = route.takes_batches();
    target.poison.admit(exchange)?;
    let mut queue_wait = QueueWait::begin(target, low::priority(route, target, exchange), wait_budget);
    queue_wait.hints = route.early_hints.as_deref();
    queue_wait.preference = policy.preference(exchange, target)?;
    let mut stay = stay(target, exchange, &mut queue_wait);
    let (mut sends, mut deaths, mut last) = (0, DeathCount::default(), None);
    loop {
        let waited_before = exchange.timings.queue_wait;
        // Boxed because few requests need it. Otherwise each connection would carry the room for it.
        if exchange.is_suspect || exchange.turn.is_some() {
            Box::pin(queue_wait.turn(exchange, client)).await?;
        }
        queue_wait.preference.alone = target.poison.isolates(exchange);
        let lease = queue_wait.slot(exchange, client).await;
        let lease = lease.map_err(|no_slot| {
            last.take().filter(|_| policy.prefers_last_failure(&no_slot)).unwrap_or(no_slot)
        })?;
        // Only the wait for this slot: those of earlier attempts are counted already.
        target.meter.record_queue_wait(thread, exchange.timings.queue_wait.saturating_sub(waited_before));
        // While this request waited, a similar one may have been convicted.
        target.poison.admit(exchange)?;
        if let (Some(stay), Some(sticky)) = (&mut stay, &target.sticky) {
            sticky.reached(stay, &lease, queue_wait.was_unbound, &target.pool, exchange);
        }
        let Some((member, lease)) = begin(policy, lease, target, &queue_wait, exchange) else {
            return Err(last.unwrap_or(Refusal::NoMember));
        };
        let moves = policy.may_send_more(sends + 1);
        let at = HedgedCall { route, target, moves, thread };
        let answered = match hedge_of(target, stay.as_ref()).filter(|_| sends == 0) {
            None => proxy::forward(exchange, client, lease, &target.call, thread).await,
            Some(hedge) => hedge::forward(hedge, at, lease, exchange, client).await,
        };
        let answered = match answered {
            Ok(call) if call.is_late() => wait::for_late_answer(call, moves, exchange, client, target).await,
            answered => answered,
        };
        let failure = match answered {
            Ok(mut call) => {
                answered_by(policy, route, exchange, &call);
                if let (Some(stay), Some(sticky)) = (stay, &target.sticky) {
                    Box::pin(sticky.answered(stay, &mut call, &target.pool, exchange)).await;
                }
                return Ok(call);
            }
            Err(failure) => failure,
        };
        if has_killed(target, &failure, exchange, (&mut sends, &mut deaths)).await? {
            // The request may kill the next worker too: other requests get a slot first.
            queue_wait.give_up_place();
        }
        let (preference, pool) = (queue_wait.preference, &target.pool);
        let failed = FailedAttempt { failure, member, sends, preference, pool };
        let next = policy.judge(failed, exchange)?;
        queue_wait.preference = next.preference;
        if next.gives_up_place {
            queue_wait.give_up_place();
        }
        last = next.why.or(last);
    }
}

/// Binds the request to the member of its client, if the pool is sticky and the client has one.
fn stay(target: &PoolTarget, exchange: &Exchange, queue_wait: &mut QueueWait<'_>) -> Option<Stay> {
    let stay = target.sticky.as_ref()?.stay(exchange, &target.pool)?;
    stay.prefer(&mut queue_wait.preference);
    queue_wait.bound_wait = stay.wait.filter(|_| stay.bound.is_some());
    Some(stay)
}

/// A request that stays with its member is not sent to another one.
fn hedge_of<'a>(target: &'a PoolTarget, stay: Option<&Stay>) -> Option<&'a Hedge> {
    target.hedge.as_ref().filter(|_| stay.is_none())
}

/// A member has answered. The answer may teach the links that other requests of the route are sent while they wait.
fn answered_by(policy: &(impl RetryPolicy + ?Sized), route: &Route, exchange: &mut Exchange, call: &CallBox) {
    exchange.log_facts.member_status = Some(call.answer().status);
    policy.answered(exchange, call.answer());
    if let Some(hints) = &route.early_hints {
        hints.learn(exchange, call.answer(), call.release());
    }
}

/// Counts a try that has failed, and finds out whether a worker died over it. True if the worker ended by itself and had no other request.
async fn has_killed(
    target: &PoolTarget,
    failure: &Failure,
    exchange: &mut Exchange,
    (sends, deaths): (&mut u32, &mut DeathCount),
) -> Result<bool, Refusal> {
    let was_worked_on = concerns_worker(failure, exchange);
    *sends += u32::from(was_worked_on);
    // A malformed answer is no sign of a death, so the client does not wait for one. `settle` looks for it afterwards.
    let has_killed = match was_worked_on && !failure.is_bad_answer() {
        true => Box::pin(target.poison.blame(exchange, deaths)).await,
        false => Ok(false),
    };
    if !failure.is_by_client() {
        exchange.timings.note_failed_try();
    }
    has_killed
}

/// Whether a worker may have worked on the request and may have ended because of it. If the client has left, [`super::poison`] looks for
/// that at the end of the exchange.
fn concerns_worker(failure: &Failure, exchange: &mut Exchange) -> bool {
    let was_sent = !failure.was_never_sent() || std::mem::take(&mut exchange.was_swallowed);
    was_sent && !failure.is_by_client()
}

/// Begins an attempt with this slot. None if every member has had an attempt. The lease is moved in and out again: a borrow across the
/// loop's awaits would make the future of each connection larger.
fn begin(
    policy: &(impl RetryPolicy + ?Sized),
    lease: Lease<Endpoint>,
    target: &PoolTarget,
    queue_wait: &QueueWait<'_>,
    exchange: &mut Exchange,
) -> Option<(MemberId, Lease<Endpoint>)> {
    let (preference, until) = (queue_wait.preference, queue_wait.until());
    let attempt = Attempt { target, lease: &lease, preference, until };
    if policy.has_tried_all(&attempt, exchange) {
        return None;
    }
    exchange.log_facts.attempts += 1;
    (exchange.log_facts.member_status, exchange.is_answered) = (None, false);
    policy.begin(&attempt, exchange);
    if exchange.turn.is_some() {
        target.poison.begin_trial(exchange, lease.clock().map(LoopWatch::new), lease.sharing());
    }
    Some((lease.member(), lease))
}

impl From<CallBox> for Answer {
    fn from(call: CallBox) -> Self {
        if call.has_switched() { Self::Tunnel(call) } else { Self::Member(call) }
    }
}

/// The policy of a configured route. A request that was never sent goes to other members at its old place in the queue, until its time is
/// over. A request that may have been worked on is sent again if it is idempotent, three times at most.
pub(super) struct ConfiguredRetry {
    /// When the turn of the request comes, for those that may wait for its response. 0 from its first slot on.
    pub turn: Option<Arc<AtomicU64>>,
}

/// The policy of a request for whose response no other request waits.
pub(super) static CONFIGURED_RETRY: ConfiguredRetry = ConfiguredRetry { turn: None };

impl RetryPolicy for ConfiguredRetry {
    fn preference(&self, exchange: &mut Exchange, _: &PoolTarget) -> Result<MemberPreference, Refusal> {
        let cautious = !proxy::is_repeatable(exchange);
        Ok(MemberPreference { cautious, ..MemberPreference::default() })
    }

    /// The failure of a member says more than that the wait was too long.
    fn prefers_last_failure(&self, no_slot: &Refusal) -> bool {
        matches!(no_slot, Refusal::QueueTimeout | Refusal::Unreachable(_))
    }

    fn has_tried_all(&self, _: &Attempt<'_>, _: &Exchange) -> bool {
        false
    }

    fn begin(&self, attempt: &Attempt<'_>, exchange: &mut Exchange) {
        if let Some(turn) = &self.turn {
            turn.store(0, Ordering::Relaxed);
        }
        wait::set_deadline(exchange, attempt.lease, attempt.target, attempt.until);
    }

    fn may_send_more(&self, sends: u32) -> bool {
        sends < MAX_SENDS
    }

    fn answered(&self, _: &mut Exchange, _: &ResponseHead) {}

    fn judge(&self, failed: FailedAttempt<'_>, exchange: &mut Exchange) -> Result<NextAttempt, Refusal> {
        let FailedAttempt { failure, sends, mut preference, member, .. } = failed;
        if failure.was_cut_off() {
            // It gets requests again at once, if it lives. But it may end this one again.
            preference.tried.add(member);
        }
        let again = |why| Ok(NextAttempt { preference, gives_up_place: false, why });
        if proxy::may_move(&failure, exchange) && self.may_send_more(sends) {
            return again(Some(failure.into()));
        }
        if !self.may_send_more(sends) || !proxy::may_repeat(&failure, exchange) {
            return Err(failure.into());
        }
        // The reason why it got no answer says more than that it waited for another member.
        again(failure.was_marked_down().then(|| failure.into()))
    }
}
