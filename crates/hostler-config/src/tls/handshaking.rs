//! How handshakes are made until the settings change, and whether what they have admitted may stay after that. Knows no connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};
use rustls::time_provider::TimeProvider;
use rustls::{ConfigBuilder, Error, ServerConfig, WantsVerifier};

use super::bound::CertificateBound;
use super::rules::ClientCertificates;
use super::shown::ShownCertificate;

/// Sessions of clients with TLS 1.2 and without tickets. These are few.
const SESSIONS: usize = 1024;

/// What is needed to resume a session.
#[derive(Debug, Clone)]
pub(super) struct SessionMemory {
    /// The rule for client certificates under which these sessions began.
    pub clients: Option<ClientCertificates>,
    pub tickets: Arc<dyn ProducesTickets>,
    pub sessions: Arc<dyn StoresServerSessions>,
}

impl SessionMemory {
    /// Without sessions.
    pub fn new(clients: Option<ClientCertificates>) -> Result<Self, Error> {
        Ok(Self { clients, tickets: Ticketer::new()?, sessions: ServerSessionMemoryCache::new(SESSIONS) })
    }
}

/// What all handshakes have in common.
#[derive(Debug)]
pub(super) struct HandshakeParts {
    pub builder: ConfigBuilder<ServerConfig, WantsVerifier>,
    pub shown: Arc<ShownCertificate>,
    pub protocols: Vec<Vec<u8>>,
    pub memory: SessionMemory,
    pub clock: Arc<dyn TimeProvider>,
}

impl HandshakeParts {
    fn without_clients(&self) -> ServerConfig {
        let builder = self.builder.clone().with_no_client_auth();
        let mut config = builder.with_cert_resolver(self.shown.clone());
        config.ticketer = self.memory.tickets.clone();
        config.session_storage = self.memory.sessions.clone();
        config.alpn_protocols.clone_from(&self.protocols);
        config
    }

    fn with_client(&self, verifier: &Arc<dyn ClientCertVerifier>) -> ServerConfig {
        let SessionMemory { clients, tickets, sessions } = self.memory.clone();
        let trusted = clients.map(|clients| clients.authorities).unwrap_or_default();
        let bound = CertificateBound::new(verifier.clone(), trusted, tickets, sessions, self.clock.clone());
        let bound = Arc::new(bound);
        let builder = self.builder.clone().with_client_cert_verifier(bound.clone());
        let mut config = builder.with_cert_resolver(self.shown.clone());
        config.ticketer = bound.clone();
        config.session_storage = bound;
        config.alpn_protocols.clone_from(&self.protocols);
        config
    }
}

/// Makes the configuration of each handshake.
#[derive(Debug)]
pub struct Handshaking {
    parts: HandshakeParts,
    way: HandshakeWay,
    /// The clients that were admitted under these rules must be admitted anew. Handshakes with rules that admit all of them share this.
    outdated: Arc<AtomicBool>,
}

#[derive(Debug)]
enum HandshakeWay {
    /// One configuration for all: clients are asked for no certificate.
    Shared(Arc<ServerConfig>),
    /// One for each handshake, which learns when the client's certificate ends.
    Each(Arc<dyn ClientCertVerifier>),
}

impl Handshaking {
    /// `before`: how handshakes are made until now.
    pub(super) fn new(
        parts: HandshakeParts,
        verifier: Option<Arc<dyn ClientCertVerifier>>,
        before: Option<&Self>,
    ) -> Self {
        let way = match verifier {
            None => HandshakeWay::Shared(Arc::new(parts.without_clients())),
            Some(verifier) => HandshakeWay::Each(verifier),
        };
        let clients = parts.memory.clients.as_ref();
        let alike = before.filter(|before| ClientCertificates::may_stay(before.clients(), clients));
        let outdated = alike.map(|before| before.outdated.clone()).unwrap_or_default();
        Self { parts, way, outdated }
    }

    /// The rule for client certificates. None: clients are asked for none.
    pub(super) fn clients(&self) -> Option<&ClientCertificates> {
        self.parts.memory.clients.as_ref()
    }

    /// The configuration of the next handshake.
    pub fn config(&self) -> Arc<ServerConfig> {
        match &self.way {
            HandshakeWay::Shared(config) => config.clone(),
            HandshakeWay::Each(verifier) => Arc::new(self.parts.with_client(verifier)),
        }
    }

    /// Newer rules hold from now on. True if the clients that were admitted under these must be admitted anew.
    pub fn give_way_to(&self, newer: &Self) -> bool {
        let is_outdated = !Arc::ptr_eq(&self.outdated, &newer.outdated);
        if is_outdated {
            self.outdated.store(true, Ordering::Relaxed);
        }
        is_outdated
    }

    /// Whether a client that was admitted under these rules must be admitted anew.
    pub fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Relaxed)
    }
}
