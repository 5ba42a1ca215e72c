//! A request's body and the client's side of an exchange, as the steps see them. Knows no protocol.

use std::fs::File;
use std::io::ErrorKind;
use std::sync::Arc;
use std::task::{Context, Poll};

use hostler_wire::{ChunkedError, Fields, ResponseHead};

/// A request's body, as it is handed to a worker.
#[derive(Debug, Clone, Default)]
pub enum Body {
    /// There is none.
    #[default]
    None,
    /// Read whole, in memory.
    Memory(Arc<Vec<u8>>),
    /// Read whole, in a temporary file that has no name any more.
    Spilled(Arc<File>, u64),
    /// Not read: it goes to the worker as it comes.
    Streaming,
}

/// Why a request's body did not come whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Nothing came for `server.body_timeout`.
    #[error("the request body stalled")]
    Stalled,
    /// The client closed or reset the connection.
    #[error("the client left in the middle of its request body")]
    Left,
    /// It breaks the chunked coding.
    #[error("the request body is malformed: {0}")]
    Malformed(ChunkedError),
    /// More than the limit.
    #[error("the request body is larger than {0} bytes")]
    TooLarge(u64),
    /// The temporary file failed (disk full, no such folder); which is for the log, not for the client.
    #[error("the request body could not be stored")]
    Storage(ErrorKind),
}

/// The body of an answer of our own that does not lie in memory. It never blocks.
pub trait BodySource: Send {
    /// Appends some of the body, at most about `max` bytes, to `into`; `true` when it is complete.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<std::io::Result<bool>>;
}

/// Nothing.
impl BodySource for std::io::Empty {
    fn poll_body(&mut self, _: &mut Context<'_>, _: &mut Vec<u8>, _: usize) -> Poll<std::io::Result<bool>> {
        Poll::Ready(Ok(true))
    }
}

/// The client's side of an exchange while the steps work on it.
pub trait Downstream: Send {
    /// Ready when the client has gone: nobody reads the answer.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// How many bytes of body the client may send from here on.
    fn allow_body(&mut self, most: u64);

    /// Appends some of the request's body to `into`; `true` when it is complete. Tells the client to go on
    /// (`100 Continue`) if it waits for that.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, BodyError>>;

    /// The trailer fields of a request body that is complete.
    fn trailers(&self) -> Option<&Fields>;

    /// Passes an interim answer (1xx) on, if the client's protocol has them.
    fn interim(&mut self, cx: &mut Context<'_>, head: &ResponseHead);
}

/// The client's side of a request that no client waits for. It has nothing more to send, and does not leave.
pub struct Nobody;

impl Downstream for Nobody {
    fn poll_left(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn allow_body(&mut self, _: u64) {}

    fn poll_body(&mut self, _: &mut Context<'_>, _: &mut Vec<u8>, _: usize) -> Poll<Result<bool, BodyError>> {
        Poll::Ready(Err(BodyError::Left))
    }

    fn trailers(&self) -> Option<&Fields> {
        None
    }

    fn interim(&mut self, _: &mut Context<'_>, _: &ResponseHead) {}
}
