//! The settings of handshakes, for any number of threads. Certificates and settings change while Hostler runs, and sessions still resume.
//! Knows no connections.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{Error, RootCertStore, ServerConfig};

use super::handshaking::{HandshakeParts, Handshaking, SessionMemory};
use super::rules::{ClientCertificates, HandshakeSettings, TlsVersion};
use super::shown::{Certificates, ShownCertificate};

/// Makes the settings of handshakes. All of them share the certificates and the sessions.
pub struct Terminator {
    provider: Arc<CryptoProvider>,
    clock: Arc<dyn TimeProvider>,
    shown: Arc<ShownCertificate>,
    memory: Mutex<SessionMemory>,
}

impl Terminator {
    /// A terminator without certificates.
    pub fn new() -> Result<Self, Error> {
        Self::with_clock(Arc::new(DefaultTimeProvider))
    }

    /// With this clock, by which certificates of clients expire.
    fn with_clock(clock: Arc<dyn TimeProvider>) -> Result<Self, Error> {
        Ok(Self {
            provider: Arc::new(default_provider()),
            clock,
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

    /// How handshakes are made with these settings. `before`: how they are made until now.
    pub fn on(
        &self,
        handshake: &HandshakeSettings,
        before: Option<&Handshaking>,
    ) -> Result<Handshaking, Error> {
        let versions: &[_] = match handshake.min_version {
            TlsVersion::Tls12 => &[&rustls::version::TLS12, &rustls::version::TLS13],
            TlsVersion::Tls13 => &[&rustls::version::TLS13],
        };
        let builder = ServerConfig::builder_with_details(self.provider.clone(), self.clock.clone());
        let verifier = handshake.clients.as_ref().map(|clients| self.verifier(clients)).transpose()?;
        let protocols: &[&[u8]] = &[b"h2", b"http/1.1", b"http/1.0"];
        let protocols = if handshake.http2 { protocols } else { &protocols[1..] };
        let parts = HandshakeParts {
            builder: builder.with_protocol_versions(versions)?,
            shown: self.shown.clone(),
            protocols: protocols.iter().map(|name| name.to_vec()).collect(),
            memory: self.memory(&handshake.clients)?,
            clock: self.clock.clone(),
        };
        Ok(Handshaking::new(parts, verifier, before))
    }

    /// A client that resumes a session shows no certificate again. So a new rule for client certificates must forget all sessions.
    fn memory(&self, clients: &Option<ClientCertificates>) -> Result<SessionMemory, Error> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.clients != *clients {
            *memory = SessionMemory::new(clients.clone())?;
        }
        Ok(memory.clone())
    }

    fn verifier(&self, clients: &ClientCertificates) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let mut roots = RootCertStore::empty();
        for authority in clients.authorities.iter() {
            roots.add(authority.clone())?;
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), self.provider.clone());
        let builder = if clients.required { builder } else { builder.allow_unauthenticated() };
        builder.build().map_err(|error| Error::General(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use hostler_testkit::{Authority, IssuedCertificate, authority};
    use rustls::client::{Resumption, Tls12Resumption};
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
    use rustls::{ClientConfig, ClientConnection, HandshakeKind, ServerConnection, SupportedProtocolVersion};

    use super::super::certificate::{Certificate, CertificateFiles};
    use super::*;

    /// A time in which the certificates of tests are valid, and one after their end, which is in the year 4096.
    const VALID: u64 = 1_800_000_000;
    const EXPIRED: u64 = 80_000_000_000;

    /// A clock that stands still until it is set.
    #[derive(Debug)]
    struct StoppedClock(AtomicU64);

    impl TimeProvider for StoppedClock {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Ordering::Relaxed))))
        }
    }

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    fn rule(authorities: &[&Authority], required: bool) -> ClientCertificates {
        let authorities = authorities.iter().map(|authority| der(&authority.cert())).collect();
        ClientCertificates { authorities, required }
    }

    fn settings(clients: Option<ClientCertificates>) -> HandshakeSettings {
        HandshakeSettings { min_version: TlsVersion::Tls12, http2: true, clients }
    }

    /// A terminator with a certificate for `a.test`.
    fn terminator(trust: &Authority) -> (Terminator, Arc<StoppedClock>) {
        let (folder, made) = (tempfile::tempdir().unwrap(), trust.vouch_for(&["a.test"]));
        let files = CertificateFiles { cert: folder.path().join("cert"), key: folder.path().join("key") };
        std::fs::write(&files.cert, made.cert).unwrap();
        std::fs::write(&files.key, made.key).unwrap();
        let clock = Arc::new(StoppedClock(AtomicU64::new(VALID)));
        let terminator = Terminator::with_clock(clock.clone()).unwrap();
        terminator.show(Certificates::new(vec![Certificate::load(&files).unwrap()], false));
        (terminator, clock)
    }

    fn client(
        trust: &Authority,
        own: Option<&IssuedCertificate>,
        (version, resumption): (&'static SupportedProtocolVersion, Tls12Resumption),
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(der(&trust.cert())).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_protocol_versions(&[version]).unwrap().with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![der(&own.cert)], key).unwrap()
            }
        };
        config.resumption = Resumption::in_memory_sessions(8).tls12_resumption(resumption);
        Arc::new(config)
    }

    /// A handshake without sockets. The error is that of the server.
    fn shake(client: &Arc<ClientConfig>, server: Arc<ServerConfig>) -> Result<HandshakeKind, Error> {
        let mut client = ClientConnection::new(client.clone(), "a.test".try_into().unwrap()).unwrap();
        let mut server = ServerConnection::new(server).unwrap();
        while client.wants_write() || server.wants_write() {
            let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
            while client.wants_write() {
                client.write_tls(&mut to_server).unwrap();
            }
            let mut unread = &to_server[..];
            while !unread.is_empty() {
                server.read_tls(&mut unread).unwrap();
                server.process_new_packets()?;
            }
            while server.wants_write() {
                server.write_tls(&mut to_client).unwrap();
            }
            let mut unread = &to_client[..];
            while !unread.is_empty() {
                client.read_tls(&mut unread).unwrap();
                client.process_new_packets().unwrap();
            }
        }
        Ok(server.handshake_kind().unwrap())
    }

    /// All ways to resume a session.
    fn ways() -> [(&'static SupportedProtocolVersion, Tls12Resumption); 3] {
        use rustls::version::{TLS12, TLS13};
        [
            (&TLS13, Tls12Resumption::Disabled),
            (&TLS12, Tls12Resumption::SessionIdOrTickets),
            (&TLS12, Tls12Resumption::SessionIdOnly),
        ]
    }

    #[test]
    fn a_session_is_resumed_until_the_certificate_of_its_client_has_expired() {
        let (trust, known) = (authority(), authority());
        let (terminator, clock) = terminator(&trust);
        let server = terminator.on(&settings(Some(rule(&[&known], true))), None).unwrap();
        for way in ways() {
            clock.0.store(VALID, Ordering::Relaxed);
            let client = client(&trust, Some(&known.vouch_for(&["me"])), way);
            assert_eq!(shake(&client, server.config()), Ok(HandshakeKind::Full), "{way:?}");
            for _ in 0..6 {
                // From some time on by tickets that were made in a resumed session.
                assert_eq!(shake(&client, server.config()), Ok(HandshakeKind::Resumed), "{way:?}");
            }
            clock.0.store(EXPIRED, Ordering::Relaxed);
            let refused = shake(&client, server.config());
            assert!(matches!(refused, Err(Error::InvalidCertificate(_))), "{way:?}: {refused:?}");
        }
    }

    #[test]
    fn handshakes_share_the_authorities_of_clients() {
        let (trust, known) = (authority(), authority());
        let (terminator, _) = terminator(&trust);
        let rule = rule(&[&known], true);
        let server = terminator.on(&settings(Some(rule.clone())), None).unwrap();
        let before = Arc::strong_count(&rule.authorities);
        let begun: Vec<_> = (0..3).map(|_| server.config()).collect();
        assert_eq!(Arc::strong_count(&rule.authorities), before + begun.len());
    }

    #[test]
    fn a_session_without_a_certificate_does_not_end_with_one() {
        let (trust, known) = (authority(), authority());
        let (terminator, clock) = terminator(&trust);
        let server = terminator.on(&settings(Some(rule(&[&known], false))), None).unwrap();
        for way in ways() {
            clock.0.store(VALID, Ordering::Relaxed);
            let client = client(&trust, None, way);
            assert_eq!(shake(&client, server.config()), Ok(HandshakeKind::Full), "{way:?}");
            clock.0.store(EXPIRED, Ordering::Relaxed);
            assert_eq!(shake(&client, server.config()), Ok(HandshakeKind::Resumed), "{way:?}");
        }
    }

    #[test]
    fn clients_are_admitted_anew_when_a_rule_admits_fewer() {
        let (one, other) = (authority(), authority());
        let (terminator, _) = terminator(&one);
        let (both, same) = (rule(&[&other, &one], true), rule(&[&one], true));
        for (before, after, anew) in [
            (None, None, false),
            (Some(same.clone()), Some(same.clone()), false),
            (Some(same.clone()), Some(both.clone()), false),
            (Some(same.clone()), Some(rule(&[&one], false)), false),
            (Some(both), Some(same.clone()), true),
            (Some(same.clone()), Some(rule(&[&other], true)), true),
            (Some(rule(&[&one], false)), Some(same.clone()), true),
            (None, Some(rule(&[&one], false)), true),
            (Some(same), None, true),
        ] {
            let older = terminator.on(&settings(before), None).unwrap();
            // A reload that changes something else.
            let before = terminator.on(&settings(older.clients().cloned()), Some(&older)).unwrap();
            assert!(!older.give_way_to(&before));
            let newer = terminator.on(&settings(after), Some(&before)).unwrap();
            assert!(!older.is_outdated(), "it holds until the newer one takes its place");
            assert_eq!(before.give_way_to(&newer), anew, "{:?}", newer.clients());
            assert_eq!((older.is_outdated(), newer.is_outdated()), (anew, false));
        }
    }
}
