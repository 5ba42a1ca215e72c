//! The requests of the chaos test: chosen at random, written as bytes, each with its right answer. Knows no connection.

use std::fmt;
use std::net::Ipv4Addr;

use hostler_testkit::{chunked, request};

/// The kernel takes this much in one write: such an answer arrives whole, or no byte of it.
const WHOLE: usize = 64 << 10;

/// The size of the page that all clients request.
const POPULAR: usize = 1234;

/// The beginning of the ids of deadly requests.
pub const DEADLY: &str = "deadly-";

/// What the app is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Send its own id, or the body.
    Echo,
    /// End before it answers.
    Exit,
    /// Throw an exception that is not caught.
    Throw,
    /// Reject a promise without a handler.
    Reject,
    /// Grow the heap beyond its limit.
    Heap,
    /// End in the middle of its answer.
    Half,
    /// Block the event loop for ever.
    Loop,
    /// Allocate this much memory.
    Leak,
}

impl Way {
    fn path(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Exit => "exit",
            Self::Throw => "throw",
            Self::Reject => "reject",
            Self::Heap => "heap",
            Self::Half => "half",
            Self::Loop => "loop",
            Self::Leak => "leak",
        }
    }

    /// Whether the request ends its worker.
    pub fn is_deadly(self) -> bool {
        !matches!(self, Self::Echo | Self::Leak)
    }
}

/// When a client leaves before it has its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// With a part of the request unsent.
    WhileSending,
    /// After the request was sent.
    WhileWaiting,
}

/// One request.
#[derive(Clone)]
pub struct Request {
    /// Its `X-Request-Id`: the client, the app's diary and Hostler's log use it.
    pub id: String,
    pub pool: &'static str,
    pub way: Way,
    pub method: &'static str,
    /// The client's address.
    pub from: Ipv4Addr,
    /// A part of the path that only this request has.
    lead: String,
    /// It has an `Idempotency-Key`.
    keyed: bool,
    query: String,
    /// The size of its body if the method has one, or else of the answer's body.
    size: usize,
    chunked: bool,
    pub leaving: Option<Leaving>,
}

impl Request {
    /// An ordinary request, as clients send all the time.
    pub fn ordinary(id: String, pool: &'static str, chance: &mut fastrand::Rng) -> Self {
        let method = *chance.choice(&["GET", "GET", "GET", "HEAD", "PUT", "DELETE", "POST", "POST"]).unwrap();
        let size = match chance.u8(..10) {
            0 => WHOLE,
            1 | 2 => chance.usize(1000..WHOLE),
            3..=5 => chance.usize(1..1000),
            // The others share one URL: a request that suffers from a fault must not be taken for its cause.
            _ => POPULAR,
        };
        let mut query = format!("?ms={}&size={size}", if size == POPULAR { 5 } else { chance.u32(..40) });
        if size != POPULAR && chance.u8(..2) == 0 {
            query += &format!("&spin={}", chance.u32(1..20));
        }
        let leaving = match chance.u8(..40) {
            0 => Some(Leaving::WhileSending),
            1 | 2 => Some(Leaving::WhileWaiting),
            _ => None,
        };
        let (keyed, chunked) = (chance.bool() && chance.bool(), chance.bool());
        let (from, lead) = (Ipv4Addr::LOCALHOST, String::new());
        Self { id, pool, way: Way::Echo, method, from, lead, keyed, query, size, chunked, leaving }
    }

    /// A request that does something to its worker.
    pub fn special(number: usize, pool: &'static str, way: Way, method: &'static str, query: &str) -> Self {
        let (query, name) = (query.to_owned(), if way.is_deadly() { DEADLY } else { "special-" });
        let id = format!("{name}{number}");
        let (from, lead) = (Ipv4Addr::LOCALHOST, String::new());
        let (keyed, chunked, leaving) = (false, false, None);
        Self { id, pool, way, method, from, lead, keyed, query, size: 10, chunked, leaving }
    }

    /// The same with its own client address and path, so that nothing is known about requests like it.
    pub fn like_no_other(self, chance: &mut fastrand::Rng) -> Self {
        let lead = std::iter::repeat_with(|| chance.lowercase()).take(8).chain(['/']).collect();
        let from = Ipv4Addr::new(127, chance.u8(1..), chance.u8(..), chance.u8(1..255));
        Self { from, lead, ..self }
    }

    /// It may be sent to a second worker when the first is lost (RFC 9110 section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.method != "POST" || self.keyed
    }

    /// It does nothing to its worker.
    pub fn is_ordinary(&self) -> bool {
        self.way == Way::Echo
    }

    fn has_body(&self) -> bool {
        matches!(self.method, "POST" | "PUT")
    }

    pub fn target(&self) -> String {
        format!("/{}/{}{}{}", self.pool, self.lead, self.way.path(), self.query)
    }

    /// The bytes of the request.
    pub fn bytes(&self, is_last: bool) -> Vec<u8> {
        let mut fields = format!("X-Request-Id: {}\r\n", self.id);
        if self.keyed {
            fields += &format!("Idempotency-Key: {}\r\n", self.id);
        }
        if is_last {
            fields += "Connection: close\r\n";
        }
        let line = format!("{} {}", self.method, self.target());
        if !self.has_body() {
            return format!("{line} HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n").into_bytes();
        }
        let body = self.pattern();
        if !self.chunked {
            return request(&line, &fields, &body);
        }
        let parts: Vec<_> = body.chunks(body.len().div_ceil(3)).collect();
        let head =
            format!("{line} HTTP/1.1\r\nHost: site.test\r\n{fields}Transfer-Encoding: chunked\r\n\r\n");
        [head.into_bytes(), chunked(&parts)].concat()
    }

    fn pattern(&self) -> Vec<u8> {
        format!("{} ", self.id).bytes().cycle().take(self.size).collect()
    }

    /// The body of the right answer.
    pub fn right_body(&self) -> Vec<u8> {
        if self.method == "HEAD" { Vec::new() } else { self.pattern() }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}, {} bytes", self.id, self.method, self.target(), self.size)?;
        for (word, holds) in [("keyed", self.keyed), ("chunked", self.chunked && self.has_body())] {
            if holds {
                write!(f, ", {word}")?;
            }
        }
        self.leaving.map_or(Ok(()), |leaving| write!(f, ", leaves {leaving:?}"))
    }
}
