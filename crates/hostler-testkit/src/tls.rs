//! Clients that speak TLS, with a cache of sessions. Knows nothing of Hostler.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion, RootCertStore, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::authority::{Authority, IssuedCertificate};
use crate::client::Client;
use crate::eventually::within;
use crate::stream::ClientStream;

/// Clients that trust one authority. All connections share the cache of sessions.
pub struct TlsClients {
    config: ClientConfig,
}

/// Clients that trust this authority and speak HTTP/1.1.
pub fn tls_clients(trusted: &Authority) -> TlsClients {
    made(trusted, rustls::ALL_VERSIONS, None)
}

fn made(
    trusted: &Authority,
    versions: &[&'static SupportedProtocolVersion],
    own: Option<&IssuedCertificate>,
) -> TlsClients {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.cert().as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_protocol_versions(versions).unwrap().with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let cert = CertificateDer::from_pem_slice(own.cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::in_memory_sessions(64);
    TlsClients { config }
}

/// Clients that trust this authority and speak one version of TLS.
pub fn tls_clients_of(version: &'static SupportedProtocolVersion, trusted: &Authority) -> TlsClients {
    made(trusted, &[version], None)
}

/// Clients that trust this authority and have a certificate.
pub fn tls_clients_with(own: &IssuedCertificate, trusted: &Authority) -> TlsClients {
    made(trusted, rustls::ALL_VERSIONS, Some(own))
}

impl TlsClients {
    /// Makes them offer these protocols (ALPN).
    pub fn speaking(mut self, protocols: &[&str]) -> Self {
        self.config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        self
    }

    /// Connects, with this host as the server name.
    ///
    /// # Panics
    /// If the handshake fails.
    pub async fn connect(&self, host: &str, address: SocketAddr) -> Client {
        self.try_connect(host, address).await.unwrap_or_else(|error| panic!("no TLS with {host}: {error}"))
    }

    /// Connects, with this host as the server name. The handshake may fail.
    pub async fn try_connect(&self, host: &str, address: SocketAddr) -> io::Result<Client> {
        self.over(host, within("a connection", TcpStream::connect(address)).await?).await
    }

    /// Does the handshake on an existing connection.
    pub async fn over(&self, host: &str, stream: TcpStream) -> io::Result<Client> {
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let connector = TlsConnector::from(Arc::new(self.config.clone()));
        let stream = within("a handshake", connector.connect(name, stream)).await?;
        Ok(Client::over(ClientStream::Tls(Box::new(stream))))
    }
}

/// The result of the handshake.
impl Client {
    /// Whether the session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.stream().session().handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The version of TLS.
    pub fn tls_version(&self) -> ProtocolVersion {
        self.stream().session().protocol_version().unwrap()
    }

    /// The negotiated protocol (ALPN).
    pub fn alpn(&self) -> String {
        String::from_utf8(self.stream().session().alpn_protocol().unwrap_or_default().to_vec()).unwrap()
    }

    /// Whether the server has sent this certificate.
    pub fn was_shown(&self, certificate: &IssuedCertificate) -> bool {
        let cert = CertificateDer::from_pem_slice(certificate.cert.as_bytes()).unwrap();
        self.stream().session().peer_certificates().unwrap()[0] == cert
    }
}
