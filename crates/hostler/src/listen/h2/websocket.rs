//! WebSockets over an HTTP/2 stream (RFC 8441): the handshake for the member, and the stream as a byte stream. Knows no frames.

use std::fmt;
use std::io;
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

use super::send_buffer::{SendPiece, SharedSendBuffer};

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
    pub body: RecvStream,
    pub sender: SendStream<SendPiece>,
    /// Received bytes that were not read yet.
    pub unread: Bytes,
    /// Limits the number of its tiny pieces in the `h2` crate.
    pub buffer: Arc<SharedSendBuffer>,
}

impl fmt::Debug for WebSocketStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/2 stream {:?}", self.sender.stream_id())
    }
}

impl AsyncRead for WebSocketStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.unread.is_empty() {
            match ready!(this.body.poll_data(cx)) {
                Some(data) => this.unread = data.map_err(broken)?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let taken = this.unread.len().min(buf.remaining());
        buf.put_slice(&this.unread[..taken]);
        this.unread.advance(taken);
        // It fails only for more bytes than were received.
        let _ = this.body.flow_control().release_capacity(taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebSocketStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Self { sender, buffer, .. } = self.get_mut();
        ready!(buffer.poll_piece(cx));
        sender.reserve_capacity(buf.len().min(PIECE));
        let granted = match sender.capacity() {
            0 => ready!(sender.poll_capacity(cx)).ok_or(io::ErrorKind::BrokenPipe)?.map_err(broken)?,
            granted => granted,
        };
        let piece = Bytes::copy_from_slice(&buf[..buf.len().min(granted).min(PIECE)]);
        let size = piece.len();
        sender.send_data(SendPiece::new(piece, buffer, None), false).map_err(broken)?;
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
