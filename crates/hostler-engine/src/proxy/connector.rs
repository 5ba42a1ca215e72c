//! How to connect to a member, and which protocol to speak. Knows no existing connections.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hostler_address::OwnAddresses;
use hostler_wire::{Address, Metered, Stream, look_up};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::{TlsConnector, TlsStream};

use super::failure::{Failure, TlsFault};
use super::names::NameAddresses;
#[cfg(test)]
use super::tests::simulated;

/// How often a member that did not offer HTTP/2 is asked for it, with a new connection to it.
const ASK_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Connector {
    pub address: Address,
    /// TLS settings. None for plain text. TLS is only possible over TCP.
    pub tls: Option<Box<MemberTls>>,
    /// The protocol to speak, if the member offers it.
    pub protocol: MemberProtocol,
    /// The member does not offer HTTP/2. All copies have this in common.
    pub falls_back: Arc<AtomicBool>,
    /// When a member that does not offer HTTP/2 was last asked for it. All copies have this in common.
    pub asked: Arc<Mutex<Option<Instant>>>,
    /// What its name has led to. All copies have this in common, and so may members at other ports of the name.
    pub names: Arc<NameAddresses>,
    /// Hostler's own addresses. The member's name must not resolve to one of them.
    pub shuns: Option<Arc<OwnAddresses>>,
}

#[derive(Debug, Clone)]
pub struct MemberTls {
    /// The trusted authorities and our client certificate. Members with the same settings share it. Its `alpn_protocols` are ignored.
    pub config: Arc<ClientConfig>,
    /// The name that the certificate must have. It is also sent as SNI, unless it is an address.
    pub name: ServerName<'static>,
}

/// The protocol of a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemberProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, by ALPN or by prior knowledge. Tunnels still use HTTP/1.1, and so do members that do not offer HTTP/2 over TLS.
    Http2,
}

impl From<Address> for Connector {
    /// HTTP/1.1 in plain text.
    fn from(address: Address) -> Self {
        let (falls_back, asked, names) = Default::default();
        Self { address, tls: None, protocol: MemberProtocol::Http1, falls_back, asked, names, shuns: None }
    }
}

impl Connector {
    /// Whether the member is given by a name, which may lead to another address at any time.
    pub fn has_name(&self) -> bool {
        matches!(&self.address, Address::Tcp(host, _) if host.parse::<IpAddr>().is_err())
    }

    /// The protocol that the member speaks, as far as it is known.
    pub fn spoken(&self) -> MemberProtocol {
        match self.protocol {
            MemberProtocol::Http2 if !self.falls_back.load(Ordering::Relaxed) => MemberProtocol::Http2,
            _ => MemberProtocol::Http1,
        }
    }

    /// Notes whether the member offers HTTP/2. True if that is news.
    pub(super) fn note_http2(&self, is_offered: bool) -> bool {
        *self.asked() = Some(Instant::now());
        self.falls_back.swap(!is_offered, Ordering::Relaxed) == is_offered
    }

    /// Whether to ask a member that did not offer HTTP/2 again: it may have been started again since. True once in [`ASK_AGAIN`].
    pub(super) fn is_to_be_asked(&self, now: Instant) -> bool {
        if self.spoken() == self.protocol {
            return false;
        }
        let mut asked = self.asked();
        let is_due = asked.is_none_or(|at| now.saturating_duration_since(at) >= ASK_AGAIN);
        if is_due {
            *asked = Some(now);
        }
        is_due
    }

    fn asked(&self) -> MutexGuard<'_, Option<Instant>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a new connection for this protocol, within `time_limit`.
    pub async fn connect(&self, protocol: MemberProtocol, time_limit: Duration) -> Result<Stream, Failure> {
        let until = Instant::now() + time_limit;
        let stream = self.open(until).await;
        let stream = stream.and_then(|stream| self.check_peer(stream)).map_err(Failure::to_connect)?;
        match (stream, &self.tls) {
            (stream, None) => Ok(stream),
            (Stream::Tcp(stream), Some(tls)) => {
                let is_second_choice = protocol != self.protocol;
                let shaking = timeout_at(until, tls.handshake(stream, protocol, is_second_choice)).await;
                shaking.unwrap_or_else(|_| Err(TlsFault::late()))
            }
            (_, Some(_)) => Err(TlsFault::Handshake.with("TLS to a member is possible only over TCP")),
        }
    }
}

impl Connector {
    /// Opens the stream below all protocols. Only a member that is silent itself has timed out: a name server that does not answer in time says
    /// nothing about the member.
    async fn open(&self, until: Instant) -> io::Result<Stream> {
        #[cfg(test)]
        if let Some(member) = simulated(&self.address) {
            return opened_by(until, member.connect()).await;
        }
        let Address::Tcp(host, port) = &self.address else {
            return opened_by(until, Stream::connect(&self.address)).await;
        };
        let addresses = match host.parse() {
            Ok(address) => vec![SocketAddr::new(address, *port)],
            Err(_) => {
                let (host, port) = (host.clone(), *port);
                let found = self.names.get(async move { look_up(&host, port).await }, until).await;
                let mut addresses = found.map_err(Failure::undecided)?;
                // They may have been looked up for another port of the same name.
                addresses.iter_mut().for_each(|address| address.set_port(port));
                addresses
            }
        };
        let is_ipv6 = addresses.iter().any(SocketAddr::is_ipv6);
        let opened = opened_by(until, Stream::connect_to(addresses)).await;
        opened.map_err(|error| match error.kind() {
            // Over IPv4 no local port is free. Over IPv6 the machine mostly has no address of its own: then the member cannot be reached.
            kind @ io::ErrorKind::AddrNotAvailable if is_ipv6 => io::Error::new(kind, error),
            _ => error,
        })
    }

    /// A name may resolve to another address at any time, so only the connected peer shows where it leads.
    fn check_peer(&self, stream: Stream) -> io::Result<Stream> {
        if let (Some(own), Stream::Tcp(tcp)) = (&self.shuns, &stream)
            && let Some(found) = own.find(tcp.peer_addr()?)
        {
            return Err(io::Error::other(format!(
                "its name resolves to {found}, an address of this Hostler itself"
            )));
        }
        Ok(stream)
    }
}

async fn opened_by(until: Instant, opening: impl Future<Output = io::Result<Stream>>) -> io::Result<Stream> {
    timeout_at(until, opening).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

impl MemberTls {
    /// `is_second_choice`: HTTP/1.1 with a member that should speak HTTP/2. That the member has no HTTP/1.1 is no failure of it.
    async fn handshake(
        &self,
        stream: TcpStream,
        protocol: MemberProtocol,
        is_second_choice: bool,
    ) -> Result<Stream, Failure> {
        // A server that speaks several protocols chooses by ALPN.
        let alpn = match protocol {
            MemberProtocol::Http1 => &b"http/1.1"[..],
            MemberProtocol::Http2 => b"h2",
        };
        let connector = TlsConnector::from(self.config.clone());
        let connected =
            connector.with_alpn(vec![alpn.to_vec()]).connect(self.name.clone(), Metered::from(stream)).await;
        let stream = connected.map_err(|error| match (protocol, TlsFault::is_other_protocol(&error)) {
            (MemberProtocol::Http2, true) => TlsFault::NoHttp2.with("ALPN"),
            (MemberProtocol::Http1, true) if is_second_choice => Failure::NotExpressible,
            _ => TlsFault::of_handshake(error),
        })?;
        if protocol == MemberProtocol::Http2 && stream.get_ref().1.alpn_protocol() != Some(alpn) {
            return Err(TlsFault::NoHttp2.with("ALPN"));
        }
        Ok(Stream::Tls(Box::new(TlsStream::Client(stream))))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::mpsc;

    use tokio::net::{TcpListener, TcpSocket};
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;
    use tokio::task::{spawn_blocking, yield_now};

    use super::*;

    #[test]
    fn a_name_that_is_not_looked_up_in_time_is_no_silence_of_its_member() {
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            // The only thread for lookups is busy, as with a name server that does not answer.
            let (end, ended) = mpsc::channel::<()>();
            spawn_blocking(move || ended.recv());
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
            let full = socket.listen(0).unwrap();
            let silent = full.local_addr().unwrap();
            // While this connection waits to be accepted, the kernel answers no other.
            let _waits = TcpStream::connect(silent).await.unwrap();
            for (host, is_silent) in [("localhost", false), ("127.0.0.1", true)] {
                let connector = Connector::from(Address::Tcp(host.into(), silent.port()));
                let connected = connector.connect(MemberProtocol::Http1, Duration::from_millis(10)).await;
                let failure = connected.unwrap_err();
                assert_eq!(failure.leaves_open(), !is_silent, "{host}: {failure}");
                let Failure::Unreachable(error) = failure else { panic!("{host}: {failure}") };
                assert_eq!(error.kind() == io::ErrorKind::TimedOut, is_silent, "{host}: {error}");
            }
            drop(end);
        });
    }

    #[tokio::test]
    async fn a_lookup_for_one_port_of_a_name_serves_a_member_at_another() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let member = listener.local_addr().unwrap();
        let connector = Connector::from(Address::Tcp("app.test".into(), member.port()));
        let (answer, answered) = oneshot::channel();
        let of_another = async {
            answered.await.unwrap();
            Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 1))])
        };
        let time_limit = Duration::from_secs(30);
        let answering = async {
            yield_now().await;
            answer.send(()).unwrap();
        };
        // In this order: the second one joins the lookup of the first one.
        let (found, connected, ()) = tokio::join!(
            connector.names.get(of_another, Instant::now() + time_limit),
            connector.connect(MemberProtocol::Http1, time_limit),
            answering,
        );
        assert_eq!(found.unwrap()[0].port(), 1);
        let Ok(Stream::Tcp(stream)) = connected else { panic!("{connected:?}") };
        assert_eq!(stream.peer_addr().unwrap(), member);
    }
}
