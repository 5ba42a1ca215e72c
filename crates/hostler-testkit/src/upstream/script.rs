//! The steps of an upstream, and the requests that it records. Knows no sockets.

use crate::message::MessageHead;

/// One step of an upstream for a request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends exact bytes.
    Send(Vec<u8>),
    /// Waits for a [`Upstream::release`].
    Hold,
    /// Reads the request's body to its end. Needed only if the steps begin at the head.
    ReadBody,
    /// Waits until the other side ends its sending direction (FIN).
    AwaitFin,
    /// Closes the connection.
    Close,
    /// Resets the connection (TCP only).
    Reset,
}

/// A complete 200 with a body of known length.
pub fn ok(body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// Sends exact bytes and keeps the connection open.
pub fn text(bytes: impl AsRef<[u8]>) -> Vec<Step> {
    vec![Step::Send(bytes.as_ref().to_vec())]
}

/// A request as an upstream received it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Its head.
    pub head: MessageHead,
    /// The part of its body that came.
    pub body: Vec<u8>,
    /// The body is complete.
    pub is_whole: bool,
    /// The trailer field lines.
    pub trailers: Vec<String>,
    /// The number of its connection, from 1.
    pub connection: usize,
    /// The number of the request on its connection, from 1.
    pub nth: usize,
    /// The other side ended its sending direction (FIN) while the request ran.
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
