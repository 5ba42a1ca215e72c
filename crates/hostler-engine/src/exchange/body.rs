//! A request's body, and the client's side of an exchange. Knows no protocol.

use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hostler_wire::{ChunkedError, Fields, FilePart, ResponseHead};

use super::memory::Reservation;
use super::spool::{SpoolAccount, SpoolFile, SpoolFull};

/// A request's body, as it is sent to a worker.
#[derive(Debug, Clone, Default)]
pub enum Body {
    #[default]
    None,
    Memory(Arc<InMemory>),
    /// Read as a whole into an unnamed temporary file.
    Spilled(Arc<SpoolFile>, u64),
    /// Not read: it is sent to the worker as it comes.
    Streaming,
}

impl Body {
    /// Whether the request has no body.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// Bytes in memory, and the reservation for them.
#[derive(Debug)]
pub struct InMemory {
    bytes: Vec<u8>,
    _reservation: Option<Reservation>,
}

impl InMemory {
    /// Bytes that are counted in a budget.
    pub fn new(bytes: Vec<u8>, reservation: Reservation) -> Self {
        Self { bytes, _reservation: Some(reservation) }
    }
}

/// Bytes that are not counted in a budget.
impl From<Vec<u8>> for InMemory {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, _reservation: None }
    }
}

impl Deref for InMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Why a request's body is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Nothing came for `server.body_timeout`.
    #[error("the request body stalled")]
    Stalled,
    /// It came more slowly than `server.min_receive_rate`.
    #[error("the request body came too slowly")]
    TooSlow,
    /// The client closed or reset the connection.
    #[error("the client left before it had its response")]
    Left,
    /// It violates the chunked coding.
    #[error("the request body is malformed: {0}")]
    Malformed(ChunkedError),
    #[error("the request body is larger than {0} bytes")]
    TooLarge(u64),
    /// The temporary file cannot grow: the disk, a quota or the descriptors are used up. The kind is for the log.
    #[error("there is no room for the request body at the moment")]
    DiskFull(ErrorKind),
    /// `server.request_memory` has no room, and the body must be in memory.
    #[error("there is no memory for the request body at the moment")]
    NoMemory,
    /// The temporary file failed. The kind is for the log.
    #[error("the request body could not be stored")]
    Storage(ErrorKind),
    /// The connection has used its share of the spool.
    #[error("the request body could not be stored: {0}")]
    SpoolFull(#[from] SpoolFull),
    /// It is longer than one connection's share of an empty spool, which has this many bytes.
    #[error("the request body is larger than what can be stored of one client, which is {0} bytes")]
    LargerThanSpool(u64),
}

/// The body of an answer that Hostler makes and that is not in memory. It never blocks.
pub trait BodySource: Send {
    /// Appends some of the body, at most about `max` bytes, to `into`; `true` when it is complete.
    fn poll_body(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>, max: usize) -> Poll<io::Result<bool>>;

    /// Whether the bytes are in memory and cannot be read again from a file.
    fn is_only_copy(&self) -> bool {
        false
    }

    /// The next bytes as a part of a file, if they can be sent from the page cache without a wait for the disk. None: call `poll_body`.
    fn file_at_hand(&mut self) -> Option<FilePart<'_>> {
        None
    }

    /// Tells how many bytes of the last [`file_at_hand`](Self::file_at_hand) were sent. Returns true when the body is complete. `None`: the
    /// connection cannot send from the file, so the body is read from now on.
    fn sent_from_file(&mut self, _bytes: Option<usize>) -> bool {
        false
    }
}

/// An empty body.
impl BodySource for io::Empty {
    fn poll_body(&mut self, _: &mut Context<'_>, _: &mut Vec<u8>, _: usize) -> Poll<io::Result<bool>> {
        Poll::Ready(Ok(true))
    }
}

/// A body in memory, read in pieces where it is encoded.
impl BodySource for Bytes {
    fn poll_body(&mut self, _: &mut Context<'_>, into: &mut Vec<u8>, max: usize) -> Poll<io::Result<bool>> {
        let part = self.split_to(self.len().min(max));
        into.extend_from_slice(&part);
        Poll::Ready(Ok(self.is_empty()))
    }

    fn is_only_copy(&self) -> bool {
        self.is_unique()
    }
}

/// The client's side of an exchange while the gateway works on it.
pub trait Downstream: Send {
    /// Whether a client that has left looks different from one that has only finished sending.
    const SHOWS_LEAVING: bool = false;

    /// Ready when the client has left.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// How many bytes of body the client may send from now on.
    fn allow_body(&mut self, most: u64);

    /// Appends some of the request's body to `into`; `true` when it is complete. Sends `100 Continue` if the client waits for it.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, BodyError>>;

    /// The connection's account of the spool. None if there is nothing to store.
    fn spool(&mut self) -> Option<SpoolAccount> {
        None
    }

    /// The trailer fields of a complete request body.
    fn trailers(&self) -> Option<&Fields>;

    /// Sends an interim answer (1xx) to the client. False if its protocol has none.
    fn interim(&mut self, cx: &mut Context<'_>, head: &ResponseHead) -> bool;
}

/// The client's side of a request that no client waits for. It sends nothing and does not leave.
pub struct NoClient;

impl Downstream for NoClient {
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

    fn interim(&mut self, _: &mut Context<'_>, _: &ResponseHead) -> bool {
        false
    }
}
