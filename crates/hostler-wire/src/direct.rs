//! Bytes that go from a file to a socket inside the kernel, without a copy here (`sendfile`). Knows no HTTP.

use std::fs::File;
use std::io;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::stream::Stream;
use crate::turn::{self, MOST_AT_ONCE};

/// The next bytes of a file.
#[derive(Debug)]
pub struct FilePart<'a> {
    /// The file.
    pub file: &'a File,
    /// Where the bytes begin.
    pub at: u64,
    /// How many bytes there are.
    pub length: u64,
}

impl Stream {
    /// Whether bytes of files can be sent by `sendfile`: over plain TCP on Linux. TLS and HTTP/2 must encrypt or frame them first, and on
    /// other systems they are read and written.
    pub fn takes_files(&self) -> bool {
        cfg!(target_os = "linux") && matches!(self, Self::Tcp(_))
    }

    /// Sends some of the part. Ready with the number of bytes, or with 0 if the file has become shorter. Errors: of the file or the socket.
    pub fn poll_send_file(&mut self, cx: &mut Context<'_>, part: &FilePart<'_>) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => poll_send_file(stream, cx, part),
            Self::Unix(_) | Self::Tls(_) | Self::InHttp2(_) => {
                Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
            }
        }
    }
}

fn poll_send_file(stream: &TcpStream, cx: &mut Context<'_>, part: &FilePart<'_>) -> Poll<io::Result<usize>> {
    let most = usize::try_from(part.length).unwrap_or(MOST_AT_ONCE).min(MOST_AT_ONCE);
    loop {
        ready!(stream.poll_write_ready(cx))?;
        let sent = stream.try_io(Interest::WRITABLE, || {
            let mut at = part.at;
            send(stream, part.file, &mut at, most)
        });
        match sent {
            // tokio believed that the socket was writable. `try_io` has corrected that.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => {
                turn::has_written(cx, *sent.as_ref().unwrap_or(&0));
                return Poll::Ready(sent);
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn send(stream: &TcpStream, file: &File, at: &mut u64, most: usize) -> io::Result<usize> {
    Ok(rustix::fs::sendfile(stream, file, Some(at), most)?)
}

#[cfg(not(target_os = "linux"))]
fn send(_: &TcpStream, _: &File, _: &mut u64, _: usize) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
