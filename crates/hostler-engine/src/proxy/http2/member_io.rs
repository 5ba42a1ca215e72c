//! The stream below an HTTP/2 connection to a member. Keeps why TLS has ended, because the `h2` crate keeps only the text of an error. Also
//! counts what comes, and has all of it read after a write has failed. Knows no frames.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};

use hostler_wire::Stream;
use rustls::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

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

/// How often something has come from the member, and whether it takes no more.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<HeardState>);

#[derive(Default)]
struct HeardState {
    count: AtomicU64,
    /// The first read has ended.
    begun: Notify,
    takes_no_more: AtomicBool,
    /// When the first call began that was given up without a sign of the member, and the count at that time.
    given_up: Mutex<Option<(u64, Instant)>>,
}

impl Heard {
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Waits until something has come, which begins with the settings of the member, or until the connection ends without that.
    pub async fn begins(&self) {
        let begun = self.0.begun.notified();
        if self.count() == 0 {
            begun.await;
        }
    }

    /// A call that began at this time is given up, and nothing has come since. Returns when the first such call began after something had come:
    /// one call may be too short to tell anything.
    pub fn give_up(&self, began: Instant) -> Instant {
        let (count, mut given_up) =
            (self.count(), self.0.given_up.lock().unwrap_or_else(PoisonError::into_inner));
        match *given_up {
            Some((before, first)) if before == count => first,
            _ => {
                *given_up = Some((count, began));
                began
            }
        }
    }

    /// Whether a write has failed. Responses that the member has sent before may still be read.
    pub fn takes_no_more(&self) -> bool {
        self.0.takes_no_more.load(Ordering::Relaxed)
    }

    fn note(&self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn note_failed_write(&self) {
        self.0.takes_no_more.store(true, Ordering::Relaxed);
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
    ///
    /// A member that has said something may have responded before it closed the connection. The `h2` crate ends a connection whose write fails,
    /// without another read. So it does not learn of the failure: from then on what it writes is discarded, and the connection ends when all that
    /// the member has sent is read. `discarded` is the outcome of a write that discards.
    fn written<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        discarded: T,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        let is_closed = |error: &io::Error| matches!(error.kind(), BrokenPipe | ConnectionReset);
        if !matches!(&outcome, Poll::Ready(Err(error)) if is_closed(error)) {
            return outcome;
        }
        if self.heard.count() == 0 {
            let mut byte = [0];
            let _ = ready!(Pin::new(self).poll_read(cx, &mut ReadBuf::new(&mut byte)));
            return outcome;
        }
        self.heard.note_failed_write();
        Poll::Ready(Ok(discarded))
    }
}

impl AsyncRead for MemberIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (this, before) = (self.get_mut(), buf.filled().len());
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        if read.is_ready() && this.heard.count() == 0 {
            this.heard.0.begun.notify_waiters();
        }
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
        if this.heard.takes_no_more() {
            return Poll::Ready(Ok(buf.len()));
        }
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.written(written, buf.len(), cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let all: usize = bufs.iter().map(|buf| buf.len()).sum();
        if this.heard.takes_no_more() {
            return Poll::Ready(Ok(all));
        }
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.written(written, all, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.heard.takes_no_more() {
            return Poll::Ready(Ok(()));
        }
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        this.written(flushed, (), cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::pin::pin;
    use std::time::Duration;

    use http::Request;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_response_counts_although_a_write_has_failed_before_it_was_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = Stream::Unix(tokio::net::UnixStream::from_std(ours).unwrap());
        let heard = Heard::default();
        let member_io = MemberIo::new(ours, SilentEnd::default(), heard.clone());
        let (requests, connection) = h2::client::handshake(member_io).await.unwrap();
        let mut connection = pin!(connection);
        let request = Request::post("http://a.test/").body(()).unwrap();
        let (answer, mut upload) = requests.ready().await.unwrap().send_request(request, false).unwrap();
        let settings = [0_u8, 0, 0, 4, 0, 0, 0, 0, 0];
        theirs.write_all(&settings).unwrap();
        poll_fn(|cx| {
            assert!(connection.as_mut().poll(cx).is_pending());
            if heard.count() > 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        // `:status: 413`, with the end of the head and of the stream. Until the next wait the runtime does not learn that it has come.
        theirs.write_all(&[0, 0, 5, 1, 5, 0, 0, 0, 1, 0x08, 3, b'4', b'1', b'3']).unwrap();
        drop(theirs);
        upload.send_data("more".into(), false).unwrap();
        poll_fn(|cx| {
            assert!(connection.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        assert!(heard.takes_no_more());
        let both = async { tokio::join!(connection, answer).1 };
        let answer = timeout(Duration::from_secs(30), both).await.expect("an outcome");
        assert_eq!(answer.unwrap().status(), 413);
    }
}
