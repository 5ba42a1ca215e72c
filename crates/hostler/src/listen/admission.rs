//! Limits the connections and requests of each client address. Of requests it knows only the client.

use std::net::IpAddr;
use std::sync::Arc;

use hostler_address::{AddressKind, AddressSource};
use hostler_coding::ClientEncoders;
use hostler_engine::exchange::{
    ClientConnection, ClientLoad, ClientRequest, Exchange, MemoryAccount, MemoryBudget, OpenConnection,
    Spool, SpoolAccount,
};
use hostler_engine::gateway::Refusal;
use hostler_engine::journal::Level;
use tokio::net::TcpStream;

use super::settings::{ByKind, PerClient};
use super::shard::{ConnectionOrigin, Shard};
use super::{ListenerKind, Settings};

/// How many refused connections of one client are closed slowly, so that their answer arrives. More of them are closed at once.
const MOST_CLOSED_SLOWLY: usize = 16;

/// How many streams of HTTP/2 a client may have besides the requests that it may have. They are refused, and wait until it takes the refusal.
const MOST_REFUSED_STREAMS: usize = 1000;

impl ByKind {
    fn of(self, ip: IpAddr) -> usize {
        if self.near == self.far {
            return self.far;
        }
        if is_near(ip) { self.near } else { self.far }
    }
}

/// Whether the address may be that of a proxy, behind which are many clients.
fn is_near(ip: IpAddr) -> bool {
    matches!(
        AddressKind::of(ip),
        AddressKind::Loopback | AddressKind::Private | AddressKind::Shared | AddressKind::LinkLocal
    )
}

impl ConnectionOrigin {
    /// The share of the spool that all connections of the client have. None: this connection has a share of its own.
    pub(super) fn shared_spool(&self, spool: &Arc<Spool>) -> Option<SpoolAccount> {
        Some(self.shares()?.spool_account(spool))
    }

    /// The same for the memory of requests.
    pub(super) fn shared_memory(&self, budget: &Arc<MemoryBudget>) -> Option<Arc<MemoryAccount>> {
        Some(self.shares()?.request_memory(budget))
    }

    /// The same for the receive windows of HTTP/2.
    pub(super) fn shared_windows(&self, budget: &Arc<MemoryBudget>) -> Option<Arc<MemoryAccount>> {
        Some(self.shares()?.window_memory(budget))
    }

    /// The client, if its connections share what they use.
    fn shares(&self) -> Option<&Arc<ClientLoad>> {
        let place = self.place.as_ref().filter(|_| !is_near(self.peer.ip()))?;
        Some(place.load())
    }
}

/// What the encoders of the client hold on all its connections, or on this `connection` if it may be that of a proxy. None: a connection that has one
/// encoder at a time.
pub(super) fn encoders_of(exchange: &Exchange, connection: Option<&ClientEncoders>) -> ClientEncoders {
    match &exchange.place {
        Some(place) if !is_near(exchange.peer.ip()) => place.load().encoders(),
        _ => connection.cloned().unwrap_or_default(),
    }
}

impl Settings {
    /// Whether this address belongs to a trusted proxy, which forwards requests of many clients.
    fn is_proxy(&self, ip: IpAddr) -> bool {
        self.trust.covers(ip.to_canonical())
    }

    /// Whether the connection begins with a PROXY header, because of its peer.
    pub(super) fn expects_proxy(&self, origin: &ConnectionOrigin) -> bool {
        let peer = origin.peer.ip().to_canonical();
        self.proxy_protocol.iter().any(|network| network.contains(&peer))
    }

    /// Whether the peer of a connection is the client itself, as far as the connection tells.
    fn is_from_client(&self, origin: &ConnectionOrigin) -> bool {
        // If the configuration counts proxies, each connection comes from one. A balancer that names no client is doing a health check.
        self.trust.hops.is_none()
            && !self.is_proxy(origin.peer.ip())
            && (origin.told || !self.expects_proxy(origin))
    }

    /// How many streams of HTTP/2 a client may have. None: as many as it wants.
    pub(super) fn most_streams(&self, ip: IpAddr) -> Option<usize> {
        self.per_client.requests.of(ip).checked_add(MOST_REFUSED_STREAMS)
    }
}

impl Shard {
    /// Counts a connection for its client. The error is the number of connections above the limit.
    pub(super) fn count_connection(
        &self,
        settings: &Settings,
        origin: &mut ConnectionOrigin,
    ) -> Result<(), usize> {
        let ip = origin.peer.ip();
        let PerClient { connections, requests } = settings.per_client;
        let most = connections.of(ip);
        if (most == usize::MAX && requests.of(ip) == usize::MAX) || !settings.is_from_client(origin) {
            return Ok(());
        }
        let (place, over) = ClientConnection::new(self.connections.clients.find(ip), most);
        if over > 0 && place.load().is_first_refusal() {
            let text = format!(
                "client {} has {most} connections, as many as it may (server.client_connections): more are refused",
                ip.to_canonical()
            );
            self.journal.event(Level::Warn, &text);
        }
        // Counted until it is closed, even if it is refused.
        origin.place = Some(Arc::new(place));
        if over > 0 { Err(over) } else { Ok(()) }
    }

    /// Refuses a connection of a client that has too many. A TLS connection is closed without an answer, because an answer would need a
    /// handshake.
    pub(super) fn refuse_client_beyond_limit(
        self: Arc<Self>,
        stream: TcpStream,
        origin: ConnectionOrigin,
        kind: ListenerKind,
        over: usize,
        open: OpenConnection,
    ) {
        match kind {
            ListenerKind::Tls => self.connections.handshakes.count_failed("client_connections"),
            ListenerKind::Plain if over > MOST_CLOSED_SLOWLY => {
                self.refuse_at_once(stream, &origin, &Refusal::ClientConnections);
            }
            ListenerKind::Plain => drop(tokio::spawn(async move {
                self.refuse(stream.into(), &origin, &Refusal::ClientConnections).await;
                drop(open);
            })),
        }
    }

    /// Counts a request for its client, or refuses it.
    pub(super) fn admit(&self, settings: &Settings, exchange: &mut Exchange) -> Result<(), Refusal> {
        let client = exchange.client;
        let is_peer = matches!(client.source, AddressSource::Socket | AddressSource::ProxyProtocol);
        let load = match &exchange.place {
            Some(place) if is_peer => place.load().clone(),
            // The connection is not counted for any client.
            None if is_peer => return Ok(()),
            _ if settings.is_proxy(client.ip) => return Ok(()),
            _ => self.connections.clients.find(client.ip),
        };
        let most = settings.per_client.requests.of(client.ip);
        if most == usize::MAX {
            return Ok(());
        }
        match ClientRequest::new(load, most) {
            Ok(request) => {
                exchange.under_way = Some(request);
                Ok(())
            }
            Err(load) => {
                if load.is_first_refusal() {
                    let ip = client.ip;
                    let text = format!(
                        "client {ip} has {most} requests under way, as many as it may (server.client_requests): more are refused"
                    );
                    self.journal.event(Level::Warn, &text);
                }
                Err(Refusal::ClientRequests)
            }
        }
    }
}
