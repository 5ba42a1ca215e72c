//! The requests of the chaos test: drawn by chance, written as bytes, with the one right answer to each. Knows no connection.

use std::fmt;
use std::net::Ipv4Addr;

use hostler_testkit::{chunked, request};

/// What a worker writes at once and the kernel takes whole: such an answer is there, or it is not.
const WHOLE: usize = 64 << 10;

/// The size of the page that everybody wants.
const POPULAR: usize = 1234;

/// How the ids of those begin that their worker does not survive.
pub const DEADLY: &str = "deadly-";

/// What is asked of the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its own id, or the body, back.
    Echo,
    /// The worker ends before it answers.
    Exit,
    /// An exception that nobody catches.
    Throw,
    /// A rejection that nobody handles.
    Reject,
    /// The heap grows beyond its limit.
    Heap,
    /// The worker ends in the middle of its answer.
    Half,
    /// The event loop never turns again.
    Loop,
    /// So much memory more.
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

    /// The worker does not survive it.
    pub fn is_deadly(self) -> bool {
        !matches!(self, Self::Echo | Self::Leak)
    }
}

/// When a client goes before it has its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// With a part of the request unsent.
    WhileSending,
    /// With the request sent.
    WhileWaiting,
}

/// One request.
#[derive(Clone)]
pub struct Request {
    /// Its `X-Request-Id`: what the client, the app's diary and Hostler's log call it.
    pub id: String,
    pub pool: &'static str,
    pub way: Way,
    pub method: &'static str,
    /// Where its client is.
    pub from: Ipv4Addr,
    /// A part of the path that is its own.
    lead: String,
    /// It has an `Idempotency-Key`.
    keyed: bool,
    query: String,
    /// Of its body, if the method has one, or else of the answer's.
    size: usize,
    chunked: bool,
    pub leaving: Option<Leaving>,
}

impl Request {
    /// An ordinary one, as clients send all the time.
    pub fn ordinary(id: String, pool: &'static str, chance: &mut fastrand::Rng) -> Self {
        let method = *chance.choice(&["GET", "GET", "GET", "HEAD", "PUT", "DELETE", "POST", "POST"]).unwrap();
        let size = match chance.u8(..10) {
            0 => WHOLE,
            1 | 2 => chance.usize(1000..WHOLE),
            3..=5 => chance.usize(1..1000),
            // The rest is one URL for all: whoever dies over it must not be taken for its victim.
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

    /// One that does something to its worker.
    pub fn special(number: usize, pool: &'static str, way: Way, method: &'static str, query: &str) -> Self {
        let (query, name) = (query.to_owned(), if way.is_deadly() { DEADLY } else { "special-" });
        let id = format!("{name}{number}");
        let (from, lead) = (Ipv4Addr::LOCALHOST, String::new());
        let (keyed, chunked, leaving) = (false, false, None);
        Self { id, pool, way, method, from, lead, keyed, query, size: 10, chunked, leaving }
    }

    /// The same by a client of its own and with a path of its own, so that nothing is known of those like it.
    pub fn like_no_other(self, chance: &mut fastrand::Rng) -> Self {
        let lead = std::iter::repeat_with(|| chance.lowercase()).take(8).chain(['/']).collect();
        let from = Ipv4Addr::new(127, chance.u8(1..), chance.u8(..), chance.u8(1..255));
        Self { from, lead, ..self }
    }

    /// May be sent to a second worker when the first is lost (RFC 9110 section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.method != "POST" || self.keyed
    }

    /// One that does nothing to its worker.
    pub fn is_ordinary(&self) -> bool {
        self.way == Way::Echo
    }

    fn has_body(&self) -> bool {
        matches!(self.method, "POST" | "PUT")
    }

    pub fn target(&self) -> String {
        format!("/{}/{}{}{}", self.pool, self.lead, self.way.path(), self.query)
    }

    /// As it goes over the wire.
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
