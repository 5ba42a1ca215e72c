//! A stream to a client or a member: TCP, Unix, TLS, or one inside another protocol. Also reading without a buffer for each one. Knows no HTTP.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

use crate::dial::{dial, dial_unix, look_up};
use crate::turn;

/// Where a member listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// A host and port. A name is looked up at each connect, because its address may change.
    Tcp(String, u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// A connected stream.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP, without Nagle's algorithm.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Over TLS, after its handshake.
    Tls(Box<TlsStream<Metered>>),
    /// Inside another protocol, for example a stream of HTTP/2.
    InHttp2(Box<dyn Duplex>),
}

/// A stream inside another protocol.
pub trait Duplex: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin {
    /// Resets the stream when it is dropped, so that the receiver does not take what was sent for the whole.
    fn abort(&mut self);

    /// Whether no byte has come and the other side has not closed.
    fn is_quiet(&self) -> bool {
        false
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl Stream {
    /// Connects. The caller sets the deadline.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => dial_unix(path).await.map(Self::Unix),
            Address::Tcp(host, port) => Self::connect_to(look_up(host, *port).await?).await,
        }
    }

    /// Connects to a host that has these addresses. The caller sets the deadline.
    pub async fn connect_to(addresses: Vec<SocketAddr>) -> io::Result<Self> {
        let stream = dial(addresses).await?;
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    /// Whether it is one over TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether no byte has come and the other side has not closed, by asking the kernel. Needs a system call, for callers
    /// that must not miss a close that the runtime has not reported yet.
    pub fn is_quiet_now(&mut self) -> bool {
        use rustix::net::{RecvFlags, recv};
        let (flags, mut byte) = (RecvFlags::PEEK | RecvFlags::DONTWAIT, [0; 1]);
        let peeked = match self {
            Self::Tcp(stream) => recv(stream, &mut byte, flags),
            Self::Unix(stream) => recv(stream, &mut byte, flags),
            Self::Tls(stream) => recv(&stream.get_ref().0.stream, &mut byte, flags),
            Self::InHttp2(stream) => return stream.is_quiet(),
        };
        // The close of TLS may have come earlier, together with the response.
        matches!(peeked, Err(rustix::io::Errno::AGAIN)) && (!self.is_tls() || self.is_quiet())
    }

    /// Resets the connection when it is dropped, so that the receiver does not take what was sent for the whole. A Unix socket has no reset.
    pub fn abort(&mut self) {
        if let Self::InHttp2(stream) = self {
            stream.abort();
        } else if let Some(stream) = self.tcp() {
            // The connection may be gone already.
            let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }

    /// Tells the other side that the connection ends in order, as far as that needs no wait: TLS has a message for it. Then drop the stream.
    pub fn say_end(&mut self) {
        if let Self::Tls(stream) = self {
            // An error means that the other side is gone.
            let _ = Pin::new(stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// The TCP connection: the stream itself, or the one below TLS.
    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(&stream.get_ref().0.stream),
            Self::Unix(_) | Self::InHttp2(_) => None,
        }
    }

    /// Whether the TCP connection is gone: the other side has reset it, or both sides have closed theirs and all that was written has arrived.
    pub fn is_disconnected(&self) -> bool {
        let peer = self.tcp().map(TcpStream::peer_addr);
        matches!(peer, Some(Err(error)) if error.kind() == io::ErrorKind::NotConnected)
    }

    /// Whether the other side of the TCP connection has closed its side or reset the connection, as far as the runtime knows. Bytes before the end
    /// may be unread. Makes no system call.
    pub fn has_closed(&self) -> bool {
        let Some(stream) = self.tcp() else { return false };
        let looked = pin!(stream.ready(Interest::READABLE)).poll(&mut Context::from_waker(Waker::noop()));
        matches!(looked, Poll::Ready(Ok(found)) if found.is_read_closed())
    }

    /// How many bytes have arrived at the TCP connection that were not read from the kernel. None: nothing tells.
    pub fn unread(&self) -> Option<u64> {
        rustix::io::ioctl_fionread(self.tcp()?).ok()
    }

    /// The error of the TCP connection that no read and no write has returned yet.
    pub fn take_error(&self) -> Option<io::Error> {
        self.tcp()?.take_error().ok()?
    }

    /// How many bytes the socket below TLS has accepted. TLS holds some bytes back, so the number of written bytes is not
    /// exact. `None` for other kinds: they accept what is written.
    pub fn taken_below(&self) -> Option<u64> {
        match self {
            Self::Tls(stream) => Some(stream.get_ref().0.written),
            Self::Tcp(_) | Self::Unix(_) | Self::InHttp2(_) => None,
        }
    }

    /// Lets the kernel detect a peer that is gone. See [`keep_alive`].
    pub fn keep_alive(&self) {
        if let Some(stream) = self.tcp() {
            keep_alive(stream);
        }
    }

    /// As [`Self::keep_alive`], also while the peer has not acknowledged all that was sent: the kernel sends no probes then, and repeats the
    /// bytes for a quarter of an hour. `send_timeout`: how long the peer may take nothing. If it may for longer, only probes find it.
    pub fn keep_alive_within(&self, send_timeout: Duration) {
        self.keep_alive();
        if let Some(stream) = self.tcp().filter(|_| send_timeout <= DETECTED) {
            limit_unacknowledged(stream);
        }
    }

    /// Whether no byte has come and the other side has not closed, as far as the runtime knows. Makes no system call if
    /// nothing has changed. A byte that has come may be lost. After this, a task that waits for the stream must poll it again.
    pub fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let read = match self {
            Self::Tcp(stream) => stream.try_read(&mut byte),
            Self::Unix(stream) => stream.try_read(&mut byte),
            // Messages of TLS itself, such as a new session ticket, do not count.
            Self::Tls(stream) => {
                let (mut cx, mut buf) = (Context::from_waker(Waker::noop()), ReadBuf::new(&mut byte));
                return Pin::new(stream).poll_read(&mut cx, &mut buf).is_pending();
            }
            Self::InHttp2(stream) => return stream.is_quiet(),
        };
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::InHttp2(stream) => turn::counted(cx, |cx| Pin::new(stream).poll_read(cx, buf)),
        };
        turn::has_read(cx, buf.filled().len() - before);
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::InHttp2(stream) => turn::counted(cx, |cx| Pin::new(stream).poll_write(cx, buf)),
        };
        count_written(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::InHttp2(stream) => turn::counted(cx, |cx| Pin::new(stream).poll_write_vectored(cx, bufs)),
        };
        count_written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) | Self::Tls(_) => true,
            Self::InHttp2(stream) => stream.is_write_vectored(),
        }
    }

    /// Writes bytes that TLS or another protocol holds back. Call it after the last write.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::InHttp2(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::InHttp2(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

fn count_written(cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
    if let Poll::Ready(Ok(bytes)) = &written {
        turn::has_written(cx, *bytes);
    }
    written
}

/// A TCP connection below TLS that counts the bytes written to it.
#[derive(Debug)]
pub struct Metered {
    stream: TcpStream,
    written: u64,
}

impl From<TcpStream> for Metered {
    fn from(stream: TcpStream) -> Self {
        Self { stream, written: 0 }
    }
}

impl Metered {
    fn count(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.written += bytes as u64;
        }
        written
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The time in which a vanished peer is detected.
const DETECTED: Duration = Duration::from_secs(120);

/// Turns on TCP keep-alive, so that a vanished peer is detected within two minutes: after a minute of silence, six probes.
pub fn keep_alive(socket: impl AsFd) {
    use rustix::net::sockopt;
    // An error is ignored: without keep-alive, connections last until their timeouts.
    let _ = sockopt::set_tcp_keepidle(&socket, Duration::from_secs(60))
        .and_then(|()| sockopt::set_tcp_keepintvl(&socket, Duration::from_secs(10)))
        .and_then(|()| sockopt::set_tcp_keepcnt(&socket, 6))
        .and_then(|()| sockopt::set_socket_keepalive(&socket, true));
}

/// Ends a connection whose peer acknowledges nothing for [`DETECTED`] (`TCP_USER_TIMEOUT`), or takes nothing for that time.
fn limit_unacknowledged(stream: &TcpStream) {
    // An error is ignored: without the option, the kernel gives up later.
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, DETECTED.as_millis() as u32);
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// The most bytes of one read.
const SCRATCH: usize = 64 * 1024;

thread_local! {
    /// One read buffer for each thread instead of one for each connection, so ten thousand idle connections need no buffers.
    static READING: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH].into_boxed_slice());
}

/// Reads once, at most `max` bytes, and passes them to `taking` at once, because the thread's buffer is used again by the
/// next read. An empty slice is the end of the stream. `taking` must not read.
pub fn read_some<S, T>(
    stream: &mut S,
    cx: &mut Context<'_>,
    max: usize,
    taking: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<T>>
where
    S: AsyncRead + Unpin,
{
    read_then(stream, cx, max, |_, bytes| taking(bytes))
}

/// As [`read_some`], for callers that pass the bytes on at once. `taking` may write, but must not read.
pub fn read_then<S, T>(
    stream: &mut S,
    cx: &mut Context<'_>,
    max: usize,
    taking: impl FnOnce(&mut Context<'_>, &[u8]) -> T,
) -> Poll<io::Result<T>>
where
    S: AsyncRead + Unpin,
{
    READING.with_borrow_mut(|scratch| {
        let mut buf = ReadBuf::new(&mut scratch[..max.clamp(1, SCRATCH)]);
        ready!(Pin::new(stream).poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(taking(cx, buf.filled())))
    })
}

/// The outcome of a read in the middle of a message. There the end of TLS without its close message is an end like any other, because the
/// message is incomplete in any case.
pub(crate) fn any_end(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_peer_that_acknowledges_nothing_is_given_up_as_soon_as_a_silent_one() {
        use std::time::Duration;

        use rustix::net::sockopt::tcp_user_timeout;

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for (send_timeout, limit) in [(30, 120_000), (120, 120_000), (600, 0)] {
            let stream = super::Stream::connect_to(vec![address]).await.unwrap();
            stream.keep_alive_within(Duration::from_secs(send_timeout));
            assert_eq!(tcp_user_timeout(stream.tcp().unwrap()).unwrap(), limit, "{send_timeout}");
        }
    }
}
