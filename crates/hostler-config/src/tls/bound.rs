//! Binds what resumes a session to the client certificate that was shown at the beginning of the session: a client that resumes one shows
//! none. Knows no connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ProducesTickets, StoresServerSessions};
use rustls::time_provider::TimeProvider;
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use super::itself::is_trusted_itself;
use super::validity::last_second;

/// What one handshake needs: it checks the client's certificate, and what it keeps for the next handshake ends with that certificate. After
/// that, the client must show its certificate again, which may be a new one.
#[derive(Debug)]
pub(super) struct CertificateBound {
    verifier: Arc<dyn ClientCertVerifier>,
    /// The authorities of the verifier. A client may show one of these certificates itself.
    trusted: Arc<[CertificateDer<'static>]>,
    tickets: Arc<dyn ProducesTickets>,
    sessions: Arc<dyn StoresServerSessions>,
    clock: Arc<dyn TimeProvider>,
    /// The last second in which the certificate is valid, or that of the resumed session was. It is kept before each ticket and session.
    until: AtomicU64,
}

impl CertificateBound {
    /// For one handshake. Tickets and sessions are those of all handshakes.
    pub fn new(
        verifier: Arc<dyn ClientCertVerifier>,
        trusted: Arc<[CertificateDer<'static>]>,
        tickets: Arc<dyn ProducesTickets>,
        sessions: Arc<dyn StoresServerSessions>,
        clock: Arc<dyn TimeProvider>,
    ) -> Self {
        // A client that shows no certificate has none that could end.
        Self { verifier, trusted, tickets, sessions, clock, until: AtomicU64::new(u64::MAX) }
    }

    fn dated(&self, session: &[u8]) -> Vec<u8> {
        let until = self.until.load(Ordering::Relaxed).to_be_bytes();
        [&until[..], session].concat()
    }

    /// None if the certificate has expired.
    fn undated(&self, dated: &[u8]) -> Option<Vec<u8>> {
        let (until, session) = dated.split_first_chunk::<8>()?;
        let until = u64::from_be_bytes(*until);
        if self.clock.current_time()?.as_secs() > until {
            return None;
        }
        self.until.store(until, Ordering::Relaxed);
        Some(session.to_vec())
    }
}

impl ClientCertVerifier for CertificateBound {
    fn offer_client_auth(&self) -> bool {
        self.verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = match self.verifier.verify_client_cert(end_entity, intermediates, now) {
            Err(error) if is_trusted_itself(&error, &self.trusted, end_entity) => {
                ClientCertVerified::assertion()
            }
            verified => verified?,
        };
        let shown = std::iter::once(end_entity).chain(intermediates);
        // A session whose end is not known cannot be resumed.
        let until = shown.map(|cert| last_second(cert).unwrap_or(0)).min();
        self.until.store(until.unwrap_or(0), Ordering::Relaxed);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.verifier.requires_raw_public_keys()
    }
}

impl ProducesTickets for CertificateBound {
    fn enabled(&self) -> bool {
        self.tickets.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.tickets.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.tickets.encrypt(&self.dated(plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.undated(&self.tickets.decrypt(cipher)?)
    }
}

impl StoresServerSessions for CertificateBound {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.sessions.put(key, self.dated(&value))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.undated(&self.sessions.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.undated(&self.sessions.take(key)?)
    }

    fn can_cache(&self) -> bool {
        self.sessions.can_cache()
    }
}
