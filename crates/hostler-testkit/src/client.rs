//! A client that sends exactly the bytes a test gives it. Knows nothing of Hostler.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::answer::{ConnectionEnding, ReceivedAnswer};
use crate::eventually::within;
use crate::message::{MessageFraming, MessageHead, MessageReader};
use crate::stream::ClientStream;

/// A connection to a server.
pub struct Client {
    stream: ClientStream,
    /// Bytes that were read and not used yet.
    inbox: Vec<u8>,
    ended: Option<ConnectionEnding>,
}

/// Connects.
pub async fn client(address: SocketAddr) -> Client {
    client_from(Ipv4Addr::LOCALHOST.into(), address).await
}

/// Connects. `None` if the connection is refused.
pub async fn try_client(address: SocketAddr) -> Option<Client> {
    try_client_from(Ipv4Addr::LOCALHOST.into(), address).await
}

/// Connects from one of the machine's addresses. `None` if the connection is refused.
pub async fn try_client_from(from: IpAddr, address: SocketAddr) -> Option<Client> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from, 0)).unwrap();
    socket.connect(address).await.ok().map(Client::over_tcp)
}

/// Connects from one of the machine's addresses. All addresses in 127.0.0.0/8 are.
pub async fn client_from(from: IpAddr, address: SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from, 0)).unwrap();
    Client::over_tcp(within("a connection", socket.connect(address)).await.unwrap())
}

/// Connects with a small receive window, so that the server soon has to wait with its data.
pub async fn client_with_window(bytes: u32, address: SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(bytes).unwrap();
    Client::over_tcp(within("a connection", socket.connect(address)).await.unwrap())
}

impl Client {
    fn over_tcp(stream: TcpStream) -> Self {
        // A second piece that a test sends must not wait until the first one is acknowledged.
        stream.set_nodelay(true).unwrap();
        Self::over(ClientStream::Tcp(stream))
    }

    pub(crate) fn over(stream: ClientStream) -> Self {
        Self { stream, inbox: Vec::new(), ended: None }
    }

    pub(crate) fn stream(&self) -> &ClientStream {
        &self.stream
    }

    /// The client's own address.
    pub fn address(&self) -> SocketAddr {
        self.stream.tcp().local_addr().unwrap()
    }

    /// Sends exact bytes. If the server has closed the connection, the next read reports it.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = async {
            self.stream.write_all(bytes.as_ref()).await?;
            self.stream.flush().await
        };
        let _ = within("the server to take what is sent", sent).await;
    }

    /// Sends as many bytes as the system takes at once. For servers that stop reading at some point.
    pub fn send_some(&mut self, bytes: &[u8]) -> usize {
        self.stream.tcp().try_write(bytes).unwrap_or(0)
    }

    /// Sends GET on this connection and reads the response.
    pub async fn get(&mut self, path: &str) -> ReceivedAnswer {
        self.get_of("site.test", path).await
    }

    /// Sends GET with this `Host` and reads the response.
    pub async fn get_of(&mut self, host: &str, path: &str) -> ReceivedAnswer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        self.answer().await
    }

    /// Sends POST with a body of known length and reads the response.
    pub async fn post(&mut self, path: &str, body: impl AsRef<[u8]>) -> ReceivedAnswer {
        self.send(crate::request(&format!("POST {path}"), "", body.as_ref())).await;
        self.answer().await
    }

    /// Ends the sending direction (FIN). Reading goes on.
    pub async fn finish_sending(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Ends only the sending direction of TCP, without the close message of TLS.
    pub fn cut_off(&self) {
        let _ = rustix::net::shutdown(self.stream.tcp(), rustix::net::Shutdown::Write);
    }

    /// Resets the connection (RST).
    pub fn reset(self) {
        self.stream.tcp().set_zero_linger().unwrap();
    }

    /// Reads the next response.
    ///
    /// # Panics
    /// If there is none.
    pub async fn answer(&mut self) -> ReceivedAnswer {
        self.answer_to("GET").await
    }

    /// Reads the response to a request with this method (a response to HEAD has no body).
    ///
    /// # Panics
    /// If there is none.
    pub async fn answer_to(&mut self, method: &str) -> ReceivedAnswer {
        match self.maybe_answer(method).await {
            Some(answer) => answer,
            None => panic!("no answer: {:?} after {:?}", self.ended, String::from_utf8_lossy(&self.inbox)),
        }
    }

    /// Reads the next response. `None` if the connection ends before it begins.
    pub async fn maybe_answer(&mut self, method: &str) -> Option<ReceivedAnswer> {
        let mut interim = Vec::new();
        let head = loop {
            let head = self.next_head().await?;
            match status(&head) {
                100..200 => interim.push(head),
                _ => break head,
            }
        };
        let status = status(&head);
        let none = method == "HEAD" || matches!(status, 204 | 304);
        let framing = if none {
            MessageFraming::Length(0)
        } else {
            MessageFraming::of(&head).unwrap_or(MessageFraming::UntilClose)
        };
        let mut body = MessageReader::new(framing);
        let ending = self.read_body(&mut body, framing).await;
        let MessageReader { data, trailers, chunks, .. } = body;
        Some(ReceivedAnswer { status, head, interim, body: data, chunks, trailers, ending })
    }

    /// Reads the next head, interim or final.
    pub async fn next_head(&mut self) -> Option<MessageHead> {
        loop {
            if let Some(head) = MessageHead::take(&mut self.inbox) {
                return Some(head);
            }
            if self.read("a head").await.is_some() {
                return None;
            }
        }
    }

    async fn read_body(&mut self, body: &mut MessageReader, framing: MessageFraming) -> ConnectionEnding {
        loop {
            body.feed(&mut self.inbox);
            if body.ended {
                return ConnectionEnding::Whole;
            }
            match self.read("a body").await {
                None => {}
                Some(ConnectionEnding::Reset) => return ConnectionEnding::Reset,
                // The body ends with the connection if no field gives its length.
                Some(_) if framing == MessageFraming::UntilClose => return ConnectionEnding::Whole,
                Some(_) => return ConnectionEnding::Cut,
            }
        }
    }

    /// Reads until this text has come. Returns everything up to its end.
    pub async fn read_until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = crate::message::find(&self.inbox, text.as_bytes()) {
                let taken: Vec<u8> = self.inbox.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&taken).into_owned();
            }
            let ended = self.read(text).await;
            assert!(ended.is_none(), "{ended:?} before {text:?}: {:?}", String::from_utf8_lossy(&self.inbox));
        }
    }

    /// Reads exactly this many bytes.
    pub async fn read_exactly(&mut self, bytes: usize) -> Vec<u8> {
        while self.inbox.len() < bytes {
            let ended = self.read("this many bytes").await;
            assert!(ended.is_none(), "{ended:?} after {} of {bytes} bytes", self.inbox.len());
        }
        self.inbox.drain(..bytes).collect()
    }

    /// Reads to the end of the connection. Returns all bytes, and how the connection ended.
    pub async fn rest(&mut self) -> (String, ConnectionEnding) {
        loop {
            if let Some(ending) = self.read("the end of the connection").await {
                return (String::from_utf8_lossy(&std::mem::take(&mut self.inbox)).into_owned(), ending);
            }
        }
    }

    /// Reads to the end of a connection that the server refuses, which a client of TLS 1.3 learns only when it reads.
    /// Returns all bytes.
    pub async fn refused(&mut self) -> String {
        let end = async { while self.stream.read_buf(&mut self.inbox).await.is_ok_and(|read| read > 0) {} };
        within("the end of a refused connection", end).await;
        String::from_utf8_lossy(&std::mem::take(&mut self.inbox)).into_owned()
    }

    /// Asserts that the server closes the connection now without another byte.
    #[track_caller]
    pub fn assert_closed(&mut self) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let (rest, _) = self.rest().await;
            assert!(rest.is_empty(), "expected the end of the connection at {place}, got {rest:?}");
        }
    }

    /// Reads once; `Some` at the end of the connection.
    async fn read(&mut self, what: &str) -> Option<ConnectionEnding> {
        if self.ended.is_some() {
            return self.ended;
        }
        let seen = self.inbox.len().min(300);
        let what = format!("{what} after {:?}", String::from_utf8_lossy(&self.inbox[..seen]));
        self.ended = match within(what, self.stream.read_buf(&mut self.inbox)).await {
            Ok(0) => Some(ConnectionEnding::Cut),
            Ok(_) => None,
            Err(error) if is_reset(&error) => Some(ConnectionEnding::Reset),
            Err(error) => panic!("cannot read: {error}"),
        };
        self.ended
    }
}

fn is_reset(error: &io::Error) -> bool {
    // In TLS, an end without a close message counts as cut off, because an attacker could have caused it.
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionReset | BrokenPipe | UnexpectedEof)
}

fn status(head: &MessageHead) -> u16 {
    let [version, status, _] = head.parts();
    assert_eq!(version, "HTTP/1.1", "in {}", head.text());
    status.parse().expect("a status code")
}
