//! A call by a registered route: to the member that it wants, and where that fails, to others. Knows no client protocol.

use std::time::Duration;

use hostler_config::Compat;
use hostler_dispatch::{MemberId, MemberPreference};
use tokio::time::Instant;

use super::{Objection, Platform, preference, retry};
use crate::exchange::{Downstream, Exchange};
use crate::gateway::late;
use crate::gateway::wait::{QueueWait, WaitBudget};
use crate::gateway::{PoolTarget, Refusal, Route};
use crate::proxy::{self, Call, Failure};

/// To how many members a request goes that must not be sent for ever.
const USUAL_ATTEMPTS: u32 = 3;

impl Platform {
    /// A request has found its route: what is wrong with it is said before its body is read.
    pub(in crate::gateway) fn enter(&self, exchange: &mut Exchange) -> Result<(), Refusal> {
        self.prepare(exchange);
        if self.has_route_service {
            return Err(match exchange.offer {
                Some(_) => Objection::RouteServiceTunnel,
                None => Objection::RouteService,
            }
            .into());
        }
        preference::asked_instance(exchange)?;
        Ok(())
    }

    /// What follows from a failure: whether another attempt is due, in whose course the request may have been worked on so many
    /// times.
    fn goes_on(&self, exchange: &mut Exchange, failure: &Failure, member: MemberId, sends: u32) -> bool {
        let settings = self.rules.settings();
        let compat = settings.compat == Compat::Gorouter;
        if let Some(registered) = &mut exchange.registered {
            let label = exchange.log_facts.member.as_deref().unwrap_or_default();
            registered.error = Some(retry::error(failure, label, compat).into());
            registered.note_failed();
        }
        let verdict = retry::verdict(failure, exchange, compat);
        if verdict.unfit
            && let Some(on_failed) = &self.on_failed
        {
            on_failed(member);
        }
        // What was never sent is no attempt at anything, but for gorouter.
        let attempts = if compat { exchange.log_facts.attempts } else { sends };
        let most = settings.max_attempts.map_or(USUAL_ATTEMPTS, |most| most.get() as u32);
        verdict.again && attempts < most
    }
}

/// A slot, a call; and where that failed and may be tried again, from the start: at the same place in the queue, or, as gorouter does
/// it, without one.
pub(in crate::gateway) async fn call<D: Downstream>(
    platform: &Platform,
    (route, target): (&Route, &PoolTarget),
    exchange: &mut Exchange,
    client: &mut D,
    thread: usize,
) -> Result<Box<Call>, Refusal> {
    exchange.log_facts.pool = Some(target.name.clone());
    let compat = platform.rules.is_compat();
    let mut queue_wait = QueueWait::begin(target, route.priority, WaitBudget::begin());
    queue_wait.preference = platform.preference(exchange, &target.pool)?;
    queue_wait.preference.cautious = !compat && !proxy::is_repeatable(exchange);
    let mark = exchange.to_member.own.len();
    let (mut sends, mut last) = (0, None);
    loop {
        let lease = match queue_wait.slot(exchange, client).await {
            Ok(lease) => lease,
            // The client has gone: no failure of a member's is the reason.
            Err(Refusal::ClientLeft) => return Err(Refusal::ClientLeft),
            // What kept it from a member says more than that none is left, or that it has waited.
            Err(refusal) => return Err(last.unwrap_or(refusal)),
        };
        let member = lease.member();
        // Each has had its chance.
        if compat
            && queue_wait.preference.tried.contains(member)
            && exchange.log_facts.attempts as usize >= target.pool.members()
            && let Some(last) = last
        {
            return Err(last);
        }
        target.meter.record_queue_wait(thread, exchange.timings.queue_wait);
        exchange.log_facts.attempts += 1;
        exchange.deadline.set_at(queue_wait.until());
        exchange.to_member.own.truncate(mark);
        platform.introduce(exchange, &lease);
        exchange.timings.connecting = Duration::ZERO;
        if let Some(registered) = &mut exchange.registered {
            registered.attempted = Some(Instant::now());
        }
        if !compat {
            late::arrange(exchange, &lease, target, queue_wait.until());
        }
        let answered = match proxy::forward(exchange, client, lease, &target.call, thread).await {
            Ok(call) if call.is_late() => Box::pin(late::wait(call, exchange, client, target)).await,
            answered => answered,
        };
        let failure = match answered {
            Ok(call) => {
                platform.answered(exchange, call.answer());
                return Ok(call);
            }
            Err(failure) => failure,
        };
        sends += u32::from(!failure.was_never_sent());
        if !platform.goes_on(exchange, &failure, member, sends) {
            return Err(failure.into());
        }
        last = Some(failure.into());
        queue_wait.preference = after(queue_wait.preference, member);
        if compat {
            queue_wait.give_up_place();
        }
    }
}

/// A request that tries again takes any member, one that it has not been to if there is one.
fn after(preference: MemberPreference, failed: MemberId) -> MemberPreference {
    let mut tried = preference.tried;
    tried.add(failed);
    MemberPreference { tried, wanted: None, near: false, ..preference }
}
