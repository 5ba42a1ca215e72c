//! The listening sockets and the connections of clients in HTTP/1.1 (`h2`: in HTTP/2). Knows the gateway, and of the modules below it only
//! what goes to clients: a call's answer, a stored body, a tunnel.

mod admission;
mod answer_buffer;
mod body_failure;
mod check;
mod client;
mod closing;
mod deliver;
mod departure;
mod from_file;
mod grpc;
mod h2;
mod handshake;
mod head;
mod hidden_end;
mod http1_sink;
mod https;
mod idle;
mod preface;
mod proxy_protocol;
mod refusal_body;
mod refuse;
mod refuse_connection;
mod request_body;
mod respond;
mod response_body;
mod settings;
mod shard;
mod silence;
mod socket;
mod spill;
mod stream;
mod transfer;
mod tunnel;
mod unsettled;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hostler_wire::{Stream, Version};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use client::Http1Client;
use deliver::Delivered;
use departure::note_departure;
use handshake::ReadyConnection;
use idle::{IdleConnection, NextHead};
use refuse::{refuse, refuse_silently};
use refuse_connection::{DescriptorReserve, is_out_of_descriptors, uses_last_descriptors};
use respond::RequestOutcome;
use shard::ConnectionOrigin;
use tunnel::UpgradedConnection;
use unsettled::Unsettled;

use hostler_engine::exchange::{Clocked, Exchange, Listening, OpenConnection};
use hostler_engine::gateway::{Answer, Refusal};
use hostler_engine::journal::{Journal, Level, SeldomLine};

pub use answer_buffer::LEAST_ANSWER_MEMORY;
pub use h2::StreamTasks;
pub use settings::{ByKind, Http2, Https, ListenerKind, PerClient, SendLimits, Settings};
pub use shard::Shard;
use socket::BACKLOG;
pub use socket::bind;

/// How many bytes the kernel may hold beyond the client's window. The socket is writable again when half of them are sent.
const UNSENT: u32 = 32 * 1024;

/// What follows the last HTTP/1.1 exchange of a connection.
enum AfterHttp1 {
    /// The connection is closed.
    Nothing,
    /// The connection stays open and waits for its next request.
    Idle(IdleConnection),
    /// The connection becomes a tunnel.
    Tunnel(Box<UpgradedConnection>),
    /// The connection continues with HTTP/2. The bytes were read already.
    Http2(Stream, Arc<Settings>, Vec<u8>),
}

/// The log says at most this often that a listener cannot accept connections.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(600);

/// Says that a listener cannot accept connections, such as because no memory is left: its clients wait, and nothing else shows it.
struct Complaint {
    address: String,
    line: SeldomLine,
}

impl Complaint {
    fn about(listener: &TcpListener) -> Self {
        let address = listener.local_addr().map_or_else(|_| "a listener".into(), |at| at.to_string());
        Self { address, line: SeldomLine::default() }
    }

    fn say(&mut self, journal: &Journal, error: &std::io::Error) {
        if self.line.is_due(COMPLAINT_PAUSE, Instant::now()) {
            let text =
                format!("{}: Hostler cannot accept connections: {error}; it tries again", self.address);
            journal.event(Level::Error, &text);
        }
    }
}

impl Shard {
    /// Accepts connections until Hostler stops, and then those that are in the backlog already. The number of the latter is limited,
    /// because a successor may listen on the same socket.
    pub async fn accept(self: Arc<Self>, listener: TcpListener, kind: ListenerKind) {
        let _listening = Listening::new(&self.connections);
        let (mut reserve, mut complaint) = (DescriptorReserve::new(), Complaint::about(&listener));
        loop {
            let stop = self.connections.changed();
            if self.connections.is_ending() {
                break;
            }
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.clone().serve_connection(stream, peer, kind),
                    // A client has left the backlog. The next one may still be there.
                    Err(error) if is_transient(&error) => {}
                    Err(error) if is_out_of_descriptors(&error) => self.refuse_next_client(&listener, kind, &mut reserve).await,
                    Err(error) => {
                        complaint.say(&self.journal, &error);
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                () = stop => {}
            }
        }
        for _ in 0..BACKLOG {
            let Ok(Ok((stream, peer))) = tokio::time::timeout(Duration::ZERO, listener.accept()).await else {
                break;
            };
            self.clone().serve_connection(stream, peer, kind);
        }
    }

    /// Handles a lack of file descriptors: accepts the next client with the reserved descriptor and refuses it. Otherwise the client
    /// would wait without an answer.
    async fn refuse_next_client(
        &self,
        listener: &TcpListener,
        kind: ListenerKind,
        reserve: &mut DescriptorReserve,
    ) {
        if reserve.spend()
            && let Ok(Ok((stream, peer))) = tokio::time::timeout(Duration::ZERO, listener.accept()).await
            && let Ok(local) = stream.local_addr()
        {
            let origin = ConnectionOrigin::new(peer, local);
            self.refuse_beyond_limit_at_once(stream, &origin, kind);
            return reserve.restore();
        }
        // Another thread has used the reserved descriptor. It will be free again soon.
        tokio::time::sleep(Duration::from_millis(50)).await;
        reserve.restore();
    }

    fn serve_connection(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, kind: ListenerKind) {
        let open = OpenConnection::new(&self.connections);
        let settings = self.settings.load_full();
        let crowded = self.connections.open() > settings.max_connections;
        // Answers are written in one piece. Nagle's algorithm would only delay them.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        limit_unsent(&stream);
        let Ok(local) = stream.local_addr() else { return };
        let mut origin = ConnectionOrigin::new(peer, local);
        if uses_last_descriptors(&stream, settings.descriptor_limit) {
            return self.refuse_beyond_limit_at_once(stream, &origin, kind);
        }
        // Counted before the task begins: otherwise a client that connects faster than tasks start would exceed its limit.
        if !settings.expects_proxy(&origin)
            && let Err(over) = self.count_connection(&settings, &mut origin)
        {
            return self.refuse_client_beyond_limit(stream, origin, kind, over, open);
        }
        if !crowded && settings.begins_with_request(&origin, kind) {
            tokio::spawn(Clocked::new(self.serve_http1(stream.into(), settings, origin, open)));
            return;
        }
        tokio::spawn(async move {
            if crowded {
                return self.refuse_beyond_limit(stream, &origin, kind).await;
            }
            let ready = self.handshake(&settings, stream, origin, kind).await;
            let Some(ready) = ready else { return };
            // A new task, because this one is as large as a handshake needs it.
            if ready.http2 {
                tokio::spawn(self.serve_http2(ready, Vec::new(), open));
            } else {
                let ReadyConnection { stream, settings, origin, .. } = ready;
                tokio::spawn(Clocked::new(self.serve_http1(stream, settings, origin, open)));
            }
        });
    }

    /// Serves a connection until it closes or leaves HTTP/1.1. Returns the future of its task, which is small: most connections are idle. An
    /// `async fn` would hold each argument twice.
    fn serve_http1(
        self: Arc<Self>,
        stream: Stream,
        settings: Arc<Settings>,
        origin: ConnectionOrigin,
        open: OpenConnection,
    ) -> impl Future<Output = ()> {
        let mut idle = IdleConnection::new(stream, settings, &self);
        async move {
            loop {
                let Some(first) = idle.first_bytes(&self).await else {
                    idle.stream.say_end();
                    break;
                };
                match Box::pin(self.serve_requests(idle, first, &origin)).await {
                    AfterHttp1::Nothing => break,
                    AfterHttp1::Idle(again) => idle = again,
                    AfterHttp1::Tunnel(tunnel) => return tunnel.spawn(self, open),
                    // A new task, because this one is as large as HTTP/1.1 needs it.
                    AfterHttp1::Http2(stream, settings, read) => {
                        let ready = ReadyConnection { stream, settings, origin, http2: true };
                        return drop(tokio::spawn(self.serve_http2(ready, read, open)));
                    }
                }
            }
            drop(open);
        }
    }

    /// Serves the requests of a connection one after another, until it is idle, closes or leaves HTTP/1.1. `first`: bytes that were read.
    async fn serve_requests(
        &self,
        idle: IdleConnection,
        first: Vec<u8>,
        origin: &ConnectionOrigin,
    ) -> AfterHttp1 {
        let mut client = Http1Client::new(idle, first, self);
        client.spool = client.spool.take().or_else(|| origin.shared_spool(&client.settings.spool));
        let mut exchange = origin.exchange(&self.sweep);
        exchange.memory = origin.shared_memory(&self.gateway.request_memory);
        loop {
            match client.next_head(&mut exchange, self).await {
                Ok(NextHead::Read) => {}
                Ok(NextHead::None) => {
                    client.stream.say_end();
                    return AfterHttp1::Nothing;
                }
                Ok(NextHead::Idle) => return AfterHttp1::Idle(client.into_idle()),
                Err(_) if client.has_prior_knowledge() => {
                    let (stream, settings, read) = client.into_read();
                    return AfterHttp1::Http2(stream, settings, read);
                }
                Err(refusal) => {
                    exchange.begin_unread();
                    self.trace(&mut exchange);
                    self.gateway.enter_unread(&mut exchange);
                    client.forbid_reuse();
                    let delivered = match client.speaks_another_protocol() {
                        true => refuse_silently(&mut exchange, &refusal),
                        false => refuse(&mut client, &mut exchange, &refusal).await,
                    };
                    self.settle(&mut exchange);
                    client.end(delivered, false).await;
                    return AfterHttp1::Nothing;
                }
            }
            let unsettled = Unsettled::new(self, &mut exchange);
            let delivered = match self.serve_request(&mut client, unsettled.exchange).await {
                RequestOutcome::Delivered(delivered) => delivered,
                RequestOutcome::Switched(call) => {
                    unsettled.release();
                    let client = client.switch(call.answer(), &mut exchange);
                    return AfterHttp1::Tunnel(UpgradedConnection::new(self, client, exchange, call));
                }
            };
            unsettled.settle();
            // A stream that ends because Hostler does is the last answer of its connection, although its head did not say so.
            let is_last = exchange.log_facts.stream_end.is_some()
                && self.ends(&client.settings, client.stream.is_tls());
            if delivered == Delivered::Aborted || !client.is_kept() || is_last {
                client.end(delivered, !wants_keep_alive(&exchange)).await;
                return AfterHttp1::Nothing;
            }
        }
    }

    /// Serves one request.
    async fn serve_request(&self, client: &mut Http1Client, exchange: &mut Exchange) -> RequestOutcome {
        let checked = check::check(&mut exchange.head);
        let wants_keep = wants_keep_alive(exchange);
        exchange.begin(&client.settings.trust);
        self.trace(exchange);
        let answer = match checked {
            Ok(length) => {
                exchange.length = length;
                client.begin(&exchange.head, length);
                self.answer(client, exchange).await
            }
            Err(refusal) => {
                client.forbid_reuse();
                match refusal {
                    // The health check of a balancer may have an empty host.
                    Refusal::Host(check::EMPTY_HOST) => self.gateway.without_host(exchange, refusal),
                    refusal => Err(refusal),
                }
                .map_or_else(|refusal| Err(refusal.into()), |health| Ok(Answer::Whole(health)))
            }
        };
        client.keep = wants_keep && !self.ends(&client.settings, client.stream.is_tls());
        let has_closed = client.has_closed().await;
        let outcome = self.respond(client, exchange, answer).await;
        client.request_body.note(exchange);
        if has_closed
            && let RequestOutcome::Delivered(delivered) = outcome
            && Box::pin(client.has_reset(delivered, exchange.log_facts.aborted)).await
        {
            note_departure(exchange);
        }
        outcome
    }
}

/// Limits the unsent bytes that the kernel holds for a connection (`TCP_NOTSENT_LOWAT`). Otherwise the kernel takes megabytes for a client
/// that does not read, and a slow client looks stalled for a long time. A listener would pass the option on, but not to a connection that
/// came before it had the option: a client of systemd's socket, or one that connects while Hostler starts.
fn limit_unsent(stream: &TcpStream) {
    // On a system without this option, slow clients only look slower than they are.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT);
    #[cfg(not(target_os = "linux"))]
    let _ = (stream, UNSENT);
}

fn is_transient(error: &std::io::Error) -> bool {
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
