//! Applies `[tls]` to requests of both protocols: redirects to HTTPS, `Strict-Transport-Security`, client certificates. Knows no sockets.

use base64::prelude::{BASE64_STANDARD as STANDARD, Engine};
use hostler_engine::exchange::{Edit, Exchange, Scheme};
use hostler_engine::gateway::{Gateway, Refusal};
use hostler_wire::{ResponseHead, Whole, split_host};

use super::Settings;

/// Where an authority looks for what proves that a host is ours (RFC 8555 section 8.3).
const CHALLENGES: &str = "/.well-known/acme-challenge/";

impl Settings {
    /// The redirect to HTTPS, if the request needs one, or why there is none. Called before the route is looked up.
    pub(super) fn insist_on_https(&self, exchange: &mut Exchange) -> Option<Result<Whole, Refusal>> {
        if self.https.tells_certificates {
            tell_certificate(exchange);
        }
        if exchange.scheme == Scheme::Https {
            if let Some(hsts) = &self.https.hsts {
                let edit = Edit::Set("Strict-Transport-Security".into(), hsts.clone());
                exchange.to_client.own.push(edit);
            }
            return None;
        }
        // If a trusted proxy has got the request over TLS, a redirect would be a loop.
        let port = self.https.redirect_to.filter(|_| !exchange.is_secure())?;
        Some(redirect(exchange, port))
    }
}

/// Whether the request is a challenge, and a route of its own takes it. The authority may be unable to follow a redirect to HTTPS: it has no client
/// certificate (`client_ca`), and there may be no certificate for the host yet (`strict_sni`). Only a plain token counts: of another path, an app
/// could read more than the route does.
pub(super) fn is_challenge(exchange: &Exchange, gateway: &Gateway) -> bool {
    let token = exchange.path().strip_prefix(CHALLENGES.as_bytes()).unwrap_or_default();
    let is_plain = token.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let has_route = || gateway.pattern(exchange).is_some_and(|pattern| pattern.contains(CHALLENGES));
    !token.is_empty() && is_plain && has_route()
}

/// Sets the fields of RFC 9440. Fields with these names from the client are removed.
fn tell_certificate(exchange: &mut Exchange) {
    let shown = exchange.certificate.as_deref().map(|der| format!(":{}:", STANDARD.encode(der)));
    exchange.to_member.own.push(match shown {
        Some(shown) => Edit::Set("Client-Cert".into(), shown.into()),
        None => Edit::Remove("Client-Cert".into()),
    });
    exchange.to_member.own.push(Edit::Remove("Client-Cert-Chain".into()));
}

/// A redirect that keeps the method and the body (RFC 9110 section 15.4.9). The host was checked: it contains no line break.
fn redirect(exchange: &Exchange, port: u16) -> Result<Whole, Refusal> {
    let host = split_host(exchange.host()).0;
    if host.is_empty() {
        return Err(Refusal::Host("it is missing, so there is no redirect; use https"));
    }
    // The target `*` has no path.
    let target = Some(exchange.head.target()).filter(|target| target.starts_with(b"/")).unwrap_or(b"/");
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    let location = [b"https://", host, port.as_bytes(), target].concat();
    let mut head = ResponseHead::with_status(308);
    head.fields.add(b"Location", &location);
    Ok(Whole::new(head, Vec::new()))
}
