//! The rules of all registered routes, and of requests that no route matches. Knows no members.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use hostler_config::{Compat, Platform};
use hostler_engine::exchange::Exchange;
use hostler_engine::gateway::{Health, HealthProbe, Refusal, RegistrarRules, UnroutedRules};
use hostler_wire::{ResponseHead, Whole, split_host};

use super::asked_instance::asked_instance;
use super::facts::Registered;
use super::objection::RouterObjection;

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

    /// What the gateway needs of these rules. The settings in it are those of now.
    pub fn for_gateway(self: &Arc<Self>) -> RegistrarRules {
        let health_agent = self.settings.load().healthcheck_user_agent.as_bytes().into();
        RegistrarRules { health_agent, unrouted: self.clone() }
    }
}

impl UnroutedRules for PlatformRules {
    fn refusal(&self, exchange: &mut Exchange) -> Refusal {
        exchange.registered = Some(Registered::new(self.is_compat()));
        let host = bare(exchange.host());
        if host.is_empty() || host == exchange.peer_ip.as_bytes() {
            return RouterObjection::EmptyHost.into();
        }
        match asked_instance(exchange) {
            Ok(None) => Refusal::NoRoute,
            Ok(Some(asked)) => asked.unknown().into(),
            Err(objection) => objection.into(),
        }
    }

    fn unread(&self, exchange: &mut Exchange) {
        if self.is_compat() {
            exchange.registered = Some(Registered::new(true));
        }
    }

    fn health(&self, exchange: &mut Exchange) -> Whole {
        exchange.registered = Some(Registered::new(self.is_compat()));
        let is_ready = self.health.ask(&HealthProbe::Ready).is_some_and(|outcome| outcome.is_ok());
        if is_ready { &self.healthy } else { &self.ending }.clone()
    }

    fn allows_empty_host(&self) -> bool {
        self.is_compat()
    }
}

/// A host without its port, and an IPv6 address without its brackets.
fn bare(host: &[u8]) -> &[u8] {
    let (name, _) = split_host(host);
    name.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(name)
}
