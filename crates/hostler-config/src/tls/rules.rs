//! The rules of a handshake, without the certificates of the server. Does nothing.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;

/// The lowest version of TLS that Hostler accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// The settings of a handshake, without the certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeSettings {
    /// The lowest version.
    pub min_version: TlsVersion,
    /// Whether Hostler offers HTTP/2.
    pub http2: bool,
    /// Whether clients must have certificates of their own.
    pub clients: Option<ClientCertificates>,
}

/// Certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// The authorities that must have signed them. Shared, because each handshake has them, and a file of them may be long.
    pub authorities: Arc<[CertificateDer<'static>]>,
    /// Whether a client without a certificate is refused.
    pub required: bool,
}

impl ClientCertificates {
    /// Whether a client that one rule has admitted may stay under the next one. None: clients are asked for no certificate.
    pub(super) fn may_stay(before: Option<&Self>, after: Option<&Self>) -> bool {
        match (before, after) {
            (None, None) => true,
            (Some(before), Some(after)) => {
                let mut older = before.authorities.iter();
                (before.required || !after.required)
                    && older.all(|authority| after.authorities.contains(authority))
            }
            // It has never been asked for its certificate, or members would go on to get one that nobody trusts any more.
            _ => false,
        }
    }
}
