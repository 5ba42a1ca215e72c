//! The settings of handshakes, for any number of threads. Certificates and settings change while Hostler runs, and sessions still resume.
//! Knows no connections.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::pki_types::CertificateDer;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions, WebPkiClientVerifier};
use rustls::{Error, RootCertStore, ServerConfig};

use super::shown::{Certificates, ShownCertificate};

/// Sessions of clients with TLS 1.2 and without tickets. These are few.
const SESSIONS: usize = 1024;

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
    /// The authorities that must have signed them.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Whether a client without a certificate is refused.
    pub required: bool,
}

/// Makes the settings of handshakes. All of them share the certificates and the sessions.
pub struct Terminator {
    provider: Arc<CryptoProvider>,
    shown: Arc<ShownCertificate>,
    memory: Mutex<SessionMemory>,
}

/// What is needed to resume a session.
#[derive(Clone)]
struct SessionMemory {
    /// The rule for client certificates under which these sessions began.
    clients: Option<ClientCertificates>,
    tickets: Arc<dyn ProducesTickets>,
    sessions: Arc<dyn StoresServerSessions>,
}

impl SessionMemory {
    fn new(clients: Option<ClientCertificates>) -> Result<Self, Error> {
        Ok(Self { clients, tickets: Ticketer::new()?, sessions: ServerSessionMemoryCache::new(SESSIONS) })
    }
}

impl Terminator {
    /// A terminator without certificates.
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            provider: Arc::new(default_provider()),
            shown: Arc::default(),
            memory: Mutex::new(SessionMemory::new(None)?),
        })
    }

    /// Replaces the certificates for all handshakes that have not begun, with any settings.
    pub fn show(&self, certificates: Certificates) {
        self.shown.0.store(Arc::new(certificates));
    }

    /// The current certificates.
    pub fn shown(&self) -> Arc<Certificates> {
        self.shown.0.load_full()
    }

    /// The TLS configuration for these settings.
    pub fn on(&self, handshake: &HandshakeSettings) -> Result<Arc<ServerConfig>, Error> {
        let versions: &[_] = match handshake.min_version {
            TlsVersion::Tls12 => &[&rustls::version::TLS12, &rustls::version::TLS13],
            TlsVersion::Tls13 => &[&rustls::version::TLS13],
        };
        let builder =
            ServerConfig::builder_with_provider(self.provider.clone()).with_protocol_versions(versions)?;
        let builder = match &handshake.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => builder.with_client_cert_verifier(self.verifier(clients)?),
        };
        let mut config = builder.with_cert_resolver(self.shown.clone());
        let memory = self.memory(&handshake.clients)?;
        config.ticketer = memory.tickets;
        config.session_storage = memory.sessions;
        let protocols: &[&[u8]] = &[b"h2", b"http/1.1", b"http/1.0"];
        let protocols = if handshake.http2 { protocols } else { &protocols[1..] };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// A client that resumes a session shows no certificate again. So a new rule for client certificates must forget all sessions.
    fn memory(&self, clients: &Option<ClientCertificates>) -> Result<SessionMemory, Error> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.clients != *clients {
            *memory = SessionMemory::new(clients.clone())?;
        }
        Ok(memory.clone())
    }

    fn verifier(
        &self,
        clients: &ClientCertificates,
    ) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, Error> {
        let mut roots = RootCertStore::empty();
        for authority in &clients.authorities {
            roots.add(authority.clone())?;
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), self.provider.clone());
        let builder = if clients.required { builder } else { builder.allow_unauthenticated() };
        builder.build().map_err(|error| Error::General(error.to_string()))
    }
}
