//! The end of a client's HTTP/1.1 connection: in order after the last answer, or by a reset. Knows no requests and no routes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use hostler_engine::exchange::Downstream;
use hostler_engine::proxy::LEAVING_TIME;
use hostler_wire::read_some;
use tokio::io::AsyncWrite;
use tokio::time::{Instant, sleep, timeout};

use super::client::Http1Client;
use super::deliver::Delivered;

/// The first pause between two looks whether a client has taken its answer. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

impl Http1Client {
    /// Whether the client has closed its side, and has sent nothing more.
    pub async fn has_closed(&mut self) -> bool {
        let has_closed = poll_fn(|cx| Poll::Ready(self.poll_left(cx).is_ready())).await;
        has_closed && self.taken == self.inbox.len()
    }

    /// Whether a client that closed its side before its response began has reset the connection. A whole response is the last one, so Hostler closes
    /// its side and waits until the connection is gone: taken or reset by the client. `by`: the side that broke off a response that is not whole.
    pub async fn has_reset(&mut self, delivered: Delivered, by: Option<&str>) -> bool {
        if delivered == Delivered::Aborted {
            return by == Some("client") && self.stream.is_disconnected();
        }
        let until = Instant::now() + LEAVING_TIME;
        let _ = timeout(LEAVING_TIME, poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx))).await;
        let mut pause = FIRST_PAUSE;
        while !self.stream.is_disconnected() {
            if Instant::now() >= until {
                return false;
            }
            sleep(pause).await;
            pause *= 2;
        }
        self.stream.take_error().is_some()
    }

    /// Ends the connection after its last answer. `is_last_request`: the client has said that it sends no other request.
    pub async fn end(mut self, delivered: Delivered, is_last_request: bool) {
        match delivered {
            Delivered::Aborted => self.abort(),
            Delivered::Whole if is_last_request && self.is_silent().await => drop(self),
            Delivered::Whole => self.close().await,
        }
    }

    /// Whether nothing of the client is unread, over plain TCP: then the kernel's close sends the answer and its end, and no reset.
    async fn is_silent(&mut self) -> bool {
        if self.stream.is_tls() || !self.is_request_read() {
            return false;
        }
        let is_silent = poll_fn(|cx| Poll::Ready(self.poll_left(cx).is_pending())).await;
        is_silent && self.taken == self.inbox.len()
    }

    /// Closes the connection so that the client can read the last answer: for `linger_timeout`, bytes from the client are read and
    /// discarded. A close with unread bytes would make the kernel discard the answer (RFC 9112 section 9.6).
    pub async fn close(mut self) {
        if !self.has_said_end().await {
            return;
        }
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

    /// Closes our side. False if the client takes nothing for `send_timeout`: over TLS the end is a message, which waits for room in the kernel
    /// behind the answer.
    async fn has_said_end(&mut self) -> bool {
        self.silence.set_after(self.settings.send_limits.send_timeout);
        poll_fn(|cx| match Pin::new(&mut self.stream).poll_shutdown(cx) {
            // An error means that the client has left. The next read finds that, too.
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending => self.silence.poll_due(cx).map(|()| false),
        })
        .await
    }

    /// Resets the connection, so that the client does not take a part of an answer for all of it.
    pub fn abort(mut self) {
        self.stream.abort();
    }
}
