//! Finds out that a client has left although bytes that it has sent are unread. Knows no requests.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_wire::Stream;
use tokio::time::{Sleep, sleep};

/// The time between two looks at a connection.
const PAUSE: Duration = Duration::from_millis(250);

/// TLS holds less than this of what it has read from the kernel.
const HELD_BY_TLS: u64 = 128 * 1024;

/// The wait for the end of a connection behind bytes that are not read. The runtime wakes no task for it while there are bytes to read.
#[derive(Default)]
pub(super) struct HiddenEnd {
    /// Ready when it is time for the next look.
    next_look: Option<Pin<Box<Sleep>>>,
}

impl HiddenEnd {
    /// Ready when the client has closed its side or has reset the connection. `missing`: so many bytes of a body that has begun are still to be
    /// read from the stream. Then a client that has closed its side may have finished sending: it has left only if they never come.
    pub fn poll(&mut self, cx: &mut Context<'_>, stream: &Stream, missing: Option<u64>) -> Poll<()> {
        let never_come = |missing: u64| stream.is_disconnected() || is_cut_off(stream, missing);
        while !(stream.has_closed() && missing.is_none_or(never_come)) {
            ready!(self.next_look.get_or_insert_with(|| Box::pin(sleep(PAUSE))).as_mut().poll(cx));
            self.next_look = None;
        }
        Poll::Ready(())
    }
}

/// Whether less than that has arrived on a stream on which nothing more comes.
fn is_cut_off(stream: &Stream, missing: u64) -> bool {
    let held = if stream.is_tls() { HELD_BY_TLS } else { 0 };
    stream.unread().is_some_and(|unread| unread + held < missing)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Waker;

    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (TcpStream, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, Stream::from(listener.accept().await.unwrap().0))
    }

    #[tokio::test]
    async fn a_client_that_has_closed_has_left_if_the_rest_of_its_body_never_comes() {
        let (mut client, stream) = pair().await;
        client.write_all(&[7; 1000]).await.unwrap();
        client.shutdown().await.unwrap();
        let mut hidden_end = HiddenEnd::default();
        poll_fn(|cx| hidden_end.poll(cx, &stream, Some(1001))).await;
        let mut cx = Context::from_waker(Waker::noop());
        assert!(hidden_end.poll(&mut cx, &stream, None).is_ready());
        assert!(hidden_end.poll(&mut cx, &stream, Some(1000)).is_pending(), "it has finished sending");
    }

    #[tokio::test]
    async fn a_client_that_has_reset_its_connection_has_left_wherever_its_body_ends() {
        let (mut client, stream) = pair().await;
        client.write_all(&[7; 1000]).await.unwrap();
        Stream::from(client).abort();
        let mut hidden_end = HiddenEnd::default();
        poll_fn(|cx| hidden_end.poll(cx, &stream, Some(0))).await;
    }
}
