//! The Exchange: one request and its answer, with facts and timings. Each step fills in its part. Knows no routes, pools or sockets.

pub mod body;
mod buckets;
pub mod clients;
pub mod clock;
pub mod connections;
mod copies;
mod costs;
pub mod cut;
pub mod deadline;
mod disk;
mod durations;
pub mod edits;
mod expected_cost;
mod from_head;
pub mod handshakes;
mod held_before;
mod instance;
mod key_costs;
mod late_answer;
mod ledger;
pub mod log_facts;
pub mod memory;
pub mod pending_end;
mod protocol;
mod recent;
mod request_account;
mod secure;
pub mod spool;
mod timings;
pub mod trace;
pub mod transfer_rate;
pub mod via;

use std::any::Any;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hostler_address::Peer;
use hostler_wire::{BodyLength, Fields, Name, RequestHead, Whole};
use tokio::time::Sleep;

use hostler_coding::EncodingPlan;

pub use body::{Body, BodyError, BodySource, Downstream, InMemory, NoClient};
pub use buckets::{BucketCharge, Empty, Left, MOST_KEYS, Refill, TokenBuckets};
pub use clients::{BusiestClient, ClientConnection, ClientLoad, ClientRequest, Clients, ClientsView};
pub use clock::Clocked;
pub use connections::{Connections, Listening, OpenConnection, OpenStream, OpenTunnel};
pub use costs::{BySpan, LedgerRow};
pub use cut::{CutAnswers, CutView, Slow};
pub use deadline::{Deadline, LateCheck, Sweep};
pub use disk::DiskThreads;
pub use durations::{DurationsView, OTHER_METHOD, RequestKind, known_method};
pub use edits::{Edit, Edits};
pub use expected_cost::{CostLearner, ExpectedCost, LateLesson};
pub use from_head::{RequestId, is_grpc};
pub use handshakes::{Handshakes, HandshakesView};
pub use held_before::{HeldBefore, held_again};
pub use hostler_address::{ClientAddress, Trust};
pub use instance::Instance;
pub use key_costs::{FairKeyView, KeyCosts, KeyName, KeyWords};
pub use late_answer::LateAnswer;
pub use ledger::{Ledger, LedgerView, RouteAccount};
pub use log_facts::{Counters, CountersView, LogFacts};
pub use memory::{MemoryAccount, MemoryBudget, MemoryView, Reservation};
pub use pending_end::{Death, Ending, LoopWatch, PendingEnd, RequestFate};
pub use protocol::{Protocol, Scheme};
pub use recent::{EndedExchange, RecentExchanges};
pub use request_account::FairCharge;
pub use spool::{Spool, SpoolAccount, SpoolFile, SpoolFull, SpoolView};
pub use timings::Timings;
pub use trace::TraceContext;
pub use transfer_rate::TransferRate;

/// One request and its answer. A connection uses the same exchange again for each request.
pub struct Exchange {
    pub head: RequestHead,
    /// The target after the route's rewrite. The head keeps what the client sent.
    pub rewritten: Option<Box<[u8]>>,
    /// How the request's body is framed.
    pub length: BodyLength,
    /// The protocols to which the member may switch, as a list for `Upgrade`. None for an ordinary request.
    pub offer: Option<Box<[u8]>>,
    /// The request's body, once it was read.
    pub body: Body,
    /// The connection's or the client's account of the memory for bodies. None before the first body.
    pub memory: Option<Arc<MemoryAccount>>,
    /// Trailer fields of a body that was read as a whole.
    pub trailers: Option<Fields>,
    /// The client's side of the connection.
    pub peer: SocketAddr,
    /// A load balancer has named the peer in a PROXY header.
    pub peer_was_told: bool,
    /// The peer's address as text, for the member. It is made once per connection and not once per request.
    pub peer_ip: Arc<str>,
    /// Our side of the connection.
    pub local: SocketAddr,
    pub scheme: Scheme,
    pub protocol: Protocol,
    /// Changes to the head for the member.
    pub to_member: Edits,
    /// Changes to the head of the answer, also of one that Hostler makes itself.
    pub to_client: Edits,
    /// How the route's answers are encoded. None if they are not.
    pub compress: Option<Arc<EncodingPlan>>,
    /// The value of `X-Forwarded-Proto` for the member. None: it follows from the trust settings.
    pub forwarded_proto: Option<Scheme>,
    /// The client's certificate in DER.
    pub certificate: Option<Arc<[u8]>>,
    /// Facts of an exchange by a registered route, as the kind of the route keeps them.
    pub registered: Option<Box<dyn RegisteredRequest>>,
    /// The response to a refusal in place of Hostler's own, for clients that expect another format.
    pub words: Option<Box<Whole>>,
    pub client: ClientAddress,
    /// The client's connection. None if the connections of clients are not counted.
    pub place: Option<Arc<ClientConnection>>,
    /// The client's request. None if the requests of clients are not counted.
    pub under_way: Option<ClientRequest>,
    pub id: RequestId,
    /// The trace that the request belongs to. None if Hostler makes no traces.
    pub trace: Option<Box<TraceContext>>,
    /// The time limit of the present wait: for a slot or for the response.
    pub deadline: Deadline,
    pub timings: Timings,
    pub log_facts: LogFacts,
    /// The shared references of the connection's last request, until this request takes them.
    pub before: HeldBefore,
    /// The route that the gateway has found for the request. None once the answer is complete.
    pub route: Option<Arc<dyn Any + Send + Sync>>,
    /// The route's counters, once there is a route.
    pub counters: Option<Arc<Counters>>,
    /// Who pays for the request. None if it has not asked for a slot.
    pub account: Option<Arc<RouteAccount>>,
    /// The request at a worker that did not answer it: the worker broke it off or still works on it.
    pub pending_end: Option<PendingEnd>,
    /// The slot has just gone to a request that waited for it.
    pub has_handed_over: bool,
    /// The last attempt sent the request over a kept connection, which ended, and then no new connection could be made. So the member may have
    /// worked on it.
    pub was_swallowed: bool,
    /// A member that failed may have got a part of the streamed body, which is gone. So no other member may get the request.
    pub has_lost_body: bool,
    /// A member that speaks HTTP/2 requires HTTP/1.1 for this request (HTTP_1_1_REQUIRED).
    pub needs_http1: bool,
    /// All requests of its route have one URL, whatever they ask for: neither that nor the client says which of them does harm.
    pub is_batch: bool,
    /// A worker has died with a request like this one, and none has been answered since.
    pub is_suspect: bool,
    /// The worker has answered the request whole, whatever its client got.
    pub is_answered: bool,
    /// The turn of a suspect: while it lasts, similar requests wait. Dropping it lets the next one go.
    pub turn: Option<Box<dyn Any + Send + Sync>>,
    /// When the gateway first checks whether the answer has begun. None: only at the deadline.
    pub late_check: Option<LateCheck>,
    /// How long its answer may pause once it has begun. None: it does not come from a pool.
    pub longest_pause: Option<Duration>,
    /// A timer for the moment when a second member may be asked: a [`Deadline`] is not precise enough. None without `hedge`.
    pub patience: Option<Pin<Box<Sleep>>>,
    /// The route streams: the answer is sent to the client as it comes and is not stored in a file.
    pub streams: bool,
    /// It is a health check of Hostler and not a request to an application.
    pub is_health_check: bool,
    /// Others wait for the response too, or it will be stored. So it is fetched even if the client leaves.
    pub is_for_others: bool,
    /// Learns of the response if it comes after the client has left or has got a refusal. Only for a method that changes something.
    pub late_answer: Option<LateAnswer>,
}

/// The facts of one exchange by a registered route. Other exchanges have none, so they stay small.
pub trait RegisteredRequest: Any + Debug + Send + Sync {
    /// The id of the request by the rules of the route's kind, for the log.
    fn id(&self) -> &str;

    /// The id of the instance that answered, or of the last one that was tried.
    fn instance_id(&self) -> Option<&str>;

    /// Takes back the edits that a member's answer caused, because an answer of our own replaces it.
    fn take_back_answer(&self, to_client: &mut Edits);

    /// The answer to a refusal in the form of the route's kind. `refusal` is the gateway's `Refusal`. None: the form is Hostler's own.
    fn refuse(&mut self, exchange: &Exchange, refusal: &dyn Any) -> Option<Whole>;
}

impl Exchange {
    /// An exchange for the first request of a connection.
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
            trace: None,
            deadline,
            timings: Timings::now(),
            log_facts: LogFacts::default(),
            before: HeldBefore::default(),
            route: None,
            counters: None,
            account: None,
            pending_end: None,
            has_handed_over: false,
            was_swallowed: false,
            has_lost_body: false,
            needs_http1: false,
            is_batch: false,
            is_suspect: false,
            is_answered: false,
            turn: None,
            late_check: None,
            longest_pause: None,
            patience: None,
            streams: false,
            is_health_check: false,
            is_for_others: false,
            late_answer: None,
        }
    }

    /// Begins the next request of the connection. Its head is parsed already.
    pub fn begin(&mut self, trust: &Trust) {
        self.reset();
        self.client = from_head::client(trust, self.peer(), &self.head.fields);
        from_head::name_client(trust, &self.client, &mut self.head.fields);
        self.forwarded_proto = self.client.https.map(|tls| if tls { Scheme::Https } else { Scheme::Http });
        (self.id, self.offer) = (RequestId::of(&self.head.fields), from_head::offer(&self.head));
    }

    /// The request has this route. The exchange counts on it even if a reload changes the table.
    pub fn enter(&mut self, pattern: &Arc<str>, counters: &Arc<Counters>) {
        self.log_facts.route = Some(held_again(&mut self.before.route, pattern));
        self.counters = Some(held_again(&mut self.before.counters, counters));
    }

    /// The answer is complete. Drops the request's body, and the route, unless the end of the exchange concerns the route's pool. Reason: a
    /// pool that a reload has removed ends when no request holds its routes, and a client may take long to read its answer.
    pub fn let_route_go(&mut self) {
        self.body = Body::None;
        if !self.is_suspect && self.pending_end.is_none() {
            self.route = None;
        }
    }

    /// The answer to a refusal in the form of the kind of the route. None: the form is Hostler's own.
    pub fn registered_answer(&mut self, refusal: &dyn Any) -> Option<Whole> {
        let mut registered = self.registered.take()?;
        let answer = registered.refuse(self, refusal);
        self.registered = Some(registered);
        answer
    }

    /// Begins a request whose head is incomplete or malformed. Its request line is kept for the log, if it could be read.
    pub fn begin_unread(&mut self) {
        if self.head.method().is_empty() {
            self.head.clear_for_long();
        }
        self.reset();
    }

    /// Drops large and shared parts until the next request begins.
    pub fn let_go(&mut self) {
        self.head.clear_for_long();
        self.rewritten = None;
        self.late_answer = None;
        self.body = Body::None;
        self.trailers = None;
        self.route = None;
        self.counters = None;
        self.account = None;
        self.before = HeldBefore::default();
        self.pending_end = None;
        self.turn = None;
        self.registered = None;
        self.place = None;
        self.under_way = None;
        self.memory = None;
        self.deadline.clear();
    }

    /// Ends the late check. True: there was one, and from now on only the later deadline counts.
    pub fn waits_on(&mut self) -> bool {
        let Some(check) = self.late_check.take() else { return false };
        self.deadline.set_at(check.until);
        true
    }

    /// The present wait is not for the response (but for a slot or a connection), so the later deadline counts.
    pub fn prepares(&self) {
        if let Some(check) = self.late_check {
            self.deadline.set_at(check.until);
        }
    }

    /// The wait for the response begins, so the time of the late check counts.
    pub fn awaits(&self) {
        if let Some(check) = self.late_check {
            self.deadline.set_at(check.at);
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
        self.trace = None;
        self.timings = Timings::now();
        self.before = HeldBefore::take(&mut self.log_facts, &mut self.counters, &mut self.account);
        self.route = None;
        self.pending_end = None;
        (self.was_swallowed, self.has_lost_body, self.needs_http1) = (false, false, false);
        (self.is_batch, self.is_suspect, self.is_answered) = (false, false, false);
        self.turn = None;
        (self.late_check, self.longest_pause, self.patience) = (None, None, None);
        self.streams = false;
        self.is_health_check = false;
        self.is_for_others = false;
        self.late_answer = None;
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

    /// The checked value of `Host`. Empty for an HTTP/1.0 request without one.
    pub fn host(&self) -> &[u8] {
        self.head.fields.first(Name::Host).unwrap_or_default()
    }

    /// The target for the member, after the route's rewrite.
    pub fn target(&self) -> &[u8] {
        self.rewritten.as_deref().unwrap_or(self.head.target())
    }

    /// The path of the target as sent, without the query.
    pub fn path(&self) -> &[u8] {
        let target = self.head.target();
        memchr::memchr(b'?', target).map_or(target, |query| &target[..query])
    }

    /// A HEAD request: the answer has no body, although its fields may give a length.
    pub fn is_head_request(&self) -> bool {
        self.head.method() == b"HEAD"
    }

    /// Whether the request may be sent twice (RFC 9110 section 9.2.2). A proxy must not repeat other requests.
    pub fn is_idempotent(&self) -> bool {
        matches!(self.head.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
            || self.head.fields.first(Name::IdempotencyKey).is_some()
    }
}
