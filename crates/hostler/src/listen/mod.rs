//! Where clients come in: listening sockets and HTTP/1.1 connections. Knows the gateway, and nothing behind it.

mod admission;
mod behind;
mod check;
mod client;
mod deliver;
mod entrance;
mod h2;
mod head;
mod health;
mod hop;
mod http1_sink;
mod https;
mod own;
mod proxy_protocol;
mod request_body;
mod respond;
mod response_body;
mod settings;
mod shortage;
mod sink;
mod socket;
mod spill;
mod tunnel;
mod uri;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hostler_coding::Allowance;
use hostler_wire::{Stream, Version};
use tokio::net::{TcpListener, TcpStream};

use client::Http1Client;
use deliver::{Delivered, refuse, refuse_silently};
use entrance::Entered;
use respond::RequestOutcome;
use shortage::{DescriptorReserve, is_beyond, is_shortage};
use tunnel::UpgradedConnection;

use hostler_engine::exchange::{
    ClientConnection, Connections, Exchange, Listening, OpenConnection, Scheme, Sweep,
};
use hostler_engine::gateway::{Answer, Gateway, Refusal, access_line};
use hostler_engine::journal::Journal;

pub use admission::{ByKind, PerClient};
pub use behind::{LEAST_ANSWER_MEMORY, SendLimits};
pub use h2::StreamTasks;
pub use https::Https;
pub use settings::{Http2, ListenerKind, Settings};
use socket::BACKLOG;
pub use socket::bind;

/// One data-plane thread's share: everything that its connections need.
pub struct Shard {
    /// Its number, from 0.
    pub index: usize,
    /// Its deadlines.
    pub sweep: Sweep,
    /// What connections go by, each by what it has found here at its beginning.
    pub settings: Arc<ArcSwap<Settings>>,
    /// Where requests go.
    pub gateway: Arc<Gateway>,
    /// Where exchanges are written down.
    pub journal: Journal,
    /// Client connections of all shards.
    pub connections: Arc<Connections>,
    /// What it may spend on encoding answers.
    pub encoding: Arc<Allowance>,
    /// Who carries out the exchanges of HTTP/2.
    pub stream_tasks: Arc<StreamTasks>,
}

/// Where a connection comes from and how: what all its exchanges have in common.
#[derive(Debug, Clone)]
struct ConnectionOrigin {
    /// The client's address, or what a PROXY header says of it.
    peer: SocketAddr,
    /// A PROXY header says it.
    told: bool,
    local: SocketAddr,
    scheme: Scheme,
    /// The certificate that the client has shown, in DER.
    certificate: Option<Arc<[u8]>>,
    /// The connection among its client's, where those are counted.
    place: Option<Arc<ClientConnection>>,
}

impl ConnectionOrigin {
    /// What the socket says.
    fn new(peer: SocketAddr, local: SocketAddr) -> Self {
        Self { peer, told: false, local, scheme: Scheme::Http, certificate: None, place: None }
    }

    /// An exchange to be filled by the first request.
    fn exchange(&self, sweep: &Sweep) -> Exchange {
        let mut exchange = Exchange::new(self.peer, self.local, sweep.deadline());
        exchange.peer_was_told = self.told;
        exchange.scheme = self.scheme;
        exchange.certificate.clone_from(&self.certificate);
        exchange.place.clone_from(&self.place);
        exchange
    }
}

/// What follows the last exchange in HTTP/1 on a connection.
enum After {
    /// Nothing: it is closed.
    Nothing,
    /// A tunnel.
    Tunnel(Box<UpgradedConnection>),
    /// HTTP/2, of which this much has come already.
    Http2(Stream, Vec<u8>),
}

impl Shard {
    fn is_draining(&self) -> bool {
        self.connections.is_draining()
    }

    /// Accepts until we are stopping, and then what has knocked already, but not for ever: a successor may listen on the same
    /// socket.
    pub async fn accept(self: Arc<Self>, listener: TcpListener, kind: ListenerKind) {
        let _listening = Listening::new(&self.connections);
        let mut reserve = DescriptorReserve::new();
        socket::hold_little(&listener);
        loop {
            let stop = self.connections.changed();
            if self.connections.is_ending() {
                break;
            }
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.clone().welcome(stream, peer, kind),
                    // A client that left the backlog: the next is another matter.
                    Err(error) if is_passing(&error) => {}
                    Err(error) if is_shortage(&error) => self.relieve(&listener, kind, &mut reserve).await,
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                () = stop => {}
            }
        }
        for _ in 0..BACKLOG {
            let Ok(Ok((stream, peer))) = tokio::time::timeout(Duration::ZERO, listener.accept()).await else {
                break;
            };
            self.clone().welcome(stream, peer, kind);
        }
    }

    /// The system has no descriptor left: with the one that was kept, the next client is told so, instead of waiting for nobody knows what.
    async fn relieve(&self, listener: &TcpListener, kind: ListenerKind, reserve: &mut DescriptorReserve) {
        if reserve.spend()
            && let Ok(Ok((stream, peer))) = tokio::time::timeout(Duration::ZERO, listener.accept()).await
            && let Ok(local) = stream.local_addr()
        {
            let origin = ConnectionOrigin::new(peer, local);
            self.turn_away_at_once(stream, &origin, kind);
            return reserve.restore();
        }
        // Others were faster. What they have taken is given back some time.
        tokio::time::sleep(Duration::from_millis(50)).await;
        reserve.restore();
    }

    fn welcome(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, kind: ListenerKind) {
        let open = OpenConnection::new(&self.connections);
        let settings = self.settings.load_full();
        let crowded = self.connections.open() > settings.max_connections;
        // Answers are written whole; waiting for more to send would only delay them.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let Ok(local) = stream.local_addr() else { return };
        let mut origin = ConnectionOrigin::new(peer, local);
        if is_beyond(&stream, settings.ceiling) {
            return self.turn_away_at_once(stream, &origin, kind);
        }
        // Here and not in the task: a client that connects faster than tasks begin must not take the others' places meanwhile.
        if !settings.expects_proxy(&origin)
            && let Err(over) = self.take_place(&settings, &mut origin)
        {
            return self.turn_client_away(stream, origin, kind, over, open);
        }
        tokio::spawn(async move {
            if crowded {
                return self.turn_away(stream, &origin, kind).await;
            }
            let entered = if settings.is_open(&origin, kind) {
                Some(Entered { stream: stream.into(), origin, http2: false })
            } else {
                // Boxed: the rest of the connection's life needs no room for its beginning.
                Box::pin(self.enter(&settings, stream, origin, kind)).await
            };
            drop(settings);
            let Some(Entered { stream, origin, http2 }) = entered else { return };
            if http2 {
                // In a task of its own: this one is as large as HTTP/1 needs it.
                tokio::spawn(self.serve_http2(stream, Vec::new(), origin, open));
                return;
            }
            match self.serve(stream, &origin).await {
                After::Nothing => drop(open),
                After::Tunnel(passage) => passage.go_on(self, open),
                // In a task of its own: this one is as large as HTTP/1 needs it.
                After::Http2(stream, read) => {
                    drop(tokio::spawn(self.serve_http2(stream, read, origin, open)))
                }
            }
        });
    }

    /// One connection, one request after another, to its end; or to what comes after HTTP.
    async fn serve(&self, stream: Stream, origin: &ConnectionOrigin) -> After {
        let mut client = Http1Client::new(stream, self);
        let mut exchange = origin.exchange(&self.sweep);
        loop {
            match client.next_head(&mut exchange, self).await {
                Ok(true) => {}
                Ok(false) => return After::Nothing,
                Err(_) if client.has_prior_knowledge() => {
                    let (stream, read) = client.into_read();
                    return After::Http2(stream, read);
                }
                Err(refusal) => {
                    exchange.begin_unread();
                    self.gateway.enter_unread(&mut exchange);
                    client.distrust();
                    let delivered = match client.speaks_otherwise() {
                        true => refuse_silently(&mut exchange, &refusal),
                        false => refuse(&mut client, &mut exchange, &refusal).await,
                    };
                    self.settle(&mut exchange);
                    end(client, delivered).await;
                    return After::Nothing;
                }
            }
            let delivered = match self.exchange(&mut client, &mut exchange).await {
                RequestOutcome::Delivered(delivered) => delivered,
                RequestOutcome::Switched(call) => {
                    let client = client.switch(call.answer(), &mut exchange);
                    return After::Tunnel(UpgradedConnection::new(self, client, exchange, call));
                }
            };
            self.settle(&mut exchange);
            if delivered == Delivered::Aborted || !client.is_kept() {
                end(client, delivered).await;
                return After::Nothing;
            }
        }
    }

    /// One request and its answer.
    async fn exchange(&self, client: &mut Http1Client, exchange: &mut Exchange) -> RequestOutcome {
        let checked = check::check(&mut exchange.head);
        let wants_keep = wants_keep_alive(exchange);
        exchange.begin(&client.settings.trust);
        let answer = match checked {
            Ok(length) => {
                exchange.length = length;
                client.begin(&exchange.head, length);
                self.answer(client, exchange).await
            }
            Err(refusal) => {
                client.distrust();
                match refusal {
                    // A balancer's health check has no host that means anything.
                    Refusal::Host(check::EMPTY_HOST) => self.gateway.health_without_host(exchange),
                    _ => None,
                }
                .map_or(Err(refusal.into()), |health| Ok(Answer::Whole(health)))
            }
        };
        client.keep = wants_keep && !self.connections.is_ending();
        self.respond(client, exchange, answer).await
    }

    /// A clear word to one connection too many; none where it would take a handshake to say it.
    async fn turn_away(&self, stream: TcpStream, origin: &ConnectionOrigin, kind: ListenerKind) {
        self.connections.count_refused();
        if kind == ListenerKind::Plain {
            self.refuse(stream.into(), origin, &Refusal::TooManyConnections).await;
        }
    }

    /// The same where there is no descriptor to spare for it.
    fn turn_away_at_once(&self, stream: TcpStream, origin: &ConnectionOrigin, kind: ListenerKind) {
        self.connections.count_refused();
        if kind == ListenerKind::Plain {
            self.refuse_at_once(stream, origin, &Refusal::TooManyConnections);
        }
    }

    /// A clear word to whoever has not been heard.
    async fn refuse(&self, stream: Stream, origin: &ConnectionOrigin, refusal: &Refusal) {
        let mut client = Http1Client::new(stream, self);
        let mut exchange = origin.exchange(&self.sweep);
        client.distrust();
        let delivered = refuse(&mut client, &mut exchange, refusal).await;
        self.settle(&mut exchange);
        // A crowd of twice the limit is an attack: no patience for it.
        if self.connections.open() <= self.settings.load().max_connections * 2 {
            end(client, delivered).await;
        }
    }

    fn settle(&self, exchange: &mut Exchange) {
        exchange.under_way = None;
        self.connections.cut.count(exchange.log_facts.aborted);
        // A kept-alive connection keeps its exchange for the next request, which may be long in coming.
        exchange.body = Default::default();
        self.gateway.settle(exchange);
        if exchange.is_health_check && !self.settings.load().log_health_checks {
            return;
        }
        self.journal.access(|| access_line(exchange));
        self.journal.hop(|| hop::line(exchange));
    }
}

async fn end(client: Http1Client, delivered: Delivered) {
    match delivered {
        Delivered::Aborted => client.abort(),
        Delivered::Whole => client.close().await,
    }
}

fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted)
}

/// Whether the client wants the connection kept (RFC 9112 section 9.3).
fn wants_keep_alive(exchange: &Exchange) -> bool {
    let fields = &exchange.head.fields;
    match exchange.head.version {
        _ if fields.says_close() => false,
        Version::Http11 => true,
        Version::Http10 => fields.says_keep_alive(),
    }
}
