//! The Exchange: one request and its answer, its facts and timings. Knows no routes, pools or sockets; everybody fills in his part.

mod again;
pub mod body;
pub mod clients;
pub mod connections;
pub mod counters;
pub mod cut;
pub mod deadline;
pub mod edits;
pub mod handshakes;
pub mod id;
mod instance;
pub mod memory;
mod offer;
pub mod pace;
pub mod pending_end;
mod registered;
mod route;
pub mod spool;
pub mod trust;
pub mod via;
mod whole;

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hostler_address::Peer;
use hostler_cache::{CacheStatus, Forward};
use hostler_wire::{BodyLength, Fields, Name, RequestHead};
use tokio::time::Instant;

use hostler_coding::EncodingPlan;

pub use body::{Body, BodyError, BodySource, Downstream, InMemory, Nobody};
pub use clients::{ClientConnection, ClientLoad, ClientRequest, Clients, ClientsView};
pub use connections::{Connections, Listening, OpenConnection, OpenTunnel};
pub use counters::{Counters, CountersView};
pub use cut::{CutAnswers, CutView, Slow};
pub use deadline::{Deadline, Sweep};
pub use edits::{Edit, Edits};
pub use handshakes::{Handshakes, HandshakesView};
pub use hostler_address::{ClientAddress, Trust};
pub use hostler_wire::Whole;
pub use id::RequestId;
pub use instance::Instance;
pub use memory::{MemoryAccount, MemoryBudget, MemoryView, Reservation};
pub use pace::TransferRate;
pub use pending_end::{Death, Ending, PendingEnd};
pub use registered::{Registered, VcapId};
pub use spool::{Spool, SpoolAccount, SpoolFile, SpoolFull, SpoolView};

/// One request and its answer. A connection keeps one and uses it again for each request on it.
pub struct Exchange {
    /// The request's head.
    pub head: RequestHead,
    /// The target that whoever answers is asked for, where the route rewrites it; the head keeps what the client sent.
    pub rewritten: Option<Box<[u8]>>,
    /// How its body is framed.
    pub length: BodyLength,
    /// The protocols to which its member may switch, as a list in `Upgrade`; none for an ordinary request.
    pub offer: Option<Box<[u8]>>,
    /// Its body, once it was read.
    pub body: Body,
    /// What the connection's requests hold of the memory for bodies; none before the first body.
    pub memory: Option<Arc<MemoryAccount>>,
    /// Trailer fields of a body that was read whole.
    pub trailers: Option<Fields>,
    /// The other end of the client's connection.
    pub peer: SocketAddr,
    /// A load balancer has named it in a PROXY header.
    pub peer_was_told: bool,
    /// Its address as text, for the member to read: made once a connection, not once a request.
    pub peer_ip: Arc<str>,
    /// Our end.
    pub local: SocketAddr,
    /// How the client's connection is protected.
    pub scheme: Scheme,
    /// What the client speaks on it.
    pub protocol: Protocol,
    /// Changes to the head that its member gets.
    pub to_member: Edits,
    /// Changes to the head that its client gets, whoever answers.
    pub to_client: Edits,
    /// How its route has answers encoded; none for as they are.
    pub compress: Option<Arc<EncodingPlan>>,
    /// What its member reads in `X-Forwarded-Proto`, whatever came; else that follows from who is trusted.
    pub forwarded_proto: Option<Scheme>,
    /// The certificate that the client has shown, in DER.
    pub certificate: Option<Arc<[u8]>>,
    /// What there is to an exchange by a registered route.
    pub registered: Option<Box<Registered>>,
    /// The words of a refusal, from whoever knows what its client reads; none for our own.
    pub words: Option<Box<Whole>>,
    /// Who the client is.
    pub client: ClientAddress,
    /// The connection, where its client's connections are counted.
    pub place: Option<Arc<ClientConnection>>,
    /// The request, where its client's requests are counted.
    pub under_way: Option<ClientRequest>,
    /// The name under which logs know it.
    pub id: RequestId,
    /// When queue and answer must be over.
    pub deadline: Deadline,
    /// What happened when.
    pub timings: Timings,
    /// Where it went.
    pub log_facts: LogFacts,
    /// The route that the gateway has found for it, once it is answered.
    pub route: Option<Arc<dyn Any + Send + Sync>>,
    /// Where it is counted, once it has a route.
    pub counters: Option<Arc<Counters>>,
    /// What it left behind at a worker that did not answer it.
    pub pending_end: Option<PendingEnd>,
    /// A worker has died over a request like it, and none has been answered since.
    pub is_suspect: bool,
    /// What keeps those like it waiting while it is tried; dropped when that is over.
    pub turn: Option<Box<dyn Any + Send + Sync>>,
    /// When its answer is first looked for, long before the deadline; none: then only.
    pub look: Option<Look>,
    /// Its route streams: what its member says goes to the client as it comes, and into no file on the way.
    pub streams: bool,
    /// It only asks after our health: no traffic of an app.
    pub is_health_check: bool,
}

/// An answer that has not begun at `at` is worth a second thought; it may take until the deadline all the same.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// When it is late.
    pub at: Instant,
    /// The deadline.
    pub until: Instant,
}

/// How a client's connection is protected; its text is that of `X-Forwarded-Proto`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Not at all.
    #[default]
    Http,
    /// By TLS.
    Https,
}

impl Scheme {
    /// As in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// What a client speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 or HTTP/1.1; the head says which.
    #[default]
    Http1,
    /// HTTP/2.
    Http2,
}

/// Instants and periods in the life of an exchange.
#[derive(Debug, Clone, Copy)]
pub struct Timings {
    /// The head had arrived.
    pub started: Instant,
    /// Waiting for a slot, over all attempts.
    pub queue_wait: Duration,
    /// Connecting to members, over all attempts.
    pub connecting: Duration,
    /// Holding a slot, over all attempts; unknown (none) where no slot was held or it is still held.
    pub slot_hold: Option<Duration>,
    /// From the first byte to the worker to the head of its answer.
    pub worker_time: Option<Duration>,
}

/// Where an exchange went and how it ended.
#[derive(Debug, Clone, Default)]
pub struct LogFacts {
    /// The route's pattern as written.
    pub route: Option<Arc<str>>,
    /// The pool's name.
    pub pool: Option<Arc<str>>,
    /// The member that answered, or was tried last.
    pub member: Option<Arc<str>>,
    /// How many members were tried.
    pub attempts: u32,
    /// How many requests waited in the pool's queue when it came; none: it has not asked for a slot.
    pub queue_length: Option<usize>,
    /// How many other requests its member had at work when it was given this one; none: it was given to no member.
    pub in_use: Option<usize>,
    /// The status that the client got; 0: none.
    pub status: u16,
    /// Why the answer is our own.
    pub refusal: Option<&'static str>,
    /// The answer is the route's fallback.
    pub fallback: bool,
    /// Seconds after which another try makes sense, as far as the pool can tell.
    pub retry_after: u32,
    /// What the operator should know besides.
    pub detail: Option<String>,
    /// The transfer to the client did not complete: who broke it off.
    pub aborted: Option<&'static str>,
    /// What the cache did; none for a route without one.
    pub cache: Option<CacheStatus>,
    /// Seconds since the answer was made, where it comes from the cache.
    pub age: Option<u64>,
    /// Body bytes sent to the client.
    pub bytes_out: u64,
    /// Body bytes received.
    pub bytes_in: u64,
}

impl Exchange {
    /// An exchange to be filled by the first request of a connection.
    pub fn new(peer: SocketAddr, local: SocketAddr, deadline: Deadline) -> Self {
        Self {
            head: RequestHead::default(),
            rewritten: None,
            length: BodyLength::Known(0),
            offer: None,
            body: Body::default(),
            memory: None,
            trailers: None,
            peer,
            peer_was_told: false,
            peer_ip: peer.ip().to_canonical().to_string().into(),
            local,
            scheme: Scheme::default(),
            protocol: Protocol::default(),
            to_member: Edits::default(),
            to_client: Edits::default(),
            compress: None,
            forwarded_proto: None,
            certificate: None,
            registered: None,
            words: None,
            client: ClientAddress::of(Peer::Socket(peer.ip())),
            place: None,
            under_way: None,
            id: RequestId::none(),
            deadline,
            timings: Timings::now(),
            log_facts: LogFacts::default(),
            route: None,
            counters: None,
            pending_end: None,
            is_suspect: false,
            turn: None,
            look: None,
            streams: false,
            is_health_check: false,
        }
    }

    /// Begins the next request of the connection, its head being parsed already.
    pub fn begin(&mut self, trust: &Trust) {
        self.reset();
        self.client = trust::client(trust, self.peer(), &self.head.fields);
        self.id = RequestId::of(&self.head.fields);
        self.offer = offer::of(&self.head);
    }

    /// Begins a request whose head never came, or is none.
    pub fn begin_unread(&mut self) {
        self.head.clear();
        self.reset();
    }

    /// Forgets what is large or belongs to others, until the next request begins.
    pub fn let_go(&mut self) {
        self.head.clear();
        self.body = Body::None;
        self.trailers = None;
        self.route = None;
        self.counters = None;
        self.pending_end = None;
        self.turn = None;
        self.registered = None;
        self.place = None;
        self.under_way = None;
        self.memory = None;
        self.deadline.clear();
    }

    /// What is waited for now is not the answer: only the deadline counts.
    pub fn prepares(&self) {
        if let Some(look) = self.look {
            self.deadline.set_at(look.until);
        }
    }

    /// From now on the answer is waited for.
    pub fn awaits(&self) {
        if let Some(look) = self.look {
            self.deadline.set_at(look.at);
        }
    }

    fn reset(&mut self) {
        self.rewritten = None;
        self.length = BodyLength::Known(0);
        self.offer = None;
        self.body = Body::default();
        self.trailers = None;
        self.client = ClientAddress::of(self.peer());
        self.under_way = None;
        self.id = RequestId::none();
        self.timings = Timings::now();
        self.log_facts = LogFacts::default();
        self.route = None;
        self.counters = None;
        self.pending_end = None;
        self.is_suspect = false;
        self.turn = None;
        self.look = None;
        self.streams = false;
        self.is_health_check = false;
        self.to_member.clear();
        self.to_client.clear();
        self.compress = None;
        self.forwarded_proto = None;
        self.registered = None;
        self.words = None;
        self.deadline.clear();
    }

    fn peer(&self) -> Peer {
        let ip = self.peer.ip();
        if self.peer_was_told { Peer::ProxyProtocol(ip) } else { Peer::Socket(ip) }
    }

    /// The value of `Host`, checked; empty for an HTTP/1.0 request without one.
    pub fn host(&self) -> &[u8] {
        self.head.fields.first(Name::Host).unwrap_or_default()
    }

    /// What whoever answers is asked for: the target as the route has it.
    pub fn target(&self) -> &[u8] {
        self.rewritten.as_deref().unwrap_or(self.head.target())
    }

    /// The path of the target, as sent, without the query.
    pub fn path(&self) -> &[u8] {
        let target = self.head.target();
        memchr::memchr(b'?', target).map_or(target, |query| &target[..query])
    }

    /// HEAD: the answer has no body, whatever its fields say.
    pub fn is_head_request(&self) -> bool {
        self.head.method() == b"HEAD"
    }

    /// May the request be sent twice? (RFC 9110 section 9.2.2; a proxy MUST NOT repeat any other by itself.)
    pub fn is_idempotent(&self) -> bool {
        matches!(self.head.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
            || self.head.fields.first(Name::IdempotencyKey).is_some()
    }
}

impl LogFacts {
    /// What the cache did, in a word for people.
    pub fn cached(&self) -> Option<&'static str> {
        Some(match self.cache? {
            CacheStatus::Hit { ttl: 0.. } => "hit",
            CacheStatus::Hit { .. } => "stale",
            CacheStatus::Forwarded { collapsed: true, .. } => "collapsed",
            CacheStatus::Forwarded { status: Some(304), stored: true, .. } => "validated",
            CacheStatus::Forwarded { stored: true, .. } => "miss",
            CacheStatus::Forwarded { .. } if self.age.is_some() => "stale",
            CacheStatus::Forwarded { why: Forward::Bypass | Forward::Method, .. } => "bypass",
            CacheStatus::Forwarded { .. } => "pass",
        })
    }
}

impl Timings {
    fn now() -> Self {
        Self {
            started: Instant::now(),
            queue_wait: Duration::ZERO,
            connecting: Duration::ZERO,
            slot_hold: None,
            worker_time: None,
        }
    }
}
