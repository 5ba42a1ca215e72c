//! The one table from failure to answer: every status that Hostler itself gives is here and nowhere else. Knows no connection.

use std::fmt;

use hostler_dispatch::AcquireError;
use hostler_wire::{CallError, FramingError, HeadError, ScanError};

use super::platform::Objection;
use super::suspects::Convicted;
use crate::exchange::BodyError;
use crate::proxy::{Failure, TlsFault};

/// An answer of our own.
#[derive(Debug)]
pub enum Refusal {
    /// The head breaks HTTP.
    Head(HeadError),
    /// The body's length is in doubt.
    Framing(FramingError),
    /// Missing, repeated or malformed `Host`, or one that the target contradicts (RFC 9112 section 3.2).
    Host(&'static str),
    /// The target's form is not one for a server (RFC 9112 section 3.2).
    Target(&'static str),
    /// CONNECT is for forward proxies.
    Connect,
    /// A TRACE: the route does not pass it on, or it was to end here (RFC 9110 section 7.6.2).
    Trace,
    /// A WebSocket was wanted of what has none; only in HTTP/2, where an ordinary answer would open it.
    NoWebSocket,
    /// An expectation other than `100-continue` (RFC 9110 section 10.1.1).
    Expectation,
    /// The head did not come in `server.header_timeout`.
    HeaderTimeout,
    /// The body did not come whole.
    Body(BodyError),
    /// Without TLS where that is spoken.
    PlainHttp,
    /// More connections than `server.max_connections`.
    TooManyConnections,
    /// More connections of one client than `server.client_connections`.
    ClientConnections,
    /// More requests of one client under way than `server.client_requests`.
    ClientRequests,
    /// The request has been here before (RFC 9110 section 7.6.3).
    Loop,
    /// No route matches.
    NoRoute,
    /// There is no such file, or none for everybody.
    NoFile(Option<String>),
    /// There are files here, and this is no method for them.
    FileMethod,
    /// `If-Match` or `If-Unmodified-Since` do not hold.
    Precondition,
    /// The part that is wanted lies behind the end of what has so many bytes.
    Range(u64),
    /// The file system does not give what it has.
    FileSystem(std::io::Error),
    /// A registered route does not take it.
    Objection(Objection),
    /// It was to be answered from memory alone, and there is nothing.
    OnlyIfCached,
    /// As many wait as may.
    QueueFull {
        /// The pool's queue limit.
        limit: usize,
    },
    /// The pool gets more than it can do, and this one would not have been served in time.
    Overloaded,
    /// No member takes another tunnel.
    TooManyTunnels,
    /// A registered route has no member.
    NoMember,
    /// The one member that it is for has no free slot.
    MemberBusy,
    /// No slot became free in time.
    QueueTimeout,
    /// The pool takes no more: Hostler is stopping.
    Stopping,
    /// Workers have died over requests like this one.
    Poison(Convicted),
    /// Requests like it have taken workers, and are let in one at a time.
    Suspect,
    /// The client left while it waited; nobody reads this answer, it is for the log.
    ClientLeft,
    /// No member could be reached until the deadline.
    Unreachable(std::io::Error),
    /// No member could be spoken to over TLS until the deadline.
    MemberTls(TlsFault, String),
    /// The worker ended before it answered, or in the middle of it, and the request must not be sent again.
    WorkerLost(String),
    /// The worker's answer is not HTTP.
    BadAnswer(String),
    /// More interim answers than `server.max_interim_answers`, or longer ones than `server.max_header_size` allows.
    InterimAnswers(String),
    /// No answer in `request_timeout`.
    AnswerTimeout,
}

/// What the table says about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusalFacts {
    /// The status code; 499, as nginx writes it, is never sent.
    pub status: u16,
    /// Its name in logs, counters and the `Hostler-Refusal` field.
    pub reason: &'static str,
    /// Seconds for `Retry-After`, where trying again makes sense.
    pub retry_after: Option<u32>,
    /// The connection is of no use any more.
    pub closes: bool,
    /// It is not the client's doing: the route's fallback may stand in.
    pub may_fall_back: bool,
}

impl Refusal {
    /// The table.
    pub fn facts(&self) -> RefusalFacts {
        match self {
            Self::Head(error) => {
                let (status, reason) = of_head(error);
                closing(status, reason)
            }
            Self::Framing(_) => closing(400, "bad_framing"),
            Self::Host(_) => closing(400, "bad_host"),
            Self::Target(_) => closing(400, "bad_target"),
            Self::Connect => closing(400, "connect"),
            Self::Trace => facts(405, "trace"),
            Self::NoWebSocket => facts(400, "no_websocket"),
            Self::Expectation => closing(417, "expectation"),
            Self::HeaderTimeout => closing(408, "header_timeout"),
            Self::Body(error) => of_body(error),
            Self::PlainHttp => closing(400, "plain_http"),
            Self::TooManyConnections => {
                RefusalFacts { closes: true, may_fall_back: false, ..later("too_many_connections") }
            }
            Self::ClientConnections => {
                RefusalFacts { retry_after: Some(1), ..closing(429, "client_connections") }
            }
            Self::ClientRequests => RefusalFacts { retry_after: Some(1), ..facts(429, "client_requests") },
            Self::Loop => facts(508, "loop"),
            Self::NoRoute => facts(404, "no_route"),
            Self::NoFile(_) => facts(404, "no_file"),
            Self::FileMethod => facts(405, "method"),
            Self::Precondition => facts(412, "precondition"),
            Self::Range(_) => facts(416, "range"),
            Self::FileSystem(_) => facts(500, "file_system"),
            Self::Objection(objection) => facts(objection.status(), objection.reason()),
            Self::OnlyIfCached => facts(504, "only_if_cached"),
            Self::QueueFull { .. } => later("queue_full"),
            Self::Overloaded => later("overloaded"),
            Self::TooManyTunnels => later("too_many_tunnels"),
            Self::NoMember => later("no_member"),
            Self::MemberBusy => later("member_busy"),
            Self::QueueTimeout => later("queue_timeout"),
            Self::Stopping => RefusalFacts { closes: true, ..later("stopping") },
            Self::ClientLeft => closing(499, "client_left"),
            Self::Poison(_) => ours(502, "poison"),
            Self::Suspect => later("suspect"),
            Self::Unreachable(_) => ours(502, "unreachable"),
            Self::MemberTls(fault, _) => ours(502, tls_reason(*fault)),
            Self::WorkerLost(_) => ours(502, "worker_lost"),
            Self::BadAnswer(_) => ours(502, "bad_answer"),
            Self::InterimAnswers(_) => ours(502, "interim_answers"),
            Self::AnswerTimeout => ours(504, "answer_timeout"),
        }
    }
}

/// The client's doing, or too little room for it.
fn facts(status: u16, reason: &'static str) -> RefusalFacts {
    RefusalFacts { status, reason, retry_after: None, closes: false, may_fall_back: false }
}

/// As [`facts`], and the connection is closed.
fn closing(status: u16, reason: &'static str) -> RefusalFacts {
    RefusalFacts { closes: true, ..facts(status, reason) }
}

/// Not the client's doing.
fn ours(status: u16, reason: &'static str) -> RefusalFacts {
    RefusalFacts { may_fall_back: true, ..facts(status, reason) }
}

/// Not the client's doing, and it passes.
fn later(reason: &'static str) -> RefusalFacts {
    RefusalFacts { retry_after: Some(1), ..ours(503, reason) }
}

fn of_body(error: &BodyError) -> RefusalFacts {
    match error {
        BodyError::Stalled => closing(408, "body_timeout"),
        BodyError::TooSlow => closing(408, "min_receive_rate"),
        BodyError::Left => closing(499, "client_left"),
        BodyError::Malformed(_) => closing(400, "bad_body"),
        BodyError::TooLarge(_) => closing(413, "body_too_large"),
        BodyError::NoMemory => RefusalFacts { closes: true, ..later("request_memory") },
        BodyError::Storage(_) => closing(500, "storage"),
        BodyError::LargerThanSpool(_) => closing(507, "spool_size"),
        BodyError::SpoolFull(_) | BodyError::DiskFull(_) => {
            RefusalFacts { closes: true, ..later("spool_full") }
        }
    }
}

/// What the client reads: its own mistakes in full, nothing of what is behind us.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head(error @ HeadError::Scan(ScanError::TooLarge(_) | ScanError::StartLineTooLarge(_))) => {
                write!(f, "{error} (server.max_header_size)")
            }
            Self::Head(error @ HeadError::TooManyFields(_)) => {
                write!(f, "{error} (server.max_header_fields)")
            }
            Self::Head(error) => error.fmt(f),
            Self::Framing(error) => error.fmt(f),
            Self::Host(what) => write!(f, "Host: {what}"),
            Self::Target(what) => write!(f, "request target: {what}"),
            Self::Connect => f.write_str("CONNECT: this is a server, not a forward proxy"),
            Self::Trace => f.write_str("TRACE: what comes here is not sent back"),
            Self::NoWebSocket => f.write_str("there is no WebSocket here"),
            Self::Expectation => f.write_str("Expect: only 100-continue is known"),
            Self::PlainHttp => f.write_str("this port speaks https, not http"),
            Self::HeaderTimeout => {
                f.write_str("the request head did not arrive in time (server.header_timeout)")
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
                f.write_str("too many requests under way from this address (server.client_requests)")
            }
            Self::Loop => f.write_str("this request has been here before: it goes in circles (Via)"),
            Self::NoRoute => f.write_str("no route for this host and path"),
            Self::NoFile(_) => f.write_str("there is no such file"),
            Self::FileMethod => f.write_str("files are here for GET and HEAD"),
            Self::Precondition => f.write_str("the file is not as the request expects it"),
            Self::Range(length) => write!(f, "there are only {length} bytes"),
            Self::FileSystem(_) => f.write_str("the file cannot be read"),
            Self::Objection(objection) => f.write_str(objection.reason()),
            Self::OnlyIfCached => f.write_str("there is no stored answer, and no other was wanted"),
            Self::QueueFull { limit } => write!(f, "the queue is full: {limit} requests wait already"),
            Self::Overloaded => f.write_str("more requests come than can be answered"),
            Self::TooManyTunnels => f.write_str("too many tunnels are open (max_tunnels)"),
            Self::NoMember => f.write_str("nobody serves this route at the moment"),
            Self::MemberBusy => f.write_str("the instance that was asked for has enough to do"),
            Self::QueueTimeout => f.write_str("no worker became free in time"),
            Self::Stopping => f.write_str("the server is stopping"),
            Self::ClientLeft => f.write_str("the client left"),
            Self::Poison(_) => f.write_str("the application has ended over this request before"),
            Self::Suspect => f.write_str("requests like this one are answered one at a time at the moment"),
            Self::Unreachable(_) | Self::MemberTls(..) => f.write_str("the application cannot be reached"),
            Self::WorkerLost(_) => f.write_str("the application ended before it answered"),
            Self::BadAnswer(_) => f.write_str("the application's answer is malformed"),
            Self::InterimAnswers(_) => f.write_str("the application sent too many interim answers"),
            Self::AnswerTimeout => f.write_str("the application did not answer in time"),
        }
    }
}

impl Refusal {
    /// The field that says what would have been right, where the status has one for it.
    pub fn advice(&self) -> Option<(&'static str, String)> {
        match self {
            Self::FileMethod => Some(("Allow", "GET, HEAD".into())),
            // RFC 9110 section 15.5.6 wants the field. Which of them the application takes is not known here.
            Self::Trace => Some(("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS".into())),
            Self::Range(length) => Some(("Content-Range", format!("bytes */{length}"))),
            _ => None,
        }
    }

    /// What the operator reads besides, in the log only.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Unreachable(error) | Self::FileSystem(error) => Some(error.to_string()),
            Self::NoFile(detail) => detail.clone(),
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

impl From<Objection> for Refusal {
    fn from(objection: Objection) -> Self {
        Self::Objection(objection)
    }
}

impl From<AcquireError> for Refusal {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::QueueFull { limit } => Self::QueueFull { limit },
            AcquireError::Overloaded => Self::Overloaded,
            AcquireError::TooManyTunnels => Self::TooManyTunnels,
            AcquireError::NoMember => Self::NoMember,
            AcquireError::MemberBusy => Self::MemberBusy,
            AcquireError::Expired => Self::QueueTimeout,
            AcquireError::Closed => Self::Stopping,
        }
    }
}

/// Status and reason.
fn of_head(error: &HeadError) -> (u16, &'static str) {
    match error {
        HeadError::Scan(ScanError::StartLineTooLarge(_)) => (431, "start_line_too_large"),
        HeadError::Scan(ScanError::TooLarge(_)) => (431, "header_too_large"),
        HeadError::TooManyFields(_) => (431, "too_many_fields"),
        HeadError::Version => (505, "version"),
        _ => (400, "bad_head"),
    }
}

fn tls_reason(fault: TlsFault) -> &'static str {
    match fault {
        TlsFault::NotTls => "member_not_tls",
        TlsFault::WrongName => "member_wrong_name",
        TlsFault::Untrusted => "member_untrusted",
        TlsFault::ClientCertificate => "member_wants_certificate",
        TlsFault::Handshake => "member_handshake",
    }
}

/// How a failed call is answered when it is not tried again.
impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unreachable(error) => Self::Unreachable(error),
            Failure::Tls(fault, detail) => Self::MemberTls(fault, detail),
            Failure::Unprocessed(detail) => Self::WorkerLost(detail),
            Failure::Unspeakable => Self::Target("it cannot be said in HTTP/2, which the application speaks"),
            Failure::Unanswered(error) | Failure::Broken(error) => Self::WorkerLost(error.to_string()),
            Failure::BadAnswer(error @ CallError::Interim { .. }) => Self::InterimAnswers(error.to_string()),
            Failure::BadAnswer(error) => Self::BadAnswer(error.to_string()),
            Failure::TimedOut | Failure::Forsaken => Self::AnswerTimeout,
            Failure::Body(error) => Self::Body(error),
        }
    }
}
