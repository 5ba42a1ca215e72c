//! Every failure as an answer. Each has one row in the table, and Hostler's own statuses are nowhere else. Knows no connection.

mod examples;
mod of_failure;
mod table;

use std::any::Any;
use std::fmt;

use hostler_dispatch::AcquireError;
use hostler_wire::{FramingError, HeadError, ScanError};
use rustix::io::Errno;

use super::suspects::Convicted;
use crate::exchange::BodyError;
use crate::proxy::TlsFault;

pub use examples::examples;
pub use table::{ALL, RefusalCause, RefusalFacts, plain};

/// A reason for which only one kind of registered routes refuses a request.
pub trait Objection: Any + fmt::Debug + Send + Sync {
    /// Its row in the table of its kind.
    fn facts(&self) -> RefusalFacts;
}

/// An answer of Hostler's own because of a failure.
#[derive(Debug)]
pub enum Refusal {
    /// The head breaks HTTP.
    Head(HeadError),
    /// The head is larger than these bytes, which an app in HTTP/2 accepts at most.
    MemberHeadLimit(usize),
    /// The length of the body is in doubt.
    Framing(FramingError),
    /// `Host` is missing, repeated or malformed (RFC 9112 section 3.2), or contradicts `:authority` (RFC 9113 section 8.3.1).
    Host(&'static str),
    /// The target does not have a form for a server (RFC 9112 section 3.2).
    Target(&'static str),
    /// CONNECT is for forward proxies.
    Connect,
    /// A TRACE that the route does not pass on, or that ends here (RFC 9110 section 7.6.2).
    Trace,
    /// The client asked for a WebSocket over HTTP/2, and the app gave an ordinary 2xx. In HTTP/2 that would open the WebSocket.
    NoWebSocket,
    /// An expectation other than `100-continue` (RFC 9110 section 10.1.1).
    Expectation,
    /// The head did not arrive in `server.header_timeout`.
    HeaderTimeout,
    /// `server.request_memory` has no room for a long HTTP/2 head.
    HeadMemory,
    /// The body did not arrive whole.
    Body(BodyError),
    /// Plain HTTP to an address that speaks TLS.
    PlainHttp,
    /// There are more connections than `server.max_connections`.
    TooManyConnections,
    /// One client has more connections than `server.client_connections`.
    ClientConnections,
    /// One client has more requests in progress than `server.client_requests`.
    ClientRequests,
    /// The rate limit of its route or pool is reached. The text is for the log.
    RateLimited(Box<str>),
    /// The request has passed through this Hostler before (RFC 9110 section 7.6.3).
    Loop,
    /// No route matches.
    NoRoute,
    /// There is no such file, or it may not be served.
    NoFile(Option<String>),
    /// Files are served for GET and HEAD only.
    FileMethod,
    /// `If-Match` or `If-Unmodified-Since` do not hold.
    Precondition,
    /// The range begins behind the end of a body with this many bytes.
    Range(u64),
    /// The file exists, but the file system fails to read it.
    FileSystem(std::io::Error),
    /// A registered route refuses it, for a reason that only its kind has.
    Objection(Box<dyn Objection>),
    /// `only-if-cached`, and no stored answer fits.
    OnlyIfCached,
    /// The queue of the pool is full.
    QueueFull { limit: usize },
    /// The pool is overloaded, and the request would not be served in time.
    Overloaded,
    /// Every member has `max_tunnels` tunnels.
    TooManyTunnels,
    /// Every member has `max_streams` streams, or the one that answered has.
    TooManyStreams,
    /// A registered route has no member.
    NoMember,
    /// The request is for one instance, and that instance has no free slot.
    MemberBusy,
    /// No slot became free in time.
    QueueTimeout,
    /// The same, and no member of the pool has ever been ready.
    NotStarted,
    /// The pool slept, and no worker became ready in `wake_timeout`.
    WakeTimeout,
    /// The pool takes no new requests: Hostler is stopping.
    Stopping,
    /// Workers have died over similar requests, and the request is kept off.
    Poison(Convicted),
    /// Similar requests have killed or held workers, and the turn of this one did not come in time.
    Suspect,
    /// The client left while the request waited. For the log; it is never sent.
    ClientLeft,
    /// No member could be connected to before the deadline.
    Unreachable(std::io::Error),
    /// There was no file descriptor, or no local port, for a connection to a member in `connect_timeout`.
    NoDescriptor(Errno),
    /// TLS failed with every member that was tried before the deadline.
    MemberTls(TlsFault, String),
    /// The worker ended before its answer was complete, and the request must not be sent again.
    WorkerLost(String),
    /// The worker's answer is not HTTP.
    BadAnswer(String),
    /// More interim answers than `server.max_interim_answers`, or longer ones than `server.max_header_size` allows.
    InterimAnswers(String),
    /// The answer did not begin in `request_timeout`.
    AnswerTimeout,
}

impl Refusal {
    pub fn facts(&self) -> RefusalFacts {
        match self {
            Self::Head(error) => of_head(error),
            Self::MemberHeadLimit(_) => table::MEMBER_HEAD_LIMIT,
            Self::Framing(FramingError::UnknownCoding) => table::TRANSFER_CODING,
            Self::Framing(_) => table::BAD_FRAMING,
            Self::Host(_) => table::BAD_HOST,
            Self::Target(_) => table::BAD_TARGET,
            Self::Connect => table::CONNECT,
            Self::Trace => table::TRACE,
            Self::NoWebSocket => table::NO_WEBSOCKET,
            Self::Expectation => table::EXPECTATION,
            Self::HeaderTimeout => table::HEADER_TIMEOUT,
            Self::Body(error) => of_body(error),
            Self::PlainHttp => table::PLAIN_HTTP,
            Self::HeadMemory => table::REQUEST_MEMORY,
            Self::TooManyConnections => table::TOO_MANY_CONNECTIONS,
            Self::ClientConnections => table::CLIENT_CONNECTIONS,
            Self::ClientRequests => table::CLIENT_REQUESTS,
            Self::RateLimited(_) => table::RATE_LIMITED,
            Self::Loop => table::LOOP,
            Self::NoRoute => table::NO_ROUTE,
            Self::NoFile(_) => table::NO_FILE,
            Self::FileMethod => table::METHOD,
            Self::Precondition => table::PRECONDITION,
            Self::Range(_) => table::RANGE,
            Self::FileSystem(_) => table::FILE_SYSTEM,
            Self::Objection(objection) => objection.facts(),
            Self::OnlyIfCached => table::ONLY_IF_CACHED,
            Self::QueueFull { .. } => table::QUEUE_FULL,
            Self::Overloaded => table::OVERLOADED,
            Self::TooManyTunnels => table::TOO_MANY_TUNNELS,
            Self::TooManyStreams => table::TOO_MANY_STREAMS,
            Self::NoMember => table::NO_MEMBER,
            Self::MemberBusy => table::MEMBER_BUSY,
            Self::QueueTimeout => table::QUEUE_TIMEOUT,
            Self::NotStarted => table::NOT_STARTED,
            Self::WakeTimeout => table::WAKE_TIMEOUT,
            Self::Stopping => table::STOPPING,
            Self::ClientLeft => table::CLIENT_LEFT,
            Self::Poison(_) => table::POISON,
            Self::Suspect => table::SUSPECT,
            Self::Unreachable(_) => table::UNREACHABLE,
            Self::NoDescriptor(_) => table::NO_DESCRIPTOR,
            Self::MemberTls(fault, _) => of_tls(*fault),
            Self::WorkerLost(_) => table::WORKER_LOST,
            Self::BadAnswer(_) => table::BAD_ANSWER,
            Self::InterimAnswers(_) => table::INTERIM_ANSWERS,
            Self::AnswerTimeout => table::ANSWER_TIMEOUT,
        }
    }
}

fn of_head(error: &HeadError) -> RefusalFacts {
    match error {
        HeadError::Scan(ScanError::StartLineTooLarge(_)) => table::START_LINE_TOO_LARGE,
        HeadError::Scan(ScanError::TooLarge(_)) => table::HEADER_TOO_LARGE,
        HeadError::TooManyFields(_) => table::TOO_MANY_FIELDS,
        HeadError::Version => table::VERSION,
        _ => table::BAD_HEAD,
    }
}

fn of_body(error: &BodyError) -> RefusalFacts {
    match error {
        BodyError::Stalled => table::BODY_TIMEOUT,
        BodyError::TooSlow => table::MIN_RECEIVE_RATE,
        BodyError::Left => table::CLIENT_LEFT,
        BodyError::Malformed(_) => table::BAD_BODY,
        BodyError::TooLarge(_) => table::BODY_TOO_LARGE,
        BodyError::NoMemory => table::REQUEST_MEMORY,
        BodyError::Storage(_) => table::STORAGE,
        BodyError::LargerThanSpool(_) => table::SPOOL_SIZE,
        BodyError::SpoolFull(_) | BodyError::DiskFull(_) => table::SPOOL_FULL,
    }
}

fn of_tls(fault: TlsFault) -> RefusalFacts {
    match fault {
        TlsFault::NotTls => table::MEMBER_NOT_TLS,
        TlsFault::WrongName => table::MEMBER_WRONG_NAME,
        TlsFault::Untrusted => table::MEMBER_UNTRUSTED,
        TlsFault::ClientCertificate => table::MEMBER_WANTS_CERTIFICATE,
        TlsFault::NoHttp2 | TlsFault::Handshake => table::MEMBER_HANDSHAKE,
    }
}

/// The text for the client: its own mistakes in full, but nothing about the servers behind Hostler.
impl fmt::Display for Refusal {
    #[expect(clippy::too_many_lines, reason = "one text for each refusal")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head(error) => match limit_of(error) {
                Some(limit) => write!(f, "{error} ({limit})"),
                None => error.fmt(f),
            },
            Self::MemberHeadLimit(most) => {
                write!(f, "the application accepts no more than {most} bytes of header fields")
            }
            Self::Framing(error) => error.fmt(f),
            Self::Host(what) => write!(f, "Host: {what}"),
            Self::Target(what) => write!(f, "request target: {what}"),
            Self::Connect => f.write_str("CONNECT: this is a server, not a forward proxy"),
            Self::Trace => f.write_str("TRACE: this server does not echo requests"),
            Self::NoWebSocket => f.write_str("there is no WebSocket at this URL"),
            Self::Expectation => f.write_str("Expect: only 100-continue is supported"),
            Self::PlainHttp => f.write_str("this port speaks https, not http"),
            Self::HeaderTimeout => {
                f.write_str("the request head did not arrive in time (server.header_timeout)")
            }
            Self::HeadMemory => {
                f.write_str("there is no memory for header fields of this size (server.request_memory)")
            }
            Self::Body(error @ BodyError::Stalled) => write!(f, "{error} (server.body_timeout)"),
            Self::Body(error @ BodyError::TooSlow) => write!(f, "{error} (server.min_receive_rate)"),
            Self::Body(error @ BodyError::LargerThanSpool(_)) => write!(f, "{error} (server.spool_size)"),
            Self::Body(error @ BodyError::TooLarge(_)) => write!(f, "{error} (max_body_size)"),
            Self::Body(error) => error.fmt(f),
            Self::TooManyConnections => f.write_str("too many connections (server.max_connections)"),
            Self::ClientConnections => {
                f.write_str("too many connections from this address (server.client_connections)")
            }
            Self::ClientRequests => {
                f.write_str("too many requests in progress from this address (server.client_requests)")
            }
            Self::RateLimited(_) => f.write_str("too many requests in a short time (rate_limit)"),
            Self::Loop => f.write_str("the request is in a loop: it has passed this server before (Via)"),
            Self::NoRoute => f.write_str("no route for this host and path"),
            Self::NoFile(_) => f.write_str("there is no such file"),
            Self::FileMethod => f.write_str("files accept only GET and HEAD"),
            Self::Precondition => f.write_str("the file does not meet the conditions of the request"),
            Self::Range(length) => write!(f, "the range begins after the end: the length is {length} bytes"),
            Self::FileSystem(_) => f.write_str("the file cannot be read"),
            Self::Objection(_) => f.write_str(self.facts().reason),
            Self::OnlyIfCached => {
                f.write_str("no stored response fits, and the request accepts no other (only-if-cached)")
            }
            Self::QueueFull { limit } => write!(f, "the queue is full: {limit} requests wait already"),
            Self::Overloaded => {
                f.write_str("overload: requests come faster than the application can answer them")
            }
            Self::TooManyTunnels => f.write_str("too many tunnels are open (max_tunnels)"),
            Self::TooManyStreams => f.write_str("too many streams are open (max_streams)"),
            Self::NoMember | Self::MemberBusy | Self::QueueTimeout | Self::NotStarted | Self::WakeTimeout => {
                f.write_str(self.without_slot())
            }
            Self::Stopping => f.write_str("the server is stopping"),
            Self::ClientLeft => f.write_str("the client left"),
            Self::Poison(_) => f.write_str("requests like this one have made the application crash"),
            Self::Suspect => f.write_str(
                "requests like this one go to the application one at a time, and its turn did not come",
            ),
            Self::Unreachable(_) | Self::MemberTls(..) => f.write_str("the application cannot be reached"),
            Self::NoDescriptor(_) => {
                f.write_str("the server cannot open another connection to the application")
            }
            Self::WorkerLost(_) => {
                f.write_str("the application ended or closed the connection before it answered")
            }
            Self::BadAnswer(_) => f.write_str("the response of the application is malformed"),
            Self::InterimAnswers(_) => f.write_str("the application sent too many interim responses"),
            Self::AnswerTimeout => f.write_str("the response did not begin in time"),
        }
    }
}

impl Refusal {
    /// The text if no member took the request.
    fn without_slot(&self) -> &'static str {
        match self {
            Self::NoMember => "no worker is ready for this route",
            Self::MemberBusy => "the instance that the request asks for is busy",
            Self::NotStarted => "the application has not started yet",
            Self::WakeTimeout => "the application was asleep and did not start in time",
            _ => "no worker became free in time",
        }
    }

    /// The field that tells the client what would be right, if the status has one.
    pub fn advice(&self) -> Option<(&'static str, String)> {
        match self {
            Self::FileMethod => Some(("Allow", "GET, HEAD".into())),
            // RFC 9110 section 15.5.6 requires `Allow`. Hostler does not know which of these methods the app accepts.
            Self::Trace => Some(("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS".into())),
            Self::Range(length) => Some(("Content-Range", format!("bytes */{length}"))),
            _ => None,
        }
    }

    /// Additional text for the operator, in the log only.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Unreachable(error) | Self::FileSystem(error) => Some(error.to_string()),
            Self::NoDescriptor(error) => Some(error.to_string()),
            Self::NoFile(detail) => detail.clone(),
            Self::RateLimited(detail) => Some(detail.to_string()),
            Self::MemberTls(fault, detail) => Some(format!("{fault}: {detail}")),
            Self::Poison(convicted) => Some(convicted.to_string()),
            Self::WorkerLost(detail) | Self::BadAnswer(detail) | Self::InterimAnswers(detail) => {
                Some(detail.clone())
            }
            Self::Head(error) => Some(error.to_string()),
            Self::Framing(error) => Some(error.to_string()),
            Self::Host(what) | Self::Target(what) => Some((*what).to_owned()),
            Self::Body(BodyError::Storage(kind) | BodyError::DiskFull(kind)) => Some(kind.to_string()),
            Self::Body(error) => Some(error.to_string()),
            _ => None,
        }
    }
}

impl From<HeadError> for Refusal {
    fn from(error: HeadError) -> Self {
        Self::Head(error)
    }
}

impl From<ScanError> for Refusal {
    fn from(error: ScanError) -> Self {
        Self::Head(error.into())
    }
}

impl From<FramingError> for Refusal {
    fn from(error: FramingError) -> Self {
        Self::Framing(error)
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl From<AcquireError> for Refusal {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::QueueFull { limit } => Self::QueueFull { limit },
            AcquireError::Overloaded => Self::Overloaded,
            AcquireError::TooManyTunnels => Self::TooManyTunnels,
            AcquireError::TooManyStreams => Self::TooManyStreams,
            AcquireError::NoMember => Self::NoMember,
            AcquireError::MemberBusy => Self::MemberBusy,
            AcquireError::Expired => Self::QueueTimeout,
            AcquireError::Closed => Self::Stopping,
        }
    }
}

/// The setting that a head has exceeded.
fn limit_of(error: &HeadError) -> Option<&'static str> {
    match error {
        HeadError::Scan(ScanError::TooLarge(_) | ScanError::StartLineTooLarge(_)) => {
            Some("server.max_header_size")
        }
        HeadError::TooManyFields(_) => Some("server.max_header_fields"),
        _ => None,
    }
}
