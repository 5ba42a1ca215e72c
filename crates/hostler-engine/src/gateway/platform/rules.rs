//! The rules of all registered routes, and of requests that no route matches. Knows no members.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use hostler_config::{Compat, Platform};
use hostler_wire::{Name, ResponseHead};

use super::asked_instance::asked_instance;
use super::objection::Objection;
use crate::exchange::{Exchange, Registered, Whole};
use crate::gateway::health::{Health, HealthProbe};
use crate::gateway::refusal::Refusal;

/// The settings of `[platform]`, and the answers to balancers' health checks. There is one.
pub struct PlatformRules {
    settings: ArcSwap<Platform>,
    health: Arc<Health>,
    healthy: Whole,
    ending: Whole,
}

impl PlatformRules {
    /// `health` decides the answers to balancers' health checks.
    pub fn new(settings: Platform, health: Arc<Health>) -> Self {
        let answer = |status, body: &'static str| {
            let mut head = ResponseHead::with_status(status);
            head.fields.add(b"Cache-Control", b"private, max-age=0");
            head.fields.add(b"Expires", b"0");
            head.fields.add(b"Content-Type", b"text/plain; charset=utf-8");
            Whole::new(head, body)
        };
        Self {
            settings: ArcSwap::from_pointee(settings),
            health,
            healthy: answer(200, "ok\n"),
            ending: answer(503, ""),
        }
    }

    /// The current settings. Not to be kept, because a reload replaces them.
    pub fn settings(&self) -> Guard<Arc<Platform>> {
        self.settings.load()
    }

    /// Replaces the settings for requests that come from now on.
    pub fn update(&self, settings: Platform) {
        self.settings.store(Arc::new(settings));
    }

    /// Whether gorouter's behaviour counts where Hostler's is safer.
    pub fn is_compat(&self) -> bool {
        self.settings.load().compat == Compat::Gorouter
    }

    /// How many requests may wait for a slot of a registered route.
    pub fn queue_limit(&self, usual: usize) -> usize {
        if self.is_compat() { 0 } else { usual }
    }

    /// The answer to a balancer's health check. Its host and path do not matter.
    pub(in crate::gateway) fn health_check(&self, exchange: &mut Exchange) -> Option<Whole> {
        let agent = exchange.head.fields.first(Name::UserAgent)?;
        let settings = self.settings.load();
        let known = settings.healthcheck_user_agent.as_bytes();
        if known.is_empty() || agent != known {
            return None;
        }
        exchange.registered = Some(Registered::new(settings.compat == Compat::Gorouter));
        exchange.is_health_check = true;
        let is_ready = self.health.ask(&HealthProbe::Ready).is_some_and(|outcome| outcome.is_ok());
        Some(if is_ready { &self.healthy } else { &self.ending }.clone())
    }

    /// The input is not a valid request, so its route is unknown.
    pub(in crate::gateway) fn enter_unread(&self, exchange: &mut Exchange) {
        if self.is_compat() {
            exchange.registered = Some(Registered::new(true));
        }
    }

    /// Why a request that matches no route is refused.
    pub(in crate::gateway) fn unrouted(&self, exchange: &mut Exchange) -> Refusal {
        exchange.registered = Some(Registered::new(self.is_compat()));
        let host = exchange.host();
        if host.is_empty() || host == exchange.peer_ip.as_bytes() {
            return Objection::EmptyHost.into();
        }
        match asked_instance(exchange) {
            Ok(None) => Refusal::NoRoute,
            Ok(Some(asked)) => asked.unknown().into(),
            Err(objection) => objection.into(),
        }
    }
}
