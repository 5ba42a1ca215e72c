//! An HTTP/2 member whose answers the test writes. Knows nothing of Hostler.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{RecvStream, SendStream};
use hostler_testkit::Frame;
use http::{HeaderMap, Request, Response};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A received request and the way to answer it.
pub(super) struct Asked {
    pub request: Request<RecvStream>,
    pub respond: SendResponse<Bytes>,
    /// The number of its connection, from 1.
    pub connection: usize,
    /// The number of the request over all connections, from 1.
    pub nth: usize,
}

/// A running member. It ends when it is dropped.
pub(super) struct Http2Member {
    address: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    connections: AtomicUsize,
    open: AtomicUsize,
    requests: AtomicUsize,
    /// Tells every connection to end after its streams.
    leave: Notify,
    seen: Mutex<Vec<(String, HeaderMap)>>,
}

/// What a client of HTTP/2 sends first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves one connection without the `h2` crate: answers each HEADERS frame with the bytes that `answer` makes for its stream, and counts them.
pub(super) async fn answer_heads(
    mut connection: TcpStream,
    count: Arc<AtomicUsize>,
    answer: impl Fn([u8; 4]) -> Vec<u8>,
) -> io::Result<()> {
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    connection.write_all(&settings).await?;
    connection.read_exact(&mut [0; PREFACE.len()]).await?;
    loop {
        let mut head = [0; 9];
        connection.read_exact(&mut head).await?;
        let [high, middle, low, kind, _, stream @ ..] = head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        connection.read_exact(&mut vec![0; length as usize]).await?;
        if kind == Frame::HEADERS {
            count.fetch_add(1, Ordering::SeqCst);
            connection.write_all(&answer(stream)).await?;
        }
    }
}

/// The settings of the member.
#[derive(Default)]
pub(super) struct Http2Plan {
    pub most_streams: Option<u32>,
    /// `SETTINGS_MAX_HEADER_LIST_SIZE`.
    pub most_head: Option<u32>,
    pub tls: Option<ServerConfig>,
}

impl Http2Plan {
    pub async fn start<F>(self, script: impl Fn(Asked) -> F + Send + Sync + 'static) -> Http2Member
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let address = if self.tls.is_some() { format!("https://{address}") } else { address };
        let mut builder = Builder::new();
        if let Some(most) = self.most_streams {
            builder.max_concurrent_streams(most);
        }
        if let Some(most) = self.most_head {
            builder.max_header_list_size(most);
        }
        let tls = self.tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        let (shared, script) = (Arc::new(Shared::default()), Arc::new(script));
        let accepting = tokio::spawn({
            let shared = shared.clone();
            async move {
                let mut connections = tokio::task::JoinSet::new();
                while let Ok((stream, _)) = listener.accept().await {
                    let (shared, script, tls) = (shared.clone(), script.clone(), tls.clone());
                    let builder = builder.clone();
                    connections.spawn(async move {
                        let Some(tls) = tls else {
                            return serve(stream, &builder, shared, script).await;
                        };
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, &builder, shared, script).await;
                        }
                    });
                }
            }
        });
        Http2Member { address, shared, accepting }
    }
}

async fn serve<F>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    builder: &Builder,
    shared: Arc<Shared>,
    script: Arc<impl Fn(Asked) -> F + Send + Sync + 'static>,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let connection = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
    shared.open.fetch_add(1, Ordering::SeqCst);
    if let Ok(mut serving) = builder.handshake::<_, Bytes>(stream).await {
        let mut leaving = std::pin::pin!(shared.leave.notified());
        let mut has_left = false;
        loop {
            tokio::select! {
                asked = serving.accept() => {
                    let Some(Ok((request, respond))) = asked else { break };
                    let nth = shared.requests.fetch_add(1, Ordering::SeqCst) + 1;
                    let target = format!("{} {}", request.method(), request.uri());
                    shared.seen.lock().unwrap().push((target, request.headers().clone()));
                    tokio::spawn(script(Asked { request, respond, connection, nth }));
                }
                () = leaving.as_mut(), if !has_left => {
                    has_left = true;
                    serving.graceful_shutdown();
                }
            }
        }
    }
    shared.open.fetch_sub(1, Ordering::SeqCst);
}

impl Http2Member {
    pub fn address(&self) -> &str {
        &self.address
    }

    /// All connections so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Open connections.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// All requests so far.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// The requests: method, URI and fields.
    pub fn seen(&self) -> Vec<(String, HeaderMap)> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Sends GOAWAY on all connections.
    pub fn leave(&self) {
        self.shared.leave.notify_waiters();
    }
}

impl Drop for Http2Member {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Asked {
    /// The whole body, and its trailers.
    pub async fn read(&mut self) -> (Vec<u8>, Option<HeaderMap>) {
        let (stream, mut body) = (self.request.body_mut(), Vec::new());
        while let Some(Ok(data)) = stream.data().await {
            body.extend_from_slice(&data);
            let _ = stream.flow_control().release_capacity(data.len());
        }
        (body, stream.trailers().await.unwrap_or_default())
    }

    pub fn path(&self) -> String {
        self.request.uri().path().to_owned()
    }

    /// Sends a head, and returns the stream for the body.
    pub fn begin(&mut self, head: Response<()>) -> SendStream<Bytes> {
        self.respond.send_response(head, false).unwrap()
    }

    /// 200 with this body.
    pub async fn ok(mut self, body: impl Into<Vec<u8>>) {
        let stream = self.begin(Response::new(()));
        send(stream, body.into().into(), true).await;
    }
}

/// Sends as fast as the other side takes it. Ignores what is not taken any more.
pub(super) async fn send(
    mut stream: SendStream<Bytes>,
    mut body: Bytes,
    ends: bool,
) -> Option<SendStream<Bytes>> {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await?.ok()?;
        stream.send_data(body.split_to(room.min(body.len())), false).ok()?;
    }
    if ends {
        stream.send_data(Bytes::new(), true).ok()?;
    }
    Some(stream)
}
