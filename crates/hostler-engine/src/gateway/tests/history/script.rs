//! What a member does with a request: the bytes that it sends, where it stops, and what a client must make of them.

use std::fmt::Write;

use super::steps::Method;

/// What a member does with one request.
#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    /// How long it works before it answers, in milliseconds.
    pub works: u64,
    /// It does not notice meanwhile that the proxy has closed the connection.
    pub is_busy: bool,
    /// It answers before it has read the body of the request.
    pub is_early: bool,
    /// How many interim answers it sends first, and of which status.
    pub interims: usize,
    pub interim: u16,
    pub status: u16,
    pub framing: MemberFraming,
    pub length: usize,
    /// It says that it closes the connection after the answer.
    pub says_close: bool,
    /// It speaks HTTP/1.0.
    pub is_old: bool,
    /// In how many pieces the answer goes out, and how long it rests between them.
    pub pieces: usize,
    pub rest: u64,
    pub fault: Fault,
}

/// How the member shows the end of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberFraming {
    Length,
    Chunked,
    UntilClose,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    CloseBefore,
    CloseInHead,
    CloseInBody,
    ResetBefore,
    ResetInBody,
    /// What comes is not HTTP.
    Garbage,
    /// The head is malformed, or says two things about the body.
    BadHead,
    BadChunk,
    /// Bytes follow the answer at once.
    Surplus,
    TooManyInterims,
    HangBefore,
    HangInBody,
}

const FAULTS: [Fault; 12] = [
    Fault::CloseBefore,
    Fault::CloseInHead,
    Fault::CloseInBody,
    Fault::ResetBefore,
    Fault::ResetInBody,
    Fault::Garbage,
    Fault::BadHead,
    Fault::BadChunk,
    Fault::Surplus,
    Fault::TooManyInterims,
    Fault::HangBefore,
    Fault::HangInBody,
];

/// More interim answers than a pool allows in these histories.
pub const MOST_INTERIMS: usize = 3;

const GARBAGE: [&str; 4] =
    ["SSH-2.0-member\r\n\r\n", "\u{16}\u{3}\u{1}\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n"];

const BAD_FIELDS: [&str; 6] = [
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "Content-Length: 5\r\nContent-Length: 6\r\n",
    "Content-Length: +5\r\n",
    "Content-Length: 5\nX-Y: z\r\n",
    "X-Folded: a\r\n b\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
];

impl Script {
    pub fn random(dice: &mut fastrand::Rng, is_tame: bool) -> Self {
        let framings = [MemberFraming::Length, MemberFraming::Chunked, MemberFraming::UntilClose];
        let framing = framings[[0, 0, 0, 1, 1, 2][dice.usize(..6)]];
        let is_faulty = !is_tame && dice.u8(..) < 110;
        Self {
            seed: dice.u64(..),
            works: [0, 0, dice.u64(..20), dice.u64(..200)][dice.usize(..4)],
            is_busy: dice.bool(),
            is_early: dice.u8(..) < 40,
            interims: if dice.u8(..) < 50 { dice.usize(1..=MOST_INTERIMS) } else { 0 },
            interim: if dice.bool() { 103 } else { 100 },
            status: [200, 200, 200, 200, 404, 500, 204, 304][dice.usize(..8)],
            framing,
            length: [0, 1, 30, 500, 3_000, 20_000][dice.usize(..6)],
            says_close: dice.u8(..) < 30,
            is_old: framing != MemberFraming::Chunked && dice.u8(..) < 16,
            pieces: if dice.bool() { 1 } else { dice.usize(1..6) },
            rest: if dice.bool() { 0 } else { dice.u64(..15) },
            fault: if is_faulty { FAULTS[dice.usize(..FAULTS.len())] } else { Fault::None },
        }
    }

    /// Answers after a moment.
    pub fn plain() -> Self {
        Self {
            seed: 0,
            works: 5,
            is_busy: true,
            is_early: false,
            interims: 0,
            interim: 103,
            status: 200,
            framing: MemberFraming::Length,
            length: 30,
            says_close: false,
            is_old: false,
            pieces: 1,
            rest: 0,
            fault: Fault::None,
        }
    }

    fn has_body(&self, method: Method) -> bool {
        method != Method::Head && !matches!(self.status, 204 | 304) && self.length > 0
    }
}

/// What follows the bytes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The connection may be used again.
    Keep,
    /// The connection stays open, but must not be used again.
    KeepUnfit,
    Close,
    Reset,
    Hang,
}

/// The answer of a member.
#[derive(Clone, Debug)]
pub struct MemberAnswer {
    pub bytes: Vec<u8>,
    /// What comes behind them, at once.
    pub surplus: &'static [u8],
    pub then: Then,
    pub status: u16,
    /// What a client gets as body if the answer is whole, and what the body begins with if it is not.
    pub body: Vec<u8>,
    /// The client may get the answer as a whole one.
    pub is_whole: bool,
    /// The member breaks the answer off before its head is complete, or closes the connection without one.
    pub ends_before_head: bool,
    /// The member breaks the answer off after the head.
    pub ends_in_body: bool,
    /// What comes is not HTTP.
    pub is_bad: bool,
}

/// The body of the answer to a request: each part of it shows whose it is.
pub fn pattern(kind: &str, id: u64, attempt: usize, length: usize) -> Vec<u8> {
    let part = format!("<{kind} {id}.{attempt}>");
    let mut bytes = part.repeat(length / part.len() + 1).into_bytes();
    bytes.truncate(length);
    bytes
}

impl MemberAnswer {
    pub fn of(script: &Script, method: Method, id: u64, attempt: usize) -> Self {
        let mut dice = fastrand::Rng::with_seed(script.seed);
        let has_body = script.has_body(method);
        let body = if has_body { pattern("answer", id, attempt, script.length) } else { vec![] };
        let mut answer = Self {
            bytes: vec![],
            surplus: b"",
            then: Then::Keep,
            status: script.status,
            body,
            is_whole: true,
            ends_before_head: false,
            ends_in_body: false,
            is_bad: false,
        };
        let head_end = answer.write(script, method, (id, attempt), &mut dice);
        let closes = script.says_close || script.framing == MemberFraming::UntilClose && has_body;
        if closes || script.is_old {
            answer.then = Then::Close;
        }
        answer.go_wrong(script, head_end, has_body, &mut dice);
        answer
    }

    /// Returns where the head ends.
    fn write(
        &mut self,
        script: &Script,
        method: Method,
        (id, attempt): (u64, usize),
        dice: &mut fastrand::Rng,
    ) -> usize {
        let is_many = script.fault == Fault::TooManyInterims;
        let interims = if is_many { MOST_INTERIMS + 1 + dice.usize(..3) } else { script.interims };
        let mut text = String::new();
        for _ in 0..interims {
            let _ = write!(text, "HTTP/1.1 {} Wait\r\nX-Id: {id}\r\nLink: </a.css>\r\n\r\n", script.interim);
        }
        if script.fault == Fault::Garbage {
            text.push_str(GARBAGE[dice.usize(..GARBAGE.len())]);
            self.bytes = text.into_bytes();
            return self.bytes.len();
        }
        let version = if script.is_old { "1.0" } else { "1.1" };
        let _ =
            write!(text, "HTTP/{version} {} Well\r\nX-Id: {id}\r\nX-Attempt: {attempt}\r\n", script.status);
        if script.fault == Fault::BadHead {
            text.push_str(BAD_FIELDS[dice.usize(..BAD_FIELDS.len())]);
        } else if !matches!(script.status, 204 | 304) || script.status == 304 && dice.bool() {
            match script.framing {
                MemberFraming::Length => _ = write!(text, "Content-Length: {}\r\n", script.length),
                MemberFraming::Chunked => text.push_str("Transfer-Encoding: chunked\r\n"),
                // A body without bytes, so that its end does not depend on the connection.
                MemberFraming::UntilClose if script.length == 0 => text.push_str("Content-Length: 0\r\n"),
                MemberFraming::UntilClose => {}
            }
        }
        if script.says_close {
            text.push_str("Connection: close\r\n");
        }
        text.push_str("\r\n");
        self.bytes = text.into_bytes();
        let head_end = self.bytes.len();
        let shows_end = method != Method::Head && !matches!(script.status, 204 | 304);
        if script.framing == MemberFraming::Chunked && shows_end {
            self.write_chunks(script, dice);
        } else {
            self.bytes.extend_from_slice(&self.body);
        }
        head_end
    }

    fn write_chunks(&mut self, script: &Script, dice: &mut fastrand::Rng) {
        let mut rest = &self.body[..];
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(dice.usize(1..=rest.len()));
            self.bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            self.bytes.extend_from_slice(chunk);
            self.bytes.extend_from_slice(b"\r\n");
            rest = after;
        }
        let end: &[u8] = if script.fault == Fault::BadChunk { b"zz\r\n" } else { b"0\r\n\r\n" };
        self.bytes.extend_from_slice(end);
    }

    fn go_wrong(&mut self, script: &Script, head_end: usize, has_body: bool, dice: &mut fastrand::Rng) {
        let end = self.bytes.len();
        let in_body = if has_body { head_end..end } else { 1..head_end };
        let is_in_body = |answer: &mut Self| {
            answer.ends_in_body = has_body;
            answer.ends_before_head = !has_body;
        };
        let (at, then) = match script.fault {
            Fault::None => return,
            Fault::TooManyInterims | Fault::Garbage | Fault::BadHead => {
                (self.is_bad, self.is_whole) = (true, false);
                (end, Then::KeepUnfit)
            }
            Fault::BadChunk => {
                if script.framing != MemberFraming::Chunked || end == head_end {
                    return;
                }
                (self.is_bad, self.is_whole, self.ends_in_body) = (true, false, true);
                (end, Then::KeepUnfit)
            }
            Fault::Surplus => {
                if self.then == Then::Keep {
                    self.then = Then::KeepUnfit;
                    let more: [&[u8]; 3] = [b"x", b"\r\n", UNASKED];
                    self.surplus = more[dice.usize(..3)];
                }
                return;
            }
            Fault::CloseBefore | Fault::ResetBefore | Fault::HangBefore => {
                (self.is_whole, self.ends_before_head) = (false, script.fault != Fault::HangBefore);
                let then = [Then::Close, Then::Reset, Then::Hang];
                let faults = [Fault::CloseBefore, Fault::ResetBefore, Fault::HangBefore];
                (0, then[faults.iter().position(|fault| *fault == script.fault).unwrap()])
            }
            Fault::CloseInHead => {
                (self.is_whole, self.ends_before_head) = (false, true);
                (dice.usize(1..head_end), Then::Close)
            }
            // Such a body ends there.
            Fault::CloseInBody if script.framing == MemberFraming::UntilClose && has_body => return,
            Fault::CloseInBody | Fault::ResetInBody => {
                self.is_whole = false;
                is_in_body(self);
                let then = if script.fault == Fault::CloseInBody { Then::Close } else { Then::Reset };
                (dice.usize(in_body), then)
            }
            Fault::HangInBody => {
                self.is_whole = false;
                (dice.usize(in_body), Then::Hang)
            }
        };
        self.bytes.truncate(at);
        self.then = then;
    }
}

/// An answer without a request.
pub const UNASKED: &[u8] = b"HTTP/1.1 200 OK\r\nX-Id: nobody\r\nContent-Length: 7\r\n\r\nunasked";
