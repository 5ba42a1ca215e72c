//! The waits of a request: for a slot, limited by the queue, the request and the client, and for an answer that is late. An answer is late long
//! before the client gives up, so that another member can get the request.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;

use hostler_dispatch::{Claim, Lease, MemberId, MemberPreference, Priority, Ticket, WorkKind};
use tokio::sync::futures::Notified;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::hints::EarlyHints;
use super::refusal::Refusal;
use super::stream;
use super::suspects::Admission;
use super::target::PoolTarget;
use crate::exchange::{Downstream, Exchange, LateCheck, clock};
use crate::proxy::{self, CallBox, Endpoint, Failure};

/// An answer is late after this part (a quarter) of the time that the client waits.
const LATE_PART: u32 = 4;
/// How long a member that has not responded since its ejection has, before the request is sent to another member too.
const UNPROVEN_TIME: Duration = Duration::from_secs(1);

/// How often a request looks whether it may go to a worker, if no change wakes it.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// How long a client waits for its answer to begin. All waits of one request share it.
#[derive(Clone, Copy)]
pub(super) struct WaitBudget {
    began: Instant,
    /// How long the pool was paused, or slept, while this request waited. The request's time is extended by that, up to `request_timeout`
    /// and the pool's `wake_timeout`. So without a sleep a request waits at most twice its timeout.
    paused: Duration,
}

/// When a wait began: by how much the request's time had been extended, and how long the pool had been paused in all.
type Before = (Duration, Duration);

impl WaitBudget {
    pub fn begin() -> Self {
        Self { began: clock::now(), paused: Duration::ZERO }
    }

    /// The deadline of the answer.
    pub fn until(&self, target: &PoolTarget) -> Instant {
        self.began + target.request_timeout + self.paused
    }

    /// The state that [`give_back`](Self::give_back) needs. To be taken when a wait begins.
    pub fn before_wait(&self, target: &PoolTarget) -> Before {
        (self.paused, target.pool.paused_time())
    }

    /// Adds the pause of the pool since `before`. False if nothing is added.
    pub fn give_back(&mut self, target: &PoolTarget, (earlier, before): Before) -> bool {
        let paused = earlier + target.pool.paused_time().saturating_sub(before);
        let paused = paused.min(target.request_timeout + target.wake_timeout);
        std::mem::replace(&mut self.paused, paused) < paused
    }
}

/// The wait of a request at its pool: its priority, its place and its time.
pub(super) struct QueueWait<'a> {
    target: &'a PoolTarget,
    priority: Priority,
    wait_budget: WaitBudget,
    ticket: Option<Ticket>,
    /// Which members the request is for.
    pub preference: MemberPreference,
    /// What its client is sent when it begins to wait.
    pub hints: Option<&'a EarlyHints>,
    /// How long the request waits for the member to which it is bound. None: as long as for any slot.
    pub bound_wait: Option<Duration>,
    /// The time for that member ran out, so the request waits for any member now.
    pub was_unbound: bool,
}

impl<'a> QueueWait<'a> {
    pub fn begin(target: &'a PoolTarget, priority: Priority, wait_budget: WaitBudget) -> Self {
        let (ticket, preference, hints) = (None, MemberPreference::default(), None);
        let (bound_wait, was_unbound) = (None, false);
        Self { target, priority, wait_budget, ticket, preference, hints, bound_wait, was_unbound }
    }

    /// The deadline of the answer.
    pub fn until(&self) -> Instant {
        self.wait_budget.until(self.target)
    }

    /// The next wait begins at the end of the queue.
    pub fn give_up_place(&mut self) {
        self.ticket = None;
    }

    /// Waits for a slot. A later attempt of the same request waits at the old place in the queue, unless it has given that up.
    pub async fn slot<D: Downstream>(
        &mut self,
        exchange: &mut Exchange,
        client: &mut D,
    ) -> Result<Lease<Endpoint>, Refusal> {
        let asked = clock::now();
        let (mut outcome, ahead) = self.wait(exchange, client, asked).await;
        match &mut outcome {
            Ok(lease) => {
                charge(lease, self.target, exchange);
                exchange.log_facts.in_use = Some(lease.others_in_use());
                exchange.timings.note_slot(asked, lease.since());
            }
            Err(_) => {
                // It is tried no more. The next similar request need not wait until this client has read what it gets instead.
                exchange.turn = None;
                exchange.timings.note_vain_wait(asked);
            }
        }
        // Only the first wait counts for the log.
        exchange.log_facts.queue_length = exchange.log_facts.queue_length.or(ahead);
        if let Err(Refusal::QueueTimeout | Refusal::NotStarted | Refusal::Unreachable(_)) = outcome {
            self.target.meter.note_wait(exchange.timings.queue_wait);
        }
        outcome
    }

    /// The slot, and how many requests waited when this one came.
    async fn wait<D: Downstream>(
        &mut self,
        exchange: &mut Exchange,
        client: &mut D,
        asked: Instant,
    ) -> (Result<Lease<Endpoint>, Refusal>, Option<usize>) {
        let target = self.target;
        // The pool itself does not count pauses against this deadline.
        let claim = Claim {
            ticket: self.ticket,
            priority: self.priority,
            deadline: Some(self.limit_for(self.target.queue_timeout, exchange, asked)),
            long_lived: stream::expected(exchange),
            preference: self.preference,
            // By the name of the route: a reload makes routes anew, and their costs are still known.
            kind: exchange.log_facts.route.as_deref().map(WorkKind::named),
            expected: target.costs.as_ref().and_then(|costs| costs.of(exchange)),
            fair: target.fair.as_ref().map(|fair| fair.of(exchange)),
        };
        let mut acquire = pin!(target.pool.acquire_at(claim, asked));
        self.ticket = Some(acquire.ticket());
        let mut acquired = self.within(acquire.as_mut(), exchange, client, asked).await;
        if let Err(Refusal::QueueTimeout) = acquired
            && self.ends_binding(exchange, asked)
        {
            acquire.as_mut().unbind();
            acquired = self.within(acquire.as_mut(), exchange, client, asked).await;
        }
        let outcome = acquired.and_then(|acquired| acquired.map_err(Refusal::from));
        let is_out_of_reach = |only: MemberId| target.pool.cannot_reach(only);
        let outcome = outcome.map_err(|refusal| match refusal {
            Refusal::MemberBusy if self.preference.only.is_some_and(is_out_of_reach) => {
                Refusal::Unreachable(io::Error::other("the last connection to this member has failed"))
            }
            Refusal::QueueTimeout if !target.pool.has_had_members() => Refusal::NotStarted,
            Refusal::QueueTimeout if target.pool.is_unreachable() => {
                Refusal::Unreachable(io::Error::other("the last connection to each member has failed"))
            }
            refusal => refusal,
        });
        (outcome, acquire.ahead())
    }

    /// Ends the binding if its time is over. Returns false if the request is not bound, or if the time for any slot is over as well.
    fn ends_binding(&mut self, exchange: &Exchange, asked: Instant) -> bool {
        let was_bound = self.bound_wait.take().is_some() && self.preference.bound.take().is_some();
        self.was_unbound |= was_bound;
        was_bound && Instant::now() < self.limit(exchange, asked)
    }

    /// Waits until this request may go to a worker although similar requests have killed workers: such requests go one at a time. This wait
    /// is a part of the wait for a slot and has the same limits.
    pub async fn turn<D: Downstream>(
        &mut self,
        exchange: &mut Exchange,
        client: &mut D,
    ) -> Result<(), Refusal> {
        let asked = Instant::now();
        // This wait is not for the member of the client.
        let bound_wait = self.bound_wait.take();
        let outcome = self.wait_for_turn(exchange, client, asked).await;
        self.bound_wait = bound_wait;
        exchange.timings.note_vain_wait(asked);
        outcome
    }

    async fn wait_for_turn<D: Downstream>(
        &mut self,
        exchange: &mut Exchange,
        client: &mut D,
        asked: Instant,
    ) -> Result<(), Refusal> {
        let PoolTarget { poison, pool, .. } = self.target;
        exchange.turn = None;
        let Admission::Closed { .. } = poison.enter(exchange, pool.members_and_blocked())? else {
            return Ok(());
        };
        let place = poison.take_place(exchange);
        // Half of the time is for the turn, the rest for the wait for a slot.
        let company = asked + self.limit(exchange, asked).saturating_duration_since(asked) / 2;
        loop {
            // Before the check, so that a change after it is not missed.
            let changed = place.as_ref().filter(|place| place.is_woken()).map(|_| poison.changed());
            let Admission::Closed { risky } = poison.enter(exchange, pool.members_and_blocked())? else {
                return Ok(());
            };
            if risky && place.is_none() {
                return Err(poison.refuse());
            }
            // After that, a request that is not risky goes to a worker without a turn. Its outcome proves nothing, because other requests
            // are there too.
            let until = if risky { None } else { Some(company) };
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(());
            }
            let waited = self.within(pin!(until_changed(changed, until)), exchange, client, asked).await;
            match waited {
                Err(Refusal::QueueTimeout) => return Err(poison.refuse()),
                waited => waited?,
            }
        }
    }

    /// The result of `awaited`, unless the client leaves or the request's time ends first.
    async fn within<F: Future, D: Downstream>(
        &mut self,
        mut awaited: Pin<&mut F>,
        exchange: &mut Exchange,
        client: &mut D,
        asked: Instant,
    ) -> Result<F::Output, Refusal> {
        let target = self.target;
        // Created only if there is a wait, and then the deadline is set too.
        let mut pauses = None;
        let outcome = poll_fn(|cx| {
            loop {
                if let Poll::Ready(output) = awaited.as_mut().poll(cx) {
                    return Poll::Ready(Ok(output));
                }
                if client.poll_left(cx).is_ready() {
                    return Poll::Ready(Err(Refusal::ClientLeft));
                }
                if pauses.is_none() {
                    if let Some(hints) = self.hints {
                        hints.send(exchange, client, cx);
                    }
                    exchange.deadline.set_at(self.limit_or_wake(exchange, asked));
                }
                let before = *pauses.get_or_insert_with(|| self.wait_budget.before_wait(target));
                ready!(exchange.deadline.poll_due(cx));
                if self.wake_limit(asked).is_some_and(|limit| limit <= Instant::now()) {
                    return Poll::Ready(Err(Refusal::WakeTimeout));
                }
                if !self.wait_budget.give_back(target, before) {
                    return Poll::Ready(Err(Refusal::QueueTimeout));
                }
                exchange.deadline.set_at(self.limit_or_wake(exchange, asked));
            }
        })
        .await;
        if let Some(before) = pauses {
            self.wait_budget.give_back(target, before);
        }
        outcome
    }

    /// When the wait of a request that began to wait at `asked` ends. The waits of its earlier attempts count, so an attempt after a lost
    /// member does not extend the limit.
    fn limit(&self, exchange: &Exchange, asked: Instant) -> Instant {
        let time_limit = match self.bound_wait {
            Some(bound_wait) => bound_wait.min(self.target.queue_timeout),
            None => self.target.queue_timeout,
        };
        self.limit_for(time_limit, exchange, asked)
    }

    fn limit_for(&self, time_limit: Duration, exchange: &Exchange, asked: Instant) -> Instant {
        let queue_timeout = time_limit + self.wait_budget.paused;
        self.until().min(asked + queue_timeout.saturating_sub(exchange.timings.queue_wait))
    }

    /// When the wait for the first member of a sleeping pool ends. None: the pool does not sleep.
    fn wake_limit(&self, asked: Instant) -> Option<Instant> {
        let wake_timeout = self.target.wake_timeout;
        let waking = if wake_timeout.is_zero() { None } else { self.target.pool.waking_since() };
        waking.map(|since| since.max(asked) + wake_timeout)
    }

    fn limit_or_wake(&self, exchange: &Exchange, asked: Instant) -> Instant {
        let limit = self.limit(exchange, asked);
        self.wake_limit(asked).map_or(limit, |wake| wake.min(limit))
    }
}

/// The request pays for this slot when it comes back: its route, its key in a fair pool, and its buckets of rate limits.
pub(super) fn charge(lease: &mut Lease<Endpoint>, target: &PoolTarget, exchange: &Exchange) {
    let (facts, release) = (&exchange.log_facts, lease.release);
    lease.charge_to(target.account.payer(facts.fair.as_ref(), &facts.charges), release);
}

/// Waits for a change, and not beyond `until`. None as `changed`: only for a moment. Too many requests wait to wake each at every change.
/// Without a limit, each looks from time to time: that a member joins is no change.
async fn until_changed(changed: Option<Notified<'_>>, until: Option<Instant>) {
    match (changed, until) {
        (Some(changed), Some(until)) => drop(timeout_at(until, changed).await),
        (Some(changed), None) => drop(timeout(LOOK_PAUSE, changed).await),
        (None, _) => sleep(LOOK_PAUSE).await,
    }
}

/// Sets the deadline of the answer, and the moment from which it is late. Nothing has been sent yet.
pub(super) fn set_deadline(
    exchange: &mut Exchange,
    lease: &Lease<Endpoint>,
    target: &PoolTarget,
    until: Instant,
) {
    let mut late_after = target.request_timeout / LATE_PART;
    if lease.was_ejected() && proxy::is_repeatable(exchange) {
        late_after = late_after.min(UNPROVEN_TIME);
    }
    let at = lease.since() + late_after;
    exchange.late_check = (at < until).then_some(LateCheck { at, until });
    exchange.deadline.set_at(at.min(until));
}

/// Waits on for an answer that is late. At a member that is not a worker of ours, waits only as long as the pool has not ejected it, if the
/// request may be sent to another member. `moves`: it was not sent too often for that.
///
/// Boxed, because few answers are late.
pub(super) fn for_late_answer<'a, D: Downstream>(
    mut call: CallBox,
    moves: bool,
    exchange: &'a mut Exchange,
    client: &'a mut D,
    target: &'a PoolTarget,
) -> Pin<Box<impl Future<Output = Result<CallBox, Failure>>>> {
    Box::pin(async move {
        target.poison.watch(exchange, Instant::now() + target.request_timeout);
        if moves && proxy::is_repeatable(exchange) {
            call.watch_ejection();
        }
        call.wait_on(exchange, client).await
    })
}

#[cfg(test)]
mod tests;
