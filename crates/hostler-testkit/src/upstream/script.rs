//! What an upstream is told to do, and what it has seen. Knows no sockets.

use crate::message::MessageHead;

/// What an upstream does with a request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends exact bytes.
    Send(Vec<u8>),
    /// Waits for a [`Upstream::release`].
    Hold,
    /// Reads the request's body to its end (needed only where the steps begin with the head).
    ReadBody,
    /// Waits until the other side says that nothing more will come.
    AwaitFin,
    /// Closes the connection.
    Close,
    /// Resets the connection (TCP only).
    Reset,
}

/// A whole answer: 200 with a body of known length.
pub fn ok(body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// Exact bytes, and the connection stays open.
pub fn text(bytes: impl AsRef<[u8]>) -> Vec<Step> {
    vec![Step::Send(bytes.as_ref().to_vec())]
}

/// A request as an upstream saw it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Its head.
    pub head: MessageHead,
    /// What came of its body so far.
    pub body: Vec<u8>,
    /// Its body came to an end.
    pub is_whole: bool,
    /// Its trailer field lines.
    pub trailers: Vec<String>,
    /// On which connection it came, counted from 1.
    pub connection: usize,
    /// Which request on that connection it was, counted from 1.
    pub nth: usize,
    /// The other side has said that nothing more will come while the request ran.
    pub fin: bool,
}

impl Seen {
    /// The method.
    pub fn method(&self) -> String {
        self.head.parts()[0].clone()
    }

    /// The target.
    pub fn target(&self) -> String {
        self.head.parts()[1].clone()
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<String> {
        self.head.field(name)
    }
}
