//! The end of a client's HTTP/1.1 connection: in order after the last answer, or by a reset. Knows no requests and no routes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use hostler_wire::read_some;
use tokio::io::AsyncWrite;

use super::client::Http1Client;
use super::deliver::Delivered;

impl Http1Client {
    /// Ends the connection after its last answer.
    pub async fn end(self, delivered: Delivered) {
        match delivered {
            Delivered::Aborted => self.abort(),
            Delivered::Whole => self.close().await,
        }
    }

    /// Closes the connection so that the client can read the last answer: for `linger_timeout`, bytes from the client are read and
    /// discarded. A close with unread bytes would make the kernel discard the answer (RFC 9112 section 9.6).
    pub async fn close(mut self) {
        let _ = poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx)).await;
        self.silence.set_after(self.settings.linger_timeout);
        poll_fn(|cx| {
            loop {
                match read_some(&mut self.stream, cx, usize::MAX, <[u8]>::len) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return self.silence.poll_due(cx),
                }
            }
        })
        .await;
    }

    /// Resets the connection, so that the client does not take a part of an answer for all of it.
    pub fn abort(mut self) {
        self.stream.abort();
    }
}
