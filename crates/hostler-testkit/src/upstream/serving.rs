//! The connections of an upstream: reads requests and carries out the steps. Knows no plans.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::script::{Seen, Step};
use crate::message::{MessageFraming, MessageHead, MessageReader};

/// What an upstream does with each request.
pub(super) type Script = dyn Fn(&Seen) -> Vec<Step> + Send + Sync;

/// What an upstream and its connections share.
pub(super) struct UpstreamShared {
    pub script: Arc<Script>,
    pub at_head: bool,
    pub released: Semaphore,
    pub state: Mutex<UpstreamState>,
    pub ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(super) struct UpstreamState {
    pub seen: Vec<Seen>,
    pub connections: usize,
    pub open: usize,
    pub running: usize,
    pub most_running: usize,
}

impl UpstreamShared {
    pub fn state(&self) -> MutexGuard<'_, UpstreamState> {
        self.state.lock().unwrap()
    }
}

pub(super) async fn accept(listener: UpstreamListener, shared: Arc<UpstreamShared>) {
    while let Ok(accepted) = listener.accept().await {
        let number = {
            let mut state = shared.state();
            state.connections += 1;
            state.open += 1;
            state.connections
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let mut ended = shared.ended.subscribe();
            let serving = async {
                // The handshake has failed.
                let Ok(stream) = accepted.ready().await else { return };
                UpstreamConnection { stream, inbox: Vec::new(), shared: shared.clone(), number }
                    .serve()
                    .await;
            };
            tokio::select! {
                () = serving => {}
                _ = ended.wait_for(|ended| *ended) => {}
            }
            shared.state().open -= 1;
        });
    }
}

struct UpstreamConnection {
    stream: UpstreamStream,
    inbox: Vec<u8>,
    shared: Arc<UpstreamShared>,
    number: usize,
}

/// Counts a request while it runs.
struct Running(Arc<UpstreamShared>);

impl Running {
    fn new(shared: &Arc<UpstreamShared>) -> Self {
        let mut state = shared.state();
        state.running += 1;
        state.most_running = state.most_running.max(state.running);
        Self(shared.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.state().running -= 1;
    }
}

impl UpstreamConnection {
    /// Serves one request after another.
    async fn serve(&mut self) {
        for nth in 1.. {
            let Some(head) = self.next_head().await else { return };
            let running = Running::new(&self.shared);
            let mut body = MessageReader::new(MessageFraming::of(&head).unwrap_or(MessageFraming::Length(0)));
            let seen = Seen { head, connection: self.number, nth, is_whole: body.ended, ..Seen::default() };
            let index = {
                let mut state = self.shared.state();
                state.seen.push(seen);
                state.seen.len() - 1
            };
            if !self.shared.at_head && !self.read_body(&mut body, index).await {
                return;
            }
            let steps = (self.shared.script)(&self.seen(index));
            for step in steps {
                if !self.step(step, &mut body, index).await {
                    return;
                }
            }
            drop(running);
            if !body.ended && !self.read_body(&mut body, index).await {
                return;
            }
        }
    }

    /// Carries out a step. Returns false at the end of the connection.
    async fn step(&mut self, step: Step, body: &mut MessageReader, index: usize) -> bool {
        match step {
            Step::Send(bytes) => self.stream.write_all(&bytes).await.is_ok(),
            Step::Hold => {
                self.shared.released.acquire().await.unwrap().forget();
                true
            }
            Step::ReadBody => self.read_body(body, index).await,
            Step::AwaitFin => {
                while self.read().await {}
                self.shared.state().seen[index].fin = true;
                true
            }
            Step::Close => false,
            Step::Reset => {
                match &self.stream {
                    UpstreamStream::Tcp(stream) => stream.set_zero_linger().unwrap(),
                    UpstreamStream::Tls(stream) => stream.get_ref().0.set_zero_linger().unwrap(),
                    UpstreamStream::Unix(_) => {}
                }
                false
            }
        }
    }

    async fn next_head(&mut self) -> Option<MessageHead> {
        loop {
            if let Some(head) = MessageHead::take(&mut self.inbox) {
                return Some(head);
            }
            if !self.read().await {
                return None;
            }
        }
    }

    async fn read_body(&mut self, body: &mut MessageReader, index: usize) -> bool {
        loop {
            body.feed(&mut self.inbox);
            {
                let mut state = self.shared.state();
                let seen = &mut state.seen[index];
                let known = seen.body.len();
                seen.body.extend_from_slice(&body.data[known..]);
                seen.trailers.clone_from(&body.trailers);
                seen.is_whole = body.ended;
            }
            if body.ended {
                return true;
            }
            if !self.read().await {
                return false;
            }
        }
    }

    async fn read(&mut self) -> bool {
        matches!(self.stream.read(&mut self.inbox).await, Ok(1..))
    }

    fn seen(&self, index: usize) -> Seen {
        self.shared.state().seen[index].clone()
    }
}

pub(super) enum UpstreamListener {
    Tcp(TcpListener),
    Tls(TcpListener, TlsAcceptor),
    Unix(UnixListener),
}

/// An accepted connection, before or after the handshake.
enum Accepted {
    Ready(UpstreamStream),
    Tls(TcpStream, TlsAcceptor),
}

impl Accepted {
    async fn ready(self) -> io::Result<UpstreamStream> {
        match self {
            Self::Ready(stream) => Ok(stream),
            Self::Tls(stream, acceptor) => Ok(UpstreamStream::Tls(Box::new(acceptor.accept(stream).await?))),
        }
    }
}

pub(super) enum UpstreamStream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

impl UpstreamListener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Accepted::Ready(UpstreamStream::Tcp(stream)))
            }
            Self::Tls(listener, acceptor) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Accepted::Tls(stream, acceptor.clone()))
            }
            Self::Unix(listener) => Ok(Accepted::Ready(UpstreamStream::Unix(listener.accept().await?.0))),
        }
    }
}

impl UpstreamStream {
    async fn read(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        // Large bodies come in large pieces.
        into.reserve(64 * 1024);
        match self {
            Self::Tcp(stream) => stream.read_buf(into).await,
            Self::Tls(stream) => stream.read_buf(into).await,
            Self::Unix(stream) => stream.read_buf(into).await,
        }
    }

    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
            Self::Unix(stream) => stream.write_all(bytes).await,
        }
    }
}
