//! A stream to a client or a member: TCP, Unix, TLS, or one within another protocol; and reading without a buffer per connection.
//! Knows no HTTP.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

/// Where a member listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A Unix socket's path.
    Unix(PathBuf),
    /// A host (an address or a name, looked up at each connect since it may move) and port.
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
    /// Over TCP, without Nagle's delay.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Over TLS, its handshake done.
    Tls(Box<TlsStream<Metered>>),
    /// Within another protocol, such as a stream of HTTP/2.
    Within(Box<dyn Duplex>),
}

/// A stream that another protocol carries.
pub trait Duplex: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin {
    /// Breaks it off when it is dropped, so that nobody takes what was sent for the whole.
    fn abort(&mut self);

    /// True while nothing has come in and the other side has not closed.
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
    /// Connects; the caller sets the deadline.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
            Address::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// True while nothing has come in and the other side has not closed, by the kernel's own word: one system call, for those
    /// who cannot afford that a close is known there and not yet here.
    pub fn is_quiet_now(&mut self) -> bool {
        use rustix::net::{RecvFlags, recv};
        let (flags, mut byte) = (RecvFlags::PEEK | RecvFlags::DONTWAIT, [0; 1]);
        let peeked = match self {
            Self::Tcp(stream) => recv(stream, &mut byte, flags),
            Self::Unix(stream) => recv(stream, &mut byte, flags),
            Self::Tls(stream) => recv(&stream.get_ref().0.stream, &mut byte, flags),
            Self::Within(stream) => return stream.is_quiet(),
        };
        // The end of TLS may have come long before, together with the answer.
        let is_tls = matches!(self, Self::Tls(_));
        matches!(peeked, Err(rustix::io::Errno::AGAIN)) && (!is_tls || self.is_quiet())
    }

    /// Breaks the connection when it is dropped, so that nobody takes what was sent for the whole. Over a Unix socket it cannot be
    /// told.
    pub fn abort(&mut self) {
        if let Self::Within(stream) = self {
            stream.abort();
        } else if let Some(stream) = self.tcp() {
            // Already gone is fine.
            let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }

    /// The TCP connection that is all of it, or below it.
    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(&stream.get_ref().0.stream),
            Self::Unix(_) | Self::Within(_) => None,
        }
    }

    /// Bytes that the socket below TLS has taken. TLS keeps some back, so what was written says less. None for the other kinds: what
    /// they take is what was written.
    pub fn taken_below(&self) -> Option<u64> {
        match self {
            Self::Tls(stream) => Some(stream.get_ref().0.written),
            Self::Tcp(_) | Self::Unix(_) | Self::Within(_) => None,
        }
    }

    /// Has the kernel look after a peer that may be silent for hours; see [`keep_alive`].
    pub fn keep_alive(&self) {
        if let Some(stream) = self.tcp() {
            keep_alive(stream);
        }
    }

    /// True while nothing has come in and the other side has not closed, as far as the kernel has told us by now: no
    /// system call when it has told us nothing. Whoever waits for this stream must ask it anew.
    pub fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let read = match self {
            Self::Tcp(stream) => stream.try_read(&mut byte),
            Self::Unix(stream) => stream.try_read(&mut byte),
            // What TLS says on its own account, such as a new session ticket, is no noise.
            Self::Tls(stream) => {
                let (mut cx, mut buf) = (Context::from_waker(Waker::noop()), ReadBuf::new(&mut byte));
                return Pin::new(stream).poll_read(&mut cx, &mut buf).is_pending();
            }
            Self::Within(stream) => return stream.is_quiet(),
        };
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Within(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Within(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Within(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) | Self::Tls(_) => true,
            Self::Within(stream) => stream.is_write_vectored(),
        }
    }

    /// Writes what TLS or another protocol has kept back; whoever has written all must see to it.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Within(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Within(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A TCP connection below TLS, which counts what it is given.
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

/// Has the kernel ask a silent TCP peer whether it is still there, so that one that has vanished is noticed in two minutes: a
/// minute of silence, then six questions.
pub fn keep_alive(socket: impl AsFd) {
    use rustix::net::sockopt;
    // It is a courtesy: where the system has none of it, connections last until their timeouts.
    let _ = sockopt::set_tcp_keepidle(&socket, Duration::from_secs(60))
        .and_then(|()| sockopt::set_tcp_keepintvl(&socket, Duration::from_secs(10)))
        .and_then(|()| sockopt::set_tcp_keepcnt(&socket, 6))
        .and_then(|()| sockopt::set_socket_keepalive(&socket, true));
}

/// What one read takes at the most.
const SCRATCH: usize = 64 * 1024;

thread_local! {
    /// One read buffer a thread instead of one a connection: ten thousand idle connections cost none.
    static READING: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH].into_boxed_slice());
}

/// Reads once, at most `max` bytes, and hands them to `taking` before anybody else can read on this thread. An empty
/// slice is the end of the stream. `taking` must not read itself.
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

/// As [`read_some`], for those who pass on at once what they read: `taking` may write, but must not read.
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
