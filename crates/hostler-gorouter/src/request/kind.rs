//! What the gateway asks of the kind of a registered route: before a call, after each attempt, and for a refusal. Knows no queue.

use std::any::Any;
use std::time::Duration;

use hostler_config::Compat;
use hostler_dispatch::{MemberId, MemberPreference};
use hostler_engine::exchange::{Edits, Exchange, RegisteredRequest};
use hostler_engine::gateway::{
    Attempt, FailedAttempt, NextAttempt, PoolTarget, Refusal, RetryPolicy, RouteKind, RoutePresence,
};
use hostler_engine::proxy::{self, Failure};
use hostler_wire::{ResponseHead, Whole};
use tokio::time::Instant;

use super::asked_instance::asked_instance;
use super::facts::{Registered, registered, registered_mut};
use super::objection::RouterObjection;
use super::preference::asked_member;
use super::route::RegisteredRoute;
use super::{answer, failure, heads};

/// How many members get the request, if the settings do not say.
const DEFAULT_ATTEMPTS: u32 = 3;

impl RouteKind for RegisteredRoute {
    fn enter(&self, exchange: &mut Exchange) -> Result<(), Refusal> {
        self.prepare(exchange);
        if self.has_route_service {
            return Err(match exchange.offer {
                Some(_) => RouterObjection::RouteServiceTunnel,
                None => RouterObjection::RouteService,
            }
            .into());
        }
        asked_instance(exchange)?;
        Ok(())
    }

    fn presence(&self) -> RoutePresence {
        self.presence.get()
    }
}

/// A failed request goes to another member. It keeps its place in the queue, or has none, as with gorouter.
impl RetryPolicy for RegisteredRoute {
    fn preference(&self, exchange: &mut Exchange, target: &PoolTarget) -> Result<MemberPreference, Refusal> {
        let common_edits = exchange.to_member.own.len();
        if let Some(registered) = registered_mut(exchange) {
            registered.common_edits = common_edits;
        }
        let preference = self.wanted_members(exchange, &target.pool)?;
        let cautious = !is_compat(exchange) && !proxy::is_repeatable(exchange);
        Ok(MemberPreference { cautious, ..preference })
    }

    /// A member's failure says more than that no member is left or that the wait was too long. But if the client has left, that is the
    /// reason.
    fn prefers_last_failure(&self, no_slot: &Refusal) -> bool {
        !matches!(no_slot, Refusal::ClientLeft)
    }

    fn has_tried_all(&self, attempt: &Attempt<'_>, exchange: &Exchange) -> bool {
        is_compat(exchange)
            && attempt.preference.tried.contains(attempt.lease.member())
            && exchange.log_facts.attempts as usize >= attempt.target.pool.members()
    }

    fn begin(&self, attempt: &Attempt<'_>, exchange: &mut Exchange) {
        if let Some(registered) = registered(exchange) {
            let common_edits = registered.common_edits;
            exchange.to_member.own.truncate(common_edits);
        }
        self.add_member_fields(exchange, attempt.lease);
        exchange.timings.connecting = Duration::ZERO;
        if let Some(registered) = registered_mut(exchange) {
            registered.attempted = Some(Instant::now());
        }
        if is_compat(exchange) {
            exchange.deadline.set_at(attempt.until);
        } else {
            attempt.set_deadline(exchange);
        }
    }

    fn may_send_more(&self, sends: u32) -> bool {
        sends < self.most_attempts()
    }

    fn answered(&self, exchange: &mut Exchange, answer: &ResponseHead) {
        // If its body breaks off, the error of an earlier attempt is not the reason.
        if let Some(registered) = registered_mut(exchange) {
            registered.error = None;
        }
        self.add_client_fields(exchange, answer);
    }

    /// A repeated request takes any member, preferably one that it has not tried.
    fn judge(&self, failed: FailedAttempt<'_>, exchange: &mut Exchange) -> Result<NextAttempt, Refusal> {
        let FailedAttempt { failure, member, sends, preference, pool } = failed;
        if !self.goes_on(exchange, &failure, member, sends) {
            return Err(failure.into());
        }
        let mut tried = preference.tried;
        tried.add(member);
        let only = asked_member(exchange, pool, tried)?.or(preference.only);
        Ok(NextAttempt {
            preference: MemberPreference { tried, only, wanted: None, near: false, ..preference },
            gives_up_place: is_compat(exchange),
            why: Some(failure.into()),
        })
    }
}

impl RegisteredRequest for Registered {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn instance_id(&self) -> Option<&str> {
        Some(&self.instance.as_ref()?.id)
    }

    fn take_back_answer(&self, to_client: &mut Edits) {
        heads::remove_answer_edits(to_client);
    }

    fn refuse(&mut self, exchange: &Exchange, refusal: &dyn Any) -> Option<Whole> {
        answer::answer(self, exchange, refusal.downcast_ref()?)
    }
}

impl RegisteredRoute {
    /// What follows from a failure: whether there is another attempt. `sends` says in how many attempts the request may have been worked
    /// on.
    fn goes_on(&self, exchange: &mut Exchange, failure: &Failure, member: MemberId, sends: u32) -> bool {
        let settings = self.rules.settings();
        let compat = settings.compat == Compat::Gorouter;
        let label = exchange.log_facts.member.clone();
        if let Some(registered) = registered_mut(exchange) {
            registered.error =
                Some(failure::error(failure, label.as_deref().unwrap_or_default(), compat).into());
            registered.note_failed();
        }
        let verdict = failure::verdict(failure, exchange, compat);
        if let Some(fault) = verdict.fault {
            (self.on_failed)(member, fault);
        }
        // An attempt that sent nothing does not count. With `compat` it does, as with gorouter.
        let attempts = if compat { exchange.log_facts.attempts } else { sends };
        verdict.again && attempts < self.most_attempts()
    }

    /// How many members get a request at most.
    fn most_attempts(&self) -> u32 {
        self.rules.settings().max_attempts.map_or(DEFAULT_ATTEMPTS, |most| most.get() as u32)
    }
}

/// gorouter's behaviour applies to the request where Hostler's is safer.
fn is_compat(exchange: &Exchange) -> bool {
    registered(exchange).is_some_and(|registered| registered.compat)
}
