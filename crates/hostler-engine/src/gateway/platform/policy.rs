//! The retry policy of a registered route: which members a request is for, and what follows a failure. Knows no queue.

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

/// How many members get the request, if the settings do not say.
const DEFAULT_ATTEMPTS: u32 = 3;

impl Platform {
    /// Checks the request after its route is found and before its body is read.
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

    /// What follows from a failure: whether there is another attempt. `sends` says in how many attempts the request may have been worked
    /// on.
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
        // An attempt that sent nothing does not count. With `compat` it does, as with gorouter.
        let attempts = if compat { exchange.log_facts.attempts } else { sends };
        let most = settings.max_attempts.map_or(DEFAULT_ATTEMPTS, |most| most.get() as u32);
        verdict.again && attempts < most
    }
}

/// The policy of a registered route for one request. A failed request goes to another member. It keeps its place in the queue, or has none,
/// as with gorouter.
pub(in crate::gateway) struct PlatformRetry<'a> {
    platform: &'a Platform,
    compat: bool,
    /// The index of the first head edit that is for one member only.
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

    /// A member's failure says more than that no member is left or that the wait was too long. But if the client has left, that is the
    /// reason.
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
        self.platform.add_member_fields(exchange, attempt.lease);
        exchange.timings.connecting = Duration::ZERO;
        if let Some(registered) = &mut exchange.registered {
            registered.attempted = Some(Instant::now());
        }
        if self.compat {
            exchange.deadline.set_at(attempt.until);
        } else {
            late::set_deadline(exchange, attempt.lease, attempt.target, attempt.until);
        }
    }

    fn answered(&self, exchange: &mut Exchange, answer: &ResponseHead) {
        self.platform.answered(exchange, answer);
    }

    /// A repeated request takes any member, preferably one that it has not tried.
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
