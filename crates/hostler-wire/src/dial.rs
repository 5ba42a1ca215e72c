//! Opens a connection to a Unix socket, or over TCP to a host, whose name may stand for several addresses. Sets no deadline.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long an address may be silent before the next one is tried as well (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);
/// While the backlog of a Unix socket is full, a connection is tried again: after this time at first, then after twice that, up to the second
/// of the two.
const BACKLOG_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(32));

/// The addresses of a host. A name is looked up on a thread that may block.
pub async fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(lookup_host((host, port)).await?.collect())
}

/// Connects to the host that has these addresses.
pub(crate) async fn dial(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    match addresses[..] {
        [only] => TcpStream::connect(only).await,
        _ => first_of(addresses).await,
    }
}

/// Connects to a Unix socket. If its server is alive and too busy to accept, so that the backlog is full, the kernel says so at once
/// (`EAGAIN`). Over TCP, such a connection waits. So it does here.
pub(crate) async fn dial_unix(path: &Path) -> io::Result<UnixStream> {
    let (mut pause, longest) = BACKLOG_PAUSES;
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(pause).await,
            connected => return connected,
        }
        pause = longest.min(pause * 2);
    }
}

/// Connects to the address that answers first. The attempts begin one after the other, in this order, and all of them go on.
async fn first_of(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut addresses = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        if let Some(address) = addresses.next() {
            attempts.spawn(TcpStream::connect(address));
        }
        tokio::select! {
            ended = attempts.join_next() => match ended {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => failure = error,
                Some(Err(error)) => failure = error.into(),
                None => return Err(failure),
            },
            () = sleep(HEAD_START), if addresses.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::{TcpListener, TcpSocket};
    use tokio::time::timeout;

    use super::*;

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    #[tokio::test]
    async fn an_address_that_is_silent_does_not_keep_the_next_one_from_being_tried() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(ANY).unwrap();
        let full = socket.listen(0).unwrap();
        let silent = full.local_addr().unwrap();
        // While this connection waits to be accepted, the kernel answers no other.
        let _waits = TcpStream::connect(silent).await.unwrap();
        let listener = TcpListener::bind(ANY).await.unwrap();
        let open = listener.local_addr().unwrap();
        let stream = timeout(Duration::from_secs(30), first_of(vec![silent, silent, open])).await;
        assert_eq!(stream.expect("it is tried").unwrap().peer_addr().unwrap(), open);
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_connection_waits_while_the_backlog_of_a_unix_socket_is_full() {
        use std::future::poll_fn;
        use std::pin::pin;
        use std::task::Poll;

        use tokio::net::UnixSocket;

        // The name is not in the file system, and goes with the socket.
        let name = format!("\0hostler-dial-{}", std::process::id());
        let path = Path::new(&name);
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(path).unwrap();
        let busy = socket.listen(0).unwrap();
        let _waits = dial_unix(path).await.unwrap();
        assert_eq!(UnixStream::connect(path).await.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut another = pin!(dial_unix(path));
        let first_try = poll_fn(|cx| Poll::Ready(another.as_mut().poll(cx))).await;
        assert!(first_try.is_pending(), "{first_try:?}");
        busy.accept().await.unwrap();
        timeout(Duration::from_secs(30), another).await.expect("it is tried again").unwrap();
        drop(busy);
        assert_eq!(dial_unix(path).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn an_address_that_refuses_is_followed_by_the_next_and_the_last_error_counts() {
        let closed = TcpListener::bind(ANY).await.unwrap().local_addr().unwrap();
        let listener = TcpListener::bind(ANY).await.unwrap();
        let open = listener.local_addr().unwrap();
        let stream = first_of(vec![closed, open]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        let error = first_of(vec![closed, closed]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(first_of(Vec::new()).await.is_err());
    }
}
