//! Handles what precedes the first request of a connection: the PROXY header and the TLS handshake. Knows no requests.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use hostler_engine::exchange::{Deadline, Scheme};
use hostler_engine::gateway::Refusal;
use hostler_wire::{Metered, Stream};
use rustls::{Error, HandshakeKind, ServerConfig};
use tokio::io::{AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsStream};

use super::proxy_protocol::{self, ProxyError, ProxyHeader};
use super::shard::{ConnectionOrigin, Shard};
use super::{ListenerKind, Settings};

/// A connection that is ready for requests.
pub(super) struct ReadyConnection {
    pub stream: Stream,
    /// The settings for this connection. With TLS, those that its handshake has used.
    pub settings: Arc<Settings>,
    pub origin: ConnectionOrigin,
    /// Whether ALPN has chosen HTTP/2.
    pub http2: bool,
}

/// A connection that has ended before its first request.
struct EarlyEnd {
    /// The reason by which it is counted.
    reason: &'static str,
    /// The connection, if the client may still read there why its handshake has failed.
    connection: Option<Metered>,
}

impl Settings {
    /// Whether the first bytes of a connection are a request.
    pub(super) fn begins_with_request(&self, origin: &ConnectionOrigin, kind: ListenerKind) -> bool {
        kind == ListenerKind::Plain && !self.expects_proxy(origin)
    }
}

impl Shard {
    /// Reads what precedes the first request, within `header_timeout`. None if the connection has ended.
    pub(super) async fn handshake(
        &self,
        settings: &Settings,
        mut stream: TcpStream,
        mut origin: ConnectionOrigin,
        kind: ListenerKind,
    ) -> Option<ReadyConnection> {
        let deadline = self.sweep.deadline();
        deadline.set_after(settings.header_timeout);
        let outcome = async {
            if settings.expects_proxy(&origin) {
                self.first_byte(&stream, &deadline).await?;
                let header =
                    within(&deadline, proxy_protocol::read(&mut stream)).await.ok_or("proxy_timeout")?;
                origin = origin.with_proxy_header(header?);
                // Only now the client is known.
                if self.count_connection(settings, &mut origin).is_err() {
                    if kind == ListenerKind::Plain {
                        self.refuse_at_once(stream, &origin, &Refusal::ClientConnections);
                    }
                    return Err(EarlyEnd::from("client_connections"));
                }
            }
            if kind == ListenerKind::Plain {
                let settings = self.settings.load_full();
                return Ok(ReadyConnection { stream: stream.into(), settings, origin, http2: false });
            }
            // A method begins with a letter, and a TLS record does not: the client speaks plain HTTP.
            if self.first_byte(&stream, &deadline).await?.is_ascii_uppercase() {
                self.refuse(stream.into(), &origin, &Refusal::PlainHttp).await;
                return Err("plain_http".into());
            }
            origin.scheme = Scheme::Https;
            // Only now: the client may have connected before a reload, and must be admitted by the rules that hold now.
            let settings = self.settings.load_full();
            let tls = settings.tls.as_ref().expect("invariant: a reload takes no TLS from a listener");
            let stream =
                within(&deadline, self.tls_handshake(stream, tls.config())).await.ok_or("timeout")??;
            let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            origin.certificate = certificate(&stream);
            Ok(ReadyConnection { stream: Stream::Tls(Box::new(stream)), settings, origin, http2 })
        };
        let EarlyEnd { reason, connection } = match outcome.await {
            Ok(ready) => return Some(ready),
            Err(ended) => ended,
        };
        self.connections.handshakes.count_failed(reason);
        if let Some(connection) = connection {
            deadline.set_after(settings.linger_timeout);
            let _ = within(&deadline, finish(connection)).await;
        }
        None
    }

    /// Waits for the first byte, and does not consume it. A connection that has sent nothing does not delay a stop.
    async fn first_byte(&self, stream: &TcpStream, deadline: &Deadline) -> Result<u8, &'static str> {
        let mut first = [0];
        poll_fn(|cx| match stream.poll_peek(cx, &mut ReadBuf::new(&mut first)) {
            Poll::Ready(Ok(1..)) => Poll::Ready(Ok(())),
            Poll::Ready(_) => Poll::Ready(Err("left")),
            Poll::Pending if self.connections.is_draining() => Poll::Ready(Err("drained")),
            Poll::Pending => deadline.poll_due(cx).map(|()| Err("silent")),
        })
        .await?;
        Ok(first[0])
    }

    async fn tls_handshake(
        &self,
        stream: TcpStream,
        config: Arc<ServerConfig>,
    ) -> Result<TlsStream<Metered>, EarlyEnd> {
        let accepting = TlsAcceptor::from(config).accept(Metered::from(stream)).into_fallible();
        let stream = accepting.await.map_err(|(error, connection)| EarlyEnd::by_tls(&error, connection))?;
        let resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
        self.connections.handshakes.count(resumed);
        Ok(stream.into())
    }
}

impl ConnectionOrigin {
    /// Replaces the socket's addresses by those in a PROXY header.
    fn with_proxy_header(self, header: ProxyHeader) -> Self {
        match header {
            ProxyHeader::Addresses { client, server } => {
                Self { peer: client, told: true, local: server, ..self }
            }
            ProxyHeader::Nothing => self,
        }
    }
}

/// The client's certificate, without the rest of its chain.
fn certificate(stream: &TlsStream<Metered>) -> Option<Arc<[u8]>> {
    Some(stream.get_ref().1.peer_certificates()?.first()?.as_ref().into())
}

/// Runs a future until the deadline. None if the deadline comes first.
async fn within<T>(deadline: &Deadline, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => deadline.poll_due(cx).map(|()| None),
    })
    .await
}

/// Closes a connection so that the client can read the alert of its failed handshake: bytes that it still sends are read and discarded. A close
/// with unread bytes would reset the connection, and many clients then see no alert.
async fn finish(mut connection: Metered) -> io::Result<u64> {
    connection.shutdown().await?;
    tokio::io::copy(&mut connection, &mut tokio::io::sink()).await
}

impl EarlyEnd {
    /// By a handshake with this error.
    fn by_tls(error: &io::Error, connection: Metered) -> Self {
        let reason = reason(error);
        // A client that has left reads nothing.
        Self { reason, connection: (reason != "left").then_some(connection) }
    }
}

impl From<&'static str> for EarlyEnd {
    fn from(reason: &'static str) -> Self {
        Self { reason, connection: None }
    }
}

impl From<ProxyError> for EarlyEnd {
    fn from(error: ProxyError) -> Self {
        Self::from(match error {
            ProxyError::Left => "left",
            ProxyError::Malformed => "no_proxy_header",
        })
    }
}

/// The reason by which a failed handshake is counted.
fn reason(error: &io::Error) -> &'static str {
    let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else { return "left" };
    match error {
        Error::PeerIncompatible(_) => "incompatible",
        Error::NoApplicationProtocol => "no_common_protocol",
        // Mostly, the client does not accept our certificate.
        Error::AlertReceived(_) => "refused_by_client",
        Error::NoCertificatesPresented => "no_client_certificate",
        Error::InvalidCertificate(_) => "bad_client_certificate",
        // In TLS 1.2 the client may support the kind of our key, and not its curve. For this and the next one rustls has no variant.
        Error::General(why) if why == "incompatible signing key" => "incompatible",
        // With `strict_sni` there is no certificate for an unknown name.
        Error::General(_) => "unknown_name",
        _ => "malformed",
    }
}
