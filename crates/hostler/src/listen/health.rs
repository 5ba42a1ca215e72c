//! What is answered before any route is asked: health checks by their path or by who asks, and redirects to TLS. Knows no pools.

use hostler_engine::exchange::{Exchange, Whole};
use hostler_engine::gateway::{Gateway, HealthProbe};

use super::Settings;

impl Settings {
    /// For an exchange that has begun: the answer, if it gets no further. A balancer that asks after our health does not follow
    /// redirects.
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

/// GET and HEAD of the path itself, and of what is known below it; everything else is for the routes.
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
