//! TLS as a client: whom to trust, and who we are. Knows neither files nor connections.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// TLS to those to whom we connect, ready for use. Equal is what was made from the same, so that a reload that changes nothing
/// keeps connections and sessions.
#[derive(Clone)]
pub struct ClientTls {
    /// For the handshakes; keeps the sessions, so it is to be shared.
    pub config: Arc<ClientConfig>,
    /// Whom certificates have to name; none for whom we connect to.
    pub server_name: Option<ServerName<'static>>,
    trust: TrustedAuthorities,
    identity: Option<Arc<Identity>>,
}

/// Whom to trust.
#[derive(Debug, Clone, PartialEq)]
pub enum TrustedAuthorities {
    /// Those for whom one of these vouches.
    Roots(Vec<CertificateDer<'static>>),
    /// Whoever it is.
    Anybody,
}

/// Who we are, if somebody asks.
#[derive(Debug, PartialEq)]
pub struct Identity {
    /// Our certificate, and its intermediates.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
}

impl ClientTls {
    /// Puts it together; fails if a root is no certificate, or the key does not fit.
    pub fn new(
        trust: TrustedAuthorities,
        identity: Option<Identity>,
        server_name: Option<ServerName<'static>>,
    ) -> Result<Self, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let builder = match &trust {
            TrustedAuthorities::Roots(certificates) => {
                let mut roots = RootCertStore::empty();
                certificates.iter().try_for_each(|certificate| roots.add(certificate.clone()))?;
                builder.with_root_certificates(roots)
            }
            TrustedAuthorities::Anybody => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
            }
        };
        let config = match &identity {
            Some(identity) => {
                builder.with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Self { config: Arc::new(config), server_name, trust, identity: identity.map(Arc::new) })
    }
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        (&self.server_name, &self.trust, &self.identity)
            == (&other.server_name, &other.trust, &other.identity)
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

/// Takes any certificate, as long as the other end has its key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
