//! A client: whole answers for most tests, and bare connections for those that look at bytes and time. Knows no Hostler.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::http::{HeaderMap, Request, Response, request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{interval, timeout};

use super::site::PATIENCE;

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[track_caller]
    pub fn assert_ok(self) -> Self {
        assert_eq!(self.status, 200, "{}", self.text());
        self
    }

    #[track_caller]
    pub fn assert_refused(&self, status: u16, reason: &str) {
        assert_eq!((self.status, self.header("hostler-refusal")), (status, reason), "{}", self.text());
    }
}

/// A request to be filled in; the host is that of the site.
pub fn request(method: &str, path: &str) -> request::Builder {
    Request::builder().method(method).uri(path)
}

/// Asks over a connection of its own; dropped before its end, it hangs up.
pub async fn fetch(
    address: SocketAddr,
    from: IpAddr,
    request: Request<Full<Bytes>>,
) -> Result<Answer, hyper::Error> {
    let (head, body) = begin(address, from, request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
}

/// Asks, and returns as soon as the answer begins.
pub async fn begin(
    address: SocketAddr,
    from: IpAddr,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, hyper::Error> {
    let host = address.to_string().parse().unwrap();
    request.headers_mut().entry("host").or_insert(host);
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from, 0)).unwrap();
    let stream = socket.connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the sender and the answer's body.
    tokio::spawn(connection);
    timeout(PATIENCE * 2, sender.send_request(request)).await.expect("an answer in time")
}

/// The usual client.
pub const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A connection as bytes.
pub struct Wire(TcpStream);

impl Wire {
    pub async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// With so small a buffer that what is not read stays with the server.
    pub async fn connect_narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        Self(socket.connect(address).await.unwrap())
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends 1 KiB a second.
    pub async fn send_slowly(&mut self, bytes: &[u8]) {
        let mut seconds = interval(Duration::from_secs(1));
        for piece in bytes.chunks(1024) {
            seconds.tick().await;
            self.send(piece).await;
        }
    }

    /// Reads 1 KiB a second, so many times.
    pub async fn read_slowly(&mut self, times: usize) -> Vec<u8> {
        let mut seconds = interval(Duration::from_secs(1));
        let mut read = vec![0; 1024 * times];
        for piece in read.chunks_mut(1024) {
            seconds.tick().await;
            self.0.read_exact(piece).await.unwrap();
        }
        read
    }

    /// Reads until this text has come; returns all that came.
    pub async fn until(&mut self, text: &str) -> String {
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains(text) {
            let outcome = timeout(PATIENCE, self.0.read_buf(&mut read)).await;
            let so_far = String::from_utf8_lossy(&read);
            let read = outcome.unwrap_or_else(|_| panic!("no {text:?} after {so_far:?}")).unwrap();
            assert_ne!(read, 0, "the end came before {text:?}: {so_far:?}");
        }
        String::from_utf8(read).unwrap()
    }

    /// Reads to the end of the connection.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut read = Vec::new();
        timeout(PATIENCE, self.0.read_to_end(&mut read)).await.expect("the end in time").unwrap();
        read
    }
}
