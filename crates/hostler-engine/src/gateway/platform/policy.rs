//! What a registered route decides about its calls: which members they are for, and what follows where one fails. Knows no queue.

use std::time::Duration;

use hostler_config::Compat;
use hostler_dispatch::{MemberId, MemberPreference};
use hostler_wire::ResponseHead;
use tokio::time::Instant;

use super::asked_instance::asked_instance;
use super::objection::Objection;
use super::registered::Platform;
use super::retry;
use crate::exchange::Exchange;
use crate::gateway::late;
use crate::gateway::refusal::Refusal;
use crate::gateway::retry::{Attempt, FailedAttempt, NextAttempt, RetryPolicy};
use crate::gateway::target::PoolTarget;
use crate::proxy::{self, Failure};

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
        asked_instance(exchange)?;
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

/// The policy of a registered route for one request. What fails goes to another member: at the same place in the queue, or, as gorouter
/// does it, without a place.
pub(in crate::gateway) struct PlatformRetry<'a> {
    platform: &'a Platform,
    compat: bool,
    /// Where the changes to the head begin that name a member.
    mark: usize,
}

impl<'a> PlatformRetry<'a> {
    /// For a request that is about to wait for its first slot.
    pub fn new(platform: &'a Platform, exchange: &Exchange) -> Self {
        Self { platform, compat: platform.rules.is_compat(), mark: exchange.to_member.own.len() }
    }
}

impl RetryPolicy for PlatformRetry<'_> {
    fn preference(&self, exchange: &mut Exchange, target: &PoolTarget) -> Result<MemberPreference, Refusal> {
        let preference = self.platform.preference(exchange, &target.pool)?;
        Ok(MemberPreference { cautious: !self.compat && !proxy::is_repeatable(exchange), ..preference })
    }

    /// What kept it from a member says more than that no member is left, or that it has waited. If the client has gone, no failure of a
    /// member is the reason.
    fn hides(&self, no_slot: &Refusal) -> bool {
        !matches!(no_slot, Refusal::ClientLeft)
    }

    fn has_tried_all(&self, attempt: &Attempt<'_>, exchange: &Exchange) -> bool {
        self.compat
            && attempt.preference.tried.contains(attempt.lease.member())
            && exchange.log_facts.attempts as usize >= attempt.target.pool.members()
    }

    fn begin(&self, attempt: &Attempt<'_>, exchange: &mut Exchange) {
        exchange.to_member.own.truncate(self.mark);
        self.platform.introduce(exchange, attempt.lease);
        exchange.timings.connecting = Duration::ZERO;
        if let Some(registered) = &mut exchange.registered {
            registered.attempted = Some(Instant::now());
        }
        if self.compat {
            exchange.deadline.set_at(attempt.until);
        } else {
            late::arrange(exchange, attempt.lease, attempt.target, attempt.until);
        }
    }

    fn answered(&self, exchange: &mut Exchange, answer: &ResponseHead) {
        self.platform.answered(exchange, answer);
    }

    /// A request that tries again takes any member, one that it has not been to if there is one.
    fn judge(&self, failed: FailedAttempt, exchange: &mut Exchange) -> Result<NextAttempt, Refusal> {
        let FailedAttempt { failure, member, sends, preference } = failed;
        if !self.platform.goes_on(exchange, &failure, member, sends) {
            return Err(failure.into());
        }
        let mut tried = preference.tried;
        tried.add(member);
        Ok(NextAttempt {
            preference: MemberPreference { tried, wanted: None, near: false, ..preference },
            gives_up_place: self.compat,
            why: Some(failure.into()),
        })
    }
}
