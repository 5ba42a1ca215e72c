//! How much one client may hold, and which client that is. Knows no requests beyond who has sent them.

use std::net::IpAddr;
use std::sync::Arc;

use hostler_address::{AddressKind, AddressSource};
use hostler_engine::exchange::{ClientConnection, ClientRequest, Exchange, OpenConnection};
use hostler_engine::gateway::Refusal;
use hostler_engine::journal::Level;
use tokio::net::TcpStream;

use super::{ConnectionOrigin, ListenerKind, Settings, Shard};

/// So many refused connections of one client are closed with care, so that their answer arrives. For more there is no patience.
const WELL_CLOSED: usize = 16;

/// What one client may hold.
#[derive(Debug, Clone, Copy)]
pub struct PerClient {
    /// Connections at once.
    pub connections: ByKind,
    /// Requests under way, tunnels included.
    pub requests: ByKind,
}

/// A limit by what kind of address a client has; `usize::MAX` for none.
#[derive(Debug, Clone, Copy)]
pub struct ByKind {
    /// Loopback and private addresses: proxies, balancers, gateways of containers, and load tests have them more often than clients.
    pub near: usize,
    /// All others.
    pub far: usize,
}

impl ByKind {
    fn of(self, ip: IpAddr) -> usize {
        if self.near == self.far {
            return self.far;
        }
        match AddressKind::of(ip) {
            AddressKind::Loopback | AddressKind::Private | AddressKind::Shared | AddressKind::LinkLocal => {
                self.near
            }
            _ => self.far,
        }
    }
}

impl Settings {
    /// Whether what comes from this address comes for others.
    fn is_proxy(&self, ip: IpAddr) -> bool {
        self.trust.covers(ip.to_canonical())
    }

    /// Whether the other end of a connection is its client, as far as the connection alone can tell.
    fn is_from_client(&self, origin: &ConnectionOrigin) -> bool {
        // Where proxies are counted, each connection comes from one. A balancer that says nothing of a client checks our health.
        self.trust.hops.is_none()
            && !self.is_proxy(origin.peer.ip())
            && (origin.told || !self.expects_proxy(origin))
    }
}

impl Shard {
    /// Counts a connection for its client. An error is by how many the client is over what it may have.
    pub(super) fn take_place(&self, settings: &Settings, origin: &mut ConnectionOrigin) -> Result<(), usize> {
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
        // Counted until it is closed, also if it is refused.
        origin.place = Some(Arc::new(place));
        if over > 0 { Err(over) } else { Ok(()) }
    }

    /// A clear word to a client that has too many connections; none where it would take a handshake to say it.
    pub(super) fn turn_client_away(
        self: Arc<Self>,
        stream: TcpStream,
        origin: ConnectionOrigin,
        kind: ListenerKind,
        over: usize,
        open: OpenConnection,
    ) {
        match kind {
            ListenerKind::Tls => self.connections.handshakes.count_failed("client_connections"),
            ListenerKind::Plain if over > WELL_CLOSED => {
                self.refuse_at_once(stream, &origin, &Refusal::ClientConnections);
            }
            ListenerKind::Plain => drop(tokio::spawn(async move {
                self.refuse(stream.into(), &origin, &Refusal::ClientConnections).await;
                drop(open);
            })),
        }
    }

    /// Counts a request for its client.
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
