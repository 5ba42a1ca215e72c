//! The request's body on its way to a member, from memory, a file or the client. Knows no heads.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hostler_wire::{BodyLength, ChunkStart, Fields, Name, turn, write_end};
use tokio::task::{JoinHandle, spawn};

use super::link::Link;
use super::request::{is_ours, is_underscore_alias, needs_trust};
use crate::exchange::{Body, BodyError, Downstream, Edits, Exchange, InMemory, SpoolFile};

/// How much is handed to the connection at a time.
const PIECE: usize = 64 * 1024;
/// How much is read of a file at a time: enough that the change of threads costs little in comparison.
const FILE_PIECE: u64 = 256 * 1024;
/// How many pieces are sent at most before the answer is looked at: a member may answer before it has read everything.
const STEPS: usize = 3;
/// A body up to this size is written together with the head.
const MAX_WITH_HEAD: usize = 16 * 1024;

pub(super) struct Upload {
    source: UploadSource,
    chunked: bool,
    /// Boxed, because a call is moved about a dozen times and few requests have this.
    trailers: Option<Box<Fields>>,
    /// Changes by the route, for trailers that come later. None unless the body streams.
    edits: Option<Box<Edits>>,
    done: bool,
}

enum UploadSource {
    Memory(Arc<InMemory>, usize),
    Spilled(Box<Spilled>),
    Streaming(BodyLength),
}

struct Spilled {
    file: Arc<SpoolFile>,
    at: u64,
    length: u64,
    reading: Option<UploadReading>,
}

type UploadReading = JoinHandle<io::Result<Vec<u8>>>;

impl Upload {
    /// The body for HTTP/1.1, whose framing must show where it ends. None if there is no body.
    pub fn new(exchange: &Exchange) -> Option<Self> {
        let mut upload = Self::unframed(exchange)?;
        // Only the chunked coding can carry trailers.
        let is_unknown = matches!(upload.source, UploadSource::Streaming(BodyLength::Chunked));
        upload.chunked = upload.trailers.is_some() || is_unknown;
        Some(upload)
    }

    /// The body for HTTP/2, where the flag `END_STREAM` shows where it ends. None if there is no body.
    pub fn unframed(exchange: &Exchange) -> Option<Self> {
        let source = match &exchange.body {
            Body::None => return None,
            Body::Memory(bytes) => UploadSource::Memory(bytes.clone(), 0),
            Body::Spilled(file, length) => {
                let (file, length) = (file.clone(), *length);
                UploadSource::Spilled(Box::new(Spilled { file, at: 0, length, reading: None }))
            }
            Body::Streaming => UploadSource::Streaming(exchange.length),
        };
        let trailers = exchange.trailers.as_ref().and_then(|fields| fit(fields, &exchange.to_member));
        // In HTTP/2 trailers may also follow a body of known length.
        let comes = matches!(source, UploadSource::Streaming(_));
        let edits = comes.then(|| Box::new(exchange.to_member.clone()));
        Some(Self { source, chunked: false, trailers, edits, done: false })
    }

    /// How the head announces the body.
    pub fn framing(&self) -> BodyLength {
        match &self.source {
            _ if self.chunked => BodyLength::Chunked,
            UploadSource::Memory(bytes, _) => BodyLength::Known(bytes.len() as u64),
            UploadSource::Spilled(spilled) => BodyLength::Known(spilled.length),
            UploadSource::Streaming(length) => *length,
        }
    }

    /// Appends a small body to the head.
    pub fn start(&mut self, outbox: &mut Vec<u8>) {
        if let UploadSource::Memory(bytes, at @ 0) = &mut self.source
            && bytes.len() <= MAX_WITH_HEAD
        {
            *at = bytes.len();
            append(outbox, bytes, self.chunked);
            self.end(outbox);
        }
    }

    /// True when everything has been handed to the connection.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// True while parts of the body are read from the client.
    pub fn comes_from_client(&self) -> bool {
        !self.done && matches!(self.source, UploadSource::Streaming(_))
    }

    /// Sends the body. Ready when all is sent, or when the member takes no more.
    pub fn poll_push<D: Downstream>(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Link,
        client: &mut D,
    ) -> Poll<Result<(), BodyError>> {
        for _ in 0..STEPS {
            ready!(link.poll_send(cx));
            if self.done || link.has_send_failed() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_fill(cx, link.outbox(), client))?;
            if self.done {
                link.end(self.trailers.take().map(|trailers| *trailers));
            }
        }
        turn::end(cx);
        Poll::Pending
    }

    fn poll_fill<D: Downstream>(
        &mut self,
        cx: &mut Context<'_>,
        outbox: &mut Vec<u8>,
        client: &mut D,
    ) -> Poll<Result<(), BodyError>> {
        let chunked = self.chunked;
        let ended = match &mut self.source {
            UploadSource::Memory(bytes, at) => {
                let piece = &bytes[*at..bytes.len().min(*at + PIECE)];
                *at += piece.len();
                append(outbox, piece, chunked);
                *at == bytes.len()
            }
            UploadSource::Spilled(spilled) => {
                let piece = match ready!(spilled.poll_read(cx)) {
                    Ok(piece) if !piece.is_empty() => piece,
                    Ok(_) => return Poll::Ready(Err(BodyError::Storage(io::ErrorKind::UnexpectedEof))),
                    Err(error) => return Poll::Ready(Err(BodyError::Storage(error.kind()))),
                };
                spilled.at += piece.len() as u64;
                match outbox.is_empty() && !chunked {
                    true => *outbox = piece,
                    false => append(outbox, &piece, chunked),
                }
                spilled.at == spilled.length
            }
            UploadSource::Streaming(_) => {
                let start = chunked.then(|| ChunkStart::open(outbox));
                let outcome = client.poll_body(cx, outbox, PIECE);
                if let Some(start) = start {
                    start.finish(outbox);
                }
                ready!(outcome)?
            }
        };
        if ended {
            if matches!(self.source, UploadSource::Streaming(_)) {
                let edits = self.edits.take().unwrap_or_default();
                self.trailers = client.trailers().and_then(|fields| fit(fields, &edits));
            }
            self.end(outbox);
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self, outbox: &mut Vec<u8>) {
        if self.chunked {
            write_end(outbox, self.trailers.as_deref());
        }
        self.done = true;
    }
}

/// The trailers that a member may get: without fields that only Hostler, the route or the head may set.
fn fit(trailers: &Fields, edits: &Edits) -> Option<Box<Fields>> {
    let is_said_by_others = |name: &[u8]| {
        let known = Name::of(name);
        is_ours(known) || needs_trust(known, name) || is_underscore_alias(name, edits) || !edits.keeps(name)
    };
    trailers.trailing(|name| !is_said_by_others(name)).map(Box::new)
}

fn append(outbox: &mut Vec<u8>, piece: &[u8], chunked: bool) {
    let start = chunked.then(|| ChunkStart::open(outbox));
    outbox.extend_from_slice(piece);
    if let Some(start) = start {
        start.finish(outbox);
    }
}

impl Spilled {
    /// Reads the next piece on a thread that may block. Reads at an explicit offset: an abandoned call may still read the same file.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        let task = self.reading.get_or_insert_with(|| {
            let (file, at) = (self.file.clone(), self.at);
            let size = (self.length - at).min(FILE_PIECE) as usize;
            spawn(self.file.threads().run(move || {
                let mut piece = vec![0; size];
                file.read_at(&mut piece, at).map(|()| piece)
            }))
        });
        let outcome = ready!(std::pin::Pin::new(task).poll(cx));
        self.reading = None;
        Poll::Ready(outcome.unwrap_or_else(|error| Err(io::Error::other(error))))
    }
}
