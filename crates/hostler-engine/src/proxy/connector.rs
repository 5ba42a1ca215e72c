//! How a member is reached, and what is spoken to it. Knows no connections that are there already.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hostler_address::OwnAddresses;
use hostler_wire::{Address, Metered, Stream};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::{TlsConnector, TlsStream};

use super::Failure;
use super::tls::TlsFault;

/// The way to a member.
#[derive(Debug, Clone)]
pub struct Connector {
    /// Where it listens.
    pub address: Address,
    /// How it proves who it is; none for plain text. Only over TCP.
    pub tls: Option<Box<MemberTls>>,
    /// What is spoken to it.
    pub protocol: MemberProtocol,
    /// Addresses of ours: a name that others have given must not lead to them.
    pub shuns: Option<Arc<OwnAddresses>>,
}

/// TLS to a member.
#[derive(Debug, Clone)]
pub struct MemberTls {
    /// Whom to trust, and who we are: one for all members that go by the same. Its `alpn_protocols` are not looked at.
    pub config: Arc<ClientConfig>,
    /// Whom its certificate has to name; sent as SNI as well, unless it is an address.
    pub name: ServerName<'static>,
}

/// What is spoken to a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemberProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: agreed upon in the TLS handshake, or known beforehand. Tunnels still begin in HTTP/1.1.
    Http2,
}

impl From<Address> for Connector {
    /// HTTP/1.1 in plain text.
    fn from(address: Address) -> Self {
        Self { address, tls: None, protocol: MemberProtocol::Http1, shuns: None }
    }
}

impl Connector {
    /// A new connection, over which this protocol may be spoken, in so much time.
    pub async fn connect(&self, protocol: MemberProtocol, time_limit: Duration) -> Result<Stream, Failure> {
        let until = Instant::now() + time_limit;
        let connected = timeout_at(until, Stream::connect(&self.address)).await;
        let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let stream = stream.and_then(|stream| self.check_peer(stream)).map_err(Failure::Unreachable)?;
        match (stream, &self.tls) {
            (stream, None) => Ok(stream),
            (Stream::Tcp(stream), Some(tls)) => {
                let shaking = timeout_at(until, tls.shake_hands(stream, protocol)).await;
                shaking.unwrap_or_else(|_| Err(TlsFault::Handshake.with("no handshake in time")))
            }
            (_, Some(_)) => Err(TlsFault::Handshake.with("there is no TLS but over TCP")),
        }
    }
}

impl Connector {
    /// Names lead where their servers say, and that may change from one look-up to the next: only a connection knows.
    fn check_peer(&self, stream: Stream) -> io::Result<Stream> {
        if let (Some(own), Stream::Tcp(tcp)) = (&self.shuns, &stream)
            && let Some(found) = own.find(tcp.peer_addr()?)
        {
            return Err(io::Error::other(format!("it leads to {found}, an address of this Hostler itself")));
        }
        Ok(stream)
    }
}

impl MemberTls {
    async fn shake_hands(&self, stream: TcpStream, protocol: MemberProtocol) -> Result<Stream, Failure> {
        // Whoever speaks several is told which of them it is.
        let alpn = match protocol {
            MemberProtocol::Http1 => &b"http/1.1"[..],
            MemberProtocol::Http2 => b"h2",
        };
        let connector = TlsConnector::from(self.config.clone());
        let connected =
            connector.with_alpn(vec![alpn.to_vec()]).connect(self.name.clone(), Metered::from(stream)).await;
        let stream = connected.map_err(TlsFault::of_handshake)?;
        if protocol == MemberProtocol::Http2 && stream.get_ref().1.alpn_protocol() != Some(alpn) {
            return Err(TlsFault::Handshake.with("it does not offer HTTP/2 (ALPN)"));
        }
        Ok(Stream::Tls(Box::new(TlsStream::Client(stream))))
    }
}
