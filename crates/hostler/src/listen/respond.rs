//! Answers one request, in HTTP/1.1 and in HTTP/2: health checks at once, all others by the gateway. Replaces an answer that fails. Knows no
//! client protocol.

use hostler_engine::exchange::Exchange;
use hostler_engine::gateway::{Answer, Failed, Gateway, HealthProbe, Refusal};
use hostler_engine::proxy::CallBox;
use hostler_wire::Whole;

use super::admission::encoders_of;
use super::deliver::{Delivered, deliver, deliver_whole};
use super::https::is_challenge;
use super::refuse::{deliver_fallback, refuse};
use super::response_body::{AnswerOrigin, ResponseBody};
use super::settings::Settings;
use super::shard::Shard;
use super::stream;
use super::transfer::AnswerSink;

/// The result of an exchange.
pub(super) enum RequestOutcome {
    Delivered(Delivered),
    /// The member has answered with 101. Boxed, because few connections have one.
    Switched(CallBox),
}

impl Shard {
    /// Gets the answer to a request whose head is valid.
    pub(super) async fn answer<S: AnswerSink>(
        &self,
        client: &mut S,
        exchange: &mut Exchange,
    ) -> Result<Answer, Failed> {
        // Health checks do not count for the limit of requests.
        if let Some(answer) = self.answer_early(client.settings(), exchange) {
            return Ok(Answer::Whole(answer?));
        }
        if let Err(refusal) = self.admit(client.settings(), exchange) {
            // Neither does one of a balancer, whose path may be any.
            return self.gateway.health_check(exchange).map(Answer::Whole).ok_or_else(|| refusal.into());
        }
        self.gateway.answer(exchange, client, self.index).await
    }

    /// As [`Settings::answer_early`]. If other client certificates are accepted since this connection began, the current settings count: members may
    /// trust the certificate field (RFC 9440) now, and this client may have sent one itself.
    fn answer_early(&self, settings: &Settings, exchange: &mut Exchange) -> Option<Result<Whole, Refusal>> {
        match settings.are_outdated() {
            true => self.settings.load().answer_early(exchange, &self.gateway),
            false => settings.answer_early(exchange, &self.gateway),
        }
    }

    /// Sends an answer. If it fails before the client has received a byte, sends a stored answer, the route's fallback or the refusal.
    pub(super) async fn respond<S: AnswerSink>(
        &self,
        client: &mut S,
        exchange: &mut Exchange,
        answer: Result<Answer, Failed>,
    ) -> RequestOutcome {
        let (origin, is_own) = match answer {
            Ok(Answer::Member(call)) => (AnswerOrigin::Member(call), false),
            Ok(Answer::Shared(shared)) => (AnswerOrigin::Shared(shared), false),
            Ok(Answer::Streamed(streamed)) => (AnswerOrigin::Own(streamed), true),
            Ok(Answer::Tunnel(call)) => return RequestOutcome::Switched(call),
            Ok(Answer::Whole(whole)) => return send_whole(client, exchange, whole).await,
            Err(failed) => return stand_in(client, exchange, failed).await,
        };
        let encoders = || encoders_of(exchange, client.encoders());
        let mut body = ResponseBody::of(origin).encoded(exchange, &self.encoding, encoders);
        if stream::begin(&mut body, exchange.head.method() == b"GET", &self.connections) {
            client.begin_stream();
        }
        let failed = match deliver(client, exchange, body).await {
            Ok(delivered) => return RequestOutcome::Delivered(delivered),
            Err(refusal) if is_own => refusal.into(),
            // Boxed, because few answers fail.
            Err(refusal) => match Box::pin(self.gateway.instead(exchange, refusal)).await {
                Ok(stale) => return send_whole(client, exchange, stale).await,
                Err(failed) => failed,
            },
        };
        stand_in(client, exchange, failed).await
    }
}

impl Settings {
    /// The answer, if the request needs no route: to a health check, or a redirect to HTTPS. The health check of a balancer gets no redirect, because balancers do not follow it.
    /// Nor does a challenge for a certificate.
    fn answer_early(&self, exchange: &mut Exchange, gateway: &Gateway) -> Option<Result<Whole, Refusal>> {
        if let Some(path) = &self.health_path
            && let Some(probe) = asked(path.as_bytes(), exchange)
        {
            exchange.is_health_check = true;
            return Some(Ok(gateway.health.answer(&probe)));
        }
        let elsewhere = self.insist_on_https(exchange)?;
        if is_challenge(exchange, gateway) {
            return None;
        }
        Some(gateway.health_check(exchange).map_or(elsewhere, Ok))
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

async fn send_whole<S: AnswerSink>(client: &mut S, exchange: &mut Exchange, whole: Whole) -> RequestOutcome {
    RequestOutcome::Delivered(deliver_whole(client, exchange, &whole.head, whole.body, false).await)
}

/// Sends the route's fallback, or the refusal.
async fn stand_in<S: AnswerSink>(client: &mut S, exchange: &mut Exchange, failed: Failed) -> RequestOutcome {
    RequestOutcome::Delivered(match failed.fallback {
        Some(fallback) if !client.wants_websocket() => {
            deliver_fallback(client, exchange, fallback, &failed.refusal).await
        }
        _ => refuse(client, exchange, &failed.refusal).await,
    })
}
