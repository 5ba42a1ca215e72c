//! The connections of the admin listener: their number and their time limits. At the end, each accepted connection still gets one answer.
//! Knows no requests.
//!
//! hyper's graceful shutdown closes a connection from which nothing was read yet. An operator's `hostler status` that has just connected
//! would fail. So this listener first stops to accept, then waits until each accepted connection was heard, and only then shuts down.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::ConnectInfo;
use axum::serve::Listener;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Sleep;

/// For a connection that sends nothing, such as a TCP health check.
const SILENCE_LIMIT: Duration = Duration::from_secs(1);
/// Further connections are closed at once: they must not take the file descriptors that clients of the app need.
const MOST_CONNECTIONS: usize = 256;
/// The most connections of one client, which needs no token for them. With all of them it would keep out health checks and operators.
const MOST_OF_CLIENT: usize = 64;
/// The most bytes that a connection keeps of a request's head. It has a request line of 64 KB at most.
const MOST_BYTES: usize = 128 * 1024;
/// From the accept, or the answer before, to the end of a request's head.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How long a client may read nothing while an answer waits for it.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// How many accepted connections have sent nothing.
#[derive(Clone)]
struct SilentConnections(Arc<watch::Sender<usize>>);

/// An accepted connection.
struct AdminConnection<S> {
    stream: S,
    /// Until the first byte.
    silent: Option<Silent>,
    /// While the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

struct Silent(SilentConnections);

/// The connections of each client: of an IPv4 address, or of an IPv6 network of 64 bits.
#[derive(Default)]
struct AdminClientCounts(HashMap<IpAddr, Arc<()>>);

/// Serves until `end` is true, then answers each connection that was accepted. `client` names the other end, and its address if it has one.
/// `ending` ends the answers that have no end of their own.
pub async fn serve<L: Listener, C: Clone + Send + Sync + 'static>(
    mut listener: L,
    router: Router,
    client: impl Fn(&L::Io, &L::Addr) -> (C, Option<IpAddr>),
    mut end: watch::Receiver<bool>,
    ending: impl FnOnce(),
) {
    let silent = SilentConnections(Arc::new(watch::Sender::new(0)));
    let (closing, closed) = watch::channel(false);
    let (mut served, mut counts) = (JoinSet::new(), AdminClientCounts::default());
    loop {
        tokio::select! {
            // axum retries a failed accept.
            (stream, address) = listener.accept() => {
                if served.len() >= MOST_CONNECTIONS {
                    continue;
                }
                let (name, ip) = client(&stream, &address);
                let Some(place) = counts.one_more(ip) else { continue };
                let router = router.clone().layer(Extension(ConnectInfo(name)));
                let connection = AdminConnection { stream, silent: Some(silent.one_more()), stalled: None };
                let serving = serve_connection(connection, router, closed.clone());
                served.spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            Some(_) = served.join_next() => {}
            // An error means that the sender is gone: the end too.
            _ = end.wait_for(|&ended| ended) => break,
        }
    }
    drop(listener);
    ending();
    silent.heard().await;
    closing.send_replace(true);
    while served.join_next().await.is_some() {}
}

async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin>(
    connection: AdminConnection<S>,
    router: Router,
    mut closed: watch::Receiver<bool>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(MOST_BYTES);
    let serving = http.serve_connection(TokioIo::new(connection), TowerToHyperService::new(router));
    let mut serving = pin!(serving);
    // Errors are the client's: it has left, was too slow, or has sent no HTTP. hyper has answered what can be answered.
    tokio::select! {
        _ = serving.as_mut() => return,
        _ = closed.wait_for(|&closed| closed) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

impl AdminClientCounts {
    /// A place for one more connection, which counts until it is dropped. None: the client has too many. A client of a Unix socket has no address and
    /// no limit.
    fn one_more(&mut self, ip: Option<IpAddr>) -> Option<Arc<()>> {
        let Some(ip) = ip else { return Some(Arc::default()) };
        self.0.retain(|_, places| Arc::strong_count(places) > 1);
        let places = self.0.entry(network(ip)).or_default();
        // The map itself holds one of the references.
        (Arc::strong_count(places) <= MOST_OF_CLIENT).then(|| places.clone())
    }
}

fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits((ip.to_bits() >> 64) << 64).into(),
        ip => ip,
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

impl<S> AdminConnection<S> {
    /// A client that never reads must not keep its connection.
    fn limited(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_LIMIT)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
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
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, outcome)
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
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limited(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use hostler_testkit::eventually;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket, TcpStream};
    use tokio::task::JoinHandle;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

    /// A listener whose only page is `here`.
    async fn listener() -> (SocketAddr, watch::Sender<bool>, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = watch::channel(false);
        let router = Router::new().route("/", get(async || "here"));
        let serving = serve(listener, router, |_, address| ((), Some(address.ip())), ended, || ());
        (address, end, tokio::spawn(serving))
    }

    /// Connects from an address of the loopback network.
    async fn connect_from(last: usize, address: SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("127.0.0.{last}:0").parse().unwrap()).unwrap();
        socket.connect(address).await.unwrap()
    }

    async fn rest(mut client: TcpStream) -> String {
        let mut answer = Vec::new();
        // A reset is an end, too.
        let _ = client.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn a_connection_that_was_accepted_before_the_end_gets_its_answer() {
        let (address, end, server) = listener().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        // The listener has accepted the first one when it has answered the second one.
        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(REQUEST).await.unwrap();
        assert!(rest(second).await.ends_with("here"));
        end.send(true).unwrap();
        eventually("the listener to close", async || TcpStream::connect(address).await.err()).await;
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let answer = rest(client).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("here"), "{answer}");
        server.await.unwrap();
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_are_closed_at_once() {
        let (address, _end, _server) = listener().await;
        let mut open = Vec::new();
        for number in 0..MOST_CONNECTIONS {
            open.push(connect_from(2 + number / MOST_OF_CLIENT, address).await);
        }
        assert_eq!(rest(TcpStream::connect(address).await.unwrap()).await, "");
        open.clear();
        eventually("room for another one", async || {
            let mut client = TcpStream::connect(address).await.unwrap();
            let _ = client.write_all(REQUEST).await;
            rest(client).await.ends_with("here").then_some(())
        })
        .await;
    }

    #[tokio::test]
    async fn a_client_with_many_connections_leaves_room_for_others() {
        let (address, _end, _server) = listener().await;
        let mut open = Vec::new();
        for _ in 0..MOST_OF_CLIENT {
            open.push(TcpStream::connect(address).await.unwrap());
        }
        assert_eq!(rest(TcpStream::connect(address).await.unwrap()).await, "");
        let mut other = connect_from(2, address).await;
        other.write_all(REQUEST).await.unwrap();
        assert!(rest(other).await.ends_with("here"));
        drop(open.pop());
        eventually("room for another one of the client", async || {
            let mut client = TcpStream::connect(address).await.unwrap();
            let _ = client.write_all(REQUEST).await;
            rest(client).await.ends_with("here").then_some(())
        })
        .await;
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_admin_client() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::7"), of("2001:db8:1:2:ffff::8"));
        assert_ne!(of("2001:db8:1:2::7"), of("2001:db8:1:3::7"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        let mut counts = AdminClientCounts::default();
        let places: Vec<_> = (0..=MOST_OF_CLIENT).filter_map(|_| counts.one_more(None)).collect();
        assert_eq!(places.len(), MOST_OF_CLIENT + 1, "those of a Unix socket are not told apart");
    }

    #[tokio::test]
    async fn a_connection_keeps_no_head_without_end() {
        let (address, _end, _server) = listener().await;
        for (length, is_served) in [(MOST_BYTES / 2, true), (2 * MOST_BYTES, false)] {
            let mut client = TcpStream::connect(address).await.unwrap();
            let field = "x".repeat(length);
            let request = format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx: {field}\r\n\r\n");
            // The listener may close the connection before it has all of it.
            let _ = client.write_all(request.as_bytes()).await;
            assert_eq!(rest(client).await.ends_with("here"), is_served, "{length}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_arrive_ends_the_connection() {
        let (address, _end, _server) = listener().await;
        let begun = tokio::time::Instant::now();
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /sta").await.unwrap();
        rest(client).await;
        assert!(begun.elapsed() >= HEAD_LIMIT && begun.elapsed() < 2 * HEAD_LIMIT, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_reads_loses_its_connection() {
        let (stream, mut client) = tokio::io::duplex(64);
        let mut connection = AdminConnection { stream, silent: None, stalled: None };
        connection.write_all(&[0; 64]).await.unwrap();
        let begun = tokio::time::Instant::now();
        assert_eq!(connection.write_all(&[0; 64]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), WRITE_LIMIT);
        client.read_exact(&mut [0; 64]).await.unwrap();
        connection.write_all(&[0; 64]).await.unwrap();
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
