//! What `[tls]` asks of requests, whatever protocol they come by: those without TLS are sent to it, and answers by TLS say that
//! browsers shall insist on it. Knows no bytes.

use base64::prelude::{BASE64_STANDARD as STANDARD, Engine};
use hostler_engine::exchange::{Edit, Exchange, Scheme, Whole};
use hostler_wire::{Name, ResponseHead, split_host, tokens};

use super::Settings;

/// What holds for the requests of a listener, with or without TLS.
#[derive(Debug, Clone, Default)]
pub struct Https {
    /// Whoever comes without TLS is sent to this port.
    pub redirect_to: Option<u16>,
    /// The value of `Strict-Transport-Security`.
    pub hsts: Option<Vec<u8>>,
    /// Clients are asked for certificates, and members are told of them: nobody else may tell them.
    pub tells_certificates: bool,
}

impl Settings {
    /// For an exchange that has begun, before it has a route: the answer if it is sent elsewhere.
    pub(super) fn insist_on_https(&self, exchange: &mut Exchange) -> Option<Whole> {
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
        let port = self.https.redirect_to.filter(|_| !came_by_https(exchange))?;
        Some(redirect(exchange, port))
    }
}

/// As RFC 9440 has it, which says as well that nobody else's word for it is passed on.
fn tell_certificate(exchange: &mut Exchange) {
    let shown = exchange.certificate.as_deref().map(|der| format!(":{}:", STANDARD.encode(der)));
    exchange.to_member.own.push(match shown {
        Some(shown) => Edit::Set("Client-Cert".into(), shown.into()),
        None => Edit::Remove("Client-Cert".into()),
    });
    exchange.to_member.own.push(Edit::Remove("Client-Cert-Chain".into()));
}

/// A trusted proxy that has spoken TLS for us would be sent round in circles.
fn came_by_https(exchange: &Exchange) -> bool {
    let mut told = exchange.head.fields.all(Name::XForwardedProto).flat_map(tokens);
    exchange.client.peer_trusted && told.next().is_some_and(|first| first.eq_ignore_ascii_case(b"https"))
}

/// Keeps the method and the body (RFC 9110 section 15.4.9). The host has been checked: nothing in it ends a line.
fn redirect(exchange: &Exchange, port: u16) -> Whole {
    let host = split_host(exchange.host()).0;
    if host.is_empty() {
        let head = ResponseHead::with_status(400);
        return Whole::new(head, &b"400 Bad Request\nhttps is needed, and Host to say where\n"[..]);
    }
    // `*` is for the server as a whole.
    let target = Some(exchange.head.target()).filter(|target| target.starts_with(b"/")).unwrap_or(b"/");
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    let location = [b"https://", host, port.as_bytes(), target].concat();
    let mut head = ResponseHead::with_status(308);
    head.fields.add(b"Location", &location);
    Whole::new(head, Vec::new())
}
