//! TLS as a client: which authorities Hostler trusts, and which certificate it shows. Knows neither files nor connections.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::tls::{is_beyond_library, is_trusted_itself, key_for_servers};

/// TLS to one kind of servers, ready for use. Two values are equal if they were made from the same files. So a reload that changes
/// nothing keeps connections and sessions.
#[derive(Clone)]
pub struct ClientTls {
    /// For the handshakes. It keeps the sessions, so it is shared.
    pub config: Arc<ClientConfig>,
    /// The name that certificates must have. `None`: the host of the connection.
    pub server_name: Option<ServerName<'static>>,
    trust: TrustedAuthorities,
    identity: Option<Arc<Identity>>,
}

/// Which certificates Hostler accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum TrustedAuthorities {
    /// Those that one of these authorities has signed, and these themselves.
    Roots(Vec<CertificateDer<'static>>),
    /// Any certificate.
    Any,
}

/// Hostler's own certificate, for servers that ask for one.
#[derive(Debug, PartialEq)]
pub struct Identity {
    /// The certificate, followed by its intermediate certificates.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
}

impl ClientTls {
    /// Makes the TLS configuration. Fails if a root is not a certificate, or if the key does not match.
    pub fn new(
        trust: TrustedAuthorities,
        identity: Option<Identity>,
        server_name: Option<ServerName<'static>>,
    ) -> Result<Self, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        // The first random number of a process takes 60 ms. A handshake would wait for it on a thread that serves requests.
        provider.secure_random.fill(&mut [0])?;
        let builder =
            ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let mut roots = RootCertStore::empty();
        if let TrustedAuthorities::Roots(certificates) = &trust {
            certificates.iter().try_for_each(|certificate| roots.add(certificate.clone()))?;
        }
        let check = CertificateCheck { provider, trust: trust.clone(), roots };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(check));
        let config = match &identity {
            Some(identity) => {
                let key = key_for_servers(identity.chain.clone(), &identity.key)?;
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key)))
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Self { config: Arc::new(config), server_name, trust, identity: identity.map(Arc::new) })
    }

    /// Whether other programs with the same library do not use the certificate that Hostler shows.
    pub(crate) fn shows_unread(&self) -> bool {
        self.identity.as_ref().and_then(|own| own.chain.first()).is_some_and(is_beyond_library)
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

/// Accepts the certificates that are trusted, if the server has their keys. Where any certificate is accepted, a check of the key would prove
/// nothing, and the library cannot do it for a certificate that it does not read, such as one of X.509 version 1.
#[derive(Debug)]
struct CertificateCheck {
    provider: Arc<CryptoProvider>,
    trust: TrustedAuthorities,
    /// The authorities in `trust`.
    roots: RootCertStore,
}

impl ServerCertVerifier for CertificateCheck {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let TrustedAuthorities::Roots(trusted) = &self.trust {
            let cert = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            let signed =
                verify_server_cert_signed_by_trust_anchor(&cert, &self.roots, intermediates, now, algorithms);
            match signed {
                Err(error) if is_trusted_itself(&error, trusted, end_entity) => {}
                signed => signed?,
            }
            verify_server_name(&cert, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.trust == TrustedAuthorities::Any {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.trust == TrustedAuthorities::Any {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
