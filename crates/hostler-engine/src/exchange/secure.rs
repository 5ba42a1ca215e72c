//! Whether the client of a request uses TLS, as its connection and the proxies in front say. Does not know what follows from it.

use hostler_wire::{Name, tokens};

use super::{Exchange, Scheme};

impl Exchange {
    /// Whether the client uses TLS: on its connection to Hostler, or to a trusted proxy in front.
    pub fn is_secure(&self) -> bool {
        let told = || self.head.fields.all(Name::XForwardedProto).flat_map(tokens).next();
        let is_told = || self.client.https.unwrap_or_else(|| told().is_some_and(names_tls));
        self.scheme == Scheme::Https || (self.client.peer_trusted && is_told())
    }
}

/// Whether this value of `X-Forwarded-Proto` stands for TLS. Some proxies, such as Traefik, name the scheme of a WebSocket.
fn names_tls(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"https") || scheme.eq_ignore_ascii_case(b"wss")
}
