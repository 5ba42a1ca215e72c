//! WebSockets over an HTTP/2 stream (RFC 8441): the handshake for the member, and the stream as a byte stream. Knows no frames.

use std::fmt;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{Buf, Bytes};
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use hostler_engine::gateway::Refusal;
use hostler_wire::{Duplex, HeadError, RequestHead, ResponseHead};
use http::{Extensions, Method};
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::send_buffer::{OwnRoom, SendPiece, SharedSendBuffer};

/// The text that a server appends to the key (RFC 6455 section 1.3).
const JOINED: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// How many bytes are sent on a stream at a time.
const PIECE: usize = 16 * 1024;

/// The key of the HTTP/1.1 handshake, which HTTP/2 does not have.
pub(super) struct WebSocketKey(String);

impl WebSocketKey {
    /// A key for a request that wants a WebSocket; none for other requests. The error: the request wants another protocol.
    pub fn wanted(method: &Method, extensions: &Extensions) -> Result<Option<Self>, Refusal> {
        match extensions.get::<Protocol>() {
            Some(protocol) if protocol.as_str().eq_ignore_ascii_case("websocket") => {
                Ok(Some(Self(BASE64_STANDARD.encode(fastrand::u128(..).to_be_bytes()))))
            }
            None if method != Method::CONNECT => Ok(None),
            _ => Err(Refusal::Connect),
        }
    }

    /// Adds the fields of a handshake after RFC 6455.
    pub fn write_upgrade(&self, head: &mut RequestHead) -> Result<(), HeadError> {
        head.line(b"sec-websocket-key", [self.0.as_bytes()], b"")?;
        head.line(b"connection", [&b"Upgrade"[..]], b"")?;
        head.line(b"upgrade", [&b"websocket"[..]], b"")
    }

    /// Whether the member's answer accepts the handshake. In HTTP/2 the client cannot check it (RFC 8441 section 5).
    pub fn is_accepted(&self, head: &ResponseHead) -> bool {
        let mut hash = Sha1::new();
        hash.update(self.0.as_bytes());
        hash.update(JOINED);
        let expected = BASE64_STANDARD.encode(hash.finalize());
        head.fields.get("sec-websocket-accept") == Some(expected.as_bytes())
    }
}

/// An HTTP/2 stream as a byte stream.
pub(super) struct WebSocketStream {
    body: RecvStream,
    sender: SendStream<SendPiece>,
    /// Received bytes that were not read yet.
    unread: Bytes,
    /// Bytes that were read, and for which the client has not got its window back.
    held: usize,
    /// Limits and counts the bytes that the `h2` crate has of this stream, except the few in `own`.
    buffer: Arc<SharedSendBuffer>,
    own: Arc<OwnRoom>,
}

impl WebSocketStream {
    pub fn new(body: RecvStream, sender: SendStream<SendPiece>, buffer: &Arc<SharedSendBuffer>) -> Self {
        let (buffer, own) = (buffer.clone(), Arc::default());
        Self { body, sender, unread: Bytes::new(), held: 0, buffer, own }
    }

    /// Returns the flow-control window of the bytes that were read before. The tunnel reads on only when the member has taken them, so the bytes
    /// that wait for members stay within the windows, over all streams of the connection.
    fn release(&mut self) {
        let held = mem::take(&mut self.held);
        if held > 0 {
            // It fails only for more bytes than were received.
            let _ = self.body.flow_control().release_capacity(held);
        }
    }
}

impl fmt::Debug for WebSocketStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/2 stream {:?}", self.sender.stream_id())
    }
}

impl AsyncRead for WebSocketStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.release();
        while this.unread.is_empty() {
            match ready!(this.body.poll_data(cx)) {
                Some(data) => this.unread = data.map_err(broken)?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let taken = this.unread.len().min(buf.remaining());
        buf.put_slice(&this.unread[..taken]);
        this.unread.advance(taken);
        this.held = taken;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebSocketStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Self { sender, buffer, own, .. } = self.get_mut();
        ready!(buffer.poll_piece(cx));
        sender.reserve_capacity(buf.len().min(PIECE));
        let granted = match sender.capacity() {
            0 => ready!(sender.poll_capacity(cx)).ok_or(io::ErrorKind::BrokenPipe)?.map_err(broken)?,
            granted => granted,
        };
        let (size, grant) = ready!(buffer.poll_tunnel(cx, buf.len().min(granted).min(PIECE), own));
        let piece = SendPiece::of_tunnel(Bytes::copy_from_slice(&buf[..size]), buffer, own, grant);
        sender.send_data(piece, false).map_err(broken)?;
        Poll::Ready(Ok(size))
    }

    /// The HTTP/2 connection flushes by itself.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().sender.send_data(Bytes::new().into(), true).map_err(broken))
    }
}

impl Duplex for WebSocketStream {
    fn abort(&mut self) {
        self.sender.send_reset(Reason::CANCEL);
    }
}

fn broken(error: h2::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

#[cfg(test)]
mod tests {
    use hostler_engine::exchange::MemoryBudget;
    use http::{Request, Response};
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_client_gets_its_window_back_when_what_it_has_sent_was_passed_on() {
        let (near, far) = duplex(1 << 20);
        let accepting = h2::server::Builder::new().handshake::<_, SendPiece>(near);
        let (begun, accepted) = tokio::join!(h2::client::handshake(far), accepting);
        let ((mut requests, connection), mut server) = (begun.unwrap(), accepted.unwrap());
        tokio::spawn(connection);
        let request = Request::post("http://a.test/").body(()).unwrap();
        let (_answer, mut client) = requests.send_request(request, false).unwrap();
        client.send_data(Bytes::from_static(&[7; 3000]), true).unwrap();
        let (request, mut respond) = server.accept().await.unwrap().unwrap();
        tokio::spawn(async move { while server.accept().await.is_some() {} });
        let sender = respond.send_response(Response::new(()), false).unwrap();
        let buffer = SharedSendBuffer::new(MemoryBudget::new(1 << 20).account());
        let mut stream = WebSocketStream::new(request.into_body(), sender, &buffer);
        for used in [3000, 2000, 1000] {
            stream.read_exact(&mut [0; 1000]).await.unwrap();
            // The last 1000 bytes may wait for the member.
            assert_eq!(stream.body.flow_control().used_capacity(), used);
        }
        assert_eq!(stream.read(&mut [0; 1000]).await.unwrap(), 0);
        assert_eq!(stream.body.flow_control().used_capacity(), 0);
    }
}
