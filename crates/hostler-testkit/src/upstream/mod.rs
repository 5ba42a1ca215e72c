//! A member that does exactly what a test tells it to, and writes down what it was asked. Knows nothing of Hostler.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::eventually::eventually;
use crate::message::{BodyReader, Framing, Head};

/// What an upstream does with a request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends exact bytes.
    Send(Vec<u8>),
    /// Waits for a [`Upstream::release`].
    Hold,
    /// Reads the request's body to its end (needed only where the steps begin with the head).
    ReadBody,
    /// Waits until the other side says that nothing more will come.
    AwaitFin,
    /// Closes the connection.
    Close,
    /// Resets the connection (TCP only).
    Reset,
}

/// A whole answer: 200 with a body of known length.
pub fn ok(body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// Exact bytes, and the connection stays open.
pub fn text(bytes: impl AsRef<[u8]>) -> Vec<Step> {
    vec![Step::Send(bytes.as_ref().to_vec())]
}

/// A request as an upstream saw it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Its head.
    pub head: Head,
    /// What came of its body so far.
    pub body: Vec<u8>,
    /// Its body came to an end.
    pub is_whole: bool,
    /// Its trailer field lines.
    pub trailers: Vec<String>,
    /// On which connection it came, counted from 1.
    pub connection: usize,
    /// Which request on that connection it was, counted from 1.
    pub nth: usize,
    /// The other side has said that nothing more will come while the request ran.
    pub fin: bool,
}

impl Seen {
    /// The method.
    pub fn method(&self) -> String {
        self.head.parts()[0].clone()
    }

    /// The target.
    pub fn target(&self) -> String {
        self.head.parts()[1].clone()
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<String> {
        self.head.field(name)
    }
}

type Script = dyn Fn(&Seen) -> Vec<Step> + Send + Sync;

/// An upstream to be started.
pub struct UpstreamPlan {
    script: Arc<Script>,
    at_head: bool,
    unix: Option<PathBuf>,
}

/// An upstream that answers `200 ok` to everything, unless told otherwise.
pub fn upstream() -> UpstreamPlan {
    UpstreamPlan { script: Arc::new(|_| ok("ok")), at_head: false, unix: None }
}

/// The address of a member that refuses connections.
pub async fn no_upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

impl UpstreamPlan {
    /// What it does with each request, once that has come whole.
    pub fn script(mut self, script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        self.script = Arc::new(script);
        self
    }

    /// The same for every request.
    pub fn does(self, steps: Vec<Step>) -> Self {
        self.script(move |_| steps.clone())
    }

    /// Sends the same bytes for every request.
    pub fn answers(self, bytes: impl AsRef<[u8]>) -> Self {
        self.does(text(bytes))
    }

    /// Does for the first request the first, and so on; 200 for those beyond.
    pub fn in_turn(self, scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let left = Mutex::new(scripts.into_iter().collect::<VecDeque<_>>());
        self.script(move |_| left.lock().unwrap().pop_front().unwrap_or_else(|| ok("ok")))
    }

    /// Holds every request until it is released, then answers 200 with the request's target.
    pub fn holds_requests(self) -> Self {
        self.script(|seen| [vec![Step::Hold], ok(seen.target())].concat())
    }

    /// Begins as soon as the head of a request is there.
    pub fn at_head(mut self) -> Self {
        self.at_head = true;
        self
    }

    /// Listens on a Unix socket.
    pub fn on_unix(mut self, path: &Path) -> Self {
        self.unix = Some(path.to_owned());
        self
    }

    /// Starts it.
    pub async fn start(self) -> Upstream {
        let (listener, address) = match self.unix {
            Some(path) => {
                (Listener::Unix(UnixListener::bind(&path).unwrap()), format!("unix:{}", path.display()))
            }
            None => {
                let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
                let address = listener.local_addr().unwrap().to_string();
                (Listener::Tcp(listener), address)
            }
        };
        let shared = Arc::new(Shared {
            script: self.script,
            at_head: self.at_head,
            released: Semaphore::new(0),
            state: Mutex::default(),
            ended: watch::Sender::new(false),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Upstream { address, shared, accepting }
    }
}

/// A running upstream; it ends when dropped, with all its connections.
pub struct Upstream {
    address: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    script: Arc<Script>,
    at_head: bool,
    released: Semaphore,
    state: Mutex<State>,
    ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    seen: Vec<Seen>,
    connections: usize,
    open: usize,
    running: usize,
    most_running: usize,
}

impl Upstream {
    /// Where it listens, as a pool's member.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Lets so many held requests go on.
    pub fn release(&self, requests: usize) {
        self.shared.released.add_permits(requests);
    }

    /// Lets all held requests go on, and all to come.
    pub fn release_all(&self) {
        self.shared.released.add_permits(1_000_000);
    }

    /// All requests that it has seen, in the order in which their heads came.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// The targets of all requests that it has seen.
    pub fn targets(&self) -> Vec<String> {
        self.requests().iter().map(Seen::target).collect()
    }

    /// The only request that it has seen.
    ///
    /// # Panics
    /// If there were several, or none.
    #[track_caller]
    pub fn only_request(&self) -> Seen {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "exactly one request: {:?}", self.targets());
        requests.remove(0)
    }

    /// Requests that run at this moment.
    pub fn running(&self) -> usize {
        self.shared.state().running
    }

    /// The most requests that ever ran at once.
    pub fn most_running(&self) -> usize {
        self.shared.state().most_running
    }

    /// Connections that it has ever had.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.shared.state().open
    }

    /// Waits until it has seen so many requests.
    pub async fn has_seen(&self, requests: usize) {
        eventually(format!("{requests} requests at {}", self.address), async || {
            (self.requests().len() >= requests).then_some(())
        })
        .await;
    }

    /// Ends it: its connections are closed, new ones refused.
    pub async fn stop(self) {
        self.shared.ended.send_replace(true);
        self.accepting.abort();
        eventually("the upstream's connections to end", async || (self.open() == 0).then_some(())).await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.ended.send_replace(true);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

async fn accept(listener: Listener, shared: Arc<Shared>) {
    while let Ok(stream) = listener.accept().await {
        let number = {
            let mut state = shared.state();
            state.connections += 1;
            state.open += 1;
            state.connections
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let mut ended = shared.ended.subscribe();
            let mut connection = Connection { stream, inbox: Vec::new(), shared: shared.clone(), number };
            tokio::select! {
                () = connection.serve() => {}
                _ = ended.wait_for(|ended| *ended) => {}
            }
            drop(connection);
            shared.state().open -= 1;
        });
    }
}

struct Connection {
    stream: Stream,
    inbox: Vec<u8>,
    shared: Arc<Shared>,
    number: usize,
}

/// Counts a request for as long as it runs.
struct Running(Arc<Shared>);

impl Running {
    fn new(shared: &Arc<Shared>) -> Self {
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

impl Connection {
    /// One request after another.
    async fn serve(&mut self) {
        for nth in 1.. {
            let Some(head) = self.next_head().await else { return };
            let running = Running::new(&self.shared);
            let mut body = BodyReader::new(Framing::of(&head).unwrap_or(Framing::Length(0)));
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

    /// False when the connection has come to its end.
    async fn step(&mut self, step: Step, body: &mut BodyReader, index: usize) -> bool {
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
                if let Stream::Tcp(stream) = &self.stream {
                    stream.set_zero_linger().unwrap();
                }
                false
            }
        }
    }

    async fn next_head(&mut self) -> Option<Head> {
        loop {
            if let Some(head) = Head::take(&mut self.inbox) {
                return Some(head);
            }
            if !self.read().await {
                return None;
            }
        }
    }

    async fn read_body(&mut self, body: &mut BodyReader, index: usize) -> bool {
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

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

impl Stream {
    async fn read(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        // Large bodies come in large pieces.
        into.reserve(64 * 1024);
        match self {
            Self::Tcp(stream) => stream.read_buf(into).await,
            Self::Unix(stream) => stream.read_buf(into).await,
        }
    }

    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).await,
            Self::Unix(stream) => stream.write_all(bytes).await,
        }
    }
}
