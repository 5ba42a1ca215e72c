//! The connections of the admin listener. At the end, each accepted connection still gets one answer. Knows no requests.
//!
//! hyper's graceful shutdown closes a connection from which nothing was read yet. An operator's `hostler status` that has just connected
//! would fail. So this listener first stops to accept, then waits until each accepted connection was heard, and only then shuts down.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

/// For a connection that sends nothing, such as a TCP health check.
const SILENCE_LIMIT: Duration = Duration::from_secs(1);

/// Accepts until the end.
pub struct AdminConnections<L> {
    listener: Option<L>,
    silent: SilentConnections,
    end: watch::Receiver<bool>,
}

/// How many accepted connections have sent nothing.
#[derive(Clone)]
pub struct SilentConnections(Arc<watch::Sender<usize>>);

/// An accepted connection.
pub struct AdminConnection<S> {
    stream: S,
    /// Until the first byte.
    silent: Option<Silent>,
}

struct Silent(SilentConnections);

impl<L: Listener> AdminConnections<L> {
    /// `end` becomes true when no further connection may be accepted.
    pub fn new(listener: L, end: watch::Receiver<bool>) -> Self {
        Self { listener: Some(listener), silent: SilentConnections(Arc::new(watch::Sender::new(0))), end }
    }

    pub fn silent(&self) -> SilentConnections {
        self.silent.clone()
    }
}

impl SilentConnections {
    /// Waits until each has sent something or has closed, for one second at most.
    pub async fn heard(&self) {
        let mut count = self.0.subscribe();
        // An error is impossible: `self` holds a sender. After the limit, the silent ones are closed.
        let _ = tokio::time::timeout(SILENCE_LIMIT, count.wait_for(|&count| count == 0)).await;
    }

    fn one_more(&self) -> Silent {
        self.0.send_modify(|count| *count += 1);
        Silent(self.clone())
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl<L: Listener> Listener for AdminConnections<L> {
    type Io = AdminConnection<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        if let Some(listener) = &mut self.listener {
            tokio::select! {
                (stream, address) = listener.accept() => {
                    return (AdminConnection { stream, silent: Some(self.silent.one_more()) }, address);
                }
                // An error means that the sender is gone: the end too.
                _ = self.end.wait_for(|&ended| ended) => self.listener = None,
            }
        }
        std::future::pending().await
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.as_ref().ok_or(io::ErrorKind::NotConnected)?.local_addr()
    }
}

impl<S> AdminConnection<S> {
    pub fn stream(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AdminConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        if outcome.is_ready() {
            self.silent = None;
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AdminConnection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;
    use hostler_testkit::eventually;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn a_connection_that_was_accepted_before_the_end_gets_its_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = watch::channel(false);
        let connections = AdminConnections::new(listener, ended.clone());
        let silent = connections.silent();
        let last = silent.clone();
        let mut told = ended.clone();
        let shutdown = async move {
            let _ = told.wait_for(|&ended| ended).await;
            last.heard().await;
        };
        let router = Router::new().route("/", get(async || "here"));
        let server =
            tokio::spawn(axum::serve(connections, router).with_graceful_shutdown(shutdown).into_future());

        let mut client = TcpStream::connect(address).await.unwrap();
        eventually("the connection to be accepted", async || (*silent.0.borrow() == 1).then_some(())).await;
        end.send(true).unwrap();
        eventually("the listener to close", async || TcpStream::connect(address).await.err()).await;
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("here"), "{answer}");
        server.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_sends_nothing_does_not_hold_the_end_up() {
        let silent = SilentConnections(Arc::new(watch::Sender::new(0)));
        let _one = silent.one_more();
        let begun = tokio::time::Instant::now();
        silent.heard().await;
        assert_eq!(begun.elapsed(), SILENCE_LIMIT);
    }
}
