//! Answers before a route is looked up: health checks, and redirects to HTTPS. Knows no pools.

use hostler_engine::exchange::Exchange;
use hostler_engine::gateway::{Gateway, HealthProbe};
use hostler_wire::Whole;

use super::Settings;

impl Settings {
    /// The answer, if the request needs no route. The health check of a balancer gets no redirect, because balancers do not follow it.
    pub(super) fn answer_early(&self, exchange: &mut Exchange, gateway: &Gateway) -> Option<Whole> {
        if let Some(path) = &self.health_path
            && let Some(probe) = asked(path.as_bytes(), exchange)
        {
            exchange.is_health_check = true;
            return Some(gateway.health.answer(&probe));
        }
        let elsewhere = self.insist_on_https(exchange)?;
        Some(gateway.health_check(exchange).unwrap_or(elsewhere))
    }
}

/// The health check that a request asks for: GET or HEAD of the health path, or of a known path below it. None: it goes to the routes.
fn asked(health_path: &[u8], exchange: &Exchange) -> Option<HealthProbe> {
    let rest = exchange.path().strip_prefix(health_path)?;
    if !matches!(exchange.head.method(), b"GET" | b"HEAD") {
        return None;
    }
    match rest {
        b"" | b"/ready" => Some(HealthProbe::Ready),
        b"/live" => Some(HealthProbe::Live),
        b"/startup" => Some(HealthProbe::Startup),
        _ => {
            let name = std::str::from_utf8(rest.strip_prefix(b"/ready/")?).ok()?;
            (!name.contains('/')).then(|| HealthProbe::Pool(name.into()))
        }
    }
}
