//! The stream below an HTTP/2 connection to a member. Keeps why TLS has ended, because the `h2` crate keeps only the text of an error. Also
//! counts what comes. Knows no frames.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use hostler_wire::Stream;
use rustls::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Why TLS has ended before the member had sent a byte. In TLS 1.3 our handshake ends before the member has checked our certificate. Empty after
/// the first byte: from then on the member may have worked on requests.
#[derive(Clone, Default)]
pub(super) struct SilentEnd(Arc<OnceLock<Error>>);

impl SilentEnd {
    /// The error in the form in which a read reports it. None: TLS has not ended, or the member had sent something before.
    pub fn error(&self) -> Option<io::Error> {
        Some(io::Error::new(io::ErrorKind::InvalidData, self.0.get()?.clone()))
    }

    fn note(&self, error: &io::Error) {
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            // Only the first error counts.
            let _ = self.0.set(error.clone());
        }
    }
}

/// How often something has come from the member.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<AtomicU64>);

impl Heard {
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) struct MemberIo {
    stream: Stream,
    silent_end: SilentEnd,
    heard: Heard,
}

impl MemberIo {
    pub fn new(stream: Stream, silent_end: SilentEnd, heard: Heard) -> Self {
        Self { stream, silent_end, heard }
    }

    /// A member that refuses the connection sends the reason and closes the connection at once. A write may then fail before the reason was
    /// read. So such an error is returned only after a read, which is ready at once on a closed connection.
    fn written<T>(&mut self, outcome: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let is_closed = |error: &io::Error| matches!(error.kind(), BrokenPipe | ConnectionReset);
        if matches!(&outcome, Poll::Ready(Err(error)) if is_closed(error)) && self.heard.count() == 0 {
            let mut byte = [0];
            let _ = ready!(Pin::new(self).poll_read(cx, &mut ReadBuf::new(&mut byte)));
        }
        outcome
    }
}

impl AsyncRead for MemberIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (this, before) = (self.get_mut(), buf.filled().len());
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        match &read {
            Poll::Ready(Err(error)) if this.heard.count() == 0 => this.silent_end.note(error),
            _ if buf.filled().len() > before => this.heard.note(),
            _ => {}
        }
        read
    }
}

impl AsyncWrite for MemberIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.written(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.written(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        this.written(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
